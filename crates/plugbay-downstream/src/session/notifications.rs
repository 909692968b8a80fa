//! What servers tell without being asked, as far as it concerns a host: logs, and what has changed.

use bytes::Bytes;
use plugbay_core::{
    era::{Era, SUBSCRIPTION_KEY},
    exchange::{ServerNotification, Ticket, Topic},
    level::Level,
    wire::{Frame, Members, Span, string_value},
};

use super::Session;
use crate::{subscriptions::Watched, tasks};

/// So many resources and tasks one host can watch.
const WATCHED_LIMIT: usize = 1024;

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
                    let labelled = tasks::labelled(server_notification, id, &self.owner());
                    self.outbox().tell_if_room(labelled);
                }
            }
        }
    }

    fn logged(&self, during: Option<Ticket>, level: Option<Level>, message: &Bytes) {
        let call = during.and_then(|ticket| self.gateway().suspended.host(ticket));
        let state = self.lock();
        let wanted = match &call {
            // A modern host says with each request whether it wants to hear of it at all.
            Some(call) if call.era == Era::Modern => {
                call.log_level.is_some_and(|wanted| level >= Some(wanted))
            }
            _ => {
                state.listens() && state.level.is_none_or(|wanted| level.is_none_or(|level| level >= wanted))
            }
        };
        if wanted {
            let sink = call.as_ref().map_or(self.outbox(), |call| &call.sink);
            sink.tell_if_room(Frame::from(message.clone()));
        }
    }

    /// What only the host may know goes along with its call.
    fn told_something(&self, during: Option<Ticket>, message: &Bytes) {
        let call = during.and_then(|ticket| self.gateway().suspended.host(ticket));
        let state = self.lock();
        if call.is_some() || state.listens() {
            let sink = call.as_ref().map_or(self.outbox(), |call| &call.sink);
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
