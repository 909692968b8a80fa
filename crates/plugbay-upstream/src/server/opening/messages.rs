//! The messages of an opening: the requests that plugbay writes and the results that it reads.

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    catalog::ServerCapabilities,
    era::{self, Era},
    exchange::Ticket,
    extension::Extensions,
    size_limit,
    wire::{Members, Span, elements, string_value, write},
};

use super::{super::request, Opened};

/// The error code for an unsupported protocol version; the error lists the supported ones.
const UNSUPPORTED_VERSION: &[u8] = b"-32022";

pub(super) fn discover(ticket: Ticket) -> Bytes {
    let params = format!(r#"{{"_meta":{{{}}}}}"#, request::modern_meta());
    request::write(ticket, "server/discover", &params)
}

pub(super) fn initialize(ticket: Ticket, declared: ClientCapabilities, extensions: &Extensions) -> Bytes {
    let (version, info) = (era::negotiate(None), request::client_info());
    let capabilities = extensions.added_to(declared.declaration());
    let params =
        format!(r#"{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{info}}}"#);
    request::write(ticket, "initialize", &params)
}

pub(super) fn initialized() -> Bytes {
    write::notification("notifications/initialized", None)
}

/// The response to a server request that no host can answer: `ping` succeeds, any other method is unknown.
pub(in crate::server) fn reject(message: &[u8], id: &Span, method: &Span) -> Bytes {
    let id = &message[id.clone()];
    match &message[method.clone()] {
        b"ping" => write::result(id, b"{}"),
        _ => write::error(id, br#"{"code":-32601,"message":"Method not found"}"#),
    }
}

/// The version that a legacy server has chosen.
pub(super) fn legacy_version(message: &[u8], result: &Span) -> String {
    Members::find(message, result, "protocolVersion")
        .and_then(|span| Some(string_value(&message[span])?.into_owned()))
        .unwrap_or_else(|| era::negotiate(None).to_owned())
}

/// The result of `initialize`.
pub(super) fn read_initialize(message: &Bytes, result: &Span) -> Opened {
    let info = Members::find(message, result, "serverInfo").map(|span| message.slice(span));
    Opened { info, ..read_declaration(message, result, Era::Legacy) }
}

/// The result of `server/discover`.
pub(super) fn read_discover(message: &Bytes, result: &Span) -> Opened {
    let info = Members::find(message, result, "_meta")
        .and_then(|meta| Members::find(message, &meta, era::SERVER_INFO_KEY))
        .map(|span| message.slice(span));
    Opened { info, ..read_declaration(message, result, Era::Modern) }
}

/// Whether this really is a result of `server/discover`: some legacy servers answer unknown methods with an
/// empty result.
pub(super) fn is_modern(message: &[u8], result: &Span) -> bool {
    match Members::find(message, result, "supportedVersions") {
        Some(versions) => names_our_version(message, &versions),
        None => Members::find(message, result, "capabilities").is_some(),
    }
}

/// Whether a server refuses our version but lists it as supported in the same error.
pub(super) fn contradicts_itself(message: &[u8], error: &Span) -> bool {
    let refuses_version =
        Members::find(message, error, "code").is_some_and(|code| message[code] == *UNSUPPORTED_VERSION);
    let supported = Members::find(message, error, "data")
        .and_then(|data| Members::find(message, &data, "supported"))
        .is_some_and(|versions| names_our_version(message, &versions));
    refuses_version && supported
}

fn names_our_version(message: &[u8], versions: &Span) -> bool {
    let mut versions = elements(message, versions).into_iter();
    versions.any(|version| string_value(&message[version]).as_deref() == Some(era::MODERN_VERSION))
}

fn read_declaration(message: &Bytes, result: &Span, era: Era) -> Opened {
    let instructions = Members::find(message, result, "instructions")
        .and_then(|span| Some(string_value(&message[span])?.into_owned()));
    let declared =
        |object: Span| (ServerCapabilities::read(message, &object, era), Extensions::read(message, &object));
    let is_short = |object: &Span| object.len() <= size_limit::CAPABILITIES;
    let found = Members::find(message, result, "capabilities").filter(is_short);
    let (capabilities, extensions) = found.map(declared).unwrap_or_default();
    Opened { era: Some(era), instructions, capabilities, extensions, ..Opened::default() }
}
