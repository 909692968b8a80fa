//! The host side of the gateway: sessions, the handling of their requests, and the stdio and HTTP transports.

pub mod agent;
mod agent_settings;
mod answer_uris;
mod apps;
mod budget;
mod builtin;
mod connected_hosts;
mod context;
pub mod descriptors;
mod destination;
mod dispatch;
#[cfg(fuzzing)]
pub mod fuzzing;
mod gateway;
mod host_view;
pub mod http;
mod limits;
mod lists;
mod message;
mod open_apps;
mod outbox;
mod principal;
pub mod ranking;
mod rate;
mod references;
mod refusal;
pub mod remembered_searches;
mod respond;
mod results;
mod route;
mod run;
mod sampling;
#[cfg(test)]
mod scripted;
mod seal;
mod session;
pub mod stdio;
mod subscriptions;
mod suspended;
mod tasks;
mod workers;
mod write_timeout;

pub use connected_hosts::{ConnectedHost, ConnectedHosts};
pub use gateway::{Gateway, HostDeclared, HostEvents, SessionView, SessionViews, ToolUsage};
pub use principal::{Grant, Principal};
pub use results::Results;
pub use suspended::SuspendedCalls;
pub use workers::Workers;
