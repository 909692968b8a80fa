//! Notifications of a server and their recipients, and the subscriptions that make a server send them.

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::Era,
    exchange::{Caller, ServerNotification, SubscriptionTarget, Ticket, Topic},
    extension::Extensions,
    level::Level,
    lifecycle::Admission,
    start::Priority,
    task::Task,
    wire::{Head, Kind, Members, Span, string_value},
};

use super::{
    super::{
        request,
        state::{server_requests::Recipient, subscriptions::Added},
    },
    Actor, Waiting,
};
use crate::http::TransportError;

impl Actor {
    /// Handles `notifications/message`.
    pub(super) fn log_message(&mut self, message: Bytes, params: Option<&Span>, during: Option<Ticket>) {
        let level = params.and_then(|params| Members::find(&message, params, "level"));
        let level = level.and_then(|span| Level::parse(&string_value(&message[span])?));
        self.notify_hosts(message, Topic::Log(level), during);
    }

    /// Forwards a notification that belongs to no subscription. It goes to the call on whose stream it came,
    /// else to the latest call in flight. Without a call, a log message goes to all hosts if they belong to
    /// one session, and an unknown notification to the only host. If the call has ended, or the process has
    /// had calls of several hosts, nobody gets it.
    pub(super) fn notify_hosts(&mut self, message: Bytes, topic: Topic, during: Option<Ticket>) {
        let recipient = match during {
            None => match self.in_flight() {
                Ok(mut recipients) => recipients.pop(),
                Err(_) => return,
            },
            Some(ticket) if !self.pending.contains(ticket) => return,
            Some(ticket) => self.recipients(&[ticket]).pop(),
        };
        let notification = ServerNotification { server: self.spec.name.clone(), message, topic };
        let (registry, known) = (&self.context.host_registry, &self.server_requests.known_hosts);
        let tell = |host: &dyn Caller| {
            if known.allow(host) {
                host.notified(None, &notification);
            }
        };
        match (recipient, &notification.topic) {
            (Some(Recipient { caller, call }), _) => caller.notified(call, &notification),
            (None, Topic::Unknown) => registry.only().into_iter().for_each(|host| tell(&*host)),
            (None, _) => registry.each_of_one_session(tell),
        }
    }

    /// Handles `notifications/resources/updated`.
    pub(super) fn resource_updated(&mut self, message: Bytes, params: Option<Span>) {
        let Some(params) = params else { return };
        let Some(uri) = Members::find(&message, &params, "uri") else { return };
        let topic = Topic::Updated { uri, params };
        let notification = ServerNotification { server: self.spec.name.clone(), message, topic };
        self.context.host_registry.each(|host| host.notified(None, &notification));
    }

    /// Forwards the status of a task. From a legacy server it goes only to the task's host, from a modern
    /// server to its subscribers.
    pub(super) fn task_status(&mut self, message: Bytes, params: Option<Span>) {
        let Some(params) = params else { return };
        let Some(task) = Task::read(&message, &params) else { return };
        let Some(id) = Members::find(&message, &params, "taskId") else { return };
        let host = self.tasks.status(&task, self.now);
        let era = self.opened.era.unwrap_or(Era::Legacy);
        let topic = Topic::Task { era, id, params };
        let notification = ServerNotification { server: self.spec.name.clone(), message, topic };
        match (era, host) {
            (Era::Modern, _) => self.context.host_registry.each(|host| host.notified(None, &notification)),
            (Era::Legacy, Some(host)) => host.notified(None, &notification),
            (Era::Legacy, None) => {}
        }
    }

    // --- subscriptions

    pub(super) fn subscribe(&mut self, target: &SubscriptionTarget) {
        match self.subscriptions.add(target) {
            Added::First => {}
            Added::Another => return,
            Added::TooMany => return tracing::warn!(server = %self.spec.name, "too many subscriptions"),
        }
        match self.lifecycle.wanted(self.now) {
            // Subscriptions often come in groups, and one request is enough for them.
            Admission::Ready if self.opened.era == Some(Era::Modern) => {
                self.subscriptions.listen_at(self.now);
            }
            Admission::Ready => self.send_about("resources/subscribe", target),
            Admission::Start => {
                self.queue.want(Priority::Called);
                self.start();
            }
            Admission::Wait => {
                self.queue.want(Priority::Called);
                self.hurry();
            }
            Admission::Refuse { .. } | Admission::AwaitLogin { .. } => {}
        }
    }

