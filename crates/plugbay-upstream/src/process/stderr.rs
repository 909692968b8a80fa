//! The last lines of a server's stderr, for error messages; earlier ones are dropped.

use std::{
    collections::VecDeque,
    fmt,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plugbay_core::secret::KnownSecrets;
use tokio::net::unix::pipe;

use super::text::clean;

const KEPT_BYTES: usize = 64 * 1024;
const KEPT_LINES: usize = 200;
const READ_SIZE: usize = 4 * 1024;
const LARGEST_PIPE: usize = 1024 * 1024;
/// The log target of the servers' stderr, so that a user can read it without plugbay's own log.
const LOG_TARGET: &str = "plugbay::stderr";

/// Receives a server's stderr as it comes, in addition to the ring. It is called while the ring is locked, so
/// it must never block. It is dropped when the server is gone.
pub trait StderrSink: Send {
    fn write(&mut self, bytes: &[u8]);
}

/// A cheap handle: clones show the same lines, even after the process has ended.
#[derive(Clone, Default)]
pub struct StderrRing {
    // A std mutex: held only to copy a few bytes, never across an await.
    ring: Arc<Mutex<Ring>>,
    secrets: KnownSecrets,
}

impl StderrRing {
    /// A ring that hides these secrets in its lines. The sink gets the bytes unchanged.
    pub fn new(secrets: KnownSecrets, sink: Option<Box<dyn StderrSink>>) -> Self {
        let ring = Ring { sink, ..Ring::default() };
        Self { ring: Arc::new(Mutex::new(ring)), secrets }
    }

    /// The secrets of the server.
    pub(crate) fn secrets(&self) -> &KnownSecrets {
        &self.secrets
    }

    /// The last `n` lines (at most 200), oldest first, without blank lines, safe to print.
    pub fn tail(&self, n: usize) -> Vec<String> {
        let (bytes, is_cut) = {
            let ring = self.lock();
            (ring.bytes.iter().copied().collect::<Vec<u8>>(), ring.is_cut)
        };
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        let mut tail: Vec<String> = lines
            .iter()
            .enumerate()
            .rev()
            .map(|(index, line)| (index, clean(line)))
            .filter(|(_, line)| !line.is_empty())
            .map(|(index, line)| if index == 0 && is_cut { format!("…{line}") } else { line })
            .map(|line| self.secrets.hide(line).into_owned())
            .take(n.min(KEPT_LINES))
            .collect();
        tail.reverse();
        tail
    }

    /// Adds a line that a server has printed on stdout, although it is no message.
    pub fn push_line(&self, line: &[u8]) {
        self.log(line);
        let mut ring = self.lock();
        // Half a line of stderr may still wait for its rest: do not write into it.
        if ring.bytes.back().is_some_and(|last| *last != b'\n') {
            ring.append(b"\n");
        }
        ring.append(line);
        ring.append(b"\n");
    }

    /// Takes new bytes, and logs the lines that end with them.
    fn take(&self, mut ring: MutexGuard<'_, Ring>, new: &[u8]) {
        ring.append(new);
        if !tracing::enabled!(target: LOG_TARGET, tracing::Level::DEBUG) {
            return;
        }
        let lines = ring.ended_lines(new);
        drop(ring);
        for line in lines {
            self.log(&line);
        }
    }

    /// Logs the last line, even though it has no newline.
    fn log_rest(&self) {
        let rest = std::mem::take(&mut self.lock().unlogged);
        self.log(&rest);
    }

    /// Logs a whole line: half a secret would not be recognised.
    fn log(&self, line: &[u8]) {
        if !tracing::enabled!(target: LOG_TARGET, tracing::Level::DEBUG) {
            return;
        }
        let line = clean(line);
        if !line.is_empty() {
            tracing::debug!(target: LOG_TARGET, "{}", self.secrets.hide(line));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        // Nothing can panic half-way through a change, so a poisoned ring is still whole.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StderrRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StderrRing").field("bytes", &self.lock().bytes.len()).finish_non_exhaustive()
    }
}

/// Reads until every writer is gone: a full pipe would block the server in the middle of its work.
pub(super) async fn drain(pipe: Arc<pipe::Receiver>, ring: StderrRing) {
    while pipe.readable().await.is_ok() {
        if read_once(&pipe, &ring).is_break() {
            return ring.log_rest();
        }
        // A child that writes without end must not hold up the other tasks of this thread.
        tokio::task::yield_now().await;
    }
}

/// Reads the present content of the pipe, even if the runtime has not noticed it yet. The amount is limited,
/// because another process may write without end.
pub(super) fn drain_now(pipe: &pipe::Receiver, ring: &StderrRing) {
    for _ in 0..LARGEST_PIPE / READ_SIZE {
        let mut buffer = [0; READ_SIZE];
        let locked = ring.lock();
        let Ok(length @ 1..) = rustix::io::read(pipe, &mut buffer) else { return };
        ring.take(locked, &buffer[..length]);
    }
}

/// Not async, so that the buffer lives on the stack for a moment and not in the task for hours.
fn read_once(pipe: &pipe::Receiver, ring: &StderrRing) -> ControlFlow<()> {
    let mut buffer = [0; READ_SIZE];
    // Locked before the read, so that [`drain_now`], which may read at the same time, cannot come in between.
    let locked = ring.lock();
    match pipe.try_read(&mut buffer) {
        Ok(0) => ControlFlow::Break(()),
        Ok(length) => {
            ring.take(locked, &buffer[..length]);
            ControlFlow::Continue(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => ControlFlow::Continue(()),
        Err(error) => {
            tracing::debug!(%error, "stderr of the server cannot be read");
            ControlFlow::Break(())
        }
    }
}

/// The bytes of stderr, not lines: a flood of short lines costs only a copy.
#[derive(Default)]
struct Ring {
    bytes: VecDeque<u8>,
    /// Older bytes were dropped, so the first line may lack its beginning.
    is_cut: bool,
    /// The beginning of a line that is still incomplete, and so not logged yet.
    unlogged: Vec<u8>,
    sink: Option<Box<dyn StderrSink>>,
}

impl Ring {
    fn append(&mut self, new: &[u8]) {
        let kept = &new[new.len().saturating_sub(KEPT_BYTES)..];
        let excess = (self.bytes.len() + kept.len()).saturating_sub(KEPT_BYTES);
        self.is_cut |= excess > 0 || kept.len() < new.len();
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
        if let Some(sink) = &mut self.sink {
            sink.write(new);
        }
    }

    /// The lines that end within these bytes. Of a line that is too long, only the beginning is kept.
    fn ended_lines(&mut self, new: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for (index, part) in new.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                lines.push(std::mem::take(&mut self.unlogged));
            }
            let room = KEPT_BYTES.saturating_sub(self.unlogged.len());
            self.unlogged.extend_from_slice(&part[..part.len().min(room)]);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    fn ring(chunks: &[&[u8]]) -> StderrRing {
        let ring = StderrRing::default();
        for chunk in chunks {
            ring.lock().append(chunk);
        }
        ring
    }

    #[test]
    fn the_stderr_tail_joins_chunks_and_skips_blank_lines() {
        let ring = ring(&[b"one\ntw", b"o\n\n  \nthr", b"ee"]);

        assert_eq!(ring.tail(9), ["one", "two", "three"]);
        assert_eq!(ring.tail(2), ["two", "three"]);
        assert!(ring.tail(0).is_empty());
    }

    #[test]
    fn keeps_at_most_200_lines() {
        let ring = ring(&[&b"line\n".repeat(1000)]);

        assert_eq!(ring.tail(usize::MAX).len(), KEPT_LINES);
    }

    #[test]
    fn a_giant_stderr_line_is_cut() {
        let ring = StderrRing::default();
        for _ in 0..100 {
            ring.lock().append(&b"x".repeat(READ_SIZE));
        }
        ring.lock().append(&b"y".repeat(3 * KEPT_BYTES));

        assert_eq!(ring.lock().bytes.len(), KEPT_BYTES);
        assert!(ring.lock().bytes.capacity() <= 2 * KEPT_BYTES);
        let tail = ring.tail(5);
        assert_eq!(tail.len(), 1);
        assert!(tail[0].starts_with("…yyy") && tail[0].ends_with("y…") && tail[0].len() < 5000);
    }

    #[test]
    fn a_secret_that_was_cut_is_not_shown() {
        let secrets = KnownSecrets::new([("hunter2-hunter2".to_owned(), "${KEY}".to_owned())]);
        let ring = StderrRing::new(secrets, None);
        let rest = "x".repeat(KEPT_BYTES - "-hunter2 is wrong\n".len());
        ring.lock().append(format!("the key hunter2-hunter2 is wrong\n{rest}").as_bytes());

        assert_eq!(ring.tail(9)[0], "… is wrong");
    }

    #[test]
    fn stderr_lines_are_logged_whole_however_they_come() {
        let ring = StderrRing::default();
        let mut ring = ring.lock();
        assert!(ring.ended_lines(b"the key hun").is_empty());
        assert_eq!(ring.ended_lines(b"ter2\n\nne"), [b"the key hunter2".to_vec(), Vec::new()]);
        assert_eq!(ring.ended_lines(b"xt\n"), [b"next".to_vec()]);
    }

    #[tokio::test]
    async fn stderr_left_in_the_pipe_is_read_at_once() {
        let (mut writer, pipe) = pipe::pipe().unwrap();
        writer.write_all(b"before the end\n").await.unwrap();
        let ring = StderrRing::default();

        drain_now(&pipe, &ring);

        assert_eq!(ring.tail(9), ["before the end"]);
    }

    #[test]
    fn a_sink_gets_every_byte_of_stderr() {
        struct Collect(Arc<Mutex<Vec<u8>>>);
        impl StderrSink for Collect {
            fn write(&mut self, bytes: &[u8]) {
                self.0.lock().unwrap().extend(bytes);
            }
        }
        let collected = Arc::new(Mutex::new(Vec::new()));
        let ring = StderrRing::new(KnownSecrets::default(), Some(Box::new(Collect(Arc::clone(&collected)))));

        ring.lock().append(&b"x".repeat(2 * KEPT_BYTES));
        ring.push_line(b"not JSON");

        let all = collected.lock().unwrap();
        assert_eq!(all.len(), 2 * KEPT_BYTES + "\nnot JSON\n".len());
        assert!(all.ends_with(b"x\nnot JSON\n"));
    }

    #[test]
    fn a_pushed_stderr_line_stands_alone() {
        let ring = ring(&[b"half"]);

        ring.push_line(b"not JSON\r");
        ring.lock().append(b"other half\n");

        assert_eq!(ring.tail(9), ["half", "not JSON", "other half"]);
    }
}
