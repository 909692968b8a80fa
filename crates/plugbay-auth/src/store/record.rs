//! The logins at one server, and the format of their file.

use std::collections::BTreeMap;

use plugbay_core::secret::Secret;
use serde::{Deserialize, Serialize};
use url::Url;

use super::ServerKey;
use crate::{
    client::{Client, ClientSource},
    token::AuthMethod,
};

const VERSION: u32 = 1;

/// All logins at one server, by the issuer of the authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Logins {
    /// The issuer of the login in use.
    pub current: Option<String>,
    pub by_issuer: BTreeMap<String, Login>,
    /// Whether the user has logged out: then logins of other programs are not used either.
    pub logged_out: bool,
}

/// A login at one authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub client: Client,
    /// The endpoint for refreshing tokens. It is fixed when the user logs in, and no MCP server can change
    /// it.
    pub token_endpoint: Url,
    pub revocation_endpoint: Option<Url>,
    pub resource: String,
    /// The scopes that were asked for.
    pub scopes: Vec<String>,
    pub tokens: Option<Tokens>,
    /// The key that the tokens are bound to, as PEM.
    pub dpop_key: Option<Secret>,
    /// The reason why the tokens can no longer be refreshed, so that only a new login helps.
    pub rejected: Option<String>,
    /// Scopes that a request has needed but the tokens do not have.
    pub missing: Vec<String>,
    /// Whether the secrets are in the keychain and were not read.
    hidden: bool,
}

/// The tokens of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    pub access: Secret,
    pub refresh: Option<Secret>,
    /// When the tokens were issued, in seconds since 1970, by the clock of this machine.
    pub issued_at: u64,
    /// The lifetime in seconds.
    pub expires_in: Option<u64>,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    pub is_dpop: bool,
}

impl Logins {
    pub fn current(&self) -> Option<&Login> {
        self.by_issuer.get(self.current.as_ref()?)
    }

    pub fn current_mut(&mut self) -> Option<&mut Login> {
        self.by_issuer.get_mut(self.current.as_ref()?)
    }
}

