//! What the gateway tells unasked, by kind, and who waits for more of it.

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
pub(super) struct Told {
    heard: Mutex<Vec<(Kind, Value)>>,
    news: Notify,
}

impl Told {
    pub(super) fn hear(&self, notification: ServerNotification) {
        let change = |list| (Kind::Change(list), Value::Null);
        let heard = match notification {
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
        self.heard().push(heard);
        self.news.notify_waiters();
    }

    pub(super) fn of(&self, kind: Kind) -> Vec<Value> {
        self.heard().iter().filter(|(heard, _)| *heard == kind).map(|(_, what)| what.clone()).collect()
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        !self.of(kind).is_empty()
    }

    pub(super) fn forget(&self, kind: Kind) {
        self.heard().retain(|(heard, _)| *heard != kind);
    }

    /// Looks again whenever something was told.
    pub(super) async fn until(&self, holds: impl AsyncFn() -> Result<bool, Trouble>) -> Result<(), Trouble> {
        loop {
            let news = self.news.notified();
            if holds().await? {
                return Ok(());
            }
            news.await;
        }
    }

    fn heard(&self) -> MutexGuard<'_, Vec<(Kind, Value)>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
