//! How long tests wait. `PLUGBAY_TEST_PATIENCE=3` makes every deadline three times as long.

use std::{
    env,
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for an event that must come. It is generous enough for a machine at ten times its
/// load; only a failing test waits that long.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The pause between two checks of something that cannot wake us.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// `time`, stretched for a slow machine.
pub fn patience(time: Duration) -> Duration {
    static FACTOR: OnceLock<f64> = OnceLock::new();
    let factor = *FACTOR.get_or_init(|| {
        env::var("PLUGBAY_TEST_PATIENCE").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0)
    });
    time.mul_f64(factor)
}

/// Calls `look` repeatedly until it finds something; panics with `what` after `time`.
#[track_caller]
pub fn wait_until<T>(what: &str, time: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + patience(time);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited {time:?} for {what}");
        thread::sleep(LOOK_EVERY);
    }
}
