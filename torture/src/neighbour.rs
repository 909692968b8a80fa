//! Another caller, which calls a good server all the time. Most scenarios measure how long it waits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use plugbay_testkit::HttpGateway;

use crate::{callers, http, measure::loop_time};

/// The server that it calls.
pub(crate) const SERVER: &str = "fast";

/// When it gives up on a call.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Neighbour {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Waits>,
    begun: Instant,
}

/// How long each call took, and how many failed.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) times: Vec<Duration>,
    pub(crate) failed: usize,
    /// The most processor time of the gateway's event loop during one call. A busy machine does not change
    /// it.
    pub(crate) loop_time: Duration,
}

impl Neighbour {
    /// Calls over HTTP, on a separate connection.
    pub(crate) fn over_http(gateway: &HttpGateway) -> Self {
        Self::with_headers(gateway, &[])
    }

    /// Like `over_http`, as the second of [two callers](crate::callers).
    pub(crate) fn second_caller(gateway: &HttpGateway) -> Self {
        Self::with_headers(gateway, &[("authorization", callers::TWO)])
    }

    fn with_headers(gateway: &HttpGateway, headers: &'static [(&str, &str)]) -> Self {
        let (mut host, pid) = (gateway.connect_for(PATIENCE), gateway.pid());
        Self::calling(pid, move || {
            http::is_result(&http::call(&mut host, "fast__echo", r#"{"n":1}"#, headers).body)
        })
    }

    fn calling(pid: u32, mut call: impl FnMut() -> bool + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut waits = Waits::default();
            while !stopped.load(Ordering::Relaxed) {
                let (start, before) = (Instant::now(), loop_time(pid));
                let served = call();
                waits.times.push(start.elapsed());
                waits.failed += usize::from(!served);
                waits.loop_time = waits.loop_time.max(loop_time(pid).saturating_sub(before));
            }
            waits
        });
        Self { stop, thread, begun: Instant::now() }
    }

    /// Ends after the current call. A call that is never answered counts as a wait from the start to now.
    pub(crate) fn stop(self) -> Waits {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| Waits {
            times: vec![self.begun.elapsed()],
            failed: 1,
            loop_time: Duration::ZERO,
        })
    }
}

/// Runs `work`, and returns the waits of the neighbour meanwhile.
pub(crate) fn beside<T>(neighbour: Neighbour, work: impl FnOnce() -> T) -> (Waits, T) {
    let done = work();
    (neighbour.stop(), done)
}
