//! Messages over a pair of byte streams, read and written at the same time.

use std::{collections::VecDeque, io::IoSlice, time::Duration};

use bytes::{Bytes, BytesMut};
use plugbay_core::{
    exchange::Ticket,
    wire::{Framer, Framing, Incoming, Queue},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{Instant, timeout_at},
};

pub type Reader = Box<dyn AsyncRead + Send + Unpin>;
pub type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// How long a peer that no longer reads is still read from.
const DRAIN_TIME: Duration = Duration::from_millis(100);

/// A connection over two byte streams. Writing happens only inside [`Connection::next`], together with
/// reading. So a peer that is blocked on its own output can never make us stop reading.
pub(crate) struct Connection {
    reader: Reader,
    writer: Writer,
    framer: Framer,
    framing: Framing,
    outbox: Queue,
    /// Requests of which nothing has been written yet.
    unsent: VecDeque<Unsent>,
    /// How many bytes were written in total.
    written: usize,
    /// Set when writing has failed: until then the peer is still read from.
    drain_until: Option<Instant>,
}

struct Unsent {
    ticket: Ticket,
    message: Bytes,
    /// How many bytes were queued in total before this request.
    start: usize,
}

impl Connection {
    pub(crate) fn new(reader: Reader, writer: Writer, framing: Framing, limit: usize) -> Self {
        let framer = Framer::new(limit);
        let (outbox, unsent) = (Queue::default(), VecDeque::new());
        Self { reader, writer, framer, framing, outbox, unsent, written: 0, drain_until: None }
    }

    /// Queues a message; the next [`Connection::next`] writes it.
    pub(crate) fn send(&mut self, message: Bytes) {
        self.outbox.push(&message.into(), self.framing);
    }

    /// Queues a request, which must not be lost or sent twice if the peer goes away.
    pub(crate) fn request(&mut self, ticket: Ticket, message: Bytes) {
        let start = self.written + self.outbox.len();
        self.unsent.push_back(Unsent { ticket, message: message.clone(), start });
        self.send(message);
    }

    /// Takes the requests of which nothing was written, so that another peer can get them.
    pub(crate) fn take_unsent(&mut self) -> Vec<(Ticket, Bytes)> {
        self.unsent.drain(..).map(|call| (call.ticket, call.message)).collect()
    }

    /// How many bytes wait to be written.
    pub(crate) fn backlog(&self) -> usize {
        self.outbox.len()
    }

    /// Releases memory that is kept only for the next message.
    pub(crate) fn trim(&mut self) {
        self.framer.rest();
    }

    /// Whether the peer has ever sent a message.
    pub(crate) fn has_sent(&self) -> bool {
        self.framer.seen().is_some()
    }

    /// Whether the peer gets messages with headers but answers with lines.
    pub(crate) fn answers_by_lines(&self) -> bool {
        self.framing == Framing::ContentLength && self.framer.seen() == Some(Framing::Newline)
    }

    /// The next item from the peer; `None` when it has closed its end or stopped reading for good.
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Option<Incoming> {
        loop {
            if let Some(item) = self.framer.take() {
                return Some(item);
            }
            tokio::select! {
                biased;
                written = write_some(&mut self.writer, &self.outbox), if self.has_to_write() => {
                    self.written(&written);
                }
                read = read_until(&mut self.reader, self.framer.buffer(), self.drain_until) => match read {
                    Ok(0) | Err(_) => return None,
                    Ok(count) => self.framer.filled(count),
                }
            }
        }
    }

    /// Writes without reading, for the time when a caller cannot take more. Never ends by itself.
    pub(crate) async fn keep_writing(&mut self) {
        while self.has_to_write() {
            let written = write_some(&mut self.writer, &self.outbox).await;
            self.written(&written);
        }
        std::future::pending::<()>().await;
    }

    /// Closes the peer's input but keeps its output.
    pub(crate) fn into_reader(self) -> Reader {
        self.reader
    }

    fn has_to_write(&self) -> bool {
        !self.outbox.is_empty() && self.drain_until.is_none()
    }

    fn written(&mut self, written: &std::io::Result<usize>) {
        let Ok(count) = *written else {
            self.drain_until = Some(Instant::now() + DRAIN_TIME); // earlier messages may still be unread
            return;
        };
        self.outbox.advance(count);
        self.written += count;
        while self.unsent.front().is_some_and(|call| call.start < self.written) {
            self.unsent.pop_front();
        }
    }
}

async fn read_until(
    reader: &mut Reader,
    buffer: &mut BytesMut,
    end: Option<Instant>,
) -> std::io::Result<usize> {
    match end {
        Some(end) => timeout_at(end, reader.read_buf(buffer)).await?,
        None => reader.read_buf(buffer).await,
    }
}

async fn write_some(writer: &mut Writer, outbox: &Queue) -> std::io::Result<usize> {
    match writer.write_vectored(&outbox.slices(IoSlice::new)).await? {
        0 => Err(std::io::ErrorKind::WriteZero.into()),
        written => Ok(written),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{duplex, split};

    use super::*;

    fn pair(capacity: usize) -> (Connection, Connection) {
        let (ours, theirs) = duplex(capacity);
        let connection = |(reader, writer): (tokio::io::ReadHalf<_>, tokio::io::WriteHalf<_>), framing| {
            Connection::new(Box::new(reader), Box::new(writer), framing, 1_000_000)
        };
        (connection(split(ours), Framing::Newline), connection(split(theirs), Framing::ContentLength))
    }

    /// Both ends send more than fits into the pipe before either reads: neither waits for ever.
    #[tokio::test]
    async fn two_full_stdio_pipes_do_not_deadlock() {
        let (mut ours, mut theirs) = pair(1000);
        let message = Bytes::from(format!("{{\"a\":\"{}\"}}", "x".repeat(100_000)));
        ours.send(message.clone());
        theirs.send(message.clone());
        let (here, there) = tokio::join!(ours.next(), theirs.next());
        assert_eq!(here, Some(Incoming::Message(message.clone())));
        assert_eq!(there, Some(Incoming::Message(message)));
    }
}
