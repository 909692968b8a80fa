//! Fetches the metadata and the keys of an issuer: over HTTPS, with limits, and without redirects.

use std::{error::Error, fmt, sync::OnceLock, time::Duration};

use bytes::Bytes;
use plugbay_core::credentials::Later;
use reqwest::{Client, redirect};
use tokio::time::timeout;
use url::Url;

use crate::{address::is_on_this_machine, http::install_crypto};

/// Time limit for one document.
const TIME: Duration = Duration::from_secs(10);
/// Longest document, in bytes.
const LONGEST: usize = 1024 * 1024;

/// Fetches a document from the network.
pub trait Fetch: Send + Sync + fmt::Debug {
    fn get<'a>(&'a self, url: &'a Url) -> Later<'a, Result<Bytes, FetchError>>;
}

/// The reason why there are no keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("its address must begin with https://, or with http:// on this machine")]
    Forbidden,
    #[error("{0}")]
    Unreachable(String),
    #[error("the answer has the status {0}")]
    Status(u16),
    #[error("the answer is too long")]
    TooLong,
    #[error("there was no answer in time")]
    TooSlow,
    #[error("there is no metadata with an address of keys")]
    NoMetadata,
    #[error("the metadata there is of another issuer")]
    OtherIssuer,
    #[error("the document of the keys is no JWK set")]
    NoKeySet,
}

/// Whether this address of an authorization server or of keys is safe enough for checking tokens.
pub fn is_trustworthy(address: &str) -> bool {
    Url::parse(address)
        .is_ok_and(|url| is_allowed(&url) && url.username().is_empty() && url.password().is_none())
}

/// Whether keys may come from this address. Without encryption it must be on this machine.
pub(super) fn is_allowed(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.host().is_some(),
        "http" => is_on_this_machine(url),
        _ => false,
    }
}

/// Fetches with a client that is made on first use.
#[derive(Debug, Default)]
pub struct HttpFetch {
    remote: OnceLock<Client>,
    local: OnceLock<Client>,
}

impl HttpFetch {
    fn client(&self, url: &Url) -> Result<&Client, FetchError> {
        let place = if is_on_this_machine(url) { &self.local } else { &self.remote };
        if let Some(client) = place.get() {
            return Ok(client);
        }
        let client = build(url)?;
        Ok(place.get_or_init(|| client))
    }

    async fn fetch(&self, url: &Url) -> Result<Bytes, FetchError> {
        if !is_allowed(url) {
            return Err(FetchError::Forbidden);
        }
        let request = self.client(url)?.get(url.as_str()).header("accept", "application/json");
        let mut response = request.send().await.map_err(|error| unreachable(&error))?;
        if response.status() != 200 {
            return Err(FetchError::Status(response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| unreachable(&error))? {
            if body.len() + piece.len() > LONGEST {
                return Err(FetchError::TooLong);
            }
            body.extend_from_slice(&piece);
        }
        Ok(body.into())
    }
}

impl Fetch for HttpFetch {
    fn get<'a>(&'a self, url: &'a Url) -> Later<'a, Result<Bytes, FetchError>> {
        Box::pin(async move { timeout(TIME, self.fetch(url)).await.unwrap_or(Err(FetchError::TooSlow)) })
    }
}

fn build(url: &Url) -> Result<Client, FetchError> {
    install_crypto();
    let mut builder = Client::builder()
        .user_agent(concat!("plugbay/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none());
    if is_on_this_machine(url) {
        builder = builder.no_proxy(); // a proxy's loopback is not ours
    }
    if url.scheme() == "http" {
        builder = builder.tls_certs_only([]); // not needed, and the system's are slow to read
    }
    builder.build().map_err(|error| unreachable(&error))
}

/// The innermost error, without the URL.
fn unreachable(error: &(dyn Error + 'static)) -> FetchError {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    FetchError::Unreachable(innermost.to_string())
}
