//! Writes log lines to stderr without blocking: lines go through a short queue to a separate thread. If
//! stderr is not read, lines that do not fit into the queue are dropped and counted.

use std::{
    io::{self, Write},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use plugbay_core::text;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    config::Paths,
    log_files::{FileLayer, LogFiles},
    output::Output,
};

const QUEUE: usize = 256;
/// How long writing the last lines may take at the end.
const LAST_LINES: Duration = Duration::from_millis(200);

/// The log to stderr. Its thread starts with the first line.
#[derive(Debug, Default)]
pub struct Log {
    queue: OnceLock<SyncSender<Item>>,
    lost: AtomicU64,
}

enum Item {
    Line(Vec<u8>),
    /// Everything before this has been written.
    End(SyncSender<()>),
}

impl Log {
    /// Waits a moment for the last lines to be written.
    pub fn finish(&self) {
        let Some(queue) = self.queue.get() else { return };
        let (done, written) = sync_channel(1);
        if queue.try_send(Item::End(done)).is_ok() {
            let _ = written.recv_timeout(LAST_LINES);
        }
    }

    fn line(&self, line: &[u8]) {
        let queue = self.queue.get_or_init(start);
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            self.send(
                queue,
                format!("({lost} log lines were dropped: stderr is not read)\n").into_bytes(),
                lost,
            );
        }
        let line = String::from_utf8_lossy(line);
        self.send(queue, text::log_line(&line).as_bytes().to_vec(), 1);
    }

    fn send(&self, queue: &SyncSender<Item>, line: Vec<u8>, counts: u64) {
        if let Err(TrySendError::Full(_)) = queue.try_send(Item::Line(line)) {
            self.lost.fetch_add(counts, Ordering::Relaxed);
        }
    }
}

fn start() -> SyncSender<Item> {
    let (sender, items) = sync_channel(QUEUE);
    std::thread::spawn(move || {
        for item in items {
            match item {
                Item::Line(line) => _ = io::stderr().write_all(&line),
                Item::End(done) => _ = done.send(()),
            }
        }
    });
    sender
}

/// Each event is written by one call of the subscriber.
impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of this process.
#[derive(Clone)]
pub struct Logs {
    lines: Arc<Log>,
    pub files: Option<LogFiles>,
}

impl Logs {
    /// Sets up the log. It goes to stderr, because stdout carries the protocol or a command's result.
    /// Gateways also keep it in files.
    pub fn start(verbose: u8, is_gateway: bool, output: Output, paths: &Paths) -> Self {
        let files = paths.log_folder().filter(|_| is_gateway).map(LogFiles::new);
        Self { lines: log(verbose, is_gateway, output, files.clone()), files }
    }

    /// Waits a moment for the last lines to be written.
    pub fn finish(&self) {
        self.lines.finish();
        if let Some(files) = &self.files {
            files.finish();
        }
    }
}

fn log(verbose: u8, is_gateway: bool, output: Output, files: Option<LogFiles>) -> Arc<Log> {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    // The mode of a host is logged only once, and users often look for it.
    let host_view = level.max(LevelFilter::INFO);
    let mut targets =
        Targets::new().with_default(level).with_target("plugbay_downstream::host_view", host_view);
    if verbose == 0 && !is_gateway {
        // These commands show failed servers and name collisions themselves.
        targets = targets.with_target("plugbay_upstream", LevelFilter::OFF);
        targets = targets.with_target("plugbay::publisher", LevelFilter::OFF);
    }
    let log = Arc::new(Log::default());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(Arc::clone(&log))
        .with_ansi(output.coloured_log())
        .without_time()
        .with_target(false);
    // If this fails, an earlier window that was served without the daemon has already set up the log.
    let _ = tracing_subscriber::registry().with(targets).with(lines).with(files.map(FileLayer)).try_init();
    log
}
