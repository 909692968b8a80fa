//! The lists of a server: requested, requested again when they change, and reported.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    catalog::{ITEM_LIMIT, ItemKind, Items, Offer, Tool},
    era::Era,
    wire::{Head, Kind},
};

use super::{
    super::{
        opening::Opened,
        request,
        state::listing::{Listing, Step},
    },
    Actor, Waiting,
};
use crate::process::text::error_text;

/// How long a server may take for a page of its skills. Its tools must not wait for them.
const SKILLS_PATIENCE: Duration = Duration::from_secs(5);

impl Actor {
    pub(super) fn list(&mut self) {
        if self.links.up().is_none() {
            return;
        }
        if self.is_listing() {
            return self.lists.repeat();
        }
        self.continue_listing(Listing::begin(self.opened.capabilities));
    }

    /// Lists at once, unless the last listing is very recent.
    pub(super) fn lists_changed(&mut self) {
        if self.lists.changed(self.now) {
            self.list();
        }
    }

    fn continue_listing(&mut self, step: Step) {
        match step {
            Step::Request(listing) => self.request_page(listing),
            Step::Complete(tools, stock) => self.listed(tools, stock),
        }
    }

    fn request_page(&mut self, listing: Listing) {
        let Some(link) = self.links.up_mut() else { return };
        let ticket = self.context.tickets.next();
        let meta = (self.opened.era == Some(Era::Modern)).then(request::modern_meta);
        link.request(ticket, request::write(ticket, listing.method(), &listing.params(meta.as_deref())));
        // The first listing is a part of the start, which is watched.
        let patience = match listing.item_kind() {
            Some(ItemKind::Skill) => SKILLS_PATIENCE.min(self.spec.timeouts.start),
            _ if self.links.watch.is_some() => Duration::MAX,
            _ => self.spec.timeouts.start,
        };
        self.pending.register(ticket, Waiting::Listing(listing), self.now, patience, patience);
    }

    pub(super) fn page_received(&mut self, listing: Listing, message: &Bytes, head: &Head) {
        if let Some(watch) = &mut self.links.watch {
            watch.progressed();
        }
        let whole = Head::read(message).map_err(|malformed| malformed.fault.to_string());
        match (&head.kind, &head.payload, whole) {
            (Kind::Result { .. }, Some(result), Ok(_)) => {
                self.continue_listing(listing.page(message, result));
            }
            (_, Some(error), Ok(_)) if listing.item_kind() != Some(ItemKind::Tool) => {
                let (method, why) = (listing.method(), error_text(message, error));
                tracing::warn!(server = %self.spec.name, method, "refused: {why}");
                self.continue_listing(listing.next_item_kind());
            }
            (_, Some(error), Ok(_)) => {
                self.list_failed(format!("refused to list its tools: {}", error_text(message, error)));
            }
            (_, _, Err(fault)) => {
                self.page_failed(listing, format!("its list of tools is unusable: {fault}"));
            }
            _ => {}
        }
    }

    /// A page has not come. A server that does not list its skills is still of use.
    pub(super) fn page_failed(&mut self, listing: Listing, what: String) {
        if listing.item_kind() != Some(ItemKind::Skill) {
            return self.list_failed(what);
        }
        tracing::warn!(server = %self.spec.name, "it has not listed its skills");
        self.continue_listing(listing.next_item_kind());
    }

    /// A server that has listed its tools before keeps them; any other is of no use.
    pub(super) fn list_failed(&mut self, what: String) {
        if self.lists.has_listed() {
            tracing::warn!(server = %self.spec.name, "its tools stay as they were: it {what}");
        } else {
            self.give_up(what);
        }
    }

    fn listed(&mut self, tools: Vec<Tool>, stock: Items) {
        let Some(link) = self.links.up_mut() else { return };
        let tools = link.callable(tools);
        if tools.len() >= ITEM_LIMIT {
            tracing::warn!(server = %self.spec.name, "plugbay uses only the first {ITEM_LIMIT} of its tools");
        }
        let changed_meanwhile = self.lists.completed(self.now);
        self.login.served();
        self.links.start_ended();
        self.links.trim_later(self.now);
        let Opened { info, instructions, capabilities, extensions, .. } = &self.opened;
        let offer = Offer::new(self.speech.dialect, info.clone(), instructions.clone(), tools)
            .with_items(*capabilities, stock)
            .extended(extensions.clone());
        self.report(&Ok(Arc::new(offer)));
        self.queue.started(&Ok(()));
        self.send_waiting();
        if changed_meanwhile {
            self.lists_changed();
        }
    }

    fn is_listing(&self) -> bool {
        self.pending.iter().any(|waiting| matches!(waiting, Waiting::Listing(_)))
    }
}
