//! The `OpenAPI` document of the HTTP endpoints.

use std::sync::LazyLock;

use bytes::Bytes;
use hyper::{HeaderMap, Method, Response};
use sha2::{Digest, Sha256};

use super::{
    reject::Rejection,
    reply::Body,
    tools_api::{check_read, document},
};

pub(super) const PATH: &str = "/openapi.json";

/// The document, with the version of this build, and its entity tag.
static DOCUMENT: LazyLock<(Bytes, String)> = LazyLock::new(|| {
    let text = include_str!("openapi.json").replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    let tag = format!("{:x}", Sha256::digest(&text));
    (Bytes::from(text), tag)
});

/// `GET /openapi.json`.
pub(super) fn serve(method: &Method, headers: &HeaderMap) -> Result<Response<Body>, Rejection> {
    check_read(method, headers)?;
    let (body, tag) = &*DOCUMENT;
    Ok(document(headers, body, tag))
}
