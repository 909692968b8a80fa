//! The schedule of listings of a running server: once at the start, and again after changes.

use std::time::{Duration, Instant};

/// How many changes in a row are listed immediately. One such listing comes back after each [`LIST_PAUSE`],
/// so a server that keeps changing is listed once per pause.
const BURST: u32 = 4;
const LIST_PAUSE: Duration = Duration::from_secs(1);

/// The schedule of listings of one running server.
#[derive(Debug)]
pub(in crate::server) struct ListSchedule {
    /// When to list again after a change.
    due_at: Option<Instant>,
    has_listed: bool,
    /// How many changes can still be listed immediately.
    left: u32,
    /// When `left` was last counted.
    since: Option<Instant>,
    /// Whether the lists changed while they were being read.
    again: bool,
}

impl Default for ListSchedule {
    fn default() -> Self {
        Self { due_at: None, has_listed: false, left: BURST, since: None, again: false }
    }
}

impl ListSchedule {
    /// Resets the schedule: another server runs now, and has listed nothing yet.
    pub(in crate::server) fn restarted(&mut self) {
        *self = Self::default();
    }

    /// Whether the running server has listed everything at least once.
    pub(in crate::server) fn has_listed(&self) -> bool {
        self.has_listed
    }

    /// Notes that the lists have changed. True: list now. Otherwise [`ListSchedule::due`] says when.
    pub(in crate::server) fn changed(&mut self, now: Instant) -> bool {
        let is_now = self.take(now);
        if is_now {
            self.due_at = None; // it shows what was put off, too
        } else {
            self.due_at = self.due_at.or_else(|| self.since.map(|since| since + LIST_PAUSE));
        }
        is_now
    }

    /// Notes that the lists may have changed; they are listed soon.
    pub(in crate::server) fn put_off(&mut self, now: Instant) {
        self.due_at.get_or_insert(now + LIST_PAUSE);
    }

    /// Notes that the lists have changed during a listing.
    pub(in crate::server) fn repeat(&mut self) {
        self.again = true;
    }

    /// Notes that a listing is complete. True if the lists have changed meanwhile.
    pub(in crate::server) fn completed(&mut self) -> bool {
        self.has_listed = true;
        std::mem::take(&mut self.again)
    }

    /// Whether a postponed listing is due; true only once.
    pub(in crate::server) fn due(&mut self, now: Instant) -> bool {
        self.due_at.take_if(|at| *at <= now).is_some() && self.changed(now)
    }

    pub(in crate::server) fn next_deadline(&self) -> Option<Instant> {
        self.due_at
    }

    /// Uses up one of the listings that are left, if there is one.
    fn take(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let pauses = now.duration_since(since).as_secs() / LIST_PAUSE.as_secs();
        let back = u32::try_from(pauses).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(back).min(BURST);
        self.since = Some(if self.left == BURST { now } else { since + back * LIST_PAUSE });
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(10);

    #[test]
    fn a_few_list_changes_are_listed_at_once_and_a_flood_once_per_pause() {
        let start = Instant::now();
        let mut schedule = ListSchedule::default();
        assert!(!schedule.completed() && schedule.has_listed());
        let (mut now, mut listed) = (start, 0);
        while now < start + 10 * LIST_PAUSE {
            listed += u32::from(schedule.due(now)) + u32::from(schedule.changed(now));
            now += MOMENT;
            if now == start + BURST * MOMENT {
                assert_eq!(listed, BURST, "no pause yet");
            }
        }
        assert_eq!(listed, BURST + 9);
        assert!(schedule.next_deadline().is_some(), "the last change is not lost");
        let mut schedule = ListSchedule::default();
        schedule.put_off(start);
        assert!(!schedule.due(start) && schedule.due(start + LIST_PAUSE));
    }

    #[test]
    fn a_quiet_server_has_its_whole_burst_again() {
        let start = Instant::now();
        let mut schedule = ListSchedule::default();
        assert_eq!((0..9).filter(|_| schedule.changed(start)).count(), BURST as usize);
        assert_eq!(schedule.next_deadline(), Some(start + LIST_PAUSE));
        assert!(!schedule.due(start + LIST_PAUSE / 2) && schedule.due(start + LIST_PAUSE));
        let later = start + 20 * LIST_PAUSE;
        assert_eq!((0..9).filter(|_| schedule.changed(later)).count(), BURST as usize);
    }

    #[test]
    fn a_list_change_during_a_listing_is_listed_behind_it() {
        let mut schedule = ListSchedule::default();
        schedule.repeat();
        schedule.repeat();
        assert!(schedule.completed());
        assert!(!schedule.completed());
        schedule.restarted();
        assert!(!schedule.has_listed() && schedule.next_deadline().is_none());
    }
}
