//! Building blocks for the gateway's tests: a scripted server (the binary beside this library), a scripted
//! host, and a workspace that keeps the files and processes of each test separate.
//!
//! Nothing here waits without a deadline, and a deadline that passes prints everything seen.

mod deadline;
mod endpoint;
mod host;
mod http_host;
mod message;
mod process;
mod programs;
mod script;
mod transcript;
mod workspace;

pub use deadline::{DEADLINE, patience, wait_until};
pub use endpoint::{Asked, Endpoint, Play};
pub use host::{Ended, Host, MODERN_META, Tool, dress};
pub use http_host::{HttpGateway, HttpHost, HttpReply};
pub use message::{Framing, RawMessage};
pub use process::{Process, Signal, descendants, mentioning, wait_until_gone};
pub use programs::{gateway_path, scripted_server_path, write_program};
pub use script::Script;
pub use workspace::{Config, Workspace, keep_workspaces};
