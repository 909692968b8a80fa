//! OAuth 2.1: logins at the authorization servers of MCP servers, and the tokens of callers.

mod header_source;
pub mod resource_server;

pub use header_source::HeaderSource;
