//! Bodies of responses, including those that break, hang or never end.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The body of a response.
#[derive(Debug, Clone)]
pub enum Reply {
    Whole(Bytes),
    /// The connection breaks after these bytes.
    Broken(Bytes),
    /// Nothing comes after these bytes, and the connection stays open.
    Hanging(Bytes),
    /// These bytes are repeated for ever.
    Endless(Bytes),
    Sent,
}

impl Default for Reply {
    fn default() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl Reply {
    pub fn broken_after(self, bytes: usize) -> Self {
        match self {
            Self::Whole(whole) => Self::Broken(whole.slice(..bytes.min(whole.len()))),
            other => other,
        }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let data = |bytes: Bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        match std::mem::replace(&mut *self, Self::Sent) {
            Self::Whole(bytes) if !bytes.is_empty() => data(bytes),
            Self::Whole(_) | Self::Sent => Poll::Ready(None),
            Self::Broken(bytes) if !bytes.is_empty() => {
                *self = Self::Broken(Bytes::new());
                data(bytes)
            }
            Self::Broken(_) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            Self::Hanging(bytes) if !bytes.is_empty() => {
                *self = Self::Hanging(Bytes::new());
                data(bytes)
            }
            Self::Hanging(bytes) => {
                *self = Self::Hanging(bytes);
                Poll::Pending
            }
            Self::Endless(bytes) => {
                *self = Self::Endless(bytes.clone());
                data(bytes)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Sent) || matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
