//! Towards hosts: sessions, what their messages mean, and the transports that carry them.

pub mod agent;
mod budget;
mod builtin;
mod connected_hosts;
mod context;
mod dispatch;
mod gateway;
mod host_view;
pub mod http;
mod lists;
mod message;
mod notifications;
mod outbox;
mod parked;
pub mod ranking;
mod respond;
mod rounds;
mod route;
mod sampling;
#[cfg(test)]
mod scripted;
mod seal;
mod server_requests;
mod session;
pub mod stdio;
mod tasks;

pub use connected_hosts::{ConnectedHost, ConnectedHosts};
pub use gateway::Gateway;
