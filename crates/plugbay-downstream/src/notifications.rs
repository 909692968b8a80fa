//! What servers tell without being asked, as far as it concerns a host: logs, and what has changed.

use std::borrow::Cow;

use bytes::Bytes;
use plugbay_core::{
    era::{Era, SUBSCRIPTION_KEY},
    exchange::{ServerNotification, SubscriptionTarget, Ticket, Topic},
    level::Level,
    name::ServerName,
    surface::Place,
    wire::{Frame, Members, Span, string_value},
};

use crate::{session::Session, tasks};

/// So many resources and tasks one host can watch.
const WATCHED_LIMIT: usize = 1024;

/// A resource or a task of whose changes a host wants to hear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Watched {
    pub(crate) server: ServerName,
    /// As the server names it.
    own: SubscriptionTarget,
    /// As the host does, a JSON string.
    shown: Bytes,
    /// The raw id of the subscription that asked for it; none for a legacy host.
    pub(crate) subscription: Option<Bytes>,
}

impl Watched {
    pub(crate) fn new(place: Place, shown: Bytes, subscription: Option<Bytes>) -> Self {
        Self { server: place.server, own: SubscriptionTarget::Resource(place.quoted), shown, subscription }
    }

    pub(crate) fn task(
        server: ServerName,
        own: SubscriptionTarget,
        shown: Bytes,
        subscription: Bytes,
    ) -> Self {
        Self { server, own, shown, subscription: Some(subscription) }
    }

    pub(crate) fn is_task(&self) -> bool {
        matches!(self.own, SubscriptionTarget::Task(_))
    }

    /// What the host calls something that its server names so, if it is this or a part of it.
    fn shown_as(&self, server: &ServerName, name: &str, task: bool) -> Option<Cow<'_, [u8]>> {
        let rest = match &self.own {
            SubscriptionTarget::Resource(own) if !task => rest_of(name, &string_value(own)?)?,
            SubscriptionTarget::Task(own) if task => {
                Some("").filter(|_| string_value(own).as_deref() == Some(name))?
            }
            _ => return None,
        };
        if self.server != *server {
            return None;
        }
        if rest.is_empty() {
            return Some(Cow::Borrowed(&self.shown));
        }
        let whole = string_value(&self.shown)?;
        Some(Cow::Owned(serde_json::json!(format!("{whole}{rest}")).to_string().into_bytes()))
    }

    pub(crate) fn shown(&self) -> &[u8] {
        &self.shown
    }
}

/// What a URI has beyond that of a resource that it is, or is a part of: servers may tell of either.
fn rest_of<'a>(uri: &'a str, whole: &str) -> Option<&'a str> {
    let rest = uri.strip_prefix(whole)?;
    let within = rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#']);
    within.then_some(rest)
}

impl Session {
    /// A legacy host wants log messages from this level on.
    pub(crate) fn log_from(&self, level: Level) {
        self.lock().level = Some(level);
        self.wants_log(Some(level));
    }

    pub(crate) fn watch(&self, watched: Watched) {
        let mut state = self.lock();
        if state.watched.len() >= WATCHED_LIMIT || state.watched.contains(&watched) {
            return;
        }
        state.watched.push(watched.clone());
        drop(state);
        self.gateway().servers.watch(&watched.server, watched.own);
    }

    /// A legacy host has heard enough of a resource.
    pub(crate) fn unwatch(&self, shown: &[u8]) {
        let is_it = |watched: &Watched| string_value(&watched.shown) == string_value(shown);
        self.unwatch_all(|watched| watched.subscription.is_none() && is_it(watched));
    }

