//! Counts the calls of one caller and of its sessions against their limits.

use std::{
    collections::HashMap,
    fmt,
    time::{Duration, Instant},
};

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    state::{InMemoryState, NotKeyed},
};
use plugbay_core::{
    limit::{CallLimits, Rate},
    observe::SessionMark,
};

/// Limit of one caller's sessions whose calls are counted; those unused longest are forgotten first.
const SESSIONS: usize = 4096;

/// A limit that a call would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limited {
    pub(crate) what: &'static str,
    pub(crate) limit: Rate,
    /// After this time the call may be made again.
    pub(crate) retry_after: Duration,
}

impl Limited {
    /// Whole seconds for `Retry-After`, rounded up.
    pub(crate) fn seconds(&self) -> u64 {
        let whole = self.retry_after.as_secs();
        (whole + u64::from(self.retry_after.subsec_nanos() > 0)).max(1)
    }
}

/// A caller's usage of its limits. It restarts when a limit changes.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    rate: Option<Bucket>,
    quota: Option<Window>,
    sessions: HashMap<SessionMark, Bucket>,
}

impl Meter {
    /// Counts one call, unless it exceeds a limit. A refused call uses up no quota.
    pub(crate) fn admit(&mut self, limits: &CallLimits, session: SessionMark) -> Result<(), Limited> {
        let now = TokioClock.now();
        let quota = limits.quota.map(|limit| Window::current(&mut self.quota, limit, now));
        if let Some(limited) = quota.as_ref().and_then(|window| window.limited(now)) {
            return Err(limited);
        }
        if let Some(limit) = limits.session_rate {
            if self.sessions.len() >= SESSIONS && !self.sessions.contains_key(&session) {
                forget_oldest(&mut self.sessions);
            }
            let bucket = self.sessions.entry(session).or_insert_with(|| Bucket::new(limit));
            bucket.keep(limit);
            bucket.take("the rate limit of this session", now)?;
        }
        if let Some(limit) = limits.rate {
            let bucket = self.rate.get_or_insert_with(|| Bucket::new(limit));
            bucket.keep(limit);
            bucket.take("the rate limit of this caller", now)?;
        }
        if let Some(window) = quota {
            window.used += 1;
        }
        Ok(())
    }
}

fn forget_oldest(sessions: &mut HashMap<SessionMark, Bucket>) {
    let oldest = sessions.iter().min_by_key(|(_, bucket)| bucket.used).map(|(session, _)| *session);
    if let Some(oldest) = oldest {
        sessions.remove(&oldest);
    }
}

/// A limit that is replenished evenly over time.
struct Bucket {
    limit: Rate,
    used: Instant,
    /// `None`: the limit is so high that nothing needs to be counted.
    limiter: Option<RateLimiter<NotKeyed, InMemoryState, TokioClock, NoOpMiddleware<Instant>>>,
}

impl Bucket {
    fn new(limit: Rate) -> Self {
        let quota = Quota::with_period(limit.per.length() / limit.count.get());
        let limiter =
            quota.map(|quota| RateLimiter::direct_with_clock(quota.allow_burst(limit.count), TokioClock));
        Self { limit, used: TokioClock.now(), limiter }
    }

    fn keep(&mut self, limit: Rate) {
        if self.limit != limit {
            *self = Self::new(limit);
        }
    }

    fn take(&mut self, what: &'static str, now: Instant) -> Result<(), Limited> {
        self.used = now;
        let Some(bucket) = &self.limiter else { return Ok(()) };
        let refusal = |retry_after| Limited { what, limit: self.limit, retry_after };
        bucket.check().map_err(|not_until| refusal(not_until.wait_time_from(now)))
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bucket({})", self.limit)
    }
}

/// A limit of calls per time window, which begins with the first call.
#[derive(Debug)]
struct Window {
    limit: Rate,
    began: Instant,
    used: u32,
}

impl Window {
    fn current(window: &mut Option<Self>, limit: Rate, now: Instant) -> &mut Self {
        let is_current = |window: &Self| {
            window.limit == limit && now.saturating_duration_since(window.began) < limit.per.length()
        };
        if !window.as_ref().is_some_and(is_current) {
            *window = None;
        }
        window.get_or_insert(Self { limit, began: now, used: 0 })
    }

    fn limited(&self, now: Instant) -> Option<Limited> {
        let retry_after = self.limit.per.length().saturating_sub(now.saturating_duration_since(self.began));
        let limited = Limited { what: "the quota of this caller", limit: self.limit, retry_after };
        (self.used >= self.limit.count.get()).then_some(limited)
    }
}

/// The runtime's clock, which tests can stop.
#[derive(Debug, Clone, Copy, Default)]
struct TokioClock;

impl Clock for TokioClock {
    type Instant = Instant;

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn limits(rate: &str, session_rate: &str, quota: &str) -> CallLimits {
        let read = |text: &str| text.parse().ok();
        CallLimits { rate: read(rate), session_rate: read(session_rate), quota: read(quota) }
    }

    const ONE: SessionMark = SessionMark([1; 8]);
    const TWO: SessionMark = SessionMark([2; 8]);

    #[tokio::test(start_paused = true)]
    async fn a_rate_limit_lets_a_burst_of_calls_pass_and_then_one_at_a_time() {
        let (mut meter, limits) = (Meter::default(), limits("60/min", "", ""));
        for _ in 0..60 {
            meter.admit(&limits, ONE).unwrap();
        }
        let limited = meter.admit(&limits, ONE).unwrap_err();
        assert_eq!((limited.seconds(), limited.limit.to_string()), (1, "60/min".to_owned()));
        advance(Duration::from_secs(2)).await;
        let passed = (0..5).filter(|_| meter.admit(&limits, ONE).is_ok()).count();
        assert_eq!(passed, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_rate_limit_holds_for_each_session() {
        let (mut meter, limits) = (Meter::default(), limits("", "1/hour", ""));
        meter.admit(&limits, ONE).unwrap();
        assert_eq!(meter.admit(&limits, ONE).unwrap_err().seconds(), 3600);
        meter.admit(&limits, TWO).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_quota_of_calls_ends_with_its_window() {
        let (mut meter, limits) = (Meter::default(), limits("1/s", "", "2/day"));
        meter.admit(&limits, ONE).unwrap();
        assert!(meter.admit(&limits, ONE).is_err(), "by the rate, which uses up no quota");
        advance(Duration::from_secs(3600)).await;
        meter.admit(&limits, ONE).unwrap();
        advance(Duration::from_secs(3600)).await;
        assert_eq!(meter.admit(&limits, TWO).unwrap_err().seconds(), 22 * 3600);
        advance(Duration::from_secs(22 * 3600)).await;
        meter.admit(&limits, ONE).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_limit_of_calls_holds_at_once() {
        let mut meter = Meter::default();
        meter.admit(&limits("1/day", "", ""), ONE).unwrap();
        assert!(meter.admit(&limits("1/day", "", ""), ONE).is_err());
        meter.admit(&limits("2/day", "", ""), ONE).unwrap();
        meter.admit(&limits("4000000000/s", "", ""), ONE).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_that_rested_longest_are_forgotten() {
        let (mut meter, limits) = (Meter::default(), limits("", "1/day", ""));
        for number in 0..SESSIONS as u64 + 10 {
            meter.admit(&limits, SessionMark(number.to_be_bytes())).unwrap();
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(meter.sessions.len(), SESSIONS);
    }
}
