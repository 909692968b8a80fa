//! The notifications that a server is asked for: of changed lists, resources and tasks, and its log.
//!
//! A legacy server gets one request for each resource. A modern server gets one `subscriptions/listen` that
//! names everything; a change replaces it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use plugbay_core::{
    catalog::ServerCapabilities,
    exchange::{SubscriptionTarget, Ticket},
    level::Level,
};

/// Limit of resources and tasks of one server that can be subscribed to.
const TARGET_LIMIT: usize = 1024;
/// A subscription that the server ends is renewed at once only if it lived at least this long.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// The pause before a subscription is opened again after it was lost, or ended too soon.
const RENEW_PAUSE: Duration = Duration::from_secs(5);

/// The subscriptions to one server.
#[derive(Debug, Default)]
pub(in crate::server) struct Subscriptions {
    /// Subscribed resources and tasks, with the number of their subscribers.
    targets: BTreeMap<SubscriptionTarget, usize>,
    /// The log level that the server was last given.
    log_level: Option<Level>,
    /// The `subscriptions/listen` request that is open.
    listen: Option<Ticket>,
    listen_at: Option<Instant>,
    last_listen: Option<Instant>,
}

/// The result of [`Subscriptions::add`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum Added {
    /// The first subscriber: the server must be asked.
    First,
    /// Another subscriber: the server has already been asked.
    Another,
    TooMany,
}

impl Subscriptions {
    pub(in crate::server) fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    pub(in crate::server) fn add(&mut self, target: &SubscriptionTarget) -> Added {
        if let Some(count) = self.targets.get_mut(target) {
            *count += 1;
            return Added::Another;
        }
        if self.targets.len() >= TARGET_LIMIT {
            return Added::TooMany;
        }
        self.targets.insert(target.clone(), 1);
        Added::First
    }

    /// Removes a subscriber. True if it was the last one.
    pub(in crate::server) fn remove(&mut self, target: &SubscriptionTarget) -> bool {
        let Some(count) = self.targets.get_mut(target) else { return false };
        *count -= 1;
        *count == 0 && self.targets.remove(target).is_some()
    }

    pub(in crate::server) fn targets(&self) -> Vec<SubscriptionTarget> {
        self.targets.keys().cloned().collect()
    }

    /// Whether `subscriptions/listen` names tasks.
    pub(in crate::server) fn includes_tasks(&self) -> bool {
        self.targets.keys().any(|target| matches!(target, SubscriptionTarget::Task(_)))
    }

