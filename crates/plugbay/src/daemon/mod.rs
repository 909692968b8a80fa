//! The daemon: holds the servers of all windows of one user, and is reached over a private socket.
//!
//! `hello`, `pipes` and `socket` are shared by bridges and the daemon; `start` starts a daemon and waits
//! until it is ready; `server` is the daemon itself.

mod contexts;
pub mod hello;
mod main;
pub mod pipes;
mod server;
pub mod socket;
pub mod start;
mod windows;

pub use self::{
    hello::{DaemonStatus, WindowStatus},
    main::{COMMAND, main},
};
