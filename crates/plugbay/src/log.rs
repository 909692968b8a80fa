//! Writes log lines to stderr without blocking: lines go through a short queue to a thread of their own. If stderr
//! is not read, lines that do not fit into the queue are counted and dropped.

use std::{
    io::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

const QUEUE: usize = 256;
/// How long the last lines may take at the end.
const LAST_LINES: Duration = Duration::from_millis(200);

/// Starts its thread with the first line.
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
        self.send(queue, line.to_vec(), 1);
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

/// The subscriber writes each event with one call.
impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
