//! The protocol version in a request's headers, and the formats that it sends and accepts.

use hyper::{
    HeaderMap, StatusCode,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue},
};
use plugbay_core::era::{LEGACY_VERSIONS, MODERN_VERSION};

use super::reject::Rejection;
use crate::refusal::Refusal;

pub(super) const VERSION: &str = "mcp-protocol-version";

/// The era according to the headers alone. If they have no version, the body decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    Unspecified,
    Legacy,
    Modern,
    /// A version that plugbay does not speak.
    Unknown,
}

pub(super) fn era(headers: &HeaderMap) -> Result<Era, Rejection> {
    let twice =
        || Rejection::new(StatusCode::BAD_REQUEST, "MCP-Protocol-Version must be given once, as text");
    match single(headers, VERSION).map_err(|Ambiguous| twice())? {
        None => Ok(Era::Unspecified),
        Some(MODERN_VERSION) => Ok(Era::Modern),
        Some(version) if LEGACY_VERSIONS.contains(&version) => Ok(Era::Legacy),
        Some(_) => Ok(Era::Unknown),
    }
}

/// The answer to a request whose version plugbay does not speak; `id` is raw.
pub(super) fn unknown_version(headers: &HeaderMap, id: &[u8]) -> Rejection {
    let version = single(headers, VERSION).ok().flatten().unwrap_or_default();
    Rejection::of(StatusCode::BAD_REQUEST, id, &Refusal::UnsupportedVersion(version.to_owned()))
}

/// A header that occurs twice or is not text: two readers might see different values.
#[derive(Debug)]
pub(super) struct Ambiguous;

pub(super) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Ambiguous> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| Ambiguous),
        _ => Err(Ambiguous),
    }
}

/// The formats in which a host accepts its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wants {
    pub(super) json: bool,
    pub(super) stream: bool,
}

impl Wants {
    pub(super) fn read(headers: &HeaderMap) -> Result<Self, Rejection> {
        let wants = Self { json: accepts_json(headers), stream: accepts_stream(headers) };
        if wants.json || wants.stream {
            return Ok(wants);
        }
        let why = "answers are application/json or text/event-stream: accept both";
        Err(Rejection::new(StatusCode::NOT_ACCEPTABLE, why))
    }
}

pub(super) fn accepts_json(headers: &HeaderMap) -> bool {
    accepts(headers, "application/json")
}

pub(super) fn accepts_stream(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

/// Whether the host accepts a format; without `Accept` it accepts any.
pub(super) fn accepts(headers: &HeaderMap, format: &str) -> bool {
    let family = format.split_once('/').map_or(format, |(family, _)| family);
    let fits = |range: &str| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let named = name == "*/*"
            || name.eq_ignore_ascii_case(format)
            || name.strip_suffix("/*").is_some_and(|name| name.eq_ignore_ascii_case(family));
        let refused = parts.any(|part| {
            let quality = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            quality.is_some_and(|quality| quality.parse() == Ok(0.0))
        });
        named && !refused
    };
    !headers.contains_key(ACCEPT)
        || headers.get_all(ACCEPT).iter().any(|value| value.to_str().unwrap_or_default().split(',').any(fits))
}

/// Requires JSON. This also keeps out web pages, which can send other types without asking.
pub(super) fn check_content(headers: &HeaderMap) -> Result<(), Rejection> {
    let value = single(headers, CONTENT_TYPE.as_str()).ok().flatten().unwrap_or_default();
    let mut parts = value.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("application/json"));
    let is_utf8 = parts.filter_map(|part| part.split_once('=')).all(|(name, value)| {
        !name.eq_ignore_ascii_case("charset") || value.trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    let encodings = headers.get_all(CONTENT_ENCODING).iter();
    let is_plain = encodings.map(HeaderValue::as_bytes).all(|name| name.eq_ignore_ascii_case(b"identity"));
    if is_json && is_utf8 && is_plain {
        return Ok(());
    }
    let why = "send Content-Type: application/json, as UTF-8 and without Content-Encoding";
    Err(Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_is_not_plain_json_is_unsupported() {
        let check = |content: &str, encoding: &str, is_supported: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, content.parse().unwrap());
            if !encoding.is_empty() {
                headers.insert(CONTENT_ENCODING, encoding.parse().unwrap());
            }
            assert_eq!(check_content(&headers).is_ok(), is_supported, "{content} {encoding}");
        };
        check("application/json", "", true);
        check("Application/JSON; Charset=\"UTF-8\"; x=y", "Identity", true);
        check("application/json; charset=utf-16", "", false);
        check("application/json", "gzip", false);
        check("text/plain", "", false);
    }

    #[test]
    fn the_accept_header_selects_json_or_stream() {
        let check = |accept: &str, json: bool, stream: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            let found = Wants::read(&headers).ok();
            assert_eq!(found, (json || stream).then_some(Wants { json, stream }), "{accept}");
        };
        check("application/json, text/event-stream", true, true);
        check("Application/JSON;q=0.9,text/*", true, true);
        check("*/*", true, true);
        check("application/json", true, false);
        check("application/json;q=0, text/event-stream", false, true);
        check("text/html", false, false);
        assert_eq!(Wants::read(&HeaderMap::new()).ok(), Some(Wants { json: true, stream: true }));
    }
}
