//! A request on its way to a server: the host's bytes with holes that are filled when it is sent.

use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;

use super::Span;

/// A message and the stretches of it that will be replaced.
#[derive(Debug, Clone)]
pub struct Draft {
    message: Bytes,
    /// The holes in the order of their spans, which do not overlap.
    holes: SmallVec<[(Span, Hole); 4]>,
}

/// What goes into a hole. An empty span makes it an insertion.
#[derive(Debug, Clone)]
pub enum Hole {
    /// The number under which the gateway sends the request: as its id, its progress token, or
    /// the request that a cancellation names.
    Ticket,
    Text(Bytes),
}

impl Draft {
    pub fn new(message: Bytes) -> Self {
        Self { message, holes: SmallVec::new() }
    }

    #[must_use]
    pub fn with(mut self, span: Span, hole: Hole) -> Self {
        let place = self.holes.partition_point(|(other, _)| other.start <= span.start);
        debug_assert!(place == 0 || self.holes[place - 1].0.end <= span.start, "holes overlap");
        self.holes.insert(place, (span, hole));
        self
    }

    /// The message as it came.
    pub fn message(&self) -> &Bytes {
        &self.message
    }

    /// The message as it is sent.
    pub fn render(&self, ticket: u64) -> Bytes {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(ticket);
        let mut out = BytesMut::with_capacity(self.message.len() + 32 * self.holes.len());
        let mut done = 0;
        for (span, hole) in &self.holes {
            out.put_slice(&self.message[done..span.start]);
            match hole {
                Hole::Ticket => out.put_slice(digits.as_bytes()),
                Hole::Text(text) => out.put_slice(text),
            }
            done = span.end;
        }
        out.put_slice(&self.message[done..]);
        out.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_holes_in_order_however_they_were_added() {
        let draft = Draft::new(Bytes::from_static(b"{\"name\":\"a__b\",\"id\":1}"))
            .with(20..21, Hole::Ticket)
            .with(1..1, Hole::Text(Bytes::from_static(b"\"x\":0,")))
            .with(8..14, Hole::Text(Bytes::from_static(b"\"b\"")));
        assert_eq!(draft.render(42), "{\"x\":0,\"name\":\"b\",\"id\":42}");
    }
}
