//! What a server tells without being asked: log messages, and that a resource has changed.

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    exchange::{ServerNotification, SubscriptionTarget, Ticket, Topic},
    level::Level,
    lifecycle::Admission,
    wire::{Members, Span, string_value},
};

use super::{Actor, Phase, Waiting};

/// So many resources and tasks of one server can be watched.
const WATCHED_LIMIT: usize = 1024;

impl Actor {
    pub(super) fn logs(&mut self, message: Bytes, params: Option<&Span>, during: Option<Ticket>) {
        let level = params.and_then(|params| Members::find(&message, params, "level"));
        let level = level.and_then(|span| Level::parse(&string_value(&message[span])?));
        self.tells(message, Topic::Log(level), during);
    }

    /// What is about nothing that could be watched belongs to the call on whose stream it came, else to the
    /// latest one that is being worked on; else to all, or, if nobody here knows what it is, to the only one. Of a
    /// call that has ended nobody wants to read, and what may be about any of several hosts none of them may.
    pub(super) fn tells(&mut self, message: Bytes, topic: Topic, during: Option<Ticket>) {
        let server_notification = ServerNotification { server: self.spec.name.clone(), message, topic };
        let call = match during {
            None => match self.in_flight() {
                Ok(mut ways) => ways.pop(),
                Err(_) => return,
            },
            Some(ticket) if !self.pending.contains(ticket) => return,
            Some(ticket) => self.ways(&[ticket]).pop(),
        };
        match (call, &server_notification.topic) {
            (Some((caller, ticket)), _) => caller.told(ticket, &server_notification),
            (None, Topic::Unknown) => {
                self.around
                    .host_registry
                    .only()
                    .into_iter()
                    .for_each(|host| host.told(None, &server_notification));
            }
            (None, _) => self.around.host_registry.each(|host| host.told(None, &server_notification)),
        }
    }

    pub(super) fn updated(&mut self, message: Bytes, params: Option<Span>) {
        let Some(params) = params else { return };
        let Some(uri) = Members::find(&message, &params, "uri") else { return };
        let topic = Topic::Updated { uri, params };
        let server_notification = ServerNotification { server: self.spec.name.clone(), message, topic };
        self.around.host_registry.each(|host| host.told(None, &server_notification));
    }

    /// Somebody wants to hear when this changes.
    pub(super) fn watch(&mut self, what: &SubscriptionTarget) {
        let watchers = self.watched.len();
        let count = self.watched.entry(what.clone()).or_default();
        *count += 1;
        if *count > 1 {
            return;
        }
        if watchers >= WATCHED_LIMIT {
            self.watched.remove(what);
            return tracing::warn!(server = %self.spec.name, "more is watched than can be");
        }
        match self.life.wanted(self.now) {
            // Many are often asked for at once: one subscription will do.
            Admission::Ready if self.opened.era == Some(Era::Modern) => self.subscribe_at = Some(self.now),
            Admission::Ready => self.watch_one(what),
            Admission::Start => self.start(),
            Admission::Wait | Admission::Refuse { .. } => {}
        }
    }

    /// One who did wants it no more; the server hears of it when nobody does.
    pub(super) fn unwatch(&mut self, what: &SubscriptionTarget) {
        let Some(count) = self.watched.get_mut(what) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.watched.remove(what);
        match self.opened.era {
            Some(Era::Modern) => self.subscribe_at = Some(self.now),
            _ => self.tell_of("resources/unsubscribe", what),
        }
    }

    /// Of what nobody has a wish for any more the server goes on as it was told.
    pub(super) fn log_level_changed(&mut self) {
        let wanted = self.around.host_registry.log_level();
        if wanted.is_some() && wanted != self.level {
            self.set_level(wanted);
        }
    }

    /// A server that has just been opened knows nothing of what its predecessor was told.
    pub(super) fn ask_for_news(&mut self) {
        self.set_level(self.around.host_registry.log_level());
        if self.opened.era != Some(Era::Modern) {
            for what in self.watched.keys().cloned().collect::<Vec<_>>() {
                self.watch_one(&what);
            }
        }
    }

    fn set_level(&mut self, level: Option<Level>) {
        self.level = level;
        // A modern server is told by each request.
        if let (Some(level), true, Some(Era::Legacy)) = (level, self.opened.features.logging, self.opened.era)
        {
            self.tell_server("logging/setLevel", &format!(r#"{{"level":"{}"}}"#, level.word()));
        }
    }

    fn watch_one(&mut self, what: &SubscriptionTarget) {
        self.tell_of("resources/subscribe", what);
    }

    /// A legacy server is asked for each resource by itself.
    fn tell_of(&mut self, method: &str, what: &SubscriptionTarget) {
        if let (SubscriptionTarget::Resource(uri), true) = (what, self.opened.features.subscribe) {
            let params = format!(r#"{{"uri":{}}}"#, String::from_utf8_lossy(uri));
            self.tell_server(method, &params);
        }
    }

    /// A request whose answer changes nothing.
    fn tell_server(&mut self, method: &str, params: &str) {
        let Phase::Up(link) = &mut self.phase else { return };
        let ticket = self.around.tickets.next();
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#, ticket.0);
        link.request(ticket, Bytes::from(request));
        let patience = self.spec.timeouts.start;
        self.pending.register(ticket, Waiting::Nobody, self.now, patience, patience);
    }
}
