//! The life of one server: when to start it, when to let it rest, when to try again.
//!
//! No clock and no process in here: events come in with the time, decisions go out.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::failure::Failure;

/// How patient the lifecycle is.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A server that is unused for this long is stopped.
    pub idle: Option<Duration>,
    pub first_retry: Duration,
    pub last_retry: Duration,
    /// A server that has failed is started again without a call. Otherwise the next call does that.
    pub comes_back: bool,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            idle: Some(Duration::from_secs(300)),
            first_retry: Duration::from_secs(1),
            last_retry: Duration::from_secs(300),
            comes_back: true,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Not running, and nothing is wrong: not needed yet, or stopped because it was unused.
    Idle,
    Warming,
    Ready {
        /// The last time at which it was used.
        idle_since: Instant,
    },
    Error {
        failure: Arc<Failure>,
        retry_at: Instant,
    },
    /// Only other credentials can help. Time cannot, so nothing is tried again until there are others.
    NeedsLogin {
        failure: Arc<Failure>,
    },
}

/// What a caller that wants to use the server has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Send at once.
    Ready,
    /// Start the server, then wait.
    Start,
    /// It is being started: wait.
    Wait,
    /// It failed a moment ago; starting it for every call would be a storm.
    Refuse { failure: Arc<Failure>, retry_in: Duration },
    /// It has to wait for a login.
    AwaitLogin { failure: Arc<Failure> },
}

/// An action that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Start,
    Stop,
}

#[derive(Debug, Clone)]
pub struct Lifecycle {
    patience: Patience,
    state: State,
    /// Failures since the server last answered a call.
    failures: u32,
    /// The users for whom it must keep running.
    holders: BTreeSet<u64>,
    /// Spreads retries so that servers which failed together do not come back together.
    jitter: u64,
}

