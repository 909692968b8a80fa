//! Whole sessions with a scripted host and scripted servers, in memory and on a paused clock.

mod activate;
mod asks;
mod calls;
mod ending;
mod errands;
mod hostile;
mod listing;
mod news;
mod opening;
mod own;
mod parked;
mod passing;
mod ranking;
mod sampling;
mod shelf;
mod slow;
mod stage;
mod subscriptions;
mod suite;
mod tasks;
mod tasks_driven;

use crate::scripted::SECOND;
