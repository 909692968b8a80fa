//! The output of a job: sent up to its limit, and only counted above it.

use std::io::{self, Write};

use crate::protocol::{Done, FRAME, Frame};

/// Output above the limit is counted up to this many times the limit, so that the parent can report its size.
const COUNTED_TIMES: u64 = 16;
/// And at most this much above the limit.
const COUNTED_BYTES: u64 = 16 * 1024 * 1024;

/// The reason why no more output is made.
#[derive(Debug)]
pub(super) enum Stop {
    /// Enough was counted.
    Counted,
    /// The parent is gone.
    Io,
}

/// Values on their way to the parent.
pub(super) struct Output<W> {
    to: W,
    frame: Vec<u8>,
    limit: u64,
    /// Bytes of output so far, sent or not.
    bytes: u64,
    /// Number of values that were sent completely.
    values: u64,
    ended: bool,
}

impl<W: Write> Output<W> {
    pub(super) fn new(to: W, limit: u64) -> Self {
        Self { to, frame: Vec::new(), limit, bytes: 0, values: 0, ended: true }
    }

    /// Writes a piece of a value.
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), Stop> {
        let room = self.limit.saturating_sub(self.bytes);
        self.bytes = self.bytes.saturating_add(piece.len() as u64);
        if room == 0 {
            return self.count();
        }
        let fitting = usize::try_from(room).map_or(piece.len(), |room| room.min(piece.len()));
        self.frame.extend_from_slice(&piece[..fitting]);
        while self.frame.len() >= FRAME {
            let rest = self.frame.split_off(FRAME);
            self.send().map_err(|_| Stop::Io)?;
            self.frame = rest;
        }
        Ok(())
    }

    /// Ends a value.
    pub(super) fn end_value(&mut self) -> Result<(), Stop> {
        self.write(b"\n")?;
        self.values += u64::from(self.bytes <= self.limit);
        Ok(())
    }

    /// Sends the rest.
    pub(super) fn finish(&mut self) -> io::Result<Done> {
        self.send()?;
        Ok(Done { values: self.values, bytes: self.bytes, ended: self.ended })
    }

    fn count(&mut self) -> Result<(), Stop> {
        let counted = self.limit.saturating_mul(COUNTED_TIMES).min(self.limit.saturating_add(COUNTED_BYTES));
        if self.bytes <= counted {
            return Ok(());
        }
        self.ended = false;
        Err(Stop::Counted)
    }

    fn send(&mut self) -> io::Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        Frame::Output(std::mem::take(&mut self.frame)).write(&mut self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(limit: u64, values: &[&str]) -> (usize, Done) {
        let mut sent = Vec::new();
        let mut output = Output::new(&mut sent, limit);
        for value in values {
            if output.write(value.as_bytes()).and_then(|()| output.end_value()).is_err() {
                break;
            }
        }
        let done = output.finish().unwrap();
        (sent.len() - crate::protocol::FRAME_HEAD, done)
    }

    #[test]
    fn output_within_the_limit_is_sent_whole() {
        assert_eq!(made(4, &["1", "2"]), (4, Done { values: 2, bytes: 4, ended: true }));
    }

    #[test]
    fn output_beyond_the_limit_is_counted() {
        assert_eq!(made(3, &["1", "234"]), (3, Done { values: 1, bytes: 6, ended: true }));
        let (sent, done) = made(3, &["1"; 100]);
        assert_eq!((sent, done.values, done.ended), (3, 1, false));
        assert!(done.bytes <= 3 * COUNTED_TIMES + 2, "{done:?}");
    }

    #[test]
    fn large_output_is_sent_in_frames() {
        let mut sent = Vec::new();
        let mut output = Output::new(&mut sent, u64::MAX);
        output.write(&vec![b'1'; 2 * FRAME + 1]).unwrap();
        output.finish().unwrap();
        assert_eq!(sent.len(), 2 * FRAME + 1 + 3 * crate::protocol::FRAME_HEAD);
    }
}
