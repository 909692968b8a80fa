//! How many instances of one server may run at a time, and which of them gives way to another session.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugbay_core::{failure::CallError, name::ServerName};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout},
};

use crate::server::Command;

/// How long a start waits for an instance that gives way before its calls are rejected as busy.
const WAIT: Duration = Duration::from_secs(2);
/// How often it looks whether another instance has become idle.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How long an actor may take to say whether it is idle.
const REPLY: Duration = Duration::from_millis(500);

/// The slots of one server. Each running instance takes one.
#[derive(Debug)]
pub(crate) struct Slots {
    server: ServerName,
    // A std mutex: held for look-ups, never across an await.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    limit: usize,
    next: u64,
    holders: Vec<Holder>,
    /// Starts that wait, the first comer first.
    waiting: VecDeque<(Commands, oneshot::Sender<Slot>)>,
}

/// The way to an actor, which this does not keep alive.
pub(crate) type Commands = mpsc::WeakUnboundedSender<Command>;

#[derive(Debug)]
struct Holder {
    number: u64,
    commands: Commands,
    /// It has agreed to stop.
    leaving: bool,
}

/// The right to run one instance; given back on drop.
#[derive(Debug)]
pub(crate) struct Slot {
    /// `None`: it was never taken.
    slots: Option<Arc<Slots>>,
    number: u64,
}

/// The slots that an actor starts its server in.
#[derive(Debug, Clone)]
pub(crate) struct SlotRequest {
    pub(crate) slots: Arc<Slots>,
    pub(crate) commands: Commands,
}

impl Slots {
    pub(crate) fn new(server: ServerName, limit: usize) -> Self {
        Self { server, state: Mutex::new(State { limit: limit.max(1), ..State::default() }) }
    }

    /// A lower limit ends no instance that runs.
    pub(crate) fn set_limit(self: &Arc<Self>, limit: usize) {
        self.lock().limit = limit.max(1);
        self.hand_out();
    }

    /// How many instances run.
    pub(crate) fn taken(&self) -> usize {
        self.lock().holders.len()
    }

    /// Lets the first starts in the queue take the slots that are free.
    fn hand_out(self: &Arc<Self>) {
        let mut state = self.lock();
        state.waiting.retain(|(_, waiter)| !waiter.is_closed());
        while state.holders.len() < state.limit {
            let Some((commands, waiter)) = state.waiting.pop_front() else { return };
            let number = state.next;
            state.next += 1;
            if let Err(mut unwanted) = waiter.send(Slot { slots: Some(Arc::clone(self)), number }) {
                // Its start was given up just now. Dropped as it is, it would ask for the lock.
                unwanted.slots = None;
                continue;
            }
            state.holders.push(Holder { number, commands, leaving: false });
        }
    }

    /// Asks the instance to stop that was unused longest, unless enough of them are about to.
    async fn make_room(&self) {
        let candidates: Vec<(u64, Commands)> = {
            let state = self.lock();
            let leaving = state.holders.iter().filter(|holder| holder.leaving).count();
            let waiting = state.waiting.iter().filter(|(_, waiter)| !waiter.is_closed()).count();
            if leaving >= waiting {
                return;
            }
            let staying = state.holders.iter().filter(|holder| !holder.leaving);
            staying.map(|holder| (holder.number, holder.commands.clone())).collect()
        };
        let mut idle = Vec::new();
        for (number, commands) in candidates {
            if let Some(Some(since)) = asked(&commands, Command::IdleSince).await {
                idle.push((since, number, commands));
            }
        }
        idle.sort_by_key(|(since, ..)| *since);
        for (_, number, commands) in idle {
            if asked(&commands, Command::Yield).await == Some(true) {
                let mut state = self.lock();
                let holder = state.holders.iter_mut().find(|holder| holder.number == number);
                if let Some(holder) = holder {
                    holder.leaving = true;
                }
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing can panic half-way through a change, so a poisoned table is still whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotRequest {
    /// Waits a short while for a slot. The error is for the calls that wanted the start.
    pub(crate) async fn slot(self) -> Result<Slot, CallError> {
        let Self { slots, commands } = self;
        let (waiter, mut slot) = oneshot::channel();
        slots.lock().waiting.push_back((commands, waiter));
        slots.hand_out();
        let deadline = Instant::now() + WAIT;
        while Instant::now() < deadline {
            if let Ok(slot) = slot.try_recv() {
                return Ok(slot);
            }
            slots.make_room().await;
            tokio::select! {
                biased;
                Ok(slot) = &mut slot => return Ok(slot),
                () = sleep(LOOK_AGAIN) => {}
            }
        }
        let limit = slots.lock().limit;
        Err(CallError::Busy { server: slots.server.clone(), limit })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(slots) = self.slots.take() {
            slots.lock().holders.retain(|holder| holder.number != self.number);
            slots.hand_out();
        }
    }
}

/// The reply of an actor, if it is there and replies in time.
async fn asked<T>(commands: &Commands, question: fn(oneshot::Sender<T>) -> Command) -> Option<T> {
    let (reply, replied) = oneshot::channel();
    commands.upgrade()?.send(question(reply)).ok()?;
    timeout(REPLY, replied).await.ok()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(limit: usize) -> (Arc<Slots>, mpsc::UnboundedSender<Command>) {
        (Arc::new(Slots::new(ServerName::parse("s").unwrap(), limit)), mpsc::unbounded_channel().0)
    }

    /// Each start that gave up was handed the slot from within the return of the one before, until the stack ended.
    #[tokio::test(start_paused = true)]
    async fn starts_that_gave_up_are_forgotten_and_the_next_gets_the_slot() {
        let (slots, actor) = slots(1);
        let request = || SlotRequest { slots: Arc::clone(&slots), commands: actor.downgrade() };
        let held = request().slot().await.unwrap();
        for _ in 0..3 {
            assert!(matches!(request().slot().await, Err(CallError::Busy { limit: 1, .. })));
        }
        let given_up: Vec<_> = (0..100_000).map(|_| oneshot::channel().0).collect();
        slots.lock().waiting.extend(given_up.into_iter().map(|waiter| (actor.downgrade(), waiter)));
        let next = tokio::spawn(request().slot());
        tokio::task::yield_now().await;
        drop(held);
        let next = next.await.unwrap().unwrap();
        assert_eq!((slots.taken(), slots.lock().waiting.len()), (1, 0));
        drop(next);
        assert_eq!(slots.taken(), 0);
    }
}
