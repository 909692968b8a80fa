//! OAuth 2.1: logins at MCP servers' authorization servers, and access tokens of callers.

pub mod address;
mod assertion;
mod authorization;
mod callback;
mod challenge;
mod client;
mod discovery;
mod freshness;
#[cfg(fuzzing)]
pub mod fuzzing;
mod header_source;
mod http;
mod jws;
pub mod keychain;
mod mcp_remote;
mod metadata;
mod random;
pub mod resource_server;
mod scopes;
mod server_login;
pub mod store;
mod token;

pub use discovery::DiscoveryError;
pub use header_source::HeaderSource;
pub use server_login::{Clock, LoggedOut, LoginError, LoginFlow, LoginSettings, ServerLogin};
