//! What a server offers: asked for, asked for again when it changes, and reported.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    catalog::{Dialect, ItemKind, Items, Offer, Tool},
    era::Era,
    exchange::SubscriptionTarget,
    extension::Extensions,
    wire::{Head, Kind},
};

use super::{
    super::listing::{Listing, Step},
    Actor, LIST_PAUSE, Phase, REST, RESUBSCRIBE, Waiting, cancellation,
    opening::{self, Opened},
    start::Habits,
};
use crate::http::Trouble;

impl Actor {
    pub(super) fn list(&mut self) {
        if !matches!(self.phase, Phase::Up(_)) {
            return;
        }
        if self.listing() {
            self.list_again = true;
            return;
        }
        self.list_on(Listing::begin(self.opened.features));
    }

    fn list_on(&mut self, step: Step) {
        match step {
            Step::Ask(listing) => self.ask_for_page(listing),
            Step::Complete(tools, stock) => self.report(tools, stock),
        }
    }

    /// At once, unless the last list is so fresh that this could go on for ever.
    pub(super) fn list_soon(&mut self) {
        match self.last_list.map(|last| last + LIST_PAUSE).filter(|next| self.now < *next) {
            Some(next) => self.list_at = Some(next),
            None => self.list(),
        }
    }

    fn ask_for_page(&mut self, listing: Listing) {
        let Phase::Up(link) = &mut self.phase else { return };
        let ticket = self.around.tickets.next();
        let modern = self.opened.era == Some(Era::Modern);
        let fields = if modern { opening::modern_fields() } else { String::new() };
        link.request(ticket, listing.request(ticket.0, &fields));
        let patience = self.spec.timeouts.start;
        self.pending.register(ticket, Waiting::Listing(listing), self.now, patience, patience);
    }

    pub(super) fn list_page(&mut self, listing: Listing, message: &Bytes, head: &Head) {
        let whole = Head::read(message).map_err(|malformed| malformed.fault.to_string());
        match (&head.kind, &head.payload, whole) {
            (Kind::Result { .. }, Some(result), Ok(_)) => self.list_on(listing.page(message, result)),
            (_, Some(error), Ok(_)) if listing.item_kind() != Some(ItemKind::Tool) => {
                let (what, why) =
                    (listing.item_kind().map(ItemKind::list_method), opening::error_text(message, error));
                tracing::warn!(server = %self.spec.name, method = what, "refused: {why}");
                self.list_on(listing.next_ware());
            }
            (_, Some(error), Ok(_)) => {
                let what = format!("refused to list its tools: {}", opening::error_text(message, error));
                self.list_failed(what);
            }
            (_, _, Err(fault)) => self.list_failed(format!("its list of tools is unusable: {fault}")),
            _ => {}
        }
    }

    /// A server that has shown its tools once may still be good for them.
    pub(super) fn list_failed(&mut self, what: String) {
        if self.listed {
            tracing::warn!(server = %self.spec.name, "its tools stay as they were: it {what}");
        } else {
            self.give_up(what);
        }
    }

    fn report(&mut self, tools: Vec<Tool>, stock: Items) {
        let Phase::Up(link) = &mut self.phase else { return };
        let tools = link.usable(tools);
        self.listed = true;
        self.last_list = Some(self.now);
        self.rest_at = Some(self.now + REST);
        let Opened { era, info, instructions, features, extensions, .. } = &self.opened;
        let Habits { framing, sse, asked_in_vain } = self.habits;
        let dialect = Dialect { era: era.unwrap_or(Era::Legacy), framing, sse, asked_in_vain };
        let offer =
            Offer::new(dialect, info.clone(), instructions.clone(), tools).with_items(*features, stock);
        self.tell(Ok(Arc::new(offer.extended(extensions.clone()))));
        for warmed in self.warmed.drain(..) {
            warmed.tell(Ok(()));
        }
        if std::mem::take(&mut self.list_again) {
            self.list_soon();
        }
    }

    pub(super) fn subscribe(&mut self) {
        let Phase::Up(link) = &mut self.phase else { return };
        let ticket = self.around.tickets.next();
        let mut wanted: Vec<String> = [
            (self.opened.features.tools, r#""toolsListChanged":true"#),
            (self.opened.features.resources, r#""resourcesListChanged":true"#),
            (self.opened.features.prompts, r#""promptsListChanged":true"#),
        ]
        .into_iter()
        .filter(|(has, _)| *has)
        .map(|(_, wanted)| wanted.to_owned())
        .collect();
        let (mut uris, mut tasks) = (Vec::new(), Vec::new());
        for what in self.watched.keys() {
            match what {
                SubscriptionTarget::Resource(uri) => uris.push(String::from_utf8_lossy(uri)),
                SubscriptionTarget::Task(id) => tasks.push(String::from_utf8_lossy(id)),
            }
        }
        if !uris.is_empty() {
            wanted.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        if !tasks.is_empty() {
            wanted.push(format!(r#""taskIds":[{}]"#, tasks.join(",")));
        }
        let fields = opening::modern_fields_with(
            ClientCapabilities::NONE,
            Extensions::default(),
            None,
            !tasks.is_empty(),
        );
        let wanted = wanted.join(",");
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"subscriptions/listen","params":{{"_meta":{{{fields}}},"notifications":{{{wanted}}}}}}}"#,
            ticket.0
        );
        link.request(ticket, Bytes::from(request));
        // One that asks for less has served its time.
        if let Some(old) = self.subscription.replace(ticket)
            && self.pending.complete(old).is_some()
        {
            link.cancel(old, cancellation(old, "replaced"));
        }
        self.pending.register_for_ever(ticket, Waiting::Subscription);
        self.last_subscription = Some(self.now);
    }

    pub(super) fn listing(&self) -> bool {
        self.pending.iter().any(|waiting| matches!(waiting, Waiting::Listing(_)))
    }

    /// The server closed it in good order: it is opened again, and what changed meanwhile is listed.
    pub(super) fn subscription_ended(&mut self, head: &Head) {
        let calm = self.last_subscription.is_none_or(|last| self.now >= last + LIST_PAUSE);
        match head.kind {
            Kind::Result { .. } if calm => self.subscribe_again(),
            Kind::Result { .. } => self.subscribe_at = Some(self.now + RESUBSCRIBE),
            _ => {} // it has no such thing
        }
    }

    /// The way to the server was cut, as proxies do with quiet connections.
    pub(super) fn subscription_lost(&mut self, trouble: &Trouble) {
        if !matches!(trouble, Trouble::Status { code: 400..=499, .. }) {
            self.subscribe_at = Some(self.now + RESUBSCRIBE);
        }
    }

    pub(super) fn subscribe_if_due(&mut self) {
        if self.subscribe_at.take_if(|at| *at <= self.now).is_some() {
            self.subscribe_again();
        }
    }

    fn subscribe_again(&mut self) {
        self.subscribe();
        self.list_soon();
    }
}
