//! Whole sessions with a scripted host and scripted servers, in memory and on a paused clock.

mod activate;
mod agent;
mod builtin;
mod calls;
mod code;
mod ending;
mod harness;
mod hostile;
mod list_changes;
mod listing;
mod login;
mod notifications;
mod opening;
mod pass_through;
mod ranking;
mod replies;
mod resources;
mod results;
mod sampling;
mod server_requests;
mod skills;
mod slow;
mod subscriptions;
mod suite;
mod suspended;
mod tasks;
mod tasks_polled;

use crate::scripted::SECOND;
