//! MCP Apps as a host uses them: requests that open a page, and pages that several servers have.

use plugbay_core::{
    apps::is_page,
    surface::{Place, Snapshot},
    wire::string_value,
};

use crate::{context::RequestContext, destination::Route, refusal::Refusal};

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

/// The refusal to read a page that several servers have, with the URI for each of them.
pub(crate) fn several_pages(uri: &str, places: &[Place], snapshot: &Snapshot) -> Refusal {
    let shown = places.iter().filter_map(|place| snapshot.resources.moved_page(&place.server, uri));
    let shown = shown.collect::<Vec<_>>().join(", ");
    Refusal::InvalidParams(format!("Several servers have a page {uri}: read one of {shown}"))
}
