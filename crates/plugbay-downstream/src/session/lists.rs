//! The lists that a host knows, and the notifications when they change.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use plugbay_core::{
    exchange::{ListChange, Ticket},
    surface::Snapshot,
};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};

use super::{Session, State, Subscription, notifications::TOO_MANY_ITEMS};
use crate::{
    limits::SUBSCRIPTIONS,
    lists::{Kind, ListFilter},
    outbox::Outbox,
    refusal::Refusal,
    respond,
    subscriptions::ItemSubscription,
};

/// A list change that must reach the host before the answer of a call.
#[derive(Debug)]
pub(crate) struct AwaitedChange {
    pub(super) call: Ticket,
    /// Resolves when the new lists can be seen.
    done: oneshot::Receiver<Infallible>,
    /// How many tool lists the host had got when the lists changed.
    listings: usize,
}

impl Session {
    /// Notes that the host has got this list.
    pub(crate) fn list_sent(&self, snapshot: &Snapshot, kind: Kind) {
        self.lock().known_lists.note(snapshot, kind);
        if kind == Kind::Tools {
            self.gateway.host_events.first_list.notify_one();
            self.host_view.tools_listed();
        }
        self.catalog_changed(); // the catalog may have changed since the snapshot
    }

    /// Opens a `subscriptions/listen` request.
    pub(crate) fn subscribe(
        &self,
        id: Bytes,
        filter: ListFilter,
        items: Vec<ItemSubscription>,
        sink: Arc<Outbox>,
    ) -> Result<(), Refusal> {
        let mut state = self.lock();
        if state.in_use(&id) {
            return Err(Refusal::IdInUse);
        }
        if state.subscriptions.len() >= SUBSCRIPTIONS {
            return Err(Refusal::Busy("this host has too many subscriptions open; end some"));
        }
        if !state.has_room_for_items(items.len()) {
            return Err(TOO_MANY_ITEMS);
        }
        sink.send(respond::acknowledged(&id, filter, &items));
        let listener = filter.has(Kind::Tools).then(|| self.host_view.listen());
        state.subscriptions.push(Subscription { id, filter, sink, _listener: listener });
        let reads_items = !items.is_empty();
        let mut added = Vec::new();
        for item in items {
            if !state.item_subscriptions.contains(&item) {
                state.item_subscriptions.push(item.clone());
                added.push(item);
            }
        }
        drop(state);
        if reads_items {
            self.gateway.host_registry.reads(self.me.clone());
        }
        for item in added {
            self.gateway.servers.watch(&item.server, item.target);
        }
        self.catalog_changed(); // it may have changed since the host listed
        Ok(())
    }

    /// Applies a new configuration to the host view, and notifies the host of changed lists.
    pub(crate) fn catalog_changed(&self) {
        let layout = Arc::clone(&self.gateway.snapshots.borrow().layout);
        self.host_view.reconfigure(&layout, || (self.gateway.usage.learned)());
        self.notify_list_changes();
    }

    /// Sends `list_changed` for each list that differs from the one the host knows. `false` if nothing was
    /// sent.
    pub(crate) fn notify_list_changes(&self) -> bool {
        let now = self.snapshot();
        let mut state = self.lock();
        let mut any = false;
        for kind in
            Kind::ALL.into_iter().filter(|kind| state.known_lists.differs(&now, *kind)).collect::<Vec<_>>()
        {
            let legacy = state.listens();
            let mut notified = legacy;
            if legacy {
                self.outbox.send_once(respond::list_changed(kind, None));
            }
            for subscription in state.subscriptions.iter().filter(|one| one.filter.has(kind)) {
                subscription.sink.send_once(respond::list_changed(kind, Some(&subscription.id)));
                notified = true;
            }
            // A host without a listener is notified once it has one.
            if notified {
                state.known_lists.note(&now, kind);
                if kind == Kind::Tools {
                    self.host_view.tools_notified();
                }
            }
            any |= notified;
        }
        any
    }

    /// Notes that a server's lists have changed during this call: its answer waits until the host knows them.
    pub(crate) fn hold_for_lists(&self, call: Ticket, change: &ListChange) {
        if !self.host_view.shows_changes() || self.host_view.host().pause().is_zero() {
            return;
        }
        let (guard, done) = oneshot::channel::<Infallible>();
        let listings = self.host_view.listings();
        let mut guarded = self.lock();
        let State { list_changes, requests, .. } = &mut *guarded;
        // A new change of a call replaces its previous one, which is over when the new one is. Entries of
        // cancelled calls are removed here.
        let is_open = |call: Ticket| requests.has_call(call);
        list_changes.retain(|change| change.call != call && is_open(change.call));
        list_changes.push(AwaitedChange { call, done, listings });
        drop(guarded);
        change.keep(Box::new(guard));
    }

    /// Lets the call be answered now, unless its server has changed its lists, which the host must see first.
    pub(crate) fn release_unless_changed(&self, id: &Bytes, call: Ticket) -> Option<AwaitedChange> {
        let mut state = self.lock();
        let change = state.take_change(call);
        if change.is_none() {
            state.requests.remove(id);
        }
        change
    }

    /// Takes the change that the answer of a call waits for.
    pub(crate) fn take_awaited_change(&self, call: Ticket) -> Option<AwaitedChange> {
        self.lock().take_change(call)
    }

    /// Shows the host changed lists before the answer of the call that changed them. Waits at most as long as
    /// the host's profile allows.
    pub(crate) async fn show_changed_lists(&self, change: AwaitedChange) {
        let (host, host_view) = (self.host_view.host(), &self.host_view);
        let shown = async {
            let _ = change.done.await; // resolves when the sender is dropped
            self.notify_list_changes();
            host_view.tools_known().await;
        };
        let shown = timeout(host.pause(), shown).await;
        if shown.is_ok() && host_view.listings() != change.listings {
            sleep(host.settling()).await;
        }
    }

    /// Answers all open `subscriptions/listen` requests; calls go on.
    pub(crate) fn end_subscriptions(&self) {
        let subscriptions = std::mem::take(&mut self.lock().subscriptions);
        for subscription in subscriptions {
            subscription.sink.answer(respond::subscription_ended(&subscription.id));
        }
    }
}

impl State {
    fn take_change(&mut self, call: Ticket) -> Option<AwaitedChange> {
        let at = self.list_changes.iter().position(|change| change.call == call)?;
        Some(self.list_changes.swap_remove(at))
    }
}
