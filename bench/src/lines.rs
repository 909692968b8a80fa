//! Newline framing that reads straight into one reused buffer, so that the driver and the stub cost little.

use std::io::{self, BufRead, Read};
use std::ops::Range;

const FIRST_SIZE: usize = 256 * 1024;

pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// `start..end` is read but not yet handed out; up to `scanned` it contains no newline.
    start: usize,
    scanned: usize,
    end: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: vec![0; FIRST_SIZE], start: 0, scanned: 0, end: 0 }
    }

    /// The next line without its newline; `None` at the end of the stream, where a partial line is dropped.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        Ok(self.next_range()?.map(|line| &self.buffer[line]))
    }

    /// A line in the buffer, valid until the next one is requested.
    pub(crate) fn get(&self, line: Range<usize>) -> &[u8] {
        &self.buffer[line]
    }

    /// The range of the next line.
    pub(crate) fn next_range(&mut self) -> io::Result<Option<Range<usize>>> {
        loop {
            if let Some(length) = find_newline(&self.buffer[self.scanned..self.end]) {
                let line = self.start..self.scanned + length;
                self.start = line.end + 1;
                self.scanned = self.start;
                return Ok(Some(line));
            }
            self.scanned = self.end;
            self.make_room();
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(None),
                Ok(count) => self.end += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves a partial line to the front: at most once per line, and only the part that one read has brought.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }
}

/// `skip_until` is the only way to the standard library's vectorised search for a byte.
fn find_newline(mut bytes: &[u8]) -> Option<usize> {
    let whole = bytes;
    let skipped = bytes.skip_until(b'\n').ok()?;
    (skipped > 0 && whole[skipped - 1] == b'\n').then(|| skipped - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a few bytes at a time, as a pipe may.
    struct Drip(Vec<u8>, usize);

    impl Read for Drip {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    #[test]
    fn lines_survive_any_fragmentation() {
        let long = "x".repeat(FIRST_SIZE + 7);
        let text = format!("one\n\n{long}\nlast\npartial");
        for step in [1000, 4093, text.len()] {
            let mut lines = Lines::new(Drip(text.clone().into_bytes(), step));
            for expected in ["one", "", &long, "last"] {
                assert_eq!(lines.next().unwrap(), Some(expected.as_bytes()));
            }
            assert_eq!(lines.next().unwrap(), None);
        }
    }
}
