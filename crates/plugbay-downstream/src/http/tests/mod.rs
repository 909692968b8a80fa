//! Whole conversations over HTTP with scripted hosts and servers, in memory and on a paused clock.

mod agent;
mod authorization;
mod budgets;
mod callers;
mod ending;
mod guarded;
mod harness;
mod host_views;
mod hostile;
mod legacy;
mod modern;
mod resuming;
mod server_card;
mod server_requests;
mod slow;
mod tasks;
mod tools_api;
