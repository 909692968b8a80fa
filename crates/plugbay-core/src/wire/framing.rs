//! Cuts a byte stream into messages, in both framings that MCP programs use over pipes.

use bytes::{Buf, Bytes, BytesMut};
use fearless_simd::{Level, Simd, dispatch};

use super::masks::Block;

/// How outgoing messages are delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    #[default]
    Newline,
    ContentLength,
}

/// What the stream held next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// One message on one line, without its delimiter, in UTF-8. Raw line breaks, which JSON allows
    /// between values, have become tabs: to a reader of lines they would end the message. JSON allows
    /// tabs in the same places and nowhere else, so what was wrong stays wrong.
    Message(Bytes),
    /// A message that is not UTF-8. A host that decodes strictly would end its session over it.
    NotText(Bytes),
    /// A line that is no message: programs do print to stdout.
    Noise(Bytes),
    /// A message over the limit was dropped; here is how it began and how it ended, with tabs for line breaks.
    TooLong { start: Bytes, end: Bytes },
}

/// Collects what is read and gives out whole messages. The framing is recognised message by message.
#[derive(Debug)]
pub struct Framer {
    buffer: BytesMut,
    limit: usize,
    /// How far `buffer` has been searched for a newline.
    searched: usize,
    /// Whether all that was searched is printable ASCII: then nothing is left to check.
    plain: bool,
    /// An over-long message that is not complete yet.
    dropping: Option<Dropped>,
    /// The framing of the last message.
    seen: Option<Framing>,
    /// How much room the next read gets.
    chunk: usize,
    /// How much memory `buffer` was made with; 0 if that is not worth knowing.
    size: usize,
    /// Used buffers whose messages may still be on their way out. They serve again when those have
    /// gone: memory that goes back to the system costs a page fault per page to get again.
    spare: Vec<BytesMut>,
    /// How long the last large message was: the next is likely to need as much.
    large: usize,
}

#[derive(Debug)]
struct Dropped {
    start: BytesMut,
    end: BytesMut,
    rest: Rest,
}

#[derive(Debug)]
enum Rest {
    ToNewline,
    Bytes(usize),
}

const SMALLEST_CHUNK: usize = 4 * 1024;
/// The capacity of the pipes of servers.
const LARGEST_CHUNK: usize = 256 * 1024;
/// Room for a read after the beginning of a message, and for its alignment.
const LARGE_BUFFER: usize = 2 * LARGEST_CHUNK + PAGE;
const SPARE_BUFFERS: usize = 2;
const PAGE: usize = 4096;
/// The longest `Content-Length` header block.
const HEADER_LIMIT: usize = 4 * 1024;
/// How much of an over-long message is kept to tell whose it was.
pub(super) const START_KEPT: usize = 1024;
pub(super) const END_KEPT: usize = 128;

impl Framer {
    pub fn new(limit: usize) -> Self {
        let (buffer, spare) = (BytesMut::new(), Vec::new());
        let (seen, dropping, chunk) = (None, None, SMALLEST_CHUNK);
        Self { buffer, limit, searched: 0, plain: true, dropping, seen, chunk, size: 0, spare, large: 0 }
    }

    /// Changes the longest message that is accepted, from the next one on.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The framing that the peer uses, once it has sent something.
    pub fn seen(&self) -> Option<Framing> {
        self.seen
    }

    /// The buffer to read into, with room for a good read.
    pub fn buffer(&mut self) -> &mut BytesMut {
        let room = match self.buffer.len() {
            0 => self.size.max(self.chunk), // an empty buffer is used from its start
            read if read < self.large => self.chunk.min(self.large - read),
            _ => self.chunk,
        };
        if !self.buffer.try_reclaim(room) {
            self.change_buffer();
        } else if self.buffer.is_empty() && self.size >= LARGE_BUFFER {
            align(&mut self.buffer, 0);
        }
        &mut self.buffer
    }

    /// Gives back what is only kept for the next message.
    pub fn rest(&mut self) {
        self.spare = Vec::new();
        self.chunk = SMALLEST_CHUNK;
        if self.buffer.is_empty() {
            (self.buffer, self.size) = (BytesMut::new(), 0);
        }
    }

