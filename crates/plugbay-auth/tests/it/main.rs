//! The login at servers, against a scripted authorization server.

mod bench;
mod flows;
mod log;
mod scripted;