impl Login {
    pub fn new(client: Client, token_endpoint: Url, resource: String, scopes: Vec<String>) -> Self {
        Self {
            client,
            token_endpoint,
            revocation_endpoint: None,
            resource,
            scopes,
            tokens: None,
            dpop_key: None,
            rejected: None,
            missing: Vec::new(),
            hidden: false,
        }
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// All secrets as text, if there are any.
    pub(super) fn secrets(&self) -> Option<String> {
        let secrets = Secrets {
            client: self.client.secret.clone().map(exposed),
            dpop_key: self.dpop_key.clone().map(exposed),
            access: self.tokens.as_ref().map(|tokens| exposed(tokens.access.clone())),
            refresh: self.tokens.as_ref().and_then(|tokens| tokens.refresh.clone()).map(exposed),
        };
        if secrets == Secrets::default() {
            return None;
        }
        serde_json::to_string(&secrets).ok()
    }

    /// Removes the secrets, because they are in the keychain.
    pub(super) fn hide(&mut self) {
        self.client.secret = None;
        self.dpop_key = None;
        if let Some(tokens) = &mut self.tokens {
            tokens.access = Secret::new("");
            tokens.refresh = None;
        }
        self.hidden = true;
    }

    /// Puts the secrets back. Without them, the tokens are removed.
    pub(super) fn give_secrets(&mut self, text: Option<&str>) {
        self.hidden = false;
        let secrets: Secrets = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        self.client.secret = secrets.client.map(Secret::new);
        self.dpop_key = secrets.dpop_key.map(Secret::new);
        match (&mut self.tokens, secrets.access) {
            (Some(tokens), Some(access)) => {
                tokens.access = Secret::new(access);
                tokens.refresh = secrets.refresh.map(Secret::new);
            }
            (tokens, _) => *tokens = None,
        }
    }
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
struct Secrets {
    client: Option<String>,
    dpop_key: Option<String>,
    access: Option<String>,
    refresh: Option<String>,
}

#[expect(clippy::needless_pass_by_value, reason = "it is moved into the store")]
fn exposed(secret: Secret) -> String {
    secret.expose().to_owned()
}

pub(super) enum ParseError {
    Malformed,
    Newer,
}

pub(super) fn parse(text: &str) -> Result<Logins, ParseError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let Version { version } = serde_json::from_str(text).map_err(|_| ParseError::Malformed)?;
    if version > VERSION {
        return Err(ParseError::Newer);
    }
    let content: Content = serde_json::from_str(text).map_err(|_| ParseError::Malformed)?;
    let by_issuer = content.logins.into_iter().map(|(issuer, login)| (issuer, login.into())).collect();
    Ok(Logins { current: content.current, by_issuer, logged_out: content.logged_out })
}

pub(super) fn write(key: &ServerKey, logins: &Logins) -> String {
    let content = Content {
        version: VERSION,
        server: key.name.clone(),
        current: logins.current.clone(),
        logged_out: logins.logged_out,
        logins: logins.by_issuer.iter().map(|(issuer, login)| (issuer.clone(), login.into())).collect(),
    };
    serde_json::to_string_pretty(&content).unwrap_or_default() + "\n"
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    server: String,
    current: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    logged_out: bool,
    logins: BTreeMap<String, StoredLogin>,
}

#[derive(Serialize, Deserialize)]
struct StoredLogin {
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    client_method: AuthMethod,
    client_source: StoredSource,
    token_endpoint: Url,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revocation_endpoint: Option<Url>,
    resource: String,
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<StoredTokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dpop_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rejected: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
    /// Whether the secrets are in the keychain.
    #[serde(default)]
    keychain: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredSource {
    Configured,
    Document,
    Registered { redirect_uri: String, expires: Option<u64> },
}

#[derive(Serialize, Deserialize)]
struct StoredTokens {
    access: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<String>,
    issued_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_in: Option<u64>,
    scopes: Vec<String>,
    #[serde(default)]
    dpop: bool,
}

impl From<StoredLogin> for Login {
    fn from(stored: StoredLogin) -> Self {
        let source = match stored.client_source {
            StoredSource::Configured => ClientSource::Configured,
            StoredSource::Document => ClientSource::Document,
            StoredSource::Registered { redirect_uri, expires } => {
                ClientSource::Registered { redirect_uri, expires }
            }
        };
        let secret = stored.client_secret.map(Secret::new);
        let tokens = stored.tokens.map(|tokens| Tokens {
            access: Secret::new(tokens.access),
            refresh: tokens.refresh.map(Secret::new),
            issued_at: tokens.issued_at,
            expires_in: tokens.expires_in,
            scopes: tokens.scopes,
            is_dpop: tokens.dpop,
        });
        Self {
            client: Client { id: stored.client_id, secret, method: stored.client_method, source },
            token_endpoint: stored.token_endpoint,
            revocation_endpoint: stored.revocation_endpoint,
            resource: stored.resource,
            scopes: stored.scopes,
            tokens,
            dpop_key: stored.dpop_key.map(Secret::new),
            rejected: stored.rejected,
            missing: stored.missing,
            hidden: stored.keychain,
        }
    }
}

impl From<&Login> for StoredLogin {
    fn from(login: &Login) -> Self {
        let client_source = match &login.client.source {
            ClientSource::Configured => StoredSource::Configured,
            ClientSource::Document => StoredSource::Document,
            ClientSource::Registered { redirect_uri, expires } => {
                StoredSource::Registered { redirect_uri: redirect_uri.clone(), expires: *expires }
            }
        };
        Self {
            client_id: login.client.id.clone(),
            client_secret: login.client.secret.clone().map(exposed),
            client_method: login.client.method,
            client_source,
            token_endpoint: login.token_endpoint.clone(),
            revocation_endpoint: login.revocation_endpoint.clone(),
            resource: login.resource.clone(),
            scopes: login.scopes.clone(),
            tokens: login.tokens.as_ref().map(|tokens| StoredTokens {
                access: exposed(tokens.access.clone()),
                refresh: tokens.refresh.clone().map(exposed),
                issued_at: tokens.issued_at,
                expires_in: tokens.expires_in,
                scopes: tokens.scopes.clone(),
                dpop: tokens.is_dpop,
            }),
            dpop_key: login.dpop_key.clone().map(exposed),
            rejected: login.rejected.clone(),
            missing: login.missing.clone(),
            keychain: login.hidden,
        }
    }
}