    /// Goes on in a buffer with room: one that is free again, or a new one.
    fn change_buffer(&mut self) {
        let read = self.buffer.len();
        let size = match self.chunk {
            // Room for a message like the last one, or for much more than there is: each step leaves a hole in the heap.
            _ if read >= LARGEST_CHUNK => self.largest(read) + LARGEST_CHUNK + HEADER_LIMIT + PAGE,
            LARGEST_CHUNK => LARGE_BUFFER,
            chunk => read + chunk,
        };
        let free = self.spare.iter_mut().position(|spare| size == LARGE_BUFFER && spare.try_reclaim(size));
        let mut next = match free {
            Some(at) => self.spare.swap_remove(at),
            None => BytesMut::with_capacity(size),
        };
        if size >= LARGE_BUFFER {
            align(&mut next, read);
        }
        next.extend_from_slice(&self.buffer);
        let mut used = std::mem::replace(&mut self.buffer, next);
        if std::mem::replace(&mut self.size, size) == LARGE_BUFFER {
            used.clear();
            self.spare.truncate(SPARE_BUFFERS - 1);
            self.spare.push(used);
        }
    }

    /// The likely length of a message of which `read` bytes have been read.
    fn largest(&self, read: usize) -> usize {
        self.large.max(8 * read).min(self.limit.max(read))
    }

    /// Learns from the size of a read how much room the next one should get.
    pub fn filled(&mut self, read: usize) {
        if read >= self.chunk {
            self.chunk = (self.chunk * 4).min(LARGEST_CHUNK);
        } else if read < self.chunk / 8 {
            self.chunk = (self.chunk / 4).max(SMALLEST_CHUNK);
        }
    }

    /// The next complete item, or `None` until more has been read.
    pub fn take(&mut self) -> Option<Incoming> {
        if self.dropping.is_some() {
            return self.drop_on();
        }
        if self.searched == 0 {
            self.plain = true;
            self.trim_start();
        }
        if self.buffer.is_empty() {
            return None;
        }
        if starts_header(&self.buffer) {
            match self.header() {
                Header::Complete { body, length } => return self.counted(body, length),
                Header::Incomplete => return None,
                Header::No => {}
            }
        }
        self.line()
    }

    fn line(&mut self) -> Option<Incoming> {
        let Some(end) = self.newline() else {
            return if self.buffer.len() > self.limit { self.drop_message(Rest::ToNewline) } else { None };
        };
        self.searched = 0;
        if end > self.limit {
            return self.drop_message(Rest::ToNewline);
        }
        let mut line = self.split(end + 1);
        line.truncate(end - usize::from(line[..end].ends_with(b"\r")));
        let line = line.freeze();
        match line.first() {
            Some(b'{' | b'[') => {
                self.seen = Some(Framing::Newline);
                Some(if self.plain { Incoming::Message(line) } else { checked(line) })
            }
            _ => Some(Incoming::Noise(line)),
        }
    }

    /// The end of the line, if it has been read. A carriage return inside the line becomes a tab.
    fn newline(&mut self) -> Option<usize> {
        while let Some(found) = self.unusual() {
            let at = self.searched + found;
            match (self.buffer[at], self.buffer.get(at + 1)) {
                (b'\n', _) => return Some(at),
                (b'\r', Some(b'\n')) => return Some(at + 1),
                (b'\r', None) => {
                    self.searched = at; // the next read tells
                    return None;
                }
                (b'\r', _) => self.buffer[at] = b'\t',
                _ => self.plain = false,
            }
            self.searched = at + 1;
        }
        self.searched = self.buffer.len();
        None
    }

    /// The next byte that may matter. As long as all is printable ASCII, which is one comparison per byte,
    /// there is no second pass for UTF-8: what has just been read is still in the cache, later it is not.
    fn unusual(&self) -> Option<usize> {
        let rest = &self.buffer[self.searched..];
        if self.plain { unprintable(rest) } else { memchr::memchr2(b'\n', b'\r', rest) }
    }

    fn counted(&mut self, body: usize, length: usize) -> Option<Incoming> {
        self.seen = Some(Framing::ContentLength);
        if length > self.limit {
            self.buffer.advance(body);
            return self.drop_message(Rest::Bytes(length));
        }
        if self.buffer.len() < body + length {
            return None;
        }
        self.buffer.advance(body);
        Some(as_message(self.split(length)))
    }

    /// Takes a message out. The rest of a large one's buffer is not worth keeping alive.
    fn split(&mut self, length: usize) -> BytesMut {
        self.large = if length > LARGEST_CHUNK { length } else { 0 };
        if self.large == 0 {
            if self.size <= LARGE_BUFFER {
                return self.buffer.split_to(length);
            }
            let message = BytesMut::from(&self.buffer[..length]); // a slice would hold all of the buffer
            self.buffer.advance(length);
            return message;
        }
        let rest = BytesMut::from(&self.buffer[length..]);
        self.size = 0;
        let mut message = std::mem::replace(&mut self.buffer, rest);
        message.truncate(length);
        message
    }

