//! The server card: what the gateway is and how to connect to it, for clients that have not connected yet.
//!
//! After SEP-2127, which is a draft. The card is public, so it names no server and no tool.

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Response, StatusCode, Uri,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue,
    },
};
use plugbay_core::era::{LEGACY_VERSIONS, MODERN_VERSION};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    access::Access,
    negotiate::{self, single},
    reject::Rejection,
    reply::{self, Body},
    tools_api::document,
};

/// The path in the draft: below the endpoint.
pub(super) const PATH: &str = "/mcp/server-card";
const TYPE: &str = "application/mcp-server-card+json";
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
/// The name in the registry.
const NAME: &str = "io.github.plugbay/plugbay";
const DESCRIPTION: &str = "One plug panel for all your MCP servers";
/// The header in which a proxy says how it was reached.
const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// The headers that web pages need to read the card. Any page may, because the card is public.
const CORS: [(HeaderName, &str); 4] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (ACCESS_CONTROL_ALLOW_METHODS, "GET"),
    (ACCESS_CONTROL_ALLOW_HEADERS, "Content-Type, If-None-Match"),
    (ACCESS_CONTROL_EXPOSE_HEADERS, "ETag"),
];

/// `GET /mcp/server-card`, which needs no token. A gateway under a loopback name does not serve it to other
/// origins: their pages could otherwise find out what runs on their visitor's machine.
pub(super) fn serve(
    access: &Access,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response<Body>, Rejection> {
    let host = access.check_host(uri, headers)?;
    let public = !Access::is_loopback(host);
    if !public {
        access.check_origin(host, headers)?;
    }
    let mut response = match *method {
        Method::GET | Method::HEAD => card(access, host, headers),
        Method::OPTIONS => reply::empty(StatusCode::NO_CONTENT),
        _ => return Err(Rejection::method("GET, HEAD, OPTIONS")),
    };
    if public {
        let cors = CORS.map(|(name, value)| (name, HeaderValue::from_static(value)));
        response.headers_mut().extend(cors);
    }
    Ok(response)
}

fn card(access: &Access, host: &str, headers: &HeaderMap) -> Response<Body> {
    let body = Bytes::from(describe(access, &endpoint(access, host, headers)).to_string());
    let mut response = document(headers, &body, &format!("{:x}", Sha256::digest(&body)));
    let only_json = negotiate::accepts_json(headers) && !negotiate::accepts(headers, TYPE);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    if headers.contains_key(CONTENT_TYPE) && !only_json {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(TYPE));
    }
    response
}

/// The URL that hosts use: the configured one, else the URL of this request.
fn endpoint(access: &Access, host: &str, headers: &HeaderMap) -> String {
    if let Some(authorization) = access.authorization() {
        return authorization.resource().to_owned();
    }
    let forwarded = single(headers, FORWARDED_PROTO).ok().flatten().and_then(|all| all.split(',').next());
    let scheme = if forwarded.is_some_and(|scheme| scheme.trim() == "https") { "https" } else { "http" };
    format!("{scheme}://{host}/mcp")
}

fn describe(access: &Access, endpoint: &str) -> Value {
    let versions = [MODERN_VERSION].into_iter().chain(LEGACY_VERSIONS.into_iter().rev());
    let mut remote = json!({
        "type": "streamable-http",
        "url": endpoint,
        "supportedProtocolVersions": versions.collect::<Vec<_>>(),
    });
    // With an authorization server, hosts find it through the challenge to a request without a token.
    if access.is_guarded() && access.authorization().is_none() {
        let token = json!({ "description": "A token of this gateway", "isRequired": true, "isSecret": true });
        remote["headers"] = json!([{
            "name": "Authorization",
            "isRequired": true,
            "isSecret": true,
            "value": "Bearer {token}",
            "variables": { "token": token },
        }]);
    }
    json!({
        "$schema": SCHEMA,
        "name": NAME,
        "title": "plugbay",
        "description": DESCRIPTION,
        "version": env!("CARGO_PKG_VERSION"),
        "remotes": [remote],
    })
}
