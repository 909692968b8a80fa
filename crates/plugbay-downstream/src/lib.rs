//! Towards hosts: sessions, what their messages mean, and the transports that carry them.

mod budget;
mod dispatch;
mod gateway;
pub mod http;
mod lists;
mod outbox;
mod own;
mod respond;
mod route;
#[cfg(test)]
mod scripted;
mod session;
pub mod stdio;

pub use gateway::Gateway;
