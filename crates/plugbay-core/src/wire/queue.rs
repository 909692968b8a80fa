//! The delimited messages that wait to be written, in the order in which they go out.

use std::collections::VecDeque;

use bytes::{Buf, Bytes};
use smallvec::SmallVec;

use super::{Frame, Framing};

/// How many pieces one vectored write takes at most.
const PIECES_PER_WRITE: usize = 128;

/// Pieces of messages. A large piece is the very buffer in which it was read.
#[derive(Debug, Default)]
pub struct Queue {
    pieces: VecDeque<Bytes>,
    bytes: usize,
}

impl Queue {
    pub fn push(&mut self, frame: &Frame, framing: Framing) {
        if framing == Framing::ContentLength {
            self.push_piece(Bytes::from(format!("Content-Length: {}\r\n\r\n", frame.len())));
        }
        for piece in frame.pieces() {
            self.push_piece(piece.clone());
        }
        if framing == Framing::Newline {
            self.push_piece(Bytes::from_static(b"\n"));
        }
    }

    /// The pieces for one vectored write, each made into the slice type of the writer.
    pub fn slices<'a, S>(&'a self, slice: impl Fn(&'a [u8]) -> S) -> SmallVec<[S; PIECES_PER_WRITE]> {
        self.pieces.iter().take(PIECES_PER_WRITE).map(|piece| slice(piece)).collect()
    }

    /// Removes `count` bytes from the front, which have been written.
    pub fn advance(&mut self, mut count: usize) {
        self.bytes -= count;
        while let Some(first) = self.pieces.front_mut() {
            if count < first.len() {
                first.advance(count);
                return;
            }
            count -= first.len();
            self.pieces.pop_front();
        }
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn push_piece(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        self.pieces.push_back(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_out_delimited_in_whatever_portions() {
        for portion in 1..40 {
            let mut queue = Queue::default();
            queue.push(&Frame::from("{\"a\":1}"), Framing::Newline);
            queue.push(&Frame::from("{}"), Framing::ContentLength);
            let mut out = Vec::new();
            while !queue.is_empty() {
                let next: Vec<u8> =
                    queue.slices(|piece| piece).into_iter().flatten().copied().take(portion).collect();
                queue.advance(next.len());
                out.extend(next);
            }
            assert_eq!((out.as_slice(), queue.len()), (&b"{\"a\":1}\nContent-Length: 2\r\n\r\n{}"[..], 0));
        }
    }
}
