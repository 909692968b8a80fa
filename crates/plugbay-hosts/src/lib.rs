//! The files of MCP hosts: which hosts there are, where their files are, what they contain, and how to edit
//! them.
//!
//! All functions take and return text: nothing here reads the environment, and the caller reads and writes
//! files.

pub mod edit;
pub mod entry;
pub mod jsonc;
pub mod known;
pub mod own;
pub mod permissions;
pub mod read;

pub use entry::{Entry, Launch, Remote, RemoteKind};
