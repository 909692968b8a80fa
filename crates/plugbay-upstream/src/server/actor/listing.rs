//! The lists of a server: requested, requested again when they change, and reported.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    catalog::{ItemKind, Offer},
    declaration::Declaration,
    era::Era,
    exchange::Ticket,
    wire::{Head, Kind},
};

use super::{
    super::{
        message::ListTerms,
        opening::Opened,
        request,
        state::listing::{Listed, Listing, ReadRules, Step},
    },
    Actor, Waiting,
};
use crate::process::text::error_text;

/// Timeout for a page of skills. The tools must not wait for them.
const SKILLS_PATIENCE: Duration = Duration::from_secs(5);
/// A page with more bytes than this is read in another thread: it may have a tool in every 30 bytes, and each
/// takes a microsecond.
const LONG: usize = 128 << 10;

/// A page that was read, or the reason why there is none.
pub(super) enum PageRead {
    Step(Step),
    /// The server answered with this error.
    Refused(Listing, String),
}

impl PageRead {
    /// Reads a page; `None` if the message has no content.
    fn of(listing: Listing, message: &Bytes, head: &Head) -> Option<Self> {
        let payload = head.payload.as_ref()?;
        Some(match head.kind {
            Kind::Result { .. } => Self::Step(listing.page(message, payload)),
            _ => Self::Refused(listing, error_text(message, payload)),
        })
    }
}

/// How many definitions with hidden characters the log names.
const MOST_TOLD: usize = 20;

impl Actor {
    pub(super) fn list(&mut self) {
        let Some(link) = self.links.up() else { return };
        let rules = ReadRules { sanitize: self.spec.sanitize, mirror: link.mirrors_arguments() };
        if self.is_listing() {
            return self.listing.schedule.repeat();
        }
        self.listing.terms = ListTerms { told: self.told(), untouched: !self.listing.is_touched };
        self.listing.change_listed = self.listing.change_noted.take();
        self.continue_listing(Listing::begin(self.opened.capabilities, rules));
    }

    /// The declaration that the lists are for. A legacy server gets it at its opening, a modern one in each
    /// request.
    fn told(&self) -> Declaration {
        match self.opened.era {
            Some(Era::Modern) => self.context.host_registry.declaration(),
            _ => Declaration::new(self.opened.declared, self.opened.declared_extensions.clone()),
        }
    }

    /// Lists again if hosts have more capabilities than a modern server was told at its last listing.
    pub(super) fn list_for_more(&mut self) {
        let Declaration { capabilities, extensions } = &self.listing.terms.told;
        let is_open = self.opened.era == Some(Era::Modern) && self.listing.schedule.has_listed();
        if is_open && !self.context.host_registry.is_told(*capabilities, extensions) {
            self.list();
        }
    }

    /// Lists at once, unless there were many changes recently.
    pub(super) fn lists_changed(&mut self) {
        if self.is_listing() {
            self.listing.schedule.repeat();
        } else if self.listing.schedule.changed(self.now) {
            self.list();
        } else {
            self.listing.change_noted = None; // the answers of calls do not wait for a listing that was put off
        }
    }

    /// Handles `notifications/tools/list_changed` and the like. Answers of calls in flight wait until hosts
    /// know the new lists. `during` is the call on whose stream it came.
    pub(super) fn list_change_notified(&mut self, during: Option<Ticket>) {
        let concerns = |ticket: Ticket| during.is_none_or(|during| during == ticket);
        for (ticket, waiting) in self.pending.entries().filter(|(ticket, _)| concerns(*ticket)) {
            if let Waiting::Host(caller) = waiting {
                caller.lists_changing(ticket, self.listing.change_noted.get_or_insert_default());
            }
        }
        self.lists_changed();
    }

    fn continue_listing(&mut self, step: Step) {
        match step {
            Step::Request(listing) => self.request_page(listing),
            Step::Complete(listed) => self.listed(*listed),
        }
    }

    fn request_page(&mut self, listing: Listing) {
        let Some(link) = self.links.up_mut() else { return };
        let ticket = self.context.tickets.next();
        let meta = (self.opened.era == Some(Era::Modern)).then(|| {
            let Declaration { capabilities, extensions } = self.listing.terms.told.clone();
            request::modern_meta_for(capabilities, extensions, None, false)
        });
        link.request(ticket, request::write(ticket, listing.method(), &listing.params(meta.as_deref())));
        // The first listing belongs to the start, which is watched.
        let patience = match listing.item_kind() {
            Some(ItemKind::Skill) => SKILLS_PATIENCE.min(self.spec.timeouts.start),
            _ if self.links.watch.is_some() => Duration::MAX,
            _ => self.spec.timeouts.start,
        };
        self.pending.register(ticket, Waiting::Listing(listing), self.now, patience, patience);
    }

