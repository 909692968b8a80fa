//! Finds the authorization server of an MCP server, and rejects documents that contradict each other.

use std::time::Duration;

use plugbay_core::credentials::ClientSettings;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use url::Url;

use crate::{
    challenge::Challenge,
    http::{Http, HttpError, origin},
    metadata::{
        ResourceMetadata, ServerMetadata, canonical, is_resource_of, resource_metadata_urls,
        server_metadata_urls,
    },
    token::shown,
};

/// Limit of authorization servers that are tried for one MCP server.
const MOST_SERVERS: usize = 5;
const LONGEST_ISSUER: usize = 2048;
/// Time limit for all requests together: a caller that waits may hold the lock of the store.
const PATIENCE: Duration = Duration::from_secs(30);

/// The facts that a login at an MCP server needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// The resource that a token is for.
    pub resource: String,
    /// The scopes that the MCP server supports.
    pub scopes: Option<Vec<String>>,
    pub needs_dpop: bool,
    pub server: ServerMetadata,
}

/// The reason why it is unknown how to log in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    #[error("it names no authorization server")]
    Nothing,
    #[error("its metadata is for the resource {0:?}, which is another one")]
    OtherResource(String),
    #[error("its metadata names no authorization server")]
    NoServers,
    #[error("its metadata names {named}, and not the configured issuer {wanted:?}")]
    OtherServers { wanted: String, named: String },
    #[error("its authorization server {0:?} has no valid address")]
    BadIssuer(String),
    #[error("the metadata of the authorization server {asked:?} claims to be of {found:?}")]
    OtherIssuer { asked: String, found: String },
    #[error("the authorization server {0} has no metadata")]
    NoMetadata(String),
    #[error("the metadata at {at} cannot be read: {why}")]
    Malformed { at: String, why: String },
    #[error(transparent)]
    Http(#[from] HttpError),
}

impl DiscoveryError {
    /// Whether another attempt may succeed without any changes.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Http(HttpError::Unreachable { .. } | HttpError::OutOfTime { .. }))
    }
}

/// Finds the authorization server that the MCP server names in its challenge or at well-known places.
pub async fn discover(
    http: &Http,
    server: &Url,
    challenge: Option<&Challenge>,
    client: Option<&ClientSettings>,
) -> Result<Discovered, DiscoveryError> {
    let found = async {
        match resource_metadata(http, server, challenge).await? {
            Some(resource) => of_resource(http, server, resource, client).await,
            None => without_resource_metadata(http, server).await,
        }
    };
    let late = |_| HttpError::OutOfTime { url: server.clone(), after: PATIENCE };
    timeout(PATIENCE, found).await.map_err(late)?
}

/// The metadata of an authorization server, found by its issuer.
pub async fn of_issuer(http: &Http, issuer: &str) -> Result<ServerMetadata, DiscoveryError> {
    let bad = || DiscoveryError::BadIssuer(shown(issuer));
    // A URL parser drops characters such as line feeds, which error messages would show.
    let is_plain = issuer.len() <= LONGEST_ISSUER && issuer.bytes().all(|byte| byte.is_ascii_graphic());
    let url = Url::parse(issuer).ok().filter(|_| is_plain).ok_or_else(bad)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(bad());
    }
    http.check(&url)?;
    for at in server_metadata_urls(&url) {
        if let Some(metadata) = document::<ServerMetadata>(http, &at).await? {
            // Compared byte for byte, as RFC 8414 demands.
            if metadata.issuer != issuer {
                let (asked, found) = (issuer.to_owned(), shown(&metadata.issuer));
                return Err(DiscoveryError::OtherIssuer { asked, found });
            }
            return Ok(metadata);
        }
    }
    Err(DiscoveryError::NoMetadata(issuer.to_owned()))
}

async fn resource_metadata(
    http: &Http,
    server: &Url,
    challenge: Option<&Challenge>,
) -> Result<Option<ResourceMetadata>, DiscoveryError> {
    let named = challenge.and_then(|challenge| challenge.get("resource_metadata"));
    let named = named.and_then(|url| server.join(url).ok());
    let candidates = named.into_iter().chain(resource_metadata_urls(server));
    for url in candidates {
        if let Some(metadata) = document::<ResourceMetadata>(http, &url).await? {
            return Ok(Some(metadata));
        }
    }
    Ok(None)
}

async fn of_resource(
    http: &Http,
    server: &Url,
    resource: ResourceMetadata,
    client: Option<&ClientSettings>,
) -> Result<Discovered, DiscoveryError> {
    if !is_resource_of(&resource.resource, server) {
        return Err(DiscoveryError::OtherResource(shown(&resource.resource)));
    }
    let wanted = client.and_then(|client| client.issuer.as_deref());
    let known =
        resource.authorization_servers.iter().filter(|issuer| wanted.is_none_or(|wanted| wanted == *issuer));
    let mut problem = match wanted.filter(|_| !resource.authorization_servers.is_empty()) {
        Some(wanted) => DiscoveryError::OtherServers {
            wanted: wanted.to_owned(),
            named: shown(&format!("{:?}", resource.authorization_servers)),
        },
        None => DiscoveryError::NoServers,
    };
    for issuer in known.take(MOST_SERVERS) {
        match of_issuer(http, issuer).await {
            Ok(server) => {
                let ResourceMetadata {
                    resource,
                    scopes_supported: scopes,
                    dpop_bound_access_tokens_required,
                    ..
                } = resource;
                return Ok(Discovered {
                    resource,
                    scopes,
                    needs_dpop: dpop_bound_access_tokens_required,
                    server,
                });
            }
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

/// Handles a server of 2025-03-26: it is its own authorization server, with metadata at its root or none at
/// all.
async fn without_resource_metadata(http: &Http, server: &Url) -> Result<Discovered, DiscoveryError> {
    let issuer = origin(server);
    let found = match of_issuer(http, &issuer).await {
        // The issuer of such a server may be written with a slash.
        Err(DiscoveryError::OtherIssuer { found, .. }) if found == format!("{issuer}/") => {
            of_issuer(http, &found).await?
        }
        Err(DiscoveryError::NoMetadata(_) | DiscoveryError::Http(HttpError::NotAllowed { .. })) => {
            return Err(DiscoveryError::Nothing);
        }
        found => found?,
    };
    Ok(Discovered { resource: canonical(server), scopes: None, needs_dpop: false, server: found })
}

/// The document at a URL; `None` if there is none.
async fn document<T: DeserializeOwned>(http: &Http, url: &Url) -> Result<Option<T>, DiscoveryError> {
    let response = http.get(url).await?;
    if !response.is_success() {
        return match response.status {
            500.. => Err(DiscoveryError::Http(HttpError::Unreachable {
                url: url.clone(),
                why: format!("it answered HTTP {}", response.status),
            })),
            _ => Ok(None),
        };
    }
    let malformed = |error: serde_json::Error| DiscoveryError::Malformed {
        at: format!("{}{}", origin(url), url.path()),
        why: format!("line {}: {}", error.line(), category(&error)),
    };
    // Some servers answer every path with an HTML page.
    if response.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
        return Ok(None);
    }
    serde_json::from_slice(&response.body).map(Some).map_err(malformed)
}

fn category(error: &serde_json::Error) -> &'static str {
    if error.is_data() { "a value is missing or of another type" } else { "not JSON" }
}