    pub(crate) fn unwatch_all(&self, enough: impl Fn(&Watched) -> bool) {
        let mut state = self.lock();
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.watched).into_iter().partition(&enough);
        state.watched = kept;
        drop(state);
        for watched in gone {
            self.gateway().servers.unwatch(&watched.server, watched.own);
        }
    }

    pub(crate) fn hear(&self, during: Option<Ticket>, server_notification: &ServerNotification) {
        match &server_notification.topic {
            Topic::Log(level) => self.logged(during, *level, &server_notification.message),
            Topic::Unknown => self.told_something(during, &server_notification.message),
            Topic::Updated { uri, params } => self.updated(server_notification, uri, params, false),
            Topic::Task { era: Era::Modern, id, params } => {
                self.updated(server_notification, id, params, true)
            }
            Topic::Task { era: Era::Legacy, id, .. } => {
                if self.lock().listens() {
                    tasks::told(self, server_notification, id);
                }
            }
        }
    }

    fn logged(&self, during: Option<Ticket>, level: Option<Level>, message: &Bytes) {
        let state = self.lock();
        let call = during.and_then(|ticket| state.calls.get(&ticket));
        let wanted = match call {
            // A modern host says with each request whether it wants to hear of it at all.
            Some(call) if call.era == Era::Modern => {
                call.log_level.is_some_and(|wanted| level >= Some(wanted))
            }
            _ => {
                state.listens() && state.level.is_none_or(|wanted| level.is_none_or(|level| level >= wanted))
            }
        };
        if wanted {
            let sink = call.map_or(self.outbox(), |call| &call.sink);
            sink.tell_if_room(Frame::from(message.clone()));
        }
    }

    /// What only the host may know goes along with its call.
    fn told_something(&self, during: Option<Ticket>, message: &Bytes) {
        let state = self.lock();
        let call = during.and_then(|ticket| state.calls.get(&ticket));
        if call.is_some() || state.listens() {
            let sink = call.map_or(self.outbox(), |call| &call.sink);
            sink.tell_if_room(Frame::from(message.clone()));
        }
    }

    /// `name` tells of what it is.
    fn updated(&self, server_notification: &ServerNotification, name: &Span, params: &Span, task: bool) {
        let (state, message) = (self.lock(), &server_notification.message);
        let Some(own) = string_value(&message[name.clone()]) else { return };
        let mut told: Vec<&Option<Bytes>> = Vec::new(); // of the whole, or of its part
        for watched in &state.watched {
            let Some(shown) = watched.shown_as(&server_notification.server, &own, task) else { continue };
            if told.contains(&&watched.subscription) {
                continue;
            }
            told.push(&watched.subscription);
            let Some(id) = &watched.subscription else {
                self.outbox().tell_if_room(Frame::edited(message, &[(name.clone(), &shown)]));
                continue;
            };
            let subscription = state.subscriptions.iter().find(|subscription| subscription.id == *id);
            if let Some(subscription) = subscription {
                subscription.sink.tell_if_room(labelled(message, name, params, &shown, id));
            }
        }
    }
}

/// A subscription's notifications bear its id, in place of the one that they came by.
fn labelled(message: &Bytes, name: &Span, params: &Span, shown: &[u8], id: &Bytes) -> Frame {
    let meta = Members::find(message, params, "_meta");
    let label = meta.as_ref().and_then(|meta| Members::find(message, meta, SUBSCRIPTION_KEY));
    let member = format!(r#""{SUBSCRIPTION_KEY}":{}"#, String::from_utf8_lossy(id));
    let (at, text) = match (label, meta) {
        (Some(label), _) => (label, String::from_utf8_lossy(id).into_owned()),
        (None, Some(meta)) => {
            let empty = Members::of(message, &meta).next().is_none();
            (meta.start + 1..meta.start + 1, if empty { member } else { format!("{member},") })
        }
        // There is a name behind it.
        (None, None) => (params.start + 1..params.start + 1, format!(r#""_meta":{{{member}}},"#)),
    };
    let mut edits = [(name.clone(), shown), (at, text.as_bytes())];
    edits.sort_by_key(|(span, _)| span.start);
    Frame::edited(message, &edits)
}
