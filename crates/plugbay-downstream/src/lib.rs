//! Towards hosts: sessions, what their messages mean, and the transports that carry them.

mod dispatch;
mod gateway;
mod outbox;
mod respond;
mod session;
pub mod stdio;

pub use gateway::Gateway;