    fn drop_message(&mut self, rest: Rest) -> Option<Incoming> {
        self.searched = 0;
        self.dropping = Some(Dropped { start: BytesMut::new(), end: BytesMut::new(), rest });
        self.drop_on()
    }

    fn drop_on(&mut self) -> Option<Incoming> {
        let Dropped { start, end, rest } = self.dropping.as_mut()?;
        let (gone, complete) = match rest {
            Rest::ToNewline => match memchr::memchr(b'\n', &self.buffer) {
                Some(newline) => (newline + 1, true),
                None => (self.buffer.len(), false),
            },
            Rest::Bytes(count) => {
                let gone = (*count).min(self.buffer.len());
                *count -= gone;
                (gone, *count == 0)
            }
        };
        start.extend_from_slice(&self.buffer[..gone.min(START_KEPT - start.len())]);
        end.extend_from_slice(&self.buffer[gone.saturating_sub(END_KEPT)..gone]);
        end.advance(end.len().saturating_sub(END_KEPT));
        self.buffer.advance(gone);
        if self.size > LARGE_BUFFER {
            (self.buffer, self.size) = (BytesMut::from(&self.buffer[..]), 0);
        }
        if !complete {
            return None;
        }
        let Dropped { mut start, mut end, .. } = self.dropping.take()?;
        on_one_line(&mut start);
        on_one_line(&mut end);
        Some(Incoming::TooLong { start: start.freeze(), end: end.freeze() })
    }

    fn trim_start(&mut self) {
        let blank = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.buffer.advance(blank);
    }

    fn header(&self) -> Header {
        let window = &self.buffer[..self.buffer.len().min(HEADER_LIMIT)];
        if let Some(end) = memchr::memchr(b'\n', window) {
            // A log line that merely begins like a header ends with a plain newline, or a message follows
            // directly. Either sign counts, whatever else has been read: messages do not depend on where
            // reads end.
            let is_plain = !window[..end].ends_with(b"\r");
            if is_plain || matches!(window.get(end + 1), Some(b'{' | b'[')) {
                return Header::No;
            }
        }
        let Some(end) = memchr::memmem::find(window, b"\r\n\r\n") else {
            return if window.len() == HEADER_LIMIT { Header::No } else { Header::Incomplete };
        };
        let length = std::str::from_utf8(&window[..end]).ok().and_then(|block| {
            block.split("\r\n").find_map(|field| {
                let (name, value) = field.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            })
        });
        length.map_or(Header::No, |length| Header::Complete { body: end + 4, length })
    }
}

enum Header {
    Complete { body: usize, length: usize },
    Incomplete,
    No,
}

/// Aligns an empty buffer so that a page begins after `read` bytes: a pipe is copied out of pages, and
/// processors copy faster between places of equal alignment.
fn align(buffer: &mut BytesMut, read: usize) {
    let gap = buffer.as_ptr().wrapping_add(read).align_offset(PAGE);
    buffer.resize(gap, 0);
    buffer.advance(gap);
}

/// The first byte that is not printable ASCII.
fn unprintable(bytes: &[u8]) -> Option<usize> {
    let (blocks, _) = bytes.as_chunks();
    let start = dispatch!(Level::new(), simd => printable(simd, blocks)) * 64;
    Some(start + bytes[start..].iter().position(|byte| !matches!(byte, b' '..=0x7f))?)
}

/// How many of these blocks are printable ASCII, up to the first that is not.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "only inlined code is compiled for the processor's own instructions"
)]
fn printable<S: Simd>(simd: S, blocks: &[[u8; 64]]) -> usize {
    let mut count = 0;
    while count < blocks.len() && Block::of(simd, &blocks[count]).is_printable() {
        count += 1;
    }
    count
}

/// A message that came in one piece, in the form of all messages: one line of text.
pub fn as_message(mut message: BytesMut) -> Incoming {
    // What follows the last brace says nothing, and hides where the message ends.
    message.truncate(message.trim_ascii_end().len());
    on_one_line(&mut message);
    checked(message.freeze())
}

/// Turns line breaks into tabs.
fn on_one_line(text: &mut [u8]) {
    let mut done = 0;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &text[done..]) {
        text[done + found] = b'\t';
        done += found + 1;
    }
}

fn checked(message: Bytes) -> Incoming {
    match simdutf8::basic::from_utf8(&message) {
        Ok(_) => Incoming::Message(message),
        Err(_) => Incoming::NotText(message),
    }
}

fn starts_header(buffer: &[u8]) -> bool {
    const PREFIX: &[u8] = b"content-";
    let seen = buffer.len().min(PREFIX.len());
    buffer[..seen].eq_ignore_ascii_case(&PREFIX[..seen])
}

#[cfg(test)]
mod tests;
