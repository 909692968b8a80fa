//! Whole conversations over HTTP with scripted hosts and servers, in memory and on a paused clock.

mod asks;
mod desks;
mod ending;
mod errands;
mod guarded;
mod hostile;
mod legacy;
mod modern;
mod resuming;
mod slow;
mod stage;
mod tasks;
