//! Logins at servers, tested with a scripted authorization server.

mod bench;
mod callbacks;
mod corpus;
#[cfg(unix)]
mod days;
mod flows;
mod leaks;
mod log;
mod machine;
mod remote;
mod scripted;
#[cfg(unix)]
mod stores;
