//! Cuts a stream of server-sent events into messages.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};

use super::framing::{END_KEPT, Incoming, START_KEPT, as_message};

/// What the stream held next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseItem {
    /// An event with data. Its id, if the stream has given any yet, is in [`SseDecoder::last_id`].
    Event { name: Bytes, data: Incoming },
    /// How long to wait before the stream is requested again.
    Retry(Duration),
}

/// Collects what is read and gives out whole events.
#[derive(Debug)]
pub struct SseDecoder {
    buffer: BytesMut,
    /// How far `buffer` has been searched for the end of a line.
    searched: usize,
    limit: usize,
    name: Bytes,
    data: Data,
    id: Option<Bytes>,
    last_id: Option<Bytes>,
    /// The last line ended with a carriage return: a newline directly after belongs to it.
    after_return: bool,
    /// The line in `buffer` is the rest of a longer one.
    continued: bool,
    begun: bool,
}

/// The data of the event that is being read. Its lines are joined with tabs, because all later readers
/// take a message as one line.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    Some(BytesMut),
    /// The two ends of it, which tell whose it is.
    TooLong {
        start: Bytes,
        end: BytesMut,
    },
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Replaces the end of a line of data. A line feed would end the message wherever messages are lines.
const BETWEEN_LINES: &[u8] = b"\t";
const DATA: &[u8] = b"data:";
/// The beginning of a comment, which means nothing.
const COMMENT: &[u8] = b":";

impl SseDecoder {
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            name: Bytes::new(),
            data: Data::None,
            id: None,
            last_id: None,
            after_return: false,
            continued: false,
            begun: false,
        }
    }

    /// For a stream that goes on after the event with this id.
    pub fn resumed(limit: usize, last_id: Option<Bytes>) -> Self {
        Self { last_id, ..Self::new(limit) }
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The id to name when the stream is requested again.
    pub fn last_id(&self) -> Option<&Bytes> {
        self.last_id.as_ref()
    }

    /// The next item, or `None` until more has been read.
    pub fn take(&mut self) -> Option<SseItem> {
        while let Some(line) = self.line() {
            let item = if line.is_empty() { self.event() } else { self.field(line) };
            if item.is_some() {
                return item;
            }
        }
        None
    }

    fn line(&mut self) -> Option<BytesMut> {
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        if !self.begun && self.buffer.len() >= BYTE_ORDER_MARK.len() {
            self.begun = true;
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.advance(BYTE_ORDER_MARK.len());
                self.searched = 0;
            }
        }
        let Some(found) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            self.give_up_on_long_line();
            return None;
        };
        self.begun = true;
        let end = self.searched + found;
        self.after_return = self.buffer[end] == b'\r';
        let mut line = self.buffer.split_to(end + 1);
        line.truncate(end);
        self.searched = 0;
        if self.is_too_long(&line) && !line.starts_with(DATA) {
            line.truncate(0);
            line.extend_from_slice(COMMENT);
        }
        Some(line)
    }

    fn is_too_long(&self, line: &[u8]) -> bool {
        line.len() > self.limit + 16
    }

    /// Stops keeping a line longer than any message may be, but reads on. Only data can be part of a message.
    fn give_up_on_long_line(&mut self) {
        if !self.is_too_long(&self.buffer) {
            return;
        }
        let line = std::mem::take(&mut self.buffer);
        let field = if line.starts_with(DATA) {
            self.field(line);
            DATA
        } else {
            COMMENT
        };
        self.continued = true;
        self.buffer.extend_from_slice(field); // the rest of the line continues the same field
        self.searched = self.buffer.len();
    }

    fn field(&mut self, mut line: BytesMut) -> Option<SseItem> {
        let colon = memchr::memchr(b':', &line);
        let mut value = line.split_off(colon.map_or(line.len(), |colon| colon + 1));
        let continued = std::mem::take(&mut self.continued);
        if !continued && value.first() == Some(&b' ') {
            value.advance(1);
        }
        match line.strip_suffix(b":".as_slice()).unwrap_or(&line) {
            b"data" => self.add(value, continued),
            b"event" => self.name = value.freeze(),
            b"id" if !value.contains(&0) => self.id = Some(value.freeze()),
            b"retry" => {
                let millis = std::str::from_utf8(&value).ok()?.parse().ok()?;
                return Some(SseItem::Retry(Duration::from_millis(millis)));
            }
            _ => {} // a comment, or something newer than we are
        }
        None
    }

    /// Adds a line of data, or more of the line before.
    fn add(&mut self, value: BytesMut, continued: bool) {
        let between = if continued { b"" } else { BETWEEN_LINES };
        match &mut self.data {
            Data::None if value.len() <= self.limit => self.data = Data::Some(value),
            Data::Some(data) if data.len() + between.len() + value.len() <= self.limit => {
                data.extend_from_slice(between);
                data.extend_from_slice(&value);
            }
            Data::None => self.data = Data::too_long(&[&value]),
            Data::Some(data) => self.data = Data::too_long(&[data, between, &value]),
            Data::TooLong { end, .. } => {
                keep_end(end, between);
                keep_end(end, &value);
            }
        }
    }

    /// A blank line: what was collected is an event, if it has data.
    fn event(&mut self) -> Option<SseItem> {
        if let Some(id) = self.id.take() {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let name = std::mem::take(&mut self.name);
        let data = match std::mem::take(&mut self.data) {
            Data::None => return None,
            Data::Some(data) => as_message(data),
            Data::TooLong { start, end } => Incoming::TooLong { start, end: end.freeze() },
        };
        Some(SseItem::Event { name, data })
    }
}

