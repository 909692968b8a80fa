//! A server that is a child process: the connection to it and the process behind it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    failure::Failure,
    name::ServerName,
    secret::KnownSecrets,
    wire::{Framing, Incoming},
};
use tokio::{task::JoinHandle, time::timeout};

use super::{
    LinkEvent, ReadMessage, Witness,
    connection::{Connection, Reader, Writer},
};
use crate::{
    process::{self, Guard, Process, StderrRing, StderrSink},
    spec::StdioSpec,
};

/// How long the output of a process that has exited is still read.
const LAST_OUTPUT: Duration = Duration::from_millis(100);
/// How long a server that has closed its output may take to exit.
const LAST_STATUS: Duration = Duration::from_millis(500);

/// Starts child processes. Tests replace it with a scripted server.
pub type Launcher = Arc<dyn Fn(&ServerName, &StdioSpec) -> Result<Launched, Failure> + Send + Sync>;

/// A launched server.
pub struct Launched {
    pub reader: Reader,
    pub writer: Writer,
    pub process: Option<Process>,
}

/// Makes the sink for each started process. The sink must hide the server's secrets in what it writes.
pub type StderrSinks = Arc<dyn Fn(&ServerName, KnownSecrets) -> Box<dyn StderrSink> + Send + Sync>;

/// The launcher that starts real processes. Their stderr also goes to the sinks, if given.
pub fn launcher(guard: Guard, sinks: Option<StderrSinks>) -> Launcher {
    Arc::new(move |server, spec| {
        let secrets = spec.secrets();
        let sink = sinks.as_ref().map(|sinks| sinks(server, secrets.clone()));
        let stderr = StderrRing::new(secrets, sink);
        let mut process = process::spawn(spec, &guard, stderr)
            .map_err(|error| Failure::new(error.to_string(), Vec::new()).with_remedy(error.remedy()))?;
        let missing = || Failure::new("its pipes were taken already", Vec::new());
        let reader = Box::new(process.stdout.take().ok_or_else(missing)?);
        let writer = Box::new(process.stdin.take().ok_or_else(missing)?);
        Ok(Launched { reader, writer, process: Some(process) })
    })
}

pub(crate) struct PipeLink {
    pub(crate) connection: Connection,
    process: Option<Process>,
    stderr: StderrRing,
    /// Lines on stdout that were not messages.
    text: StderrRing,
    exited: bool,
    /// The thread that reads a long message.
    reading: Option<JoinHandle<ReadMessage>>,
}

impl PipeLink {
    pub(crate) fn new(launched: Launched, framing: Framing, limit: usize) -> Self {
        let Launched { reader, writer, process } = launched;
        let stderr = process.as_ref().map(|process| process.stderr.clone()).unwrap_or_default();
        let connection = Connection::new(reader, writer, framing, limit);
        let text = StderrRing::new(stderr.secrets().clone(), None);
        Self { connection, process, stderr, text, exited: false, reading: None }
    }

    pub(crate) fn pid(&self) -> Option<i32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Keeps a line that was not a message.
    pub(crate) fn keep_line(&self, line: &[u8]) {
        self.text.push_line(line);
    }

    /// The next event; `None` when the server is gone. A long message is parsed in another thread, and the
    /// next one waits for it. Dropping the future loses nothing.
    pub(crate) async fn next_read(&mut self) -> Option<LinkEvent> {
        if self.reading.is_none() {
            let message = match self.next().await? {
                Incoming::Message(message) => message,
                other => return Some(LinkEvent::Incoming(other)),
            };
            match ReadMessage::of_long(message) {
                Ok(reading) => self.reading = Some(reading),
                Err(message) => return Some(LinkEvent::Incoming(Incoming::Message(message))),
            }
        }
        let read = tokio::select! {
            read = self.reading.as_mut()? => read,
            () = self.connection.keep_writing() => return None,
        };
        self.reading = None;
        let unread =
            |_| LinkEvent::Incoming(Incoming::Noise(Bytes::from_static(b"a message that cannot be read")));
        Some(read.map_or_else(unread, LinkEvent::Read))
    }

    /// The next item; `None` when the server is gone. Dropping the future loses nothing.
    async fn next(&mut self) -> Option<Incoming> {
        if !self.exited {
            let Some(process) = &mut self.process else { return self.connection.next().await };
            tokio::select! {
                biased;
                item = self.connection.next() => return item,
                // Processes that the server started may keep its output open for ever.
                _ = process.wait() => self.exited = true,
            }
        }
        timeout(LAST_OUTPUT, self.connection.next()).await.unwrap_or(None)
    }

    /// The reason why the server is gone, once [`PipeLink::next`] has returned `None`. Its processes are
    /// ended in the background.
    pub(crate) async fn post_mortem(mut self, during: &str, grace: Duration) -> Failure {
        let exit = match &mut self.process {
            Some(process) => timeout(LAST_STATUS, process.wait()).await.ok(),
            None => None,
        };
        let what = match exit {
            Some(exit) => format!("{exit} {during}"),
            None => format!("closed its output {during}"),
        };
        let failure = self.failure(what);
        tokio::spawn(self.end(grace));
        failure
    }

    /// A failure of a server that is still running.
    pub(crate) fn failure(&self, what: impl Into<String>) -> Failure {
        self.witness().failure(what)
    }

    pub(crate) fn witness(&self) -> Witness {
        Witness { stderr: self.stderr.clone(), text: Some(self.text.clone()) }
    }

    /// Closes the server's input and waits for its exit: TERM after `grace`, KILL after another `grace`.
    pub(crate) async fn end(self, grace: Duration) {
        let Self { connection, process, .. } = self;
        let mut reader = connection.into_reader();
        let Some(process) = process else { return };
        let mut drained = tokio::io::sink();
        tokio::select! {
            _ = process.shutdown(grace) => {}
            // A server that is flushing its output must be able to finish.
            () = async { let _ = tokio::io::copy(&mut reader, &mut drained).await; std::future::pending().await } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn a_long_message_is_read_in_another_thread_and_keeps_its_place() {
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let (reader, writer) = tokio::io::split(ours);
        let launched = Launched { reader: Box::new(reader), writer: Box::new(writer), process: None };
        let mut link = PipeLink::new(launched, Framing::Newline, 16 << 20);
        let answer = |id: u8, bytes: usize| {
            let padding = "x".repeat(bytes);
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"a\":\"{padding}\"}}}}\n")
        };
        let answers = [answer(1, 2 << 20), answer(2, 10)].concat();
        let written = tokio::spawn(async move {
            theirs.write_all(answers.as_bytes()).await.expect("room");
            theirs
        });
        let Some(LinkEvent::Read(read)) = link.next_read().await else { panic!("not read") };
        assert_eq!(read.answered_id(), Some(&b"1"[..]));
        let short = link.next_read().await;
        assert!(matches!(short, Some(LinkEvent::Incoming(Incoming::Message(_)))), "{short:?}");
        drop(written.await);
        assert!(link.next_read().await.is_none());
    }
}
