//! OAuth 2.1: logins at the authorization servers of MCP servers, and the tokens of callers.

pub mod resource_server;
