//! Whole sessions with a scripted host and scripted servers, in memory and on a paused clock.

mod calls;
mod ending;
mod hostile;
mod listing;
mod opening;
mod shelf;
mod slow;
mod stage;
mod subscriptions;

use crate::scripted::SECOND;
