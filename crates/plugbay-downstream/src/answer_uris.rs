//! URIs of pages and resources in answers.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    apps::page_links,
    name::ServerName,
    surface::{Resources, Snapshot},
    wire::{Head, Kind, Members, Span, elements, string_value},
};

use crate::{destination::Route, message::Request};

/// URIs in an answer that must be replaced, because the host knows them by other URIs.
#[derive(Debug, Clone)]
pub(crate) enum AnswerUris {
    /// The pages in the `_meta` of a tool's result.
    Pages(ServerName, Arc<Resources>),
    /// The contents of a resource whose server has another URI for it than the host; both are JSON strings.
    Read { own: Bytes, asked: Bytes },
}

impl AnswerUris {
    /// The URIs to replace; `None` if the answer passes unchanged.
    pub(crate) fn of(request: &Request, route: &Route, snapshot: &Snapshot) -> Option<Self> {
        match request.method() {
            // Any server may name a page in a result. If there are no pages at all, nothing is searched.
            b"tools/call" if snapshot.resources.has_any_pages() => {
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

    /// The replacements in an answer.
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
