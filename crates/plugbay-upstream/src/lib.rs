//! Towards servers: one task per server, its transport and its process.

mod connection;
mod link;
mod pool;
pub mod process;
mod server;
pub mod spec;

pub use connection::{Reader, Writer};
pub use link::{Launched, Launcher, launcher};
pub use pool::{Pool, Roster};
pub use server::{Condition, Report, ServerHandle, Status, Surroundings};