    /// Removes a subscriber; after the last one the server is notified.
    pub(super) fn unsubscribe(&mut self, target: &SubscriptionTarget) {
        if !self.subscriptions.remove(target) {
            return;
        }
        match self.opened.era {
            Some(Era::Modern) => self.subscriptions.listen_at(self.now),
            _ => self.send_about("resources/unsubscribe", target),
        }
    }

    pub(super) fn log_level_changed(&mut self) {
        let wanted = self.context.host_registry.log_level();
        if self.subscriptions.wants_level(wanted) {
            self.set_level(wanted);
        }
    }

    /// Repeats all subscriptions, because a server that has just been opened knows none.
    pub(super) fn subscribe_all(&mut self) {
        self.set_level(self.context.host_registry.log_level());
        if self.opened.era != Some(Era::Modern) {
            for target in self.subscriptions.targets() {
                self.send_about("resources/subscribe", &target);
            }
        }
    }

    /// Sends `subscriptions/listen` with all current subscriptions. True if it replaces an open one.
    pub(super) fn listen(&mut self) -> bool {
        let Some(link) = self.links.up_mut() else { return false };
        let ticket = self.context.tickets.next();
        let tasks = self.subscriptions.includes_tasks();
        let meta = request::modern_meta_for(ClientCapabilities::NONE, Extensions::default(), None, tasks);
        let wanted = self.subscriptions.notifications(self.opened.capabilities);
        let params = format!(r#"{{"_meta":{{{meta}}},"notifications":{wanted}}}"#);
        link.request(ticket, request::write(ticket, "subscriptions/listen", &params));
        let replaced = self.subscriptions.listening(ticket, self.now);
        let replaced = replaced.filter(|replaced| self.pending.complete(*replaced).is_some());
        if let Some(replaced) = replaced {
            link.cancel(replaced, request::cancellation(replaced, "replaced"));
        }
        self.pending.register_for_ever(ticket, Waiting::Subscription);
        replaced.is_some()
    }

    pub(super) fn listen_if_due(&mut self) {
        if self.subscriptions.due(self.now) {
            self.listen_again();
        }
    }

    /// Handles the answer to `subscriptions/listen`: the subscription has ended, or was refused.
    pub(super) fn subscription_ended(&mut self, head: &Head) {
        if matches!(head.kind, Kind::Result { .. }) && self.subscriptions.ended(self.now) {
            self.listen_again();
        }
    }

    /// Handles a broken subscription connection. A server that refuses it is not asked again.
    pub(super) fn subscription_lost(&mut self, error: &TransportError) {
        if !matches!(error, TransportError::Status { code: 400..=499, .. }) {
            self.subscriptions.lost(self.now);
        }
    }

    /// Subscribes again, and lists: the lists may have changed while there was no subscription.
    fn listen_again(&mut self) {
        if self.listen() {
            self.listing.schedule.put_off(self.now); // hardly likely: nothing has to wait for it
        } else {
            self.lists_changed();
        }
    }

    fn set_level(&mut self, level: Option<Level>) {
        self.subscriptions.set_level(level);
        // For a modern server each request names the level itself.
        let Some(level) = level.filter(|_| self.opened.capabilities.logging) else { return };
        if self.opened.era == Some(Era::Legacy) {
            self.send_own_request("logging/setLevel", &format!(r#"{{"level":"{}"}}"#, level.word()));
        }
    }

    /// Sends a request about one resource, as legacy servers need it.
    fn send_about(&mut self, method: &str, target: &SubscriptionTarget) {
        if let (SubscriptionTarget::Resource(uri), true) = (target, self.opened.capabilities.subscribe) {
            self.send_own_request(method, &format!(r#"{{"uri":{}}}"#, String::from_utf8_lossy(uri)));
        }
    }

    /// Sends a request whose response is ignored.
    fn send_own_request(&mut self, method: &str, params: &str) {
        let Some(link) = self.links.up_mut() else { return };
        let ticket = self.context.tickets.next();
        link.request(ticket, request::write(ticket, method, params));
        let patience = self.spec.timeouts.start;
        self.pending.register(ticket, Waiting::Nobody, self.now, patience, patience);
    }
}
