//! JSON-RPC as bytes: the only place that knows how a message looks on the wire.
//!
//! A message travels as the bytes it arrived in. [`Framer`] cuts a stream into messages, [`Head`] checks
//! them and finds the few fields a gateway needs, [`Draft`] and [`Frame`] replace them; the payload
//! between is never rebuilt.

#[cfg(test)]
mod corpus;
mod cursor;
mod draft;
mod frame;
mod framing;
mod head;
mod letters;
mod masks;
mod queue;
mod scan;
pub(crate) mod skip;
mod sse;
mod unescape;
pub mod write;

pub(crate) use cursor::{Cursor, Walk, key_value};
pub use cursor::{Member, Members, ScanError, elements, string_value};
pub use draft::{Draft, Hole};
pub use frame::Frame;
pub use framing::{Framer, Framing, Incoming, as_message};
pub use head::{Fault, Head, Kind, Malformed, check_params};
pub use letters::folds_to;
pub use queue::Queue;
pub use sse::{SseDecoder, SseItem};
pub(crate) use unescape::Unescaped;

/// A stretch of a message's bytes.
pub type Span = std::ops::Range<usize>;

/// How deep a message that we look into may be nested.
pub const DEPTH_LIMIT: u32 = 64;
/// How many members `params`, `result` or `error` may have. No message of the protocol has more than a few;
/// each one costs a step wherever a message is read. Objects nested deeper may have more.
pub const MEMBER_LIMIT: usize = 10_000;
