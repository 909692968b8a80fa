//! Log files for `plugbay logs`: servers' stderr, and the log of gateways.
//!
//! Lines go through a short queue to a separate thread, so that no server and no gateway ever waits for the
//! disk.

mod file;
mod layer;
mod read;

use std::{
    fmt,
    path::{Path, PathBuf},
    process,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use plugbay_core::{name::ServerName, secret::KnownSecrets};
use plugbay_upstream::{StderrSinks, process::StderrSink};

pub use layer::FileLayer;
pub use read::{Follower, Line, names};

/// Length of the queue, in items of at most 4 KiB, as they come from a pipe.
const QUEUE: usize = 256;
/// How long writing the last lines may take at the end.
const LAST_LINES: Duration = Duration::from_millis(200);
/// A longer line is split.
const LONGEST_LINE: usize = 16 * 1024;

/// Appends to log files. Its thread starts with the first line; clones share it.
#[derive(Clone)]
pub struct LogFiles(Arc<Shared>);

struct Shared {
    folder: PathBuf,
    queue: OnceLock<SyncSender<Item>>,
    /// Number of items that did not fit into the queue.
    lost: AtomicU64,
}

/// The log of a server, or that of all gateways.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogName {
    Gateway,
    Server(ServerName),
}

/// Who wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Stderr,
    Plugbay,
}

enum Item {
    Lines {
        log: LogName,
        at: SystemTime,
        source: Source,
        text: Vec<u8>,
        /// Hidden in the text by the thread that writes it.
        secrets: KnownSecrets,
    },
    /// Everything before this has been written.
    End(SyncSender<()>),
}

impl LogFiles {
    /// Does not touch any file yet.
    pub fn new(folder: PathBuf) -> Self {
        Self(Arc::new(Shared { folder, queue: OnceLock::new(), lost: AtomicU64::new(0) }))
    }

    /// Sinks for the stderr of started processes.
    pub fn sinks(self) -> StderrSinks {
        Arc::new(move |server, secrets| {
            Box::new(ServerSink {
                files: self.clone(),
                log: LogName::Server(server.clone()),
                secrets,
                rest: Vec::new(),
            })
        })
    }

    /// Waits a moment for the last lines to be written.
    pub fn finish(&self) {
        let Some(queue) = self.0.queue.get() else { return };
        let (done, written) = sync_channel(1);
        if queue.try_send(Item::End(done)).is_ok() {
            let _ = written.recv_timeout(LAST_LINES);
        }
    }

    /// Queues a text without waiting: if the disk is too slow, it is dropped and counted.
    fn send(&self, log: LogName, source: Source, text: Vec<u8>, secrets: KnownSecrets) {
        let queue = self.0.queue.get_or_init(|| start(self.0.folder.clone()));
        let lost = self.0.lost.swap(0, Ordering::Relaxed);
        let mut text = text;
        if lost > 0 {
            let note = format!("(plugbay dropped {lost} pieces of its logs here: the disk is too slow)\n");
            text.splice(..0, note.into_bytes());
        }
        let item = Item::Lines { log, at: SystemTime::now(), source, text, secrets };
        if let Err(TrySendError::Full(_)) = queue.try_send(item) {
            self.0.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for LogFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogFiles").field(&self.0.folder).finish()
    }
}

impl LogName {
    /// The path of the log. Server names are no paths, and none equals the name of the gateways' log.
    fn path(&self, folder: &Path) -> PathBuf {
        match self {
            Self::Gateway => folder.join("gateway.log"),
            Self::Server(name) => folder.join("servers").join(format!("{name}.log")),
        }
    }
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stderr => "stderr",
            Self::Plugbay => "plugbay",
        }
    }
}

fn start(folder: PathBuf) -> SyncSender<Item> {
    let (sender, items) = sync_channel(QUEUE);
    thread::spawn(move || {
        let mut warned = false;
        for item in items {
            match item {
                Item::Lines { log, at, source, text, secrets } => {
                    let lines = file::lines(at, process::id(), source.as_str(), &text);
                    let written = file::append(&log.path(&folder), secrets.hide(lines).as_bytes());
                    if let Err(error) = written
                        && !std::mem::replace(&mut warned, true)
                    {
                        tracing::warn!("the log files in {} cannot be written: {error}", folder.display());
                    }
                }
                Item::End(done) => _ = done.send(()),
            }
        }
    });
    sender
}

/// A sink for the stderr of one process: it passes on whole lines.
struct ServerSink {
    files: LogFiles,
    log: LogName,
    secrets: KnownSecrets,
    /// The beginning of an incomplete line.
    rest: Vec<u8>,
}

impl ServerSink {
    fn send(&mut self, length: usize) {
        let lines = self.rest.drain(..length).collect();
        self.files.send(self.log.clone(), Source::Stderr, lines, self.secrets.clone());
    }
}

impl StderrSink for ServerSink {
    fn write(&mut self, bytes: &[u8]) {
        self.rest.extend(bytes);
        match self.rest.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => self.send(end + 1),
            None if self.rest.len() >= LONGEST_LINE => self.send(self.rest.len()),
            None => {}
        }
    }
}

impl Drop for ServerSink {
    fn drop(&mut self) {
        if !self.rest.is_empty() {
            self.send(self.rest.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_of_a_server_becomes_lines_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let files = LogFiles::new(folder.path().to_owned());
        let server = ServerName::parse("db").unwrap();
        let secrets = KnownSecrets::new([("s3cret-value".to_owned(), "${TOKEN}".to_owned())]);
        let mut sink = files.clone().sinks()(&server, secrets);
        sink.write(b"one\ntw");
        sink.write(b"o\n\nhalf s3cret");
        sink.write(b"-value");
        drop(sink);
        files.finish();
        let (lines, _) = Follower::open(folder.path(), Some("db"), 9).unwrap();
        let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["one", "two", "half ${TOKEN}"]);
        let line = &lines[0];
        assert_eq!(
            (line.server.as_deref(), line.source.as_str(), line.gateway),
            (Some("db"), "stderr", process::id())
        );
    }
}
