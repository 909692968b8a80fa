//! The ends of a session: every request in flight gets its answer, unless its host has gone.

use std::{mem::take, sync::atomic::Ordering};

use super::{Session, requests::InFlight};
use crate::{refusal::Refusal, respond};

impl Session {
    /// Rejects new requests from now on; those in flight go on.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Ends the session of the only host at shutdown. Its servers end as well, so they are not notified.
    pub(crate) fn close(&self) {
        self.unsubscribe_items(|_| true);
        self.end_requests(Some(&Refusal::ShuttingDown), false);
        self.leave();
    }

    /// Ends the session of a window: its servers go on, so they learn that its calls are cancelled.
    pub(crate) fn close_window(&self) {
        self.unsubscribe_items(|_| true);
        self.end_requests(Some(&Refusal::ShuttingDown), true);
        self.leave();
    }

    /// Ends the session of a caller that may no longer connect.
    pub(crate) fn revoke(&self) {
        self.unsubscribe_items(|_| true);
        self.end_requests(Some(&Refusal::Revoked), true);
        self.leave();
    }

    /// Ends the calls of a caller whose access token has expired; the session waits for a fresh one.
    pub(crate) fn pause(&self) {
        self.end_requests(Some(&Refusal::Revoked), true);
    }

    /// Ends the session of a host that has disconnected.
    pub(crate) fn abandon(&self) {
        self.unsubscribe_items(|_| true);
        self.refuse_pending(); // before its calls are cancelled, which would withdraw the requests from the host
        self.end_requests(None, true);
        self.leave();
    }

    /// Ends all requests in flight: `answer` goes to the host. Servers are notified if `tell_servers`.
    fn end_requests(&self, answer: Option<&Refusal>, tell_servers: bool) {
        let (calls, requests) = (&self.gateway.suspended, take(&mut self.lock().requests));
        for (id, in_flight) in requests.into_all() {
            let (ticket, sink) = match in_flight {
                InFlight::Call(ticket) => (Some(ticket), calls.host(ticket).map(|host| host.sink)),
                InFlight::Waiting { sink, .. } => (None, Some(sink)),
            };
            if let (Some(refusal), Some(sink)) = (answer, sink) {
                sink.refuse(&id, refusal);
            }
            match ticket {
                Some(ticket) if tell_servers => {
                    calls.cancel(&self.gateway, ticket, respond::host_has_gone());
                }
                Some(ticket) => drop(calls.forget(ticket)),
                None => {}
            }
        }
        self.idle.notify_waiters();
    }

    /// Leaves the host registry, ends server requests and subscriptions, and closes the outbox.
    fn leave(&self) {
        self.unregister();
        self.refuse_pending();
        self.end_subscriptions();
        if !self.gateway.principal.lasts {
            self.gateway.results.forget(self.result_owner());
            self.gateway.suspended.stopped_runs.forget(self.result_owner());
        }
        self.outbox.close();
    }
}
