//! The opening of a host's session: the messages that a bridge sends again to another daemon.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    era::SUBSCRIPTION_KEY,
    wire::{Head, Kind, Members, Span, write},
};

/// The lists that can change, with the key of each in a `subscriptions/listen` filter.
const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// The messages by which a legacy host has opened its session.
#[derive(Debug, Default)]
pub(super) struct Opening {
    initialize: Option<Bytes>,
    /// The lists whose changes the answer to `initialize` promised to announce; `None`: no answer yet.
    promised: Option<Vec<&'static str>>,
    initialized: Option<Bytes>,
    /// The last `logging/setLevel`.
    level: Option<Bytes>,
    /// The last `resources/subscribe` of each URI, raw.
    subscriptions: BTreeMap<Vec<u8>, Bytes>,
}

impl Opening {
    pub(super) fn requested(&mut self, message: &Bytes, head: &Head) {
        let Kind::Request { method, .. } = &head.kind else { return };
        let uri = || Members::find(message, head.payload.as_ref()?, "uri").map(|uri| message[uri].to_vec());
        let kept = || Bytes::copy_from_slice(message);
        match &message[method.clone()] {
            b"initialize" => (self.initialize, self.promised) = (Some(kept()), None),
            b"logging/setLevel" => self.level = Some(kept()),
            b"resources/subscribe" => {
                self.subscriptions.extend(uri().map(|uri| (uri, kept())));
            }
            b"resources/unsubscribe" => {
                uri().map(|uri| self.subscriptions.remove(&uri));
            }
            _ => {}
        }
    }

    pub(super) fn notified(&mut self, message: &Bytes, method: &[u8]) {
        if method == b"notifications/initialized" {
            self.initialized = Some(Bytes::copy_from_slice(message));
        }
    }

    /// The host gets an answer of a daemon.
    pub(super) fn answered(&mut self, message: &[u8], head: &Head, id: &[u8]) {
        if self.promised.is_some() || !self.is_initialize(id) {
            return;
        }
        let capabilities =
            head.payload.as_ref().and_then(|result| Members::find(message, result, "capabilities"));
        let promises = |list: &str| {
            let offer = Members::find(message, capabilities.as_ref()?, list)?;
            let promised = Members::find(message, &offer, "listChanged")?;
            Some(&message[promised] == b"true")
        };
        let lists = LISTS.iter().map(|(list, _)| *list);
        self.promised = Some(lists.filter(|list| promises(list) == Some(true)).collect());
    }

    pub(super) fn is_answered(&self) -> bool {
        self.initialize.is_none() || self.promised.is_some()
    }

    /// Whether this is the id of the host's `initialize`.
    pub(super) fn is_initialize(&self, id: &[u8]) -> bool {
        let Some(message) = &self.initialize else { return false };
        matches!(Head::read(message), Ok(Head { kind: Kind::Request { id: own, .. }, .. }) if &message[own.clone()] == id)
    }

    /// The opening in the order in which a host sends it.
    pub(super) fn messages(&self) -> Vec<Bytes> {
        let first = [&self.initialize, &self.initialized, &self.level].into_iter().flatten();
        first.chain(self.subscriptions.values()).cloned().collect()
    }

    pub(super) fn list_changes(&self) -> Vec<Bytes> {
        if self.initialized.is_none() {
            return Vec::new();
        }
        let promised = self.promised.iter().flatten();
        promised.map(|list| write::notification(&changed_method(list), None)).collect()
    }
}

/// The list changes that an open `subscriptions/listen` request asks for.
pub(super) fn listened_changes(id: &[u8], message: &[u8]) -> Vec<Bytes> {
    let filter = Head::read(message).ok().and_then(|head| head.payload);
    let filter = filter.and_then(|params| Members::find(message, &params, "notifications"));
    let wants = |key: &str| {
        let wanted = filter.as_ref().and_then(|filter| Members::find(message, filter, key));
        wanted.is_some_and(|span| &message[span] == b"true")
    };
    let params = format!(r#"{{"_meta":{{"{SUBSCRIPTION_KEY}":{}}}}}"#, String::from_utf8_lossy(id));
    let wanted = LISTS.iter().filter(|(_, key)| wants(key));
    wanted.map(|(list, _)| write::notification(&changed_method(list), Some(params.as_bytes()))).collect()
}

/// The raw id of the `subscriptions/listen` request to which a notification belongs.
pub(super) fn subscription(message: &[u8], params: &Span) -> Option<Span> {
    let meta = Members::find(message, params, "_meta")?;
    Members::find(message, &meta, SUBSCRIPTION_KEY)
}

fn changed_method(list: &str) -> String {
    format!("notifications/{list}/list_changed")
}