impl Lifecycle {
    pub fn new(patience: Patience, seed: u64) -> Self {
        Self { patience, state: State::Idle, failures: 0, holders: BTreeSet::new(), jitter: seed }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Somebody wants to use the server. The first failure after good service is forgiven at once;
    /// after later ones, calls are rejected until the next retry.
    pub fn wanted(&mut self, now: Instant) -> Admission {
        match &self.state {
            State::Ready { .. } => {
                self.state = State::Ready { idle_since: now };
                Admission::Ready
            }
            State::Warming => Admission::Wait,
            State::Error { failure, retry_at } if !self.forgives() && now < *retry_at => {
                Admission::Refuse { failure: Arc::clone(failure), retry_in: *retry_at - now }
            }
            State::NeedsLogin { failure } => Admission::AwaitLogin { failure: Arc::clone(failure) },
            State::Idle | State::Error { .. } => {
                self.state = State::Warming;
                Admission::Start
            }
        }
    }

    /// Somebody waits for the server to start, and may have repaired it: the pause before a retry is skipped.
    pub fn urged(&mut self, now: Instant) -> Admission {
        if let State::Error { .. } | State::NeedsLogin { .. } = self.state {
            self.state = State::Idle;
        }
        self.wanted(now)
    }

    /// There are other credentials than before. `awaited`: a call waits for them.
    pub fn credentials_changed(&mut self, awaited: bool) -> Option<Due> {
        let State::NeedsLogin { .. } = self.state else { return None };
        if awaited || self.patience.comes_back {
            self.state = State::Warming;
            return Some(Due::Start);
        }
        self.state = State::Idle;
        None
    }

    /// Notes whether this user has the server's tools listed. When nobody has, it is unused from now on.
    pub fn held(&mut self, user: u64, held: bool, now: Instant) {
        let changed = if held { self.holders.insert(user) } else { self.holders.remove(&user) };
        if changed {
            self.used(now);
        }
    }

    pub fn is_held(&self) -> bool {
        !self.holders.is_empty()
    }

    fn used(&mut self, now: Instant) {
        if let State::Ready { idle_since } = &mut self.state {
            *idle_since = now;
        }
    }

    /// Whether the next start need not wait: this is at most the first failure after good service.
    pub fn forgives(&self) -> bool {
        self.failures <= 1
    }

    pub fn started(&mut self, now: Instant) {
        self.state = State::Ready { idle_since: now };
    }

    /// A call was answered: the server works, and its failures are forgotten.
    pub fn served(&mut self, now: Instant) {
        self.failures = 0;
        self.used(now);
    }

    /// The server could not be started, or it ended by itself.
    pub fn failed(&mut self, now: Instant, failure: Arc<Failure>) {
        if failure.needs_login() {
            self.state = State::NeedsLogin { failure };
            return;
        }
        self.failures += 1;
        let retry_at = now + self.pause();
        self.state = State::Error { failure, retry_at };
    }

    pub fn stopped(&mut self) {
        self.state = State::Idle;
    }

    /// When to call `tick` next.
    pub fn next_tick(&self) -> Option<Instant> {
        match &self.state {
            State::Ready { idle_since } => self.patience.idle.map(|idle| *idle_since + idle),
            State::Error { retry_at, .. } => self.patience.comes_back.then_some(*retry_at),
            State::Idle | State::Warming | State::NeedsLogin { .. } => None,
        }
    }

    /// Returns what is due. A server is in use if it is held, or `busy` with calls, however long they take.
    pub fn tick(&mut self, now: Instant, busy: bool) -> Option<Due> {
        if self.next_tick().is_none_or(|due| now < due) {
            return None;
        }
        match &mut self.state {
            State::Ready { idle_since } if busy || !self.holders.is_empty() => {
                *idle_since = now;
                None
            }
            State::Ready { .. } => Some(Due::Stop),
            State::Error { .. } => {
                self.state = State::Warming;
                Some(Due::Start)
            }
            State::Idle | State::Warming | State::NeedsLogin { .. } => None,
        }
    }

    /// The pause before a retry. It doubles with each failure up to the longest, and varies by up to a
    /// quarter.
    fn pause(&mut self) -> Duration {
        let doubled = self.patience.first_retry.saturating_mul(1 << (self.failures - 1).min(20));
        let pause = doubled.min(self.patience.last_retry);
        self.jitter =
            self.jitter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let spread = u32::try_from(self.jitter >> 33).unwrap_or(0) % 1000;
        pause.saturating_sub(pause / 4 * spread / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Cause;

    const SECOND: Duration = Duration::from_secs(1);

    fn failure() -> Arc<Failure> {
        Arc::new(Failure::new("exited", vec![]))
    }

    #[test]
    fn a_server_is_started_once_for_many_callers_and_rests_when_unused() {
        let start = Instant::now();
        let mut life = Lifecycle::new(Patience::default(), 1);
        assert_eq!(life.wanted(start), Admission::Start);
        assert_eq!(life.wanted(start), Admission::Wait);
        life.started(start + SECOND);
        assert_eq!(life.wanted(start + 2 * SECOND), Admission::Ready);
        let due = life.next_tick().unwrap();
        assert_eq!(due, start + 302 * SECOND);
        assert_eq!(life.tick(due, true), None, "in use");
        assert_eq!(life.tick(due + 300 * SECOND, false), Some(Due::Stop));
        life.stopped();
        assert_eq!(life.wanted(due), Admission::Start);
    }

    #[test]
    fn the_first_failure_is_forgiven_and_a_storm_is_not() {
        let now = Instant::now();
        let mut life = Lifecycle::new(Patience::default(), 1);
        life.failed(now, failure());
        assert_eq!(life.wanted(now), Admission::Start);
        life.failed(now, failure());
        assert!(matches!(life.wanted(now), Admission::Refuse { retry_in, .. } if retry_in <= 2 * SECOND));
        assert_eq!(life.wanted(now + 2 * SECOND), Admission::Start);
        life.started(now);
        life.served(now);
        life.failed(now, failure());
        assert_eq!(life.wanted(now), Admission::Start);
    }

    #[test]
    fn a_server_that_needs_a_login_is_tried_again_when_there_are_other_credentials() {
        let now = Instant::now();
        let failure = || Arc::new(Failure::new("needs a login", vec![]).because(Cause::NeedsLogin));
        let mut life = Lifecycle::new(Patience::default(), 1);
        assert_eq!(life.credentials_changed(true), None, "it is not waited for");
        life.failed(now, failure());
        assert_eq!(life.next_tick(), None, "time does not help");
        assert_eq!(life.tick(now + 3600 * SECOND, false), None);
        assert_eq!(life.wanted(now), Admission::AwaitLogin { failure: failure() });
        assert_eq!(life.credentials_changed(false), Some(Due::Start));
        assert_eq!(life.wanted(now), Admission::Wait);
        life.failed(now, failure());
        assert_eq!(life.urged(now), Admission::Start, "somebody may know better");
        life.failed(now, failure());
        assert!(life.forgives(), "it was no failure of the server");

        let mut of_session = Lifecycle::new(Patience { comes_back: false, ..Patience::default() }, 1);
        of_session.failed(now, failure());
        assert_eq!(of_session.credentials_changed(false), None);
        assert_eq!(of_session.wanted(now), Admission::Start);
        of_session.failed(now, failure());
        assert_eq!(of_session.credentials_changed(true), Some(Due::Start));
    }

    #[test]
    fn retries_slow_down_to_five_minutes_and_never_end() {
        let mut now = Instant::now();
        let mut life = Lifecycle::new(Patience::default(), 7);
        let mut pauses = Vec::new();
        for _ in 0..40 {
            life.failed(now, failure());
            let due = life.next_tick().unwrap();
            pauses.push(due - now);
            assert_eq!(life.tick(due, false), Some(Due::Start));
            now = due;
        }
        assert!(pauses[0] <= SECOND && pauses[0] >= SECOND * 3 / 4);
        assert!(pauses[39] <= 300 * SECOND && pauses[39] >= 225 * SECOND);
        assert!(pauses[30] != pauses[31], "jitter");
    }
}
