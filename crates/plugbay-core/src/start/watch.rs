//! How long a server may take to start: its own progress counts, not the clock alone.
//!
//! A server is slow when its start timeout has passed. It is given up when it did nothing for that long, or
//! at the hard end.

use std::time::{Duration, Instant};

use crate::pending::GAP;

/// A start ends after this many start timeouts at the latest,
const HARD_END: u32 = 10;
/// but not before this.
const LEAST_HARD_END: Duration = Duration::from_secs(300);
/// A process that uses less than this of one processor does nothing, in percent.
const LEAST_USE: u32 = 1;
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A start that does nothing for this many looks needs no turn: it costs the others nothing.
const IDLE_LOOKS: u32 = 2;

/// An observation of a server that starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The processor time of its process and of all that it started; `None` where the system does not tell.
    pub cpu: Option<Duration>,
    /// No processor of the machine has been free for a while.
    pub saturated: bool,
}

/// The decision after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Wait,
    /// Let another server start: this one does not need the processor.
    FreeTurn,
    /// Its time is over, but it still works: report it once, and let another server start.
    Slow,
    GiveUp(GiveUp),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUp {
    /// It ran and did nothing for its whole start timeout, on a machine with processors to spare.
    Idle,
    /// It did something until the hard end.
    TooLong,
}

/// The start of one server in time, from its spawn on.
#[derive(Debug, Clone)]
pub struct StartWatch {
    start: Duration,
    begun: Instant,
    last_look: Instant,
    /// When its process last used a processor.
    last_use: Instant,
    /// When it last made progress, or could not because of others.
    last_progress: Instant,
    cpu: Duration,
    holds_turn: bool,
    is_slow: bool,
}

impl StartWatch {
    pub fn new(start: Duration, now: Instant) -> Self {
        Self {
            start,
            begun: now,
            last_look: now,
            last_use: now,
            last_progress: now,
            cpu: Duration::ZERO,
            holds_turn: true,
            is_slow: false,
        }
    }

    /// When to look next.
    pub fn next_look(&self) -> Instant {
        let next = self.last_look + self.pause();
        let end = self.begun + self.start;
        if self.last_look < end { next.min(end) } else { next }
    }

    /// The server has sent something that it was asked for.
    pub fn progressed(&mut self, now: Instant) {
        self.last_progress = now;
    }

    pub fn look(&mut self, now: Instant, look: Look) -> Verdict {
        self.skip_gap(now);
        self.note(now, look);
        let took = now.saturating_duration_since(self.begun);
        if took >= self.hard_end() {
            return Verdict::GiveUp(GiveUp::TooLong);
        }
        if took < self.start {
            let idle = now.saturating_duration_since(self.last_use) >= self.pause() * IDLE_LOOKS;
            return if idle && self.frees_turn() { Verdict::FreeTurn } else { Verdict::Wait };
        }
        if now.saturating_duration_since(self.last_progress) >= self.start {
            return Verdict::GiveUp(GiveUp::Idle);
        }
        self.holds_turn = false;
        if std::mem::replace(&mut self.is_slow, true) { Verdict::Wait } else { Verdict::Slow }
    }

    /// Leaves out a time in which nobody could look.
    fn skip_gap(&mut self, now: Instant) {
        let late = now.saturating_duration_since(self.next_look());
        if late > GAP {
            for moment in [&mut self.begun, &mut self.last_look, &mut self.last_use, &mut self.last_progress]
            {
                *moment += late;
            }
        }
    }

    fn note(&mut self, now: Instant, look: Look) {
        let elapsed = now.saturating_duration_since(self.last_look);
        self.last_look = now;
        let used = match look.cpu {
            // The time of a child that nobody waited for is lost with it, so a lower value is a change too.
            Some(cpu) => std::mem::replace(&mut self.cpu, cpu).abs_diff(cpu) * 100 >= elapsed * LEAST_USE,
            // Unknown: such a server gets its time twice.
            None => now.saturating_duration_since(self.begun) <= self.start,
        };
        if used && !elapsed.is_zero() {
            self.last_use = now;
        }
        if look.saturated || self.last_use == now {
            self.last_progress = now;
        }
    }

    fn frees_turn(&mut self) -> bool {
        std::mem::replace(&mut self.holds_turn, false)
    }

