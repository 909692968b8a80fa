//! Server notifications to a host: log messages, updated resources, tasks.

use bytes::Bytes;
use plugbay_core::{
    era::{Era, SUBSCRIPTION_KEY},
    exchange::{ServerNotification, Ticket, Topic},
    level::Level,
    wire::{Frame, Members, Span, string_value},
};

use super::{Session, State};
use crate::{limits::ITEM_SUBSCRIPTIONS, refusal::Refusal, respond, subscriptions::ItemSubscription, tasks};

pub(super) const TOO_MANY_ITEMS: Refusal =
    Refusal::Busy("this host has subscribed to too many resources and tasks; unsubscribe from some");

impl Session {
    /// Sets the log level of a legacy host.
    pub(crate) fn log_from(&self, level: Level) {
        self.lock().level = Some(level);
        self.outbox().set_notice((level <= Level::Warning).then_some(respond::dropped));
        self.wants_log(Some(level));
    }

    /// Subscribes the host to a resource or task, up to a limit.
    pub(crate) fn subscribe_item(&self, item: ItemSubscription) -> Result<(), Refusal> {
        let mut state = self.lock();
        if state.item_subscriptions.contains(&item) {
            return Ok(());
        }
        if !state.has_room_for_items(1) {
            return Err(TOO_MANY_ITEMS);
        }
        state.item_subscriptions.push(item.clone());
        drop(state);
        self.gateway().servers.watch(&item.server, item.target);
        Ok(())
    }

    /// Ends the subscription of a legacy host to a resource.
    pub(crate) fn unsubscribe_item(&self, shown: &[u8]) {
        let is_it = |item: &ItemSubscription| string_value(&item.shown) == string_value(shown);
        self.unsubscribe_items(|item| item.subscription.is_none() && is_it(item));
    }

    pub(crate) fn unsubscribe_items(&self, ends: impl Fn(&ItemSubscription) -> bool) {
        let mut state = self.lock();
        let (ended, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.item_subscriptions).into_iter().partition(&ends);
        state.item_subscriptions = kept;
        drop(state);
        for item in ended {
            self.gateway().servers.unwatch(&item.server, item.target);
        }
    }

    pub(crate) fn deliver_notification(
        &self,
        during: Option<Ticket>,
        server_notification: &ServerNotification,
    ) {
        if !self.gateway().sees(&server_notification.server) {
            return;
        }
        match &server_notification.topic {
            Topic::Log(level) => self.log_message(during, *level, &server_notification.message),
            Topic::Unknown => self.unknown_notification(during, &server_notification.message),
            Topic::Updated { uri, params } => self.item_updated(server_notification, uri, params, false),
            Topic::Task { era: Era::Modern, id, params } => {
                self.item_updated(server_notification, id, params, true);
            }
            Topic::Task { era: Era::Legacy, id, .. } => {
                if self.lock().listens() {
                    let labelled = tasks::labelled(server_notification, id, &self.owner());
                    self.outbox().send_if_room(labelled);
                }
            }
        }
    }

    fn log_message(&self, during: Option<Ticket>, level: Option<Level>, message: &Bytes) {
        let call = during.and_then(|ticket| self.gateway().suspended.host(ticket));
        let state = self.lock();
        let wanted = match &call {
            // A modern request without a log level gets no log messages.
            Some(call) if call.era == Era::Modern => {
                call.log_level.is_some_and(|wanted| level >= Some(wanted))
            }
            _ => {
                state.listens() && state.level.is_none_or(|wanted| level.is_none_or(|level| level >= wanted))
            }
        };
        if wanted {
            let sink = call.as_ref().map_or(self.outbox(), |call| &call.sink);
            sink.send_log(Frame::from(message.clone()));
        }
    }

    /// Forwards a notification with an unknown method to the host of its call.
    fn unknown_notification(&self, during: Option<Ticket>, message: &Bytes) {
        let call = during.and_then(|ticket| self.gateway().suspended.host(ticket));
        let state = self.lock();
        if call.is_some() || state.listens() {
            let sink = call.as_ref().map_or(self.outbox(), |call| &call.sink);
            sink.send_if_room(Frame::from(message.clone()));
        }
    }

    /// Forwards an update of a resource or task to its subscribers. `name` is the span of its URI or id.
    fn item_updated(&self, server_notification: &ServerNotification, name: &Span, params: &Span, task: bool) {
        let (state, message) = (self.lock(), &server_notification.message);
        let Some(server_name) = string_value(&message[name.clone()]) else { return };
        let mut notified: Vec<&Option<Bytes>> = Vec::new(); // each once, also for a resource and its part
        for item in &state.item_subscriptions {
            let Some(shown) = item.shown_as(&server_notification.server, &server_name, task) else {
                continue;
            };
            if notified.contains(&&item.subscription) {
                continue;
            }
            notified.push(&item.subscription);
            let Some(id) = &item.subscription else {
                self.outbox().send_if_room(Frame::edited(message, &[(name.clone(), &shown)]));
                continue;
            };
            let subscription = state.subscriptions.iter().find(|subscription| subscription.id == *id);
            if let Some(subscription) = subscription {
                subscription.sink.send_if_room(labelled(message, name, params, &shown, id));
            }
        }
    }
}

impl State {
    pub(super) fn has_room_for_items(&self, count: usize) -> bool {
        self.item_subscriptions.len() + count <= ITEM_SUBSCRIPTIONS
    }
}

/// The notification with the id of the host's subscription instead of plugbay's own.
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
        // The URI or id follows, hence the comma.
        (None, None) => (params.start + 1..params.start + 1, format!(r#""_meta":{{{member}}},"#)),
    };
    let mut edits = [(name.clone(), shown), (at, text.as_bytes())];
    edits.sort_by_key(|(span, _)| span.start);
    Frame::edited(message, &edits)
}
