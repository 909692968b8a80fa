//! The queue of starts: gives each server its turn, in the order that core decides.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use plugbay_core::start::{Priority, TurnId, Turns};
use tokio::sync::oneshot;

/// All starts of this process.
#[derive(Debug)]
pub(crate) struct StartGate {
    // A std mutex: held for a few comparisons, never across an await.
    queue: Mutex<Queue>,
}

#[derive(Debug)]
struct Queue {
    turns: Turns,
    waiting: HashMap<TurnId, oneshot::Sender<()>>,
}

/// One start in the queue. Dropping it leaves the queue, or ends the turn.
#[derive(Debug)]
pub(crate) struct Turn {
    gate: Arc<StartGate>,
    id: TurnId,
    granted: Option<oneshot::Receiver<()>>,
}

impl StartGate {
    pub(super) fn new(slots: usize) -> Arc<Self> {
        Arc::new(Self { queue: Mutex::new(Queue { turns: Turns::new(slots), waiting: HashMap::new() }) })
    }

    pub(super) fn set_slots(&self, slots: usize) {
        let mut queue = self.lock();
        queue.turns.set_slots(slots);
        queue.grant();
    }

    pub(crate) fn enter(self: &Arc<Self>, priority: Priority) -> Turn {
        let (sender, granted) = oneshot::channel();
        let mut queue = self.lock();
        let id = queue.turns.enter(priority);
        queue.waiting.insert(id, sender);
        queue.grant();
        Turn { gate: Arc::clone(self), id, granted: Some(granted) }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn grant(&mut self) {
        while let Some(id) = self.turns.grant() {
            if let Some(waiting) = self.waiting.remove(&id) {
                let _ = waiting.send(());
            }
        }
    }
}

impl Turn {
    /// Waits for the turn. Dropping the future loses nothing.
    pub(crate) async fn granted(&mut self) {
        if let Some(granted) = &mut self.granted {
            // The sender stays in the queue until the turn comes.
            let _ = granted.await;
            self.granted = None;
        }
    }

    /// Raises the priority, because somebody now waits for this start.
    pub(crate) fn raise(&self, priority: Priority) {
        let mut queue = self.gate.lock();
        queue.turns.raise(self.id, priority);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queue = self.gate.lock();
        queue.turns.leave(self.id);
        queue.waiting.remove(&self.id);
        queue.grant();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn is_granted(turn: &mut Turn) -> bool {
        tokio::select! {
            biased;
            () = turn.granted() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn a_start_waits_until_another_has_ended_or_left_the_queue() {
        let gate = StartGate::new(1);
        let mut first = gate.enter(Priority::Behind);
        first.granted().await;
        let (mut behind, mut called) = (gate.enter(Priority::Behind), gate.enter(Priority::Behind));
        let left = gate.enter(Priority::Called);
        called.raise(Priority::Called);
        assert!(!is_granted(&mut behind).await);
        drop(left);
        drop(first);
        called.granted().await;
        assert!(!is_granted(&mut behind).await, "one slot");
        gate.set_slots(2);
        behind.granted().await;
        behind.granted().await; // asking again is harmless
    }
}
