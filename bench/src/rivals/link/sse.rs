//! The transport of 2024-11-05: answers come on one event stream, and requests are posted to the path in its
//! first event.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::http::client::Endpoint;
use crate::rivals::link::Received;

/// Opens the stream, from which `received` gets the messages, and returns the path for requests.
pub(super) fn open(endpoint: &Endpoint, received: &Sender<Received>, until: Instant) -> Outcome<String> {
    let mut stream = TcpStream::connect(endpoint.address)?;
    let Endpoint { address, path } = endpoint;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n")?;
    let (told, path) = mpsc::channel();
    let received = received.clone();
    thread::spawn(move || {
        let mut events = Events::default();
        let _ = read_chunks(BufReader::new(stream), |chunk| {
            events.add(chunk, |kind, data| match kind {
                b"endpoint" => drop(told.send(String::from_utf8_lossy(data).into_owned())),
                _ => drop(received.send(Received::now(data))),
            });
        });
    });
    let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    path.recv_timeout(left).map_err(|_| "no event names the endpoint".into())
}

/// Hands over the chunks of a response's body as they come.
fn read_chunks(mut from: impl BufRead, mut take: impl FnMut(&[u8])) -> Outcome<()> {
    let mut line = String::new();
    while from.read_line(&mut line)? > 2 {
        line.clear();
    }
    let mut chunk = Vec::new();
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let size = u64::from_str_radix(line.trim(), 16)?;
        chunk.clear();
        from.by_ref().take(size + 2).read_to_end(&mut chunk)?;
        take(chunk.strip_suffix(b"\r\n").unwrap_or(&chunk));
    }
}

/// Assembles events from lines.
#[derive(Default)]
struct Events {
    unread: Vec<u8>,
    kind: Vec<u8>,
}

impl Events {
    /// Adds bytes. Data is assumed to be one line, as messages are.
    fn add(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8], &[u8])) {
        let searched = self.unread.len();
        self.unread.extend_from_slice(bytes);
        let Some(last) = self.unread[searched..].iter().rposition(|byte| *byte == b'\n') else { return };
        let rest = self.unread.split_off(searched + last + 1);
        let lines = std::mem::replace(&mut self.unread, rest);
        for line in lines.split(|byte| *byte == b'\n') {
            if let Some(kind) = line.strip_prefix(b"event:") {
                self.kind = kind.trim_ascii().to_vec();
            } else if let Some(data) = line.strip_prefix(b"data:") {
                take(&self.kind, data.trim_ascii());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_any_fragmentation() {
        let body = b"event: endpoint\ndata: /messages?id=1\n\nevent: message\r\ndata: {\"a\":1}\r\n\r\n";
        for step in [1, 5, body.len()] {
            let (mut events, mut seen) = (Events::default(), Vec::new());
            for piece in body.chunks(step) {
                events.add(piece, |kind, data| seen.push((kind.to_vec(), data.to_vec())));
            }
            let expected = [("endpoint", "/messages?id=1"), ("message", "{\"a\":1}")];
            let expected = expected.map(|(kind, data)| (kind.as_bytes().to_vec(), data.as_bytes().to_vec()));
            assert_eq!(seen, expected, "{step}");
        }
    }

    #[test]
    fn chunks_are_read_behind_the_head() {
        let text = "HTTP/1.1 200 OK\r\nA: b\r\n\r\n3\r\nabc\r\n2\r\nde\r\n";
        let mut seen = Vec::new();
        read_chunks(text.as_bytes(), |chunk| seen.extend_from_slice(chunk)).unwrap();
        assert_eq!(seen, b"abcde");
    }
}
