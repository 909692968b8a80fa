//! Writes files in a separate thread, because a disk can be slow, and retries failed writes.

use std::{
    io,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread::JoinHandle,
    time::Duration,
};

/// A failed write is retried with the next write, or after this time.
const RETRY: Duration = Duration::from_secs(30);
/// Limit of writes to retry; above it, the oldest are given up.
const WAITING: usize = 1024;

/// One write.
pub(super) trait Write: Send + 'static {
    fn write(&self) -> io::Result<()>;

    /// Whether this write makes an earlier one unnecessary.
    fn supersedes(&self, earlier: &Self) -> bool;
}

/// The thread, which ends with [`Writer::finish`] or soon after this is dropped.
#[derive(Debug)]
pub(super) struct Writer<T> {
    jobs: mpsc::Sender<T>,
    thread: JoinHandle<()>,
}

impl<T: Write> Writer<T> {
    pub(super) fn start() -> Self {
        let (jobs, inbox) = mpsc::channel();
        let thread = std::thread::spawn(move || run(&inbox));
        Self { jobs, thread }
    }

    pub(super) fn send(&self, job: T) {
        let _ = self.jobs.send(job);
    }

    /// Waits until everything is written, or could not be.
    pub(super) fn finish(self) {
        drop(self.jobs);
        let _ = self.thread.join();
    }
}

fn run<T: Write>(inbox: &Receiver<T>) {
    let mut waiting: Vec<T> = Vec::new();
    let mut is_broken = false;
    loop {
        let next = if waiting.is_empty() {
            inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            inbox.recv_timeout(RETRY)
        };
        let is_last = matches!(next, Err(RecvTimeoutError::Disconnected));
        if let Ok(next) = next {
            waiting.retain(|earlier| !next.supersedes(earlier));
            waiting.push(next);
        }
        let mut problem: Option<io::Error> = None;
        waiting.retain(|job| {
            // One lock protects all files, so every further write would wait for it too.
            let is_locked = problem.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
            let written = if is_locked { return true } else { job.write() };
            written.map_err(|error| problem = Some(error)).is_err()
        });
        waiting.drain(..waiting.len().saturating_sub(WAITING));
        match problem {
            None if std::mem::take(&mut is_broken) => tracing::info!("the cache is written again"),
            Some(error) if !std::mem::replace(&mut is_broken, true) => {
                tracing::warn!("the cache cannot be written: {error}; plugbay tries again");
            }
            _ => {}
        }
        if is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use super::*;

    /// A write of one place; `fails` decides whether it succeeds.
    struct Job {
        place: u32,
        fails: Arc<AtomicBool>,
        tried: mpsc::Sender<u32>,
    }

    impl Write for Job {
        fn write(&self) -> io::Result<()> {
            let fails = self.fails.load(Ordering::SeqCst); // before the test hears of the attempt
            self.tried.send(self.place).unwrap();
            if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }

        fn supersedes(&self, earlier: &Self) -> bool {
            self.place == earlier.place
        }
    }

    fn job(place: u32, fails: &Arc<AtomicBool>, tried: &mpsc::Sender<u32>) -> Job {
        Job { place, fails: Arc::clone(fails), tried: tried.clone() }
    }

    /// Makes this many writes of place 1 fail, then writes place 2 successfully; returns the attempts from
    /// then on.
    fn attempts_after_failures(failures: usize) -> Vec<u32> {
        let (tried, attempts) = mpsc::channel();
        let is_full = Arc::new(AtomicBool::new(true));
        let writer = Writer::start();
        for _ in 0..failures {
            writer.send(job(1, &is_full, &tried));
            assert_eq!(attempts.recv(), Ok(1));
        }
        is_full.store(false, Ordering::SeqCst);
        writer.send(job(2, &is_full, &tried));
        writer.finish();
        drop(tried);
        attempts.iter().collect()
    }

    #[test]
    fn a_write_that_failed_is_repeated_with_the_next_one() {
        assert_eq!(attempts_after_failures(1), [1, 2]);
    }

    #[test]
    fn a_later_write_of_a_place_is_the_only_one() {
        assert_eq!(attempts_after_failures(3), [1, 2]);
    }

    #[test]
    fn a_write_that_always_fails_holds_up_no_other() {
        let (tried, attempts) = mpsc::channel();
        let (fails, works) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(false)));
        let writer = Writer::start();
        writer.send(job(1, &fails, &tried));
        writer.send(job(2, &works, &tried));
        writer.finish();
        drop(tried);
        assert!(attempts.iter().any(|place| place == 2));
    }
}
