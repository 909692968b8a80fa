//! Reads one HTTP/1.1 message at a time from a keep-alive connection. It supports only what two parties need
//! that know each other.

use std::io::{self, Read};

use crate::Outcome;

const FIRST_SIZE: usize = 64 * 1024;
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// A message being read, in a buffer that is reused for the next one.
pub(crate) struct Incoming {
    buffer: Vec<u8>,
    /// The buffer is filled up to here.
    end: usize,
    head: Option<Head>,
    /// The content of the chunks so far; a body of known length stays where it was read.
    body: Vec<u8>,
}

struct Head {
    text: String,
    length: Length,
    /// The start of the body, or of its part that is not decoded yet.
    body_start: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Known(usize),
    Chunked,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; FIRST_SIZE], end: 0, head: None, body: Vec::new() }
    }

    /// Reads until a message is complete; `false` at the end of the stream.
    pub(crate) fn receive(&mut self, source: &mut impl Read) -> Outcome<bool> {
        while !self.is_whole()? {
            if !self.read_once(source)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads once, so that a caller that has waited for input does not block; `false` at the end of the
    /// stream.
    pub(crate) fn read_once(&mut self, source: &mut impl Read) -> Outcome<bool> {
        self.make_room();
        loop {
            match source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.end += count;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn is_whole(&mut self) -> Outcome<bool> {
        if self.head.is_none() {
            self.head = Head::find(&self.buffer[..self.end])?;
        }
        match &self.head {
            None => Ok(false),
            Some(Head { length: Length::Known(length), body_start, .. }) => {
                Ok(self.end >= body_start + length)
            }
            Some(Head { length: Length::Chunked, .. }) => self.decode_chunks(),
        }
    }

    /// The line with the method or the status.
    pub(crate) fn first_line(&self) -> &str {
        self.head.as_ref().and_then(|head| head.text.lines().next()).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.as_ref()?.header(name)
    }

    /// The body of a complete message.
    pub(crate) fn body(&self) -> &[u8] {
        match &self.head {
            Some(Head { length: Length::Known(length), body_start, .. }) => {
                &self.buffer[*body_start..body_start + length]
            }
            _ => &self.body,
        }
    }

    /// Removes a complete message; the beginning of the next one stays.
    pub(crate) fn next(&mut self) {
        let Some(head) = self.head.take() else { return };
        let used = match head.length {
            Length::Known(length) => head.body_start + length,
            Length::Chunked => head.body_start,
        };
        self.buffer.copy_within(used..self.end, 0);
        self.end -= used;
        self.body.clear();
    }

    /// Makes room for all of a body of known length, otherwise for twice as much as before.
    fn make_room(&mut self) {
        let known = match &self.head {
            Some(Head { length: Length::Known(length), body_start, .. }) => body_start + length,
            _ => 0,
        };
        if self.buffer.len() < known {
            self.buffer.resize(known, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    /// Moves complete chunks into the body; `true` when the last one has come.
    fn decode_chunks(&mut self) -> Outcome<bool> {
        let Some(head) = &mut self.head else { return Ok(false) };
        let mut at = head.body_start;
        let done = loop {
            let rest = &self.buffer[at..self.end];
            let Some(line) = rest.windows(2).position(|pair| pair == b"\r\n") else { break false };
            let size = std::str::from_utf8(&rest[..line])?.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size.trim(), 16)?;
            let (start, end) = (line + 2, line + 2 + size);
            if rest.len() < end + 2 {
                break false;
            }
            self.body.extend_from_slice(&rest[start..end]);
            at += end + 2;
            if size == 0 {
                break true;
            }
        };
        // The bytes after it move to the front of the body, so that the buffer does not hold it twice.
        self.buffer.copy_within(at..self.end, head.body_start);
        self.end -= at - head.body_start;
        Ok(done)
    }
}

impl Head {
    fn find(bytes: &[u8]) -> Outcome<Option<Self>> {
        let Some(end) = bytes.windows(END_OF_HEAD.len()).position(|window| window == END_OF_HEAD) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&bytes[..end])?.to_owned();
        let mut head = Self { text, length: Length::Known(0), body_start: end + END_OF_HEAD.len() };
        if head.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            head.length = Length::Chunked;
        } else if let Some(length) = head.header("content-length") {
            head.length = Length::Known(length.parse()?);
        }
        Ok(Some(head))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut pairs = self.text.lines().skip(1).filter_map(|line| line.split_once(':'));
        pairs.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands out a few bytes at a time, as a socket may.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn messages_follow_each_other_whatever_the_pieces() {
        let long = "x".repeat(2 * FIRST_SIZE);
        let text = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{long}\
             HTTP/1.1 202 Accepted\r\n\r\n\
             HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n3\r\nabc\r\nA;e=1\r\n0123456789\r\n0\r\n\r\n\
             HTTP/1.1 204 No Content\r\ncontent-length:0\r\n\r\n",
            long.len()
        );
        for step in [1, 7, 4096, text.len()] {
            let mut source = Drip(text.as_bytes(), step);
            let mut incoming = Incoming::new();
            for (status, body) in [("200", &*long), ("202", ""), ("200", "abc0123456789"), ("204", "")] {
                assert!(incoming.receive(&mut source).unwrap());
                assert!(incoming.first_line().contains(status));
                assert_eq!(incoming.body(), body.as_bytes());
                incoming.next();
            }
            assert!(!incoming.receive(&mut source).unwrap());
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["X\r\nContent-Length: many\r\n\r\n", "X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"] {
            assert!(Incoming::new().receive(&mut text.as_bytes()).is_err(), "{text}");
        }
    }
}
