//! Ends a process that keeps the driver waiting, so that a missing answer is an error instead of a hang.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::Outcome;

/// Runs `work`, which waits for process group `group`; after `limit` the group is killed and its pipes end.
/// This uses a separate thread instead of a poll before each read, so that nothing is added to the measured
/// path.
pub(crate) fn guarded<T>(group: Pid, limit: Duration, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    let (working, done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let dog = scope.spawn(move || {
            let late = done.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if late {
                let _ = kill_process_group(group, Signal::KILL);
            }
            late
        });
        let result = work();
        drop(working);
        match dog.join() {
            Ok(true) => Err(format!("answers missing after {} s", limit.as_secs()).into()),
            _ => result,
        }
    })
}