    fn pause(&self) -> Duration {
        (self.start / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
    }

    /// How long a start may take at the most.
    pub fn hard_end(&self) -> Duration {
        self.start.saturating_mul(HARD_END).max(LEAST_HARD_END)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const START: Duration = Duration::from_secs(30);

    /// Looks until the start is given up; returns the verdicts that are no `Wait`, with their seconds.
    fn verdicts(look: impl Fn(u64) -> Look) -> Vec<(u64, Verdict)> {
        let begun = Instant::now();
        verdicts_of(StartWatch::new(START, begun), begun, look)
    }

    fn verdicts_of(mut watch: StartWatch, begun: Instant, look: impl Fn(u64) -> Look) -> Vec<(u64, Verdict)> {
        let mut seen = Vec::new();
        loop {
            let now = watch.next_look();
            let at = (now - begun).as_secs();
            match watch.look(now, look(at)) {
                Verdict::Wait => {}
                verdict => seen.push((at, verdict)),
            }
            if matches!(seen.last(), Some((_, Verdict::GiveUp(_)))) {
                return seen;
            }
        }
    }

    fn used(seconds: f64) -> Look {
        Look { cpu: Some(Duration::from_secs_f64(seconds)), saturated: false }
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    fn a_start_is_given_up_for_its_own_idleness_and_not_for_a_busy_machine() {
        use Verdict::{FreeTurn, Slow};
        let idle = Verdict::GiveUp(GiveUp::Idle);
        let too_long = Verdict::GiveUp(GiveUp::TooLong);
        assert_eq!(verdicts(|_| used(0.0)), [(6, FreeTurn), (30, idle)], "never did anything");
        assert_eq!(verdicts(|at| used(at.min(3) as f64)), [(9, FreeTurn), (30, Slow), (33, idle)]);
        assert_eq!(verdicts(|at| used(at as f64)), [(30, Slow), (300, too_long)], "burns for ever");
        assert_eq!(verdicts(|at| used(at as f64 / 100.0)), [(30, Slow), (300, too_long)], "one percent");
        assert_eq!(verdicts(|at| used(at as f64 / 200.0)), [(6, FreeTurn), (30, idle)], "half a percent");
        let waits = |at: u64| Look { saturated: at <= 60, ..used(0.0) };
        assert_eq!(verdicts(waits), [(6, FreeTurn), (30, Slow), (90, idle)], "others have the processors");
        let unknown = |_| Look { cpu: None, saturated: false };
        assert_eq!(verdicts(unknown), [(30, Slow), (60, idle)], "no system call tells");
    }

    #[test]
    fn a_page_of_a_list_is_progress_of_a_start() {
        let begun = Instant::now();
        let mut watch = StartWatch::new(START, begun);
        watch.progressed(begun + 20 * SECOND);
        let seen = verdicts_of(watch, begun, |_| used(0.0));
        assert_eq!(seen, [(6, Verdict::FreeTurn), (30, Verdict::Slow), (51, Verdict::GiveUp(GiveUp::Idle))]);
    }

    #[test]
    fn the_sleep_of_a_machine_is_no_idleness_of_a_start() {
        let begun = Instant::now();
        let mut watch = StartWatch::new(START, begun);
        let woken = begun + 5000 * SECOND;
        assert_eq!(watch.look(woken, used(0.0)), Verdict::Wait);
        assert_eq!(
            verdicts_of(watch, woken, |_| used(0.0)).last(),
            Some(&(27, Verdict::GiveUp(GiveUp::Idle)))
        );
    }

    #[test]
    fn looks_at_a_start_are_rare_and_one_is_at_its_time_out() {
        let begun = Instant::now();
        for (start, first) in [(SECOND, SECOND / 5), (START, 3 * SECOND), (100 * START, 5 * SECOND)] {
            assert_eq!(StartWatch::new(start, begun).next_look(), begun + first);
        }
        let mut watch = StartWatch::new(SECOND / 2, begun);
        watch.look(begun + SECOND * 2 / 5, used(0.0));
        assert_eq!(watch.next_look(), begun + SECOND / 2);
        assert_eq!(watch.hard_end(), 300 * SECOND);
    }
}
