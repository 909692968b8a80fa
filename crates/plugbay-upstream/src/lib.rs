//! Towards servers: one actor per server, its transport and its process.

mod http;
mod link;
mod pool;
pub mod process;
mod server;
pub mod spec;

pub use link::{
    Launched, Launcher, StderrSinks,
    connection::{Reader, Writer},
    launcher,
};
pub use pool::{Pool, ServerSet};
pub use server::{Condition, Report, ServerContext, ServerHandle, Status};
