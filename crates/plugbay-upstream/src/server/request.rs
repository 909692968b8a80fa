//! Requests that plugbay itself sends to a server, and the `_meta` that modern servers need.

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities, era, exchange::Ticket, extension::Extensions, level::Level,
    wire::write as wire_write,
};
use serde_json::json;

/// A request under this ticket; `params` is raw JSON.
pub(super) fn write(ticket: Ticket, method: &str, params: &str) -> Bytes {
    let mut digits = itoa::Buffer::new();
    wire_write::request(digits.format(ticket.0).as_bytes(), method, params.as_bytes())
}

/// The cancellation of a request that plugbay sent.
pub(super) fn cancellation(ticket: Ticket, reason: &str) -> Bytes {
    wire_write::cancellation(reason).render(ticket.0)
}

/// The `_meta` members of plugbay's own requests to a modern server.
pub(super) fn modern_meta() -> String {
    modern_meta_for(ClientCapabilities::NONE, Extensions::default(), None, false)
}

/// The `_meta` members of a host's request to a modern server. `tasks`: its result may be a task.
pub(super) fn modern_meta_for(
    client_capabilities: ClientCapabilities,
    extensions: Extensions,
    level: Option<Level>,
    tasks: bool,
) -> String {
    // Only legacy hosts declare that they send notifications of changed roots.
    let declared = ClientCapabilities { roots_changes: false, ..client_capabilities }.declaration();
    let extensions = if tasks { extensions.with_tasks() } else { extensions };
    let declared = extensions.added_to(declared);
    let (version, info) = (era::MODERN_VERSION, client_info());
    let (version_key, info_key, key) = (era::VERSION_KEY, era::CLIENT_INFO_KEY, era::CAPABILITIES_KEY);
    let level = level.map(|level| format!(r#","{}":"{}""#, era::LOG_LEVEL_KEY, level.word()));
    let level = level.unwrap_or_default();
    format!(r#""{version_key}":"{version}","{info_key}":{info},"{key}":{declared}{level}"#)
}

pub(super) fn client_info() -> serde_json::Value {
    json!({ "name": "plugbay", "version": env!("CARGO_PKG_VERSION") })
}
