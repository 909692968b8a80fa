//! One timer for all deadlines of an actor.

use std::{
    pin::Pin,
    time::{Duration, Instant},
};

use tokio::time::{Sleep, sleep};

use super::clock;

/// The timer's deadline when nothing is due.
const FAR_AWAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// A timer that is moved only if it would fire too late. It may fire early, which is harmless and cheaper
/// than moving it for every call.
pub(super) struct Timer {
    sleep: Pin<Box<Sleep>>,
    armed: bool,
}

impl Default for Timer {
    fn default() -> Self {
        Self { sleep: Box::pin(sleep(FAR_AWAY)), armed: false }
    }
}

impl Timer {
    /// Makes the timer fire at this time at the latest. Without one it stays as it is.
    pub(super) fn arm(&mut self, wake: Option<Instant>) {
        if let Some(wake) = wake.map(tokio::time::Instant::from_std)
            && (!self.armed || wake < self.sleep.deadline())
        {
            self.sleep.as_mut().reset(wake);
            self.armed = true;
        }
    }

    /// Ends when the timer fires, which disarms it. Returns how late it is. Never ends if it is not armed.
    pub(super) async fn fired(&mut self) -> Duration {
        if !self.armed {
            return std::future::pending().await;
        }
        self.sleep.as_mut().await;
        self.armed = false;
        clock::now().saturating_duration_since(self.sleep.deadline().into_std())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_timer_fires_once_and_at_its_earliest_deadline() {
        let start = clock::now();
        let mut timer = Timer::default();
        assert!(timeout(60 * SECOND, timer.fired()).await.is_err(), "not armed");
        timer.arm(Some(start + 90 * SECOND));
        timer.arm(Some(start + 70 * SECOND));
        timer.arm(Some(start + 80 * SECOND));
        timer.arm(None);
        assert!(timer.fired().await < SECOND);
        assert_eq!(clock::now() - start, 70 * SECOND);
        assert!(timeout(60 * SECOND, timer.fired()).await.is_err(), "fired already");
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_that_was_not_awaited_to_its_end_still_fires() {
        let start = clock::now();
        let mut timer = Timer::default();
        timer.arm(Some(start + 2 * SECOND));
        assert!(timeout(SECOND, timer.fired()).await.is_err());
        timer.fired().await;
        assert_eq!(clock::now() - start, 2 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_tells_how_late_it_is() {
        let mut timer = Timer::default();
        timer.arm(Some(clock::now() + SECOND));
        tokio::time::advance(60 * SECOND).await;
        assert_eq!(timer.fired().await.as_secs(), 59);
        timer.arm(Some(clock::now() + SECOND));
        assert!(timer.fired().await < SECOND);
    }
}
