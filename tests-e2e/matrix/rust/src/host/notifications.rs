//! The notifications that the gateway has sent, by kind; a row can wait for more of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::ServerNotification;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::Trouble;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Change(List),
    Update,
    Log,
    Progress,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

#[derive(Default)]
pub(super) struct Notifications {
    received: Mutex<Vec<(Kind, Value)>>,
    arrival: Notify,
}

impl Notifications {
    pub(super) fn receive(&self, notification: ServerNotification) {
        let change = |list| (Kind::Change(list), Value::Null);
        let received = match notification {
            ServerNotification::ToolListChangedNotification(_) => change(List::Tools),
            ServerNotification::ResourceListChangedNotification(_) => change(List::Resources),
            ServerNotification::PromptListChangedNotification(_) => change(List::Prompts),
            ServerNotification::ResourceUpdatedNotification(update) => {
                (Kind::Update, json!(update.params.uri))
            }
            ServerNotification::LoggingMessageNotification(log) => (Kind::Log, json!(log.params)),
            ServerNotification::ProgressNotification(step) => (Kind::Progress, json!(step.params)),
            _ => return,
        };
        self.received().push(received);
        self.arrival.notify_waiters();
    }

    pub(super) fn of(&self, kind: Kind) -> Vec<Value> {
        self.received()
            .iter()
            .filter(|(received, _)| *received == kind)
            .map(|(_, what)| what.clone())
            .collect()
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        !self.of(kind).is_empty()
    }

    pub(super) fn forget(&self, kind: Kind) {
        self.received().retain(|(received, _)| *received != kind);
    }

    /// Looks again whenever a notification has arrived.
    pub(super) async fn until(&self, holds: impl AsyncFn() -> Result<bool, Trouble>) -> Result<(), Trouble> {
        loop {
            let arrival = self.arrival.notified();
            if holds().await? {
                return Ok(());
            }
            arrival.await;
        }
    }

    fn received(&self) -> MutexGuard<'_, Vec<(Kind, Value)>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
