//! A message on its way out: pieces that are written one after the other.

use bytes::{BufMut, Bytes, BytesMut};
use smallvec::SmallVec;

use super::Span;

/// Below this many bytes a copy is cheaper than one more piece to write.
const COPY_LIMIT: usize = 8 * 1024;

/// One message without its delimiter.
#[derive(Debug, Clone)]
pub struct Frame {
    pieces: SmallVec<[Bytes; 3]>,
}

impl Frame {
    /// `message` with some of its bytes replaced; a large message is not copied. The spans stand in
    /// order and do not overlap; an empty one makes an insertion.
    pub fn edited(message: &Bytes, edits: &[(Span, &[u8])]) -> Self {
        let mut pieces = SmallVec::new();
        let mut done = 0;
        if message.len() <= COPY_LIMIT {
            let added: usize = edits.iter().map(|(_, text)| text.len()).sum();
            let mut whole = BytesMut::with_capacity(message.len() + added);
            for (span, text) in edits {
                whole.put_slice(&message[done..span.start]);
                whole.put_slice(text);
                done = span.end;
            }
            whole.put_slice(&message[done..]);
            pieces.push(whole.freeze());
        } else {
            for (span, text) in edits {
                pieces.push(message.slice(done..span.start));
                pieces.push(Bytes::copy_from_slice(text));
                done = span.end;
            }
            pieces.push(message.slice(done..));
        }
        Self { pieces }
    }

    /// The same message in other buffers.
    #[must_use]
    pub fn map(self, change: impl FnMut(Bytes) -> Bytes) -> Self {
        Self { pieces: self.pieces.into_iter().map(change).collect() }
    }

    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The message in one piece.
    pub fn into_bytes(mut self) -> Bytes {
        if self.pieces.len() == 1 { self.pieces.remove(0) } else { self.pieces.concat().into() }
    }
}

impl<B: Into<Bytes>> From<B> for Frame {
    fn from(message: B) -> Self {
        Self { pieces: SmallVec::from_iter([message.into()]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_small_and_large_alike() {
        for size in [10, COPY_LIMIT * 2] {
            let message = Bytes::from(format!("{{\"id\":7,\"result\":{{\"x\":\"{}\"}}}}", "y".repeat(size)));
            let edits: [(Span, &[u8]); 2] = [(6..7, b"\"abc\""), (18..18, b"\"a\":1,")];
            let frame = Frame::edited(&message, &edits);
            let expected =
                format!("{{\"id\":\"abc\",\"result\":{{\"a\":1,\"x\":\"{}\"}}}}", "y".repeat(size));
            assert_eq!(frame.len(), expected.len());
            assert_eq!(frame.into_bytes(), expected);
        }
    }
}
