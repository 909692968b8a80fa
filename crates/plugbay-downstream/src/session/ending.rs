//! The end of a session: every request in flight gets its answer.

use std::sync::Arc;

use super::{InFlight, Session};
use crate::{refusal::Refusal, respond};

impl Session {
    /// Ends the session: refuses requests in flight, answers subscriptions, closes the outbox.
    pub(crate) fn close(&self) {
        self.unsubscribe_items(|_| true);
        let requests = std::mem::take(&mut self.lock().requests);
        for (id, in_flight) in requests {
            let sink = match in_flight {
                InFlight::Call(ticket) => self.gateway.suspended.forget(ticket).map(|host| host.sink),
                InFlight::Waiting { sink, .. } => Some(sink),
            };
            if let Some(sink) = sink {
                sink.refuse(&id, &Refusal::ShuttingDown);
            }
        }
        self.unregister();
        self.refuse_pending();
        self.end_subscriptions();
        self.outbox.close();
    }

    /// Ends the session of a window: its servers go on, so they learn that its calls are cancelled.
    pub(crate) fn close_window(&self) {
        let requests = std::mem::take(&mut self.lock().requests);
        for (id, in_flight) in requests {
            let sink = match in_flight {
                InFlight::Call(ticket) => {
                    self.gateway.suspended.cancel(&self.gateway, ticket, respond::host_has_gone());
                    Arc::clone(&self.outbox)
                }
                InFlight::Waiting { sink, .. } => sink,
            };
            sink.answer(respond::error(&id, &Refusal::ShuttingDown));
        }
        self.close();
    }
}
