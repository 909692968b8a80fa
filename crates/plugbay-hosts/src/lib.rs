//! What MCP hosts keep on disk: which hosts there are, where their files are, what the files say, and how to edit them.
//!
//! Text in, text out: nothing here reads the environment, and files are read and written by the caller.

pub mod entry;
pub mod jsonc;
pub mod own;

pub use entry::{Entry, Launch, Remote, RemoteKind};
