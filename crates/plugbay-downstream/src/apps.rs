//! MCP Apps as a host uses them: whose pages it may show, and URIs of pages and resources in answers.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use plugbay_core::{
    apps::{is_page, page_links},
    name::ServerName,
    surface::{Place, Resources, Snapshot},
    wire::{Head, Kind, Members, Span, elements, string_value},
};
use smallvec::SmallVec;

use crate::{context::RequestContext, destination::Route, message::Request, refusal::Refusal};

/// The servers whose pages a host may show: it has read one, or has called a tool that has one. A host never tells which
/// page a call comes from, nor when it has closed one.
#[derive(Debug, Default)]
pub(crate) struct OpenApps(Mutex<BTreeSet<ServerName>>);

impl OpenApps {
    pub(crate) fn servers(&self) -> BTreeSet<ServerName> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The place of the only server among them. To guess would be to let one server's page appear in place of another's.
    pub(crate) fn only_of(&self, places: SmallVec<[Place; 1]>) -> Option<Place> {
        let open = self.servers();
        let mut places = places.into_iter().filter(|place| open.contains(&place.server));
        places.next().filter(|_| places.next().is_none())
    }

    fn add(&self, server: &ServerName) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !open.contains(server) {
            open.insert(server.clone());
        }
    }
}

/// Notes that the host may show a page after this request.
pub(crate) fn note(context: RequestContext<'_>, route: &Route, snapshot: &Snapshot) {
    let host_view = context.session.host_view();
    let subject = || route.subject.as_ref().and_then(|(_, own)| string_value(own));
    let opens = match context.request.method() {
        b"resources/read" => subject().is_some_and(|uri| is_page(&uri)),
        b"tools/call" if snapshot.resources.has_pages(&route.server) => {
            let offer = snapshot.catalog.get(&route.server).map(|entry| &entry.offer);
            let tool = subject().and_then(|name| offer?.tool(&name));
            tool.and_then(|tool| tool.ui.as_ref()).is_some_and(|ui| !ui.pages.is_empty())
        }
        _ => false,
    };
    if opens && host_view.is_persistent() {
        host_view.open_apps.add(&route.server);
    }
}

/// Why a page that several servers have is not read, with the URIs by which each of them is.
pub(crate) fn several_pages(uri: &str, places: &[Place], snapshot: &Snapshot) -> Refusal {
    let shown = places.iter().filter_map(|place| snapshot.resources.moved_page(&place.server, uri));
    let shown = shown.collect::<Vec<_>>().join(", ");
    Refusal::InvalidParams(format!("Several servers have a page {uri}: read one of {shown}"))
}

/// URIs in an answer that its host knows by others.
#[derive(Debug, Clone)]
pub(crate) enum AnswerUris {
    /// The pages in the `_meta` of a tool's result.
    Pages(ServerName, Arc<Resources>),
    /// The contents of a resource that the host has asked for by another URI than its server's; both are JSON strings.
    Read { own: Bytes, asked: Bytes },
}

impl AnswerUris {
    /// `None` for an answer that passes as it is.
    pub(crate) fn of(request: &Request, route: &Route, snapshot: &Snapshot) -> Option<Self> {
        match request.method() {
            b"tools/call" if snapshot.resources.has_pages(&route.server) => {
                Some(Self::Pages(route.server.clone(), Arc::clone(&snapshot.resources)))
            }
            b"resources/read" => {
                let (span, own) = route.subject.as_ref()?;
                let asked = request.message.slice(span.clone());
                let differs = string_value(&asked) != string_value(own);
                differs.then(|| Self::Read { own: own.clone(), asked })
            }
            _ => None,
        }
    }

    /// What is replaced in an answer.
    pub(crate) fn edits(&self, message: &[u8], head: &Head) -> Vec<(Span, Bytes)> {
        let (Kind::Result { .. }, Some(result)) = (&head.kind, &head.payload) else { return Vec::new() };
        match self {
            Self::Pages(server, resources) => {
                let meta = Members::find(message, result, "_meta");
                let links = meta.map(|meta| page_links(message, &meta)).unwrap_or_default();
                let moved = |uri: &str| resources.moved_page(server, uri);
                let quoted = |uri: String| Bytes::from(serde_json::Value::from(uri).to_string());
                links.into_iter().filter_map(|link| Some((link.span, quoted(moved(&link.uri)?)))).collect()
            }
            Self::Read { own, asked } => {
                let contents = Members::find(message, result, "contents");
                let contents = contents.map(|list| elements(message, &list)).unwrap_or_default();
                let uris = contents.iter().filter_map(|content| Members::find(message, content, "uri"));
                let is_own = |uri: &Span| string_value(&message[uri.clone()]) == string_value(own);
                uris.filter(is_own).map(|uri| (uri, asked.clone())).collect()
            }
        }
    }
}
