//! Which server starts next: a few at a time, those that a host waits for first.

use std::collections::BTreeSet;

/// After this many later starts were preferred to a waiting one, it goes next.
const OVERTAKEN_LIMIT: u32 = 16;

/// How urgent a start is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Nobody waits for it: its list is refreshed, or it is kept warm.
    Behind,
    /// A list waits for it.
    Listed,
    /// A call or an activation waits for it.
    Called,
}

/// The number of a start that waits or has its turn. Later ones have higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TurnId(u64);

/// The starts that wait and those that have their turn.
#[derive(Debug)]
pub struct Turns {
    slots: usize,
    running: BTreeSet<TurnId>,
    /// The starts that wait, in the order in which they came.
    waiting: Vec<Waiting>,
    last: u64,
}

#[derive(Debug)]
struct Waiting {
    id: TurnId,
    priority: Priority,
    /// How many later starts were preferred to this one.
    overtaken: u32,
}

impl Turns {
    pub fn new(slots: usize) -> Self {
        Self { slots: slots.max(1), running: BTreeSet::new(), waiting: Vec::new(), last: 0 }
    }

    /// Changes the number of slots. Starts that have their turn keep it, even if there are fewer slots now.
    pub fn set_slots(&mut self, slots: usize) {
        self.slots = slots.max(1);
    }

    /// Adds a start to those that wait.
    pub fn enter(&mut self, priority: Priority) -> TurnId {
        self.last += 1;
        let id = TurnId(self.last);
        self.waiting.push(Waiting { id, priority, overtaken: 0 });
        id
    }

    /// Somebody waits for this start now. A priority never falls.
    pub fn raise(&mut self, id: TurnId, priority: Priority) {
        if let Some(waiting) = self.waiting.iter_mut().find(|waiting| waiting.id == id) {
            waiting.priority = waiting.priority.max(priority);
        }
    }

    /// The start is over, no longer needs its turn, or was cancelled.
    pub fn leave(&mut self, id: TurnId) {
        self.running.remove(&id);
        self.waiting.retain(|waiting| waiting.id != id);
    }

    /// The start whose turn it is now, if a slot is free. Call it until there is none.
    pub fn grant(&mut self) -> Option<TurnId> {
        if self.running.len() >= self.slots {
            return None;
        }
        let index = self.next_index()?;
        let id = self.waiting.remove(index).id;
        for earlier in &mut self.waiting[..index] {
            earlier.overtaken += 1;
        }
        self.running.insert(id);
        Some(id)
    }

    /// The oldest start that was overtaken too often, else the oldest of the highest priority.
    fn next_index(&self) -> Option<usize> {
        let overtaken = self.waiting.iter().position(|waiting| waiting.overtaken >= OVERTAKEN_LIMIT);
        let highest = self.waiting.iter().map(|waiting| waiting.priority).max()?;
        overtaken.or_else(|| self.waiting.iter().position(|waiting| waiting.priority == highest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_start_that_a_call_waits_for_comes_first() {
        let mut turns = Turns::new(1);
        let behind = turns.enter(Priority::Behind);
        let raised = turns.enter(Priority::Behind);
        let listed = turns.enter(Priority::Listed);
        turns.raise(raised, Priority::Called);
        turns.raise(raised, Priority::Behind);
        let cancelled = turns.enter(Priority::Called);
        turns.leave(cancelled);
        for expected in [raised, listed, behind] {
            assert_eq!(turns.grant(), Some(expected));
            assert_eq!(turns.grant(), None, "one at a time");
            turns.leave(expected);
        }
        assert_eq!(turns.grant(), None, "nobody is left");
    }

    #[test]
    fn fewer_start_slots_end_no_start() {
        let mut turns = Turns::new(3);
        let ids = [0; 4].map(|_| turns.enter(Priority::Behind));
        assert_eq!([turns.grant(), turns.grant(), turns.grant()], [ids[0], ids[1], ids[2]].map(Some));
        turns.set_slots(0); // there is always one
        turns.leave(ids[0]);
        turns.leave(ids[1]);
        assert_eq!(turns.grant(), None);
        turns.leave(ids[2]);
        assert_eq!(turns.grant(), Some(ids[3]));
    }

    #[test]
    fn a_start_of_low_priority_ends_although_calls_keep_coming() {
        let mut turns = Turns::new(1);
        let low = turns.enter(Priority::Behind);
        let mut grants = 0;
        loop {
            turns.enter(Priority::Called);
            let id = turns.grant().unwrap();
            turns.leave(id);
            grants += 1;
            if id == low {
                break;
            }
        }
        assert_eq!(grants, OVERTAKEN_LIMIT + 1);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Enter(Priority),
        Raise(usize, Priority),
        Leave(usize),
        Grant,
        Slots(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let priority = || prop_oneof![Just(Priority::Behind), Just(Priority::Listed), Just(Priority::Called)];
        prop_oneof![
            4 => priority().prop_map(Step::Enter),
            1 => (any::<usize>(), priority()).prop_map(|(index, priority)| Step::Raise(index, priority)),
            3 => any::<usize>().prop_map(Step::Leave),
            4 => Just(Step::Grant),
            1 => (1..6usize).prop_map(Step::Slots),
        ]
    }

    /// What a test knows of a start: its number, its priority, how often a later one was preferred.
    type Known = (TurnId, Priority, u32);

    fn check_grant(turns: &mut Turns, waiting: &mut Vec<Known>, running: &mut Vec<TurnId>, slots: usize) {
        let free = running.len() < slots;
        let Some(id) = turns.grant() else {
            return assert!(!free || waiting.is_empty(), "a free slot and a start that waits");
        };
        assert!(free, "never more than {slots}");
        let index = waiting.iter().position(|known| known.0 == id).expect("a start that waits");
        let (_, priority, overtaken) = waiting.remove(index);
        let patient = overtaken >= OVERTAKEN_LIMIT;
        assert!(patient || waiting.iter().all(|known| known.1 <= priority), "highest priority first");
        for known in &mut waiting[..index] {
            assert!(patient || known.1 < priority, "of one priority, the oldest first");
            known.2 += 1;
        }
        running.push(id);
    }

    proptest! {
        #[test]
        fn starts_never_exceed_the_slots_and_keep_their_order(steps in proptest::collection::vec(step(), 0..400)) {
            let (mut turns, mut slots) = (Turns::new(3), 3);
            let (mut waiting, mut running): (Vec<Known>, Vec<TurnId>) = (Vec::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Enter(priority) => waiting.push((turns.enter(priority), priority, 0)),
                    Step::Raise(index, priority) if !waiting.is_empty() => {
                        let index = index % waiting.len();
                        turns.raise(waiting[index].0, priority);
                        waiting[index].1 = waiting[index].1.max(priority);
                    }
                    Step::Leave(index) if !(waiting.is_empty() && running.is_empty()) => {
                        let index = index % (waiting.len() + running.len());
                        let id = if index < running.len() { running.remove(index) } else { waiting.remove(index - running.len()).0 };
                        turns.leave(id);
                    }
                    Step::Grant => check_grant(&mut turns, &mut waiting, &mut running, slots),
                    Step::Slots(count) => { turns.set_slots(count); slots = count; }
                    Step::Raise(..) | Step::Leave(_) => {}
                }
            }
            // Whatever happened before: all that wait get their turn.
            while !waiting.is_empty() {
                if !running.is_empty() && running.len() >= slots {
                    turns.leave(running.remove(0));
                }
                check_grant(&mut turns, &mut waiting, &mut running, slots);
            }
        }
    }
}