    /// The raw `notifications` parameter of `subscriptions/listen`.
    pub(in crate::server) fn notifications(&self, capabilities: ServerCapabilities) -> String {
        let mut wanted: Vec<String> = [
            (capabilities.tools, r#""toolsListChanged":true"#),
            (capabilities.resources, r#""resourcesListChanged":true"#),
            (capabilities.prompts, r#""promptsListChanged":true"#),
        ]
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, wanted)| wanted.to_owned())
        .collect();
        let (mut uris, mut tasks) = (Vec::new(), Vec::new());
        for target in self.targets.keys() {
            match target {
                SubscriptionTarget::Resource(uri) => uris.push(String::from_utf8_lossy(uri)),
                SubscriptionTarget::Task(id) => tasks.push(String::from_utf8_lossy(id)),
            }
        }
        for (key, names) in [("resourceSubscriptions", uris), ("taskIds", tasks)] {
            if !names.is_empty() {
                wanted.push(format!(r#""{key}":[{}]"#, names.join(",")));
            }
        }
        format!("{{{}}}", wanted.join(","))
    }

    /// Resets the state for a new server, for which nothing is due yet.
    pub(in crate::server) fn restarted(&mut self) {
        self.listen_at = None;
    }

    /// Sets the time when `subscriptions/listen` is to be sent.
    pub(in crate::server) fn listen_at(&mut self, at: Instant) {
        self.listen_at = Some(at);
    }

    /// Whether `subscriptions/listen` is due; true only once.
    pub(in crate::server) fn due(&mut self, now: Instant) -> bool {
        self.listen_at.take_if(|at| *at <= now).is_some()
    }

    pub(in crate::server) fn next_deadline(&self) -> Option<Instant> {
        self.listen_at
    }

    /// Notes that `subscriptions/listen` was sent; returns the request that it replaces.
    pub(in crate::server) fn listening(&mut self, ticket: Ticket, now: Instant) -> Option<Ticket> {
        self.last_listen = Some(now);
        self.listen.replace(ticket)
    }

    /// Notes that the server has ended the subscription regularly. True: renew it now.
    pub(in crate::server) fn ended(&mut self, now: Instant) -> bool {
        let renew = self.last_listen.is_none_or(|last| now >= last + SHORT_LIFE);
        if !renew {
            self.lost(now);
        }
        renew
    }

    /// Notes that the subscription's connection broke, as proxies do with quiet ones.
    pub(in crate::server) fn lost(&mut self, now: Instant) {
        self.listen_at = Some(now + RENEW_PAUSE);
    }

    /// Whether the server must be given this new log level of the hosts. When no host wants a level any more,
    /// the server keeps the last one.
    pub(in crate::server) fn wants_level(&self, wanted: Option<Level>) -> bool {
        wanted.is_some() && wanted != self.log_level
    }

    pub(in crate::server) fn set_level(&mut self, level: Option<Level>) {
        self.log_level = level;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn resource(uri: &str) -> SubscriptionTarget {
        SubscriptionTarget::Resource(Bytes::from(format!("\"{uri}\"")))
    }

    #[test]
    fn a_resource_subscription_lasts_until_its_last_subscriber_leaves() {
        let mut subscriptions = Subscriptions::default();
        let target = resource("file:///a");
        assert_eq!(subscriptions.add(&target), Added::First);
        assert_eq!(subscriptions.add(&target), Added::Another);
        assert!(!subscriptions.remove(&target) && !subscriptions.is_empty());
        assert!(subscriptions.remove(&target) && subscriptions.is_empty());
        assert!(!subscriptions.remove(&target), "nobody subscribes to it");
    }

    #[test]
    fn resource_subscriptions_are_limited() {
        let mut subscriptions = Subscriptions::default();
        for number in 0..TARGET_LIMIT {
            assert_eq!(subscriptions.add(&resource(&number.to_string())), Added::First);
        }
        assert_eq!(subscriptions.add(&resource("one more")), Added::TooMany);
        assert_eq!(subscriptions.add(&resource("0")), Added::Another);
        assert_eq!(subscriptions.targets().len(), TARGET_LIMIT);
    }

    #[test]
    fn subscriptions_listen_names_lists_resources_and_tasks() {
        let mut subscriptions = Subscriptions::default();
        let capabilities = ServerCapabilities { tools: true, prompts: true, ..ServerCapabilities::default() };
        assert_eq!(
            subscriptions.notifications(capabilities),
            r#"{"toolsListChanged":true,"promptsListChanged":true}"#
        );
        assert!(!subscriptions.includes_tasks());
        for target in [resource("b"), resource("a"), SubscriptionTarget::Task(Bytes::from_static(b"\"t\""))] {
            subscriptions.add(&target);
        }
        assert!(subscriptions.includes_tasks());
        assert_eq!(
            subscriptions.notifications(ServerCapabilities::default()),
            r#"{"resourceSubscriptions":["a","b"],"taskIds":["t"]}"#
        );
    }

    #[test]
    fn a_subscription_that_ends_at_once_is_renewed_after_a_pause() {
        let start = Instant::now();
        let mut subscriptions = Subscriptions::default();
        assert_eq!(subscriptions.listening(Ticket(1), start), None);
        assert!(subscriptions.ended(start + SHORT_LIFE), "it lived long enough");
        assert_eq!(subscriptions.listening(Ticket(2), start), Some(Ticket(1)));
        assert!(!subscriptions.ended(start));
        assert_eq!(subscriptions.next_deadline(), Some(start + RENEW_PAUSE));
        assert!(!subscriptions.due(start) && subscriptions.due(start + RENEW_PAUSE));
        assert!(!subscriptions.due(start + RENEW_PAUSE), "once");
    }
}
