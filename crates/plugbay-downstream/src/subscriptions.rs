//! A subscription to one resource or task, with the names that the host and the server use.

use std::borrow::Cow;

use bytes::Bytes;
use plugbay_core::{exchange::SubscriptionTarget, name::ServerName, surface::Place, wire::string_value};

/// A host's subscription to one resource or task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItemSubscription {
    pub(crate) server: ServerName,
    /// The URI or task id at the server.
    pub(crate) target: SubscriptionTarget,
    /// The URI or task id that the host uses, as a JSON string.
    pub(crate) shown: Bytes,
    /// The raw id of the `subscriptions/listen` request; `None` for a legacy host.
    pub(crate) subscription: Option<Bytes>,
}

impl ItemSubscription {
    /// Copies the names: slices would keep the whole request.
    pub(crate) fn new(place: Place, shown: &[u8], subscription: Option<&[u8]>) -> Self {
        Self::of(place.server, SubscriptionTarget::Resource(place.quoted), shown, subscription)
    }

    pub(crate) fn task(
        server: ServerName,
        target: SubscriptionTarget,
        shown: &[u8],
        subscription: &[u8],
    ) -> Self {
        Self::of(server, target, shown, Some(subscription))
    }

    fn of(server: ServerName, target: SubscriptionTarget, shown: &[u8], subscription: Option<&[u8]>) -> Self {
        let copied = Bytes::copy_from_slice;
        Self { server, target, shown: copied(shown), subscription: subscription.map(copied) }
    }

    pub(crate) fn is_task(&self) -> bool {
        matches!(self.target, SubscriptionTarget::Task(_))
    }

    /// The host's name for an updated item of a server, if it is this item or a part of it.
    pub(crate) fn shown_as(&self, server: &ServerName, name: &str, task: bool) -> Option<Cow<'_, [u8]>> {
        let rest = match &self.target {
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

/// The rest of a URI after that of the resource that contains it: servers may notify of either.
fn rest_of<'a>(uri: &'a str, whole: &str) -> Option<&'a str> {
    let rest = uri.strip_prefix(whole)?;
    let within = rest.is_empty() || whole.ends_with('/') || rest.starts_with(['/', '?', '#']);
    within.then_some(rest)
}
