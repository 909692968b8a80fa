//! Towards hosts: sessions, what their messages mean, and the transports that carry them.

mod asking;
mod budget;
mod desk;
mod dispatch;
pub mod errand;
mod gateway;
mod guests;
pub mod http;
mod lists;
mod message;
mod news;
mod outbox;
mod own;
mod parked;
pub mod ranking;
mod respond;
mod rounds;
mod route;
mod sampling;
#[cfg(test)]
mod scripted;
mod seal;
mod session;
pub mod stdio;
mod tasks;

pub use gateway::Gateway;
pub use guests::{Guest, Guests};
