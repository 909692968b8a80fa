//! Limits how many instances of one server run, and decides which of them gives way to another session.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugbay_core::{failure::CallError, name::ServerName};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, timeout},
};

use crate::server::Command;

/// How long a start waits for another instance to give way, before its calls are rejected as busy.
const WAIT: Duration = Duration::from_secs(2);
/// How often a start checks whether another instance has become idle.
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
    /// Starts that wait, in the order of their arrival.
    waiting: Vec<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    commands: Commands,
    user: SlotUser,
    slot: oneshot::Sender<Slot>,
}

/// The user of an instance.
#[derive(Debug, Clone)]
pub(crate) struct SlotUser {
    /// The server as one gateway has configured it.
    pub(crate) group: GroupId,
    /// The caller that owns the session.
    pub(crate) caller: Arc<[u8]>,
}

/// Identifies one gateway's part of the slots.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupId(Arc<()>);

impl PartialEq for GroupId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl State {
    fn owned_by(&self, caller: &[u8]) -> usize {
        self.holders.iter().filter(|holder| *holder.user.caller == *caller).count()
    }

    /// The next start: the one whose caller has the fewest instances; among equals, the first to arrive.
    fn next_waiter(&mut self) -> Option<Waiter> {
        let held = |waiter: &Waiter| self.owned_by(&waiter.user.caller);
        let next = (0..self.waiting.len()).min_by_key(|index| held(&self.waiting[*index]))?;
        Some(self.waiting.remove(next))
    }
}

/// The inbox of an actor, which this does not keep alive.
pub(crate) type Commands = mpsc::WeakUnboundedSender<Command>;

#[derive(Debug)]
struct Holder {
    number: u64,
    commands: Commands,
    user: SlotUser,
    /// Whether it has agreed to stop.
    leaving: bool,
}

/// The right to run one instance; given back on drop.
#[derive(Debug)]
pub(crate) struct Slot {
    /// `None`: the slot was never taken.
    slots: Option<Arc<Slots>>,
    number: u64,
}

/// The slots in which an actor may start its server.
#[derive(Debug, Clone)]
pub(crate) struct SlotRequest {
    pub(crate) slots: Arc<Slots>,
    pub(crate) user: SlotUser,
    pub(crate) commands: Commands,
}

impl Slots {
    pub(crate) fn new(server: ServerName, limit: usize) -> Self {
        Self { server, state: Mutex::new(State { limit: limit.max(1), ..State::default() }) }
    }

    /// Sets the limit. A lower one ends no running instance.
    pub(crate) fn set_limit(self: &Arc<Self>, limit: usize) {
        self.lock().limit = limit.max(1);
        self.hand_out();
    }

    /// How many instances run for this gateway.
    pub(crate) fn taken_by(&self, group: &GroupId) -> usize {
        self.lock().holders.iter().filter(|holder| holder.user.group == *group).count()
    }

    /// Gives free slots to the next starts in the queue.
    fn hand_out(self: &Arc<Self>) {
        let mut state = self.lock();
        state.waiting.retain(|waiter| !waiter.slot.is_closed());
        while state.holders.len() < state.limit {
            let Some(Waiter { commands, user, slot }) = state.next_waiter() else { return };
            let number = state.next;
            state.next += 1;
            if let Err(mut unwanted) = slot.send(Slot { slots: Some(Arc::clone(self)), number }) {
                // Its start was just given up. Dropping it unchanged would take the lock that is held here.
                unwanted.slots = None;
                continue;
            }
            state.holders.push(Holder { number, commands, user, leaving: false });
        }
    }

    /// Asks one instance to stop, unless enough of them are already stopping: the one that was unused
    /// longest, preferably of a caller with several.
    async fn make_room(&self) {
        let candidates: Vec<(bool, u64, Commands)> = {
            let state = self.lock();
            let leaving = state.holders.iter().filter(|holder| holder.leaving).count();
            let waiting = state.waiting.iter().filter(|waiter| !waiter.slot.is_closed()).count();
            if leaving >= waiting {
                return;
            }
            let staying = state.holders.iter().filter(|holder| !holder.leaving);
            let is_only = |holder: &Holder| state.owned_by(&holder.user.caller) == 1;
            staying.map(|holder| (is_only(holder), holder.number, holder.commands.clone())).collect()
        };
        let mut idle = Vec::new();
        for (is_only, number, commands) in candidates {
            if let Some(Some(since)) = asked(&commands, Command::IdleSince).await {
                idle.push(((is_only, since), number, commands));
            }
        }
        idle.sort_by_key(|(order, ..)| *order);
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
        let Self { slots, user, commands } = self;
        let (waiter, mut slot) = oneshot::channel();
        slots.lock().waiting.push(Waiter { commands, user, slot: waiter });
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

/// An actor's reply, if the actor exists and replies in time.
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

    /// Each start that gave up got the slot while the previous one was returning it, until the stack
    /// overflowed.
    #[tokio::test(start_paused = true)]
    async fn starts_that_gave_up_are_forgotten_and_the_next_gets_the_slot() {
        let (slots, actor) = slots(1);
        let user = || SlotUser { group: GroupId::default(), caller: Arc::from([1]) };
        let request = || SlotRequest { slots: Arc::clone(&slots), user: user(), commands: actor.downgrade() };
        let held = request().slot().await.unwrap();
        for _ in 0..3 {
            assert!(matches!(request().slot().await, Err(CallError::Busy { limit: 1, .. })));
        }
        let given_up = || Waiter { commands: actor.downgrade(), user: user(), slot: oneshot::channel().0 };
        slots.lock().waiting.extend((0..100_000).map(|_| given_up()));
        let next = tokio::spawn(request().slot());
        tokio::task::yield_now().await;
        drop(held);
        let next = next.await.unwrap().unwrap();
        let counts = || {
            let state = slots.lock();
            (state.holders.len(), state.waiting.len())
        };
        assert_eq!(counts(), (1, 0));
        drop(next);
        assert_eq!(counts(), (0, 0));
    }
}
