//! The table of requests that wait for an answer: register, complete, cancel, expire.

use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::exchange::Ticket;

/// If a deadline is noticed later than this, the machine slept, or the process was stopped. That time does
/// not count for any request.
pub const GAP: Duration = Duration::from_secs(5);

/// Requests by ticket. Each leaves the table exactly once, by the first of its possible ends, so each
/// gets exactly one answer.
#[derive(Debug)]
pub struct Pending<T> {
    entries: FxHashMap<Ticket, Entry<T>>,
    /// No entry expires before this. It is stored and not searched, because every step needs it.
    earliest: Option<Instant>,
}

#[derive(Debug)]
struct Entry<T> {
    what: T,
    /// How much silence is allowed.
    patience: Duration,
    at_most: Duration,
    silent_until: Option<Instant>,
    /// Progress does not move this one.
    latest: Option<Instant>,
    /// How often it has been put on hold.
    held: u32,
}

impl<T> Default for Pending<T> {
    fn default() -> Self {
        Self { entries: FxHashMap::default(), earliest: None }
    }
}

impl<T> Pending<T> {
    pub fn register(&mut self, ticket: Ticket, what: T, now: Instant, patience: Duration, at_most: Duration) {
        let (silent_until, latest) = (now.checked_add(patience), now.checked_add(at_most));
        let entry = Entry { what, patience, at_most, silent_until, latest, held: 0 };
        self.earliest = self.earliest.into_iter().chain(entry.deadline()).min();
        self.entries.insert(ticket, entry);
    }

    /// Registers a request that stays open until the other side ends it.
    pub fn register_for_ever(&mut self, ticket: Ticket, what: T) {
        let (patience, at_most) = (Duration::MAX, Duration::MAX);
        let entry = Entry { what, patience, at_most, silent_until: None, latest: None, held: 0 };
        self.entries.insert(ticket, entry);
    }

    pub fn complete(&mut self, ticket: Ticket) -> Option<T> {
        self.entries.remove(&ticket).map(|entry| entry.what)
    }

    /// A sign of life: the silence starts anew.
    pub fn progress(&mut self, ticket: Ticket, now: Instant) -> Option<&T> {
        let entry = self.entries.get_mut(&ticket)?;
        if entry.held == 0 {
            entry.silent_until = now.checked_add(entry.patience);
        }
        Some(&entry.what)
    }

    /// The other side waits for us: its silence does not count until as many releases.
    pub fn hold(&mut self, ticket: Ticket) {
        if let Some(entry) = self.entries.get_mut(&ticket) {
            entry.held += 1;
            entry.silent_until = None;
        }
    }

    pub fn release(&mut self, ticket: Ticket, now: Instant) {
        let Some(entry) = self.entries.get_mut(&ticket) else { return };
        entry.held = entry.held.saturating_sub(1);
        if entry.held == 0 {
            entry.silent_until = now.checked_add(entry.patience);
            self.earliest = self.earliest.into_iter().chain(entry.deadline()).min();
        }
    }

    /// The process did not run during `gap`: that time counts for no request.
    pub fn skip_gap(&mut self, gap: Duration) {
        for entry in self.entries.values_mut() {
            for deadline in [&mut entry.silent_until, &mut entry.latest] {
                *deadline = deadline.and_then(|deadline| deadline.checked_add(gap));
            }
        }
        self.earliest = self.entries.values().filter_map(Entry::deadline).min();
    }

    /// Takes out everything that has waited too long, each with its timeout.
    pub fn expire(&mut self, now: Instant) -> Vec<(Ticket, T, Duration)> {
        let due = |entry: &Entry<T>| entry.deadline().is_some_and(|deadline| deadline <= now);
        let expired = self.entries.extract_if(|_, entry| due(entry));
        let expired = expired.map(|(ticket, entry)| {
            let silent = entry.silent_until.is_some_and(|until| until <= now);
            (ticket, entry.what, if silent { entry.patience } else { entry.at_most })
        });
        let expired = expired.collect();
        self.earliest = self.entries.values().filter_map(Entry::deadline).min();
        expired
    }

