//! Checks the bearer tokens that callers of a shared gateway bring from an authorization server.
