//! The opening: determines the era, the identity and the capabilities of a server.
//!
//! [`machine`] decides and does no I/O; [`open`] moves its messages over a link.

mod driver;
mod machine;
mod messages;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities, catalog::ServerCapabilities, era::Era, extension::Extensions,
};

pub(super) use driver::open;
pub(super) use messages::reject;

use crate::http::TransportError;

/// Limit of unread responses: a server that sends requests without reading the responses gets no more.
pub(super) const RESPONSE_BACKLOG_LIMIT: usize = 1024 * 1024;

/// A server's declaration about itself.
#[derive(Debug, Default)]
pub(super) struct Opened {
    pub(super) era: Option<Era>,
    pub(super) info: Option<Bytes>,
    pub(super) instructions: Option<String>,
    pub(super) capabilities: ServerCapabilities,
    pub(super) extensions: Extensions,
    /// The client capabilities that plugbay declared to a legacy server.
    pub(super) declared: ClientCapabilities,
    pub(super) declared_extensions: Extensions,
    /// Whether it has not answered `server/discover`.
    pub(super) asked_in_vain: bool,
}

/// Why an opening failed.
#[derive(Debug)]
pub(super) enum OpenError {
    /// The server closed the connection. `probing`: only `server/discover` had been sent, which some
    /// legacy servers do not survive.
    Closed { probing: bool },
    /// The server answered `initialize` with this error.
    Refused(String),
    /// The server answers `Content-Length` headers with lines, so it reads lines.
    ReadsLines,
    /// The request was not delivered, or an intermediary rejected it.
    Undelivered(TransportError),
}

impl OpenError {
    /// Whether another request would fail in the same way.
    fn is_final(&self) -> bool {
        matches!(self, Self::Undelivered(error) if error.is_final())
    }
}
