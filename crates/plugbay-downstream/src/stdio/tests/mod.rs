//! Whole sessions with a scripted host and scripted servers, in memory and on a paused clock.

mod asks;
mod calls;
mod ending;
mod hostile;
mod listing;
mod opening;
mod parked;
mod slow;
mod stage;
mod subscriptions;

use crate::scripted::SECOND;
