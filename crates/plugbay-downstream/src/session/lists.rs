//! The lists that a host knows, and the notifications when they change.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::surface::Snapshot;

use super::{Session, Subscription};
use crate::{
    lists::{Kind, ListFilter},
    outbox::Outbox,
    respond,
    subscriptions::ItemSubscription,
};

impl Session {
    /// Notes that the host has got this list.
    pub(crate) fn list_sent(&self, snapshot: &Snapshot, kind: Kind) {
        self.lock().known_lists.note(snapshot, kind);
        if kind == Kind::Tools {
            self.gateway.first_list.notify_one();
            self.host_view.listed.notify_waiters();
            self.prepare_servers(snapshot);
        }
        self.catalog_changed(); // the catalog may have changed since the snapshot
    }

    /// Starts the servers that the host may activate, if `auto` has chosen that mode for it.
    fn prepare_servers(&self, snapshot: &Snapshot) {
        if self.host_view.owes_warm_servers() {
            snapshot.servers().iter().for_each(|server| self.gateway.servers.prepare(server));
        }
    }

    /// Opens a `subscriptions/listen` request. `false`: its id is in use.
    pub(crate) fn subscribe(
        &self,
        id: Bytes,
        filter: ListFilter,
        items: Vec<ItemSubscription>,
        sink: Arc<Outbox>,
    ) -> bool {
        let mut state = self.lock();
        if state.in_use(&id) {
            return false;
        }
        sink.send(respond::acknowledged(&id, filter, &items));
        let listener = filter.has(Kind::Tools).then(|| self.host_view.listen());
        state.subscriptions.push(Subscription { id, filter, sink, _listener: listener });
        drop(state);
        if !items.is_empty() {
            self.gateway.host_registry.reads(self.me.clone());
        }
        for item in items {
            self.subscribe_item(item);
        }
        self.catalog_changed(); // it may have changed since the host listed
        true
    }

    /// Applies a new configuration to the host view and notifies the host of changed lists.
    pub(crate) fn catalog_changed(&self) {
        let layout = Arc::clone(&self.gateway.snapshots.borrow().layout);
        self.host_view.reconfigure(&layout, || (self.gateway.learned)());
        self.notify_list_changes();
    }

    /// Sends `list_changed` for each list that differs from what the host knows. `false`: nothing was sent.
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
            }
            any |= notified;
        }
        any
    }

    /// Answers all open `subscriptions/listen` requests; calls go on.
    pub(crate) fn end_subscriptions(&self) {
        let subscriptions = std::mem::take(&mut self.lock().subscriptions);
        for subscription in subscriptions {
            subscription.sink.answer(respond::subscription_ended(&subscription.id));
        }
    }
}
