//! Writes in a thread of its own, because a disk can be slow, and again what could not be written.

use std::{
    io,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread::JoinHandle,
    time::Duration,
};

/// A failed write is repeated with the next one, or after this time.
const RETRY: Duration = Duration::from_secs(30);
/// So many writes are repeated; of more, the oldest are given up.
const WAITING: usize = 1024;

/// The thread, which ends with [`Writer::finish`] or soon after this is dropped.
#[derive(Debug)]
pub(super) struct Writer<T> {
    jobs: mpsc::Sender<T>,
    thread: JoinHandle<()>,
}

impl<T: Send + 'static> Writer<T> {
    pub(super) fn start(write: impl FnMut(&T) -> io::Result<()> + Send + 'static) -> Self {
        let (jobs, inbox) = mpsc::channel();
        let thread = std::thread::spawn(move || run(&inbox, write));
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

fn run<T>(inbox: &Receiver<T>, mut write: impl FnMut(&T) -> io::Result<()>) {
    let mut waiting: Vec<T> = Vec::new();
    let mut is_broken = false;
    loop {
        let next = if waiting.is_empty() {
            inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            inbox.recv_timeout(RETRY)
        };
        let is_last = matches!(next, Err(RecvTimeoutError::Disconnected));
        waiting.extend(next);
        let mut problem: Option<io::Error> = None;
        waiting.retain(|job| {
            // One lock is for all files, and each would wait for it.
            let is_locked = problem.as_ref().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
            let written = if is_locked { return true } else { write(job) };
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
    use super::*;

    #[test]
    fn a_write_that_failed_is_repeated_with_the_next_one() {
        let (tried, attempts) = mpsc::channel();
        let mut has_room = false;
        let writer = Writer::start(move |job: &u32| {
            tried.send(*job).unwrap();
            if std::mem::replace(&mut has_room, true) {
                Ok(())
            } else {
                Err(io::ErrorKind::StorageFull.into())
            }
        });
        writer.send(1);
        assert_eq!(attempts.recv(), Ok(1));
        writer.send(2);
        writer.finish();
        assert_eq!(attempts.iter().collect::<Vec<_>>(), [1, 2]);
    }
    #[test]
    fn a_write_that_always_fails_holds_up_no_other() {
        let (written, seen) = mpsc::channel();
        let writer = Writer::start(move |job: &u32| {
            if *job == 1 {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            written.send(*job).map_err(io::Error::other)
        });
        for job in [1, 2, 3] {
            writer.send(job);
        }
        writer.finish();
        assert_eq!(seen.iter().collect::<Vec<_>>(), [2, 3]);
    }
}
