//! What MCP hosts keep on disk: which hosts there are, where their files are, what the files say, and how to edit them.
//!
//! Text in, text out: nothing here reads the environment, and files are read and written by the caller.

pub mod edit;
pub mod entry;
pub mod jsonc;
pub mod known;
pub mod own;
pub mod permissions;
pub mod read;

pub use entry::{Entry, Launch, Remote, RemoteKind};
