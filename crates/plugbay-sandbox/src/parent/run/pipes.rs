//! The pipes of a script's process. Both directions move at the same time, so neither side waits for the
//! other to read.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout},
    select,
};

use crate::{
    parent::process,
    protocol::{FRAME, Frame, Nonsense, Request},
};

/// The bytes that are on their way.
#[derive(Debug)]
pub(super) struct Pipes {
    /// `None` if the process has closed it.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: ChildStderr,
    last_words: Vec<u8>,
    unwritten: VecDeque<Bytes>,
    unread: BytesMut,
}

impl Pipes {
    pub(super) fn new(
        (stdin, stdout, stderr): (ChildStdin, BufReader<ChildStdout>, ChildStderr),
        request: Request,
    ) -> Self {
        let mut pipes = Self {
            stdin: Some(stdin),
            stdout,
            stderr,
            last_words: Vec::new(),
            unwritten: VecDeque::new(),
            unread: BytesMut::new(),
        };
        pipes.queue(request.encode());
        pipes
    }

    pub(super) fn queue(&mut self, parts: [Bytes; 2]) {
        self.unwritten.extend(parts.into_iter().filter(|part| !part.is_empty()));
    }

    /// The next complete frame.
    pub(super) fn frame(&mut self) -> Option<Result<Frame, Nonsense>> {
        Frame::take(&mut self.unread)
    }

    /// Reads something, and writes in the meantime. False if the process has closed its pipe. Cancel-safe.
    pub(super) async fn exchange(&mut self) -> bool {
        self.unread.reserve(FRAME);
        loop {
            let Self { stdin, stdout, unwritten, unread, .. } = self;
            let written = match (stdin.as_mut(), unwritten.front_mut()) {
                (Some(stdin), Some(part)) => select! {
                    biased;
                    read = stdout.read_buf(unread) => return read.is_ok_and(|read| read > 0),
                    written = stdin.write(part) => written.inspect(|written| part.advance(*written)),
                },
                _ => return stdout.read_buf(unread).await.is_ok_and(|read| read > 0),
            };
            if written.is_err() {
                // It no longer reads because it has died; its end shows why.
                *stdin = None;
            }
            if unwritten.front().is_some_and(Bytes::is_empty) {
                unwritten.pop_front();
            }
        }
    }

    /// What the process wrote to stderr before it ended. Cancel-safe.
    pub(super) async fn last_words(&mut self) -> &[u8] {
        process::last_words(&mut self.stderr, &mut self.last_words).await;
        &self.last_words
    }
}
