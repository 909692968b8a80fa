//! The gateway as a protected resource (RFC 9728): which access tokens it accepts, and the metadata for
//! hosts.

use std::{
    fmt::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use hmac::{Hmac, Mac, digest::KeyInit};
use hyper::header::HeaderValue;
use plugbay_core::{
    access_token::{AccessToken, HeldScopes, ScopeRules, TokenVerifier},
    policy::ToolGrant,
};
use serde_json::json;
use sha2::Sha256;
use tokio::sync::watch;

use crate::{
    principal::{Grant, GrantedViews},
    seal::Owner,
};

/// Where hosts look for the metadata of a protected resource.
pub(super) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// Limit of tool sets whose views are kept.
const KEPT_VIEWS: usize = 64;

/// The current terms for callers of an authorization server; `None` if there is none.
pub type Authorizations = watch::Receiver<Option<Arc<Authorization>>>;

/// The terms on which a caller with an access token may use the gateway.
#[derive(Debug, Clone)]
pub struct AuthorizationTerms {
    pub verifier: Arc<dyn TokenVerifier>,
    pub scopes: Arc<ScopeRules>,
    /// The authorization server, under its own name.
    pub issuer: String,
    /// The URL under which hosts know the gateway.
    pub resource: String,
    /// A secret: owners of sessions and tasks are computed with it.
    pub key: [u8; 32],
}

/// The gateway as a protected resource.
pub struct Authorization {
    terms: AuthorizationTerms,
    metadata: Bytes,
    metadata_url: String,
    /// The views of callers, by the tools that they may use.
    // A std mutex: held for a look-up, never across an await.
    views: Mutex<Vec<(ToolGrant, Arc<GrantedViews>)>>,
}

impl Authorization {
    pub fn new(terms: AuthorizationTerms) -> Self {
        let (origin, path) = split(&terms.resource);
        let metadata_url = format!("{origin}{WELL_KNOWN}{path}");
        let mut metadata = json!({
            "resource": terms.resource,
            "authorization_servers": [terms.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "plugbay",
        });
        let scopes = terms.scopes.supported();
        if !scopes.is_empty() {
            metadata["scopes_supported"] = json!(scopes);
        }
        let metadata = Bytes::from(metadata.to_string());
        Self { terms, metadata, metadata_url, views: Mutex::default() }
    }

    /// The URL under which hosts know the gateway.
    pub(super) fn resource(&self) -> &str {
        &self.terms.resource
    }

    pub(super) fn verifier(&self) -> &dyn TokenVerifier {
        &*self.terms.verifier
    }

    pub(super) fn scopes(&self) -> &ScopeRules {
        &self.terms.scopes
    }

    /// The metadata document, if `path` is one of its paths.
    pub(super) fn metadata_at(&self, path: &str) -> Option<&Bytes> {
        let below = path.strip_prefix(WELL_KNOWN)?;
        let (_, own) = split(&self.terms.resource);
        (matches!(below, "" | "/" | "/mcp") || below == own).then_some(&self.metadata)
    }

    /// The owner for a token: the same for all tokens of one subject. No caller can compute it.
    pub(super) fn owner(&self, token: &AccessToken) -> Owner {
        let mut mac =
            <Hmac<Sha256> as KeyInit>::new_from_slice(&self.terms.key).expect("a key of any length will do");
        mac.update(b"plugbay oauth caller ");
        mac.update(&(token.issuer.len() as u64).to_be_bytes());
        mac.update(token.issuer.as_bytes());
        mac.update(token.subject.as_bytes());
        Owner(mac.finalize().into_bytes().into())
    }

    /// What the holder of a token may do.
    pub(super) fn grant(&self, token: &AccessToken) -> Grant {
        let rules = Arc::clone(&self.terms.scopes);
        let held = token.scopes.iter().filter(|scope| rules.supported().contains(&scope.as_str()));
        let held: Vec<String> = held.cloned().collect();
        // The space keeps it apart from the names of named tokens.
        let name = format!("{} at {}", token.subject, token.issuer);
        Grant {
            name: Some(name.into()),
            tools: rules.tools(&held),
            client: token.client.as_deref().map(Arc::from),
            scopes: Some(HeldScopes { held, rules }),
            ..Grant::default()
        }
    }

    /// The views that all callers with these tools share.
    pub(super) fn views(&self, tools: Option<&ToolGrant>) -> Arc<GrantedViews> {
        let Some(tools) = tools else { return Arc::default() };
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = views.iter().find(|(known, _)| known == tools) {
            return Arc::clone(known);
        }
        if views.len() >= KEPT_VIEWS {
            views.remove(0);
        }
        let new = Arc::default();
        views.push((tools.clone(), Arc::clone(&new)));
        new
    }

    /// The value of `WWW-Authenticate` for a request with this fault.
    pub(super) fn challenge(&self, fault: &Fault<'_>) -> HeaderValue {
        let mut text = "Bearer realm=\"plugbay\"".to_owned();
        let basic = self.scopes().basic().join(" ");
        let (error, scope) = match fault {
            Fault::NoToken => (None, &*basic),
            Fault::BadRequest(why) => (Some(("invalid_request", *why)), &*basic),
            Fault::BadToken(why) => (Some(("invalid_token", *why)), &*basic),
            Fault::MissingScope(scope) => {
                (Some(("insufficient_scope", "the token lacks a scope that this needs")), *scope)
            }
        };
        if let Some((error, why)) = error {
            let _ = write!(text, ", error=\"{error}\", error_description=\"{why}\"");
        }
        let _ = write!(text, ", resource_metadata=\"{}\"", self.metadata_url);
        if !scope.is_empty() {
            let _ = write!(text, ", scope=\"{scope}\"");
        }
        HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("Bearer realm=\"plugbay\""))
    }
}

/// What is wrong with the token of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault<'a> {
    NoToken,
    BadRequest(&'static str),
    BadToken(&'static str),
    /// The scopes to ask for.
    MissingScope(&'a str),
}

/// The origin of a URL, and its path; a lone `/` counts as no path.
fn split(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |at| at + 3);
    let (origin, path) = url.split_at(url[host..].find('/').map_or(url.len(), |at| host + at));
    (origin, if path == "/" { "" } else { path })
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AuthorizationTerms { issuer, resource, .. } = &self.terms;
        f.debug_struct("Authorization")
            .field("issuer", issuer)
            .field("resource", resource)
            .finish_non_exhaustive()
    }
}