    pub(super) fn page_received(&mut self, ticket: Ticket, listing: Listing, message: Bytes, head: Head) {
        if let Some(watch) = &mut self.links.watch {
            watch.progressed();
        }
        if listing.bytes() + message.len() <= LONG {
            return self.take_page(PageRead::of(listing, &message, &head));
        }
        // If the server is gone when the page has been read, nobody waits for it.
        self.pending.register_for_ever(ticket, Waiting::Page);
        self.listing.reading.spawn_blocking(move || (ticket, PageRead::of(listing, &message, &head)));
    }

    pub(super) fn page_read(&mut self, ticket: Ticket, page: Option<PageRead>) {
        if matches!(self.pending.get(ticket), Some(Waiting::Page)) {
            self.pending.complete(ticket);
            self.take_page(page);
        }
    }

    /// Handles a panic in the thread that read a page. Only one page is read at a time.
    pub(super) fn page_lost(&mut self) {
        let is_page = |(ticket, waiting)| matches!(waiting, &Waiting::Page).then_some(ticket);
        let lost = self.pending.entries().find_map(is_page);
        if let Some(ticket) = lost {
            self.pending.complete(ticket);
            self.list_failed("sent a list that plugbay failed to read".to_owned());
        }
    }

    fn take_page(&mut self, page: Option<PageRead>) {
        match page {
            Some(PageRead::Step(step)) => self.continue_listing(step),
            Some(PageRead::Refused(listing, why)) if listing.item_kind() != Some(ItemKind::Tool) => {
                let why = self.spec.secrets().hide(why);
                tracing::warn!(server = %self.spec.name, method = listing.method(), "refused: {why}");
                self.continue_listing(listing.next_item_kind());
            }
            Some(PageRead::Refused(_, why)) => self.list_failed(format!("refused to list its tools: {why}")),
            None => self.list_failed("answered with nothing when it was asked for its lists".to_owned()),
        }
    }

    /// Handles a page that has not come. A server that does not list its skills is still usable.
    pub(super) fn page_failed(&mut self, listing: Listing, what: String) {
        if listing.item_kind() != Some(ItemKind::Skill) {
            return self.list_failed(what);
        }
        tracing::warn!(server = %self.spec.name, "it has not listed its skills");
        self.continue_listing(listing.next_item_kind());
    }

    /// Handles a failed listing. A server that has listed before keeps its tools; any other is unusable.
    pub(super) fn list_failed(&mut self, what: String) {
        self.listing.change_listed = None;
        if self.listing.schedule.has_listed() {
            let what = self.spec.secrets().hide(what);
            tracing::warn!(server = %self.spec.name, "its tools stay as they were: it {what}");
        } else {
            self.give_up(what);
        }
    }

    fn listed(&mut self, listed: Listed) {
        let Some(link) = self.links.up_mut() else { return };
        let Listed { tools, items, hidden, mirrors, left_out, .. } = listed;
        link.set_mirrors(mirrors);
        if let Some(left_out) = &left_out {
            tracing::warn!(server = %self.spec.name, "its lists are too large: plugbay leaves out {left_out}");
        }
        let changed_meanwhile = self.listing.schedule.completed();
        self.login.served();
        self.links.start_ended();
        self.links.trim_later(self.now);
        let Opened { info, instructions, capabilities, extensions, .. } = &self.opened;
        let offer = Offer::new(self.speech.dialect, info.clone(), instructions.clone(), Vec::new())
            .with_tools(tools)
            .with_items(*capabilities, items)
            .without(left_out)
            .extended(extensions.clone());
        let offer = if self.spec.sanitize { offer.with_cleaned_definitions(hidden) } else { offer };
        self.report_hidden(&offer);
        let change = self.listing.change_listed.take();
        let (outcome, dialect) = (Ok(Arc::new(offer)), self.speech.dialect);
        self.context.observers.report(&outcome, dialect, &self.listing.terms, change.as_ref());
        drop(change);
        self.queue.started(&Ok(()));
        self.send_waiting();
        if changed_meanwhile {
            self.lists_changed();
        }
    }

    fn report_hidden(&mut self, offer: &Offer) {
        let told = std::mem::replace(&mut self.listing.hidden, offer.hidden.clone());
        let Some(hidden) = offer.hidden.as_ref().filter(|_| told != offer.hidden) else { return };
        for place in hidden.places.iter().take(MOST_TOLD) {
            tracing::warn!(server = %self.spec.name, "hidden characters in a definition: {place}");
        }
        let more = hidden.more + hidden.places.len().saturating_sub(MOST_TOLD);
        if more > 0 {
            tracing::warn!(server = %self.spec.name, "hidden characters in {more} more definitions");
        }
    }

    fn is_listing(&self) -> bool {
        self.pending.iter().any(|waiting| matches!(waiting, Waiting::Listing(_) | Waiting::Page))
    }
}
