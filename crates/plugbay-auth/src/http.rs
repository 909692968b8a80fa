//! Requests to authorization servers: few, short, and only to addresses that the policy allows.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{Arc, Once, OnceLock},
    time::Duration,
};

use plugbay_core::secret::Secret;
use reqwest::{
    Certificate, Client, RequestBuilder,
    dns::{Addrs, Name, Resolve, Resolving},
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION},
    redirect,
};
use url::{Host, Url};

use crate::address::{AddressPolicy, NotAllowed, is_on_this_machine};

/// Limit of a response body, in bytes.
const LONGEST_BODY: usize = 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);
/// A token endpoint may be slow to start. If its answer is lost, so is the refresh token that it has used up.
const TOKEN_PATIENCE: Duration = Duration::from_secs(30);
const REDIRECTS: usize = 3;

/// The reason why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    #[error("{} is not requested: {why}", origin(.url))]
    NotAllowed { url: Url, why: NotAllowed },
    #[error("{} cannot be reached: {why}", origin(.url))]
    Unreachable { url: Url, why: String },
    #[error("{} did not answer within {} s", origin(.url), .after.as_secs())]
    OutOfTime { url: Url, after: Duration },
    #[error("{} sent more than 1 MiB", origin(.0))]
    TooLarge(Url),
    #[error("{} redirects too often", origin(.0))]
    TooManyRedirects(Url),
}

/// A response with its whole body. It may contain tokens, so it has no `Debug`.
#[derive(Clone)]
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Response {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A POST to a token endpoint or a similar one. It contains secrets, so it has no `Debug`.
#[derive(Default)]
pub struct Post<'a> {
    pub form: Vec<(&'a str, String)>,
    /// `Authorization: Basic …`.
    pub authorization: Option<Secret>,
    pub dpop: Option<Secret>,
}

/// The HTTP client for the authorization server of one MCP server.
#[derive(Debug, Clone)]
pub struct Http {
    client: Arc<OnceLock<Result<Client, String>>>,
    policy: Arc<AddressPolicy>,
    /// Certificates to trust in addition to the system's.
    ca_file: Option<PathBuf>,
    /// Whether the MCP server is on this machine.
    is_local: bool,
}

impl Http {
    pub fn new(policy: AddressPolicy, server: &Url, ca_file: Option<PathBuf>) -> Self {
        install_crypto();
        let (policy, client) = (Arc::new(policy), Arc::default());
        Self { client, policy, ca_file, is_local: is_on_this_machine(server) }
    }

    /// The client, made on first use: most servers never ask for a login, and the system's certificates are
    /// slow to read.
    fn client(&self, url: &Url) -> Result<&Client, HttpError> {
        let broken = |why: &String| HttpError::Unreachable { url: url.clone(), why: why.clone() };
        self.client.get_or_init(|| self.build()).as_ref().map_err(broken)
    }

    fn build(&self) -> Result<Client, String> {
        let mut builder = Client::builder()
            .user_agent(concat!("plugbay/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .referer(false)
            .dns_resolver(Arc::new(Resolver(Arc::clone(&self.policy))));
        if self.is_local {
            builder = builder.no_proxy(); // a proxy's loopback is not ours
        }
        if let Some(path) = &self.ca_file {
            let pem = plugbay_files::read(path, plugbay_files::LARGEST_CA_FILE)
                .map_err(|error| error.to_string())?;
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| error.to_string())?;
            builder = builder.tls_certs_merge(certificates);
        }
        builder.build().map_err(|error| error.to_string())
    }

    /// Whether a URL may be requested or shown to the user.
    pub fn check(&self, url: &Url) -> Result<(), HttpError> {
        self.policy.check(url).map_err(|why| HttpError::NotAllowed { url: url.clone(), why })
    }

    /// Fetches a document. Redirects are followed, because the request carries no secret.
    pub async fn get(&self, url: &Url) -> Result<Response, HttpError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            let request = self.client(&url)?.get(url.clone()).header(ACCEPT, "application/json");
            let response = self.send(&url, request, PATIENCE).await?;
            let target = response.header(LOCATION.as_str()).and_then(|target| url.join(target).ok());
            match target {
                Some(target) if matches!(response.status, 301 | 302 | 303 | 307 | 308) => url = target,
                _ => return Ok(response),
            }
        }
        Err(HttpError::TooManyRedirects(url))
    }

    /// Posts a form. It carries secrets, so redirects are not followed.
    pub async fn post(&self, url: &Url, post: &Post<'_>) -> Result<Response, HttpError> {
        let form = post.form.iter().map(|(name, value)| (*name, value.as_str()));
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let mut request = self
            .client(url)?
            .post(url.clone())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        let dpop = HeaderName::from_static("dpop");
        for (name, secret) in [(AUTHORIZATION, &post.authorization), (dpop, &post.dpop)] {
            if let Some(mut value) =
                secret.as_ref().and_then(|secret| HeaderValue::from_str(secret.expose()).ok())
            {
                value.set_sensitive(true);
                request = request.header(name, value);
            }
        }
        self.send(url, request, TOKEN_PATIENCE).await
    }

    pub async fn post_json(&self, url: &Url, body: &serde_json::Value) -> Result<Response, HttpError> {
        let request = self
            .client(url)?
            .post(url.clone())
            .header(ACCEPT, "application/json")
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        self.send(url, request, TOKEN_PATIENCE).await
    }

    /// Sends a request without credentials to the MCP server itself: the answer says how to log in.
    pub async fn probe(&self, url: &Url, body: String, version: &str) -> Result<Response, HttpError> {
        let request = self
            .client(url)?
            .post(url.clone())
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .header("mcp-protocol-version", version)
            .body(body);
        self.bounded(url, request, PATIENCE).await
    }

    async fn send(
        &self,
        url: &Url,
        request: RequestBuilder,
        patience: Duration,
    ) -> Result<Response, HttpError> {
        self.check(url)?;
        self.bounded(url, request, patience).await
    }

    async fn bounded(
        &self,
        url: &Url,
        request: RequestBuilder,
        patience: Duration,
    ) -> Result<Response, HttpError> {
        let late = |_| HttpError::OutOfTime { url: url.clone(), after: patience };
        tokio::time::timeout(patience, read(url, request)).await.map_err(late)?
    }
}

async fn read(url: &Url, request: RequestBuilder) -> Result<Response, HttpError> {
    let failed = |error: reqwest::Error| HttpError::Unreachable { url: url.clone(), why: cause(error) };
    let mut response = request.send().await.map_err(failed)?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    // The stream of an MCP server may never end.
    let is_stream =
        headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    while !is_stream && let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > LONGEST_BODY {
            return Err(HttpError::TooLarge(url.clone()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response { status, headers, body })
}

/// The innermost cause, without the URL, which may hold a secret.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// A URL for messages: its path and query may hold secrets.
pub fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Resolves names, and keeps only addresses that the policy allows.
struct Resolver(Arc<AddressPolicy>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.0);
        Box::pin(async move {
            let host = Host::parse(name.as_str()).map_err(|error| error.to_string())?;
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let (allowed, rejected): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|address| policy.allows(&host, address.ip()));
            match rejected.first().map(SocketAddr::ip) {
                Some(address) if allowed.is_empty() => Err(forbidden(address).into()),
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

fn forbidden(address: IpAddr) -> String {
    NotAllowed::Address(address.to_string()).to_string()
}

/// Sets up the cryptography for every TLS client in the process.
pub fn install_crypto() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}
