//! When a running server is asked for its lists: once at the start, and again when they change.

use std::time::{Duration, Instant};

/// The shortest time between two listings of a server that keeps changing.
const LIST_PAUSE: Duration = Duration::from_secs(1);

/// The listings of one running server in time.
#[derive(Debug, Default)]
pub(in crate::server) struct ListSchedule {
    /// When to list again because something has changed.
    due_at: Option<Instant>,
    last: Option<Instant>,
    /// The lists changed while they were being read.
    again: bool,
}

impl ListSchedule {
    /// Another server runs now, and has listed nothing yet.
    pub(in crate::server) fn restarted(&mut self) {
        *self = Self::default();
    }

    /// Whether the running server has listed everything at least once.
    pub(in crate::server) fn has_listed(&self) -> bool {
        self.last.is_some()
    }

    /// The lists have changed. True: list now; otherwise [`ListSchedule::due`] says when.
    pub(in crate::server) fn changed(&mut self, now: Instant) -> bool {
        match self.last.map(|last| last + LIST_PAUSE).filter(|next| now < *next) {
            Some(next) => {
                self.due_at = Some(next);
                false
            }
            None => true,
        }
    }

    /// The lists have changed while a listing is under way.
    pub(in crate::server) fn repeat(&mut self) {
        self.again = true;
    }

    /// A listing is complete. True: the lists have changed meanwhile.
    pub(in crate::server) fn completed(&mut self, now: Instant) -> bool {
        self.last = Some(now);
        std::mem::take(&mut self.again)
    }

    /// Whether a listing that was put off is due; true only once.
    pub(in crate::server) fn due(&mut self, now: Instant) -> bool {
        self.due_at.take_if(|at| *at <= now).is_some()
    }

    pub(in crate::server) fn next_deadline(&self) -> Option<Instant> {
        self.due_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(100);

    #[test]
    fn list_changes_in_quick_succession_lead_to_one_listing() {
        let start = Instant::now();
        let mut schedule = ListSchedule::default();
        assert!(schedule.changed(start), "nothing was listed yet");
        assert!(!schedule.completed(start) && schedule.has_listed());
        for count in 1..9 {
            assert!(!schedule.changed(start + count * MOMENT));
        }
        assert_eq!(schedule.next_deadline(), Some(start + LIST_PAUSE));
        assert!(!schedule.due(start + 9 * MOMENT));
        assert!(schedule.due(start + LIST_PAUSE));
        assert!(!schedule.due(start + LIST_PAUSE), "once");
        assert!(schedule.changed(start + LIST_PAUSE));
    }

    #[test]
    fn a_list_change_during_a_listing_is_listed_behind_it() {
        let start = Instant::now();
        let mut schedule = ListSchedule::default();
        schedule.repeat();
        schedule.repeat();
        assert!(schedule.completed(start));
        assert!(!schedule.completed(start));
        schedule.restarted();
        assert!(!schedule.has_listed() && schedule.next_deadline().is_none());
    }
}