    /// When to call `expire` next; it may then find nothing, because what was due has been answered.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.earliest
    }

    pub fn get(&self, ticket: Ticket) -> Option<&T> {
        self.entries.get(&ticket).map(|entry| &entry.what)
    }

    pub fn contains(&self, ticket: Ticket) -> bool {
        self.entries.contains_key(&ticket)
    }

    /// Takes out everything but what `keep` says.
    pub fn drain_but(&mut self, keep: impl Fn(Ticket) -> bool) -> Vec<(Ticket, T)> {
        let gone = self.entries.extract_if(|ticket, _| !keep(*ticket));
        gone.map(|(ticket, entry)| (ticket, entry.what)).collect()
    }

    pub fn drain(&mut self) -> impl Iterator<Item = (Ticket, T)> + '_ {
        self.entries.drain().map(|(ticket, entry)| (ticket, entry.what))
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.values().map(|entry| &entry.what)
    }

    pub fn entries(&self) -> impl Iterator<Item = (Ticket, &T)> {
        self.entries.iter().map(|(ticket, entry)| (*ticket, &entry.what))
    }

    pub fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.entries.keys().copied()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<T> Entry<T> {
    fn deadline(&self) -> Option<Instant> {
        self.silent_until.into_iter().chain(self.latest).min()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn progress_prolongs_but_not_for_ever() {
        let start = Instant::now();
        let mut pending = Pending::default();
        pending.register(Ticket(1), "call", start, 2 * SECOND, 5 * SECOND);
        for second in 1..=4 {
            let now = start + second * SECOND;
            assert!(pending.expire(now).is_empty());
            assert!(pending.progress(Ticket(1), now).is_some());
        }
        assert_eq!(pending.expire(start + 5 * SECOND), [(Ticket(1), "call", 5 * SECOND)]);
        assert_eq!(pending.complete(Ticket(1)), None);
    }

    #[test]
    fn a_time_beyond_all_time_never_comes() {
        let mut pending = Pending::default();
        pending.register(Ticket(1), "call", Instant::now(), Duration::MAX, Duration::MAX);
        assert_eq!((pending.next_deadline(), pending.complete(Ticket(1))), (None, Some("call")));
    }

    #[test]
    fn silence_counts_for_nothing_while_on_hold() {
        let start = Instant::now();
        let mut pending = Pending::default();
        pending.register(Ticket(1), "call", start, 2 * SECOND, 60 * SECOND);
        pending.hold(Ticket(1));
        pending.hold(Ticket(1));
        assert!(pending.expire(start + 5 * SECOND).is_empty());
        pending.release(Ticket(1), start + 5 * SECOND);
        pending.progress(Ticket(1), start + 6 * SECOND);
        assert!(pending.expire(start + 30 * SECOND).is_empty(), "held once more than released");
        pending.release(Ticket(1), start + 30 * SECOND);
        assert_eq!(pending.next_deadline(), Some(start + 32 * SECOND));
        assert_eq!(pending.expire(start + 32 * SECOND), [(Ticket(1), "call", 2 * SECOND)]);
        pending.register(Ticket(2), "call", start, 2 * SECOND, 60 * SECOND);
        pending.hold(Ticket(2));
        assert_eq!(pending.expire(start + 60 * SECOND), [(Ticket(2), "call", 60 * SECOND)]);
    }

    #[test]
    fn a_time_in_which_the_process_did_not_run_moves_deadlines_and_restarts_no_wait() {
        let start = Instant::now();
        let mut pending = Pending::default();
        pending.register(Ticket(1), "silent", start, 2 * SECOND, 5 * SECOND);
        pending.register(Ticket(2), "on hold", start, 2 * SECOND, 3600 * SECOND);
        pending.register_for_ever(Ticket(3), "subscription");
        pending.hold(Ticket(2));
        pending.skip_gap(999 * SECOND);
        let woken = start + 1000 * SECOND;
        assert_eq!(pending.next_deadline(), Some(woken + SECOND), "it had waited for a second");
        assert_eq!(pending.expire(woken), []);
        assert_eq!(pending.expire(woken + SECOND), [(Ticket(1), "silent", 2 * SECOND)]);
        pending.skip_gap(SECOND);
        assert_eq!(pending.next_deadline(), Some(start + 4600 * SECOND), "the latest end has moved as far");
        assert_eq!(pending.len(), 2);
    }

    proptest! {
        /// Whatever the order of answers, late answers, cancellations, progress and time: every
        /// request ends exactly once.
        #[test]
        fn every_request_ends_exactly_once(steps in prop::collection::vec((0u8..5, 0u64..8, 0u64..4), 1..80)) {
            let mut now = Instant::now();
            let mut pending = Pending::default();
            let mut ends: BTreeMap<u64, u32> = BTreeMap::new();
            let mut registered = 0u64;
            for (step, which, seconds) in steps {
                let ticket = Ticket(which);
                match step {
                    0 => {
                        let patience = SECOND * u32::try_from(seconds).unwrap();
                        pending.register(Ticket(100 + registered), 100 + registered, now, patience, 6 * SECOND);
                        registered += 1;
                    }
                    1 | 2 => {
                        if let Some(what) = pending.complete(Ticket(100 + ticket.0)) {
                            *ends.entry(what).or_default() += 1;
                        }
                    }
                    3 => drop(pending.progress(Ticket(100 + ticket.0), now)),
                    _ => {
                        now += SECOND * u32::try_from(seconds).unwrap();
                        for (_, what, _) in pending.expire(now) {
                            *ends.entry(what).or_default() += 1;
                        }
                    }
                }
            }
            for (_, what) in pending.drain() {
                *ends.entry(what).or_default() += 1;
            }
            let expected: BTreeMap<u64, u32> = (0..registered).map(|n| (100 + n, 1)).collect();
            prop_assert_eq!(ends, expected);
        }
    }
}