impl Data {
    fn too_long(pieces: &[&[u8]]) -> Self {
        let (mut start, mut end) = (BytesMut::new(), BytesMut::new());
        for piece in pieces {
            start.extend_from_slice(&piece[..piece.len().min(START_KEPT - start.len())]);
            keep_end(&mut end, piece);
        }
        Self::TooLong { start: start.freeze(), end }
    }
}

fn keep_end(end: &mut BytesMut, more: &[u8]) {
    end.extend_from_slice(&more[more.len().saturating_sub(END_KEPT)..]);
    end.advance(end.len().saturating_sub(END_KEPT));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Head;

    const STREAM: &[u8] = b"\xef\xbb\xbf: hello\r\nid: 7\ndata:\n\nretry: 250\nevent: message\rid:8\rdata: {\"a\":\rdata:1}\r\rdata: {\"b\":2}\r\n\r\n\nnews\n\ndata: \xff\n\n";

    fn items(cuts: &[usize], limit: usize, stream: &[u8]) -> (Vec<SseItem>, Option<Bytes>) {
        let mut decoder = SseDecoder::new(limit);
        let (mut rest, mut items) = (stream, Vec::new());
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at((*cut).min(rest.len()));
            decoder.push(now);
            items.extend(std::iter::from_fn(|| decoder.take()));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        (items, decoder.last_id().cloned())
    }

    fn event(name: &'static str, data: Incoming) -> SseItem {
        SseItem::Event { name: Bytes::from_static(name.as_bytes()), data }
    }

    fn message(text: &'static str) -> Incoming {
        Incoming::Message(Bytes::from_static(text.as_bytes()))
    }

    fn expected() -> Vec<SseItem> {
        vec![
            event("", message("")),
            SseItem::Retry(Duration::from_millis(250)),
            event("message", message("{\"a\":\t1}")),
            event("", message("{\"b\":2}")),
            event("", Incoming::NotText(Bytes::from_static(b"\xff"))),
        ]
    }

    #[test]
    fn an_overlong_line_means_the_same_however_it_is_read() {
        let long = "x".repeat(4000);
        let stream = format!(": {long}\nid: {long}\nevent: {long}\ndata: {{}}\n\ndata: a\ndata: {long}\n\n");
        let whole = items(&[stream.len()], 2000, stream.as_bytes());
        assert_eq!(whole.0[0], event("", message("{}")), "comments and names are no part of a message");
        for cut in [7, 50, 1000, 3000] {
            assert_eq!(items(&[cut], 2000, stream.as_bytes()), whole, "reads of {cut} bytes");
        }
    }

    #[test]
    fn an_overlong_event_is_dropped_and_the_stream_goes_on() {
        let stream = [b"data: {\"id\":1,", [b'x'; 200].as_slice(), b"}\n\ndata: {}\n\n"].concat();
        for cuts in [vec![1000], vec![10], vec![100]] {
            let (items, _) = items(&cuts, 50, &stream);
            let [SseItem::Event { data: Incoming::TooLong { start, .. }, .. }, last] = &items[..] else {
                panic!("{items:?}")
            };
            assert!(start.trim_ascii_start().starts_with(b"{\"id\":1,"), "{start:?}");
            assert_eq!(*last, event("", message("{}")));
        }
    }

    #[test]
    fn an_overlong_answer_is_known_by_an_id_at_its_end() {
        let long = "x".repeat(200);
        for between in ["", "\ndata: "] {
            let answer =
                format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"x\":\"{long}\"}},{between}\"id\":1234}}");
            let stream = format!("data: {answer}\n\n");
            for cut in 1..stream.len() {
                let (items, _) = items(&[cut], 50, stream.as_bytes());
                let [SseItem::Event { data: Incoming::TooLong { start, end }, .. }] = &items[..] else {
                    panic!("{items:?}")
                };
                assert_eq!(Head::id_of_truncated_response(start, end), Some(&b"1234"[..]), "reads of {cut}");
                assert!(end.len() <= END_KEPT);
            }
        }
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(cuts in prop::collection::vec(1usize..30, 1..20)) {
            let (items, last_id) = items(&cuts, 100, STREAM);
            prop_assert_eq!(items, expected());
            prop_assert_eq!(last_id, Some(Bytes::from_static(b"8")));
        }

        #[test]
        fn arbitrary_bytes_are_bounded(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            let mut decoder = SseDecoder::new(50);
            for chunk in bytes.chunks(7) {
                decoder.push(chunk);
                while decoder.take().is_some() {}
                prop_assert!(decoder.buffer.len() < 100);
            }
        }
    }
}
