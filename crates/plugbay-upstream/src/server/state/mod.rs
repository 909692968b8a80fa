//! The parts of a server's actor: plain state without I/O. The time is passed in.

pub(super) mod known_hosts;
pub(super) mod list_schedule;
pub(super) mod listing;
pub(super) mod logins;
pub(super) mod server_requests;
pub(super) mod start_queue;
pub(super) mod subscriptions;
pub(super) mod tasks;

#[cfg(test)]
mod test_caller;
