//! plugbay as a client of an authorization server: registered by the user, by a document, or by plugbay
//! itself.

use plugbay_core::{
    credentials::{ClientSettings, OAuthSettings},
    secret::Secret,
};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::{
    http::{Http, HttpError, origin},
    metadata::ServerMetadata,
    token::{AuthMethod, TokenClient, shown},
};

/// plugbay's name that users see at an authorization server.
const CLIENT_NAME: &str = "plugbay";
/// Longest id and secret of a client.
const LONGEST: usize = 4096;

/// A client at one authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub id: String,
    pub secret: Option<Secret>,
    pub method: AuthMethod,
    pub source: ClientSource,
}

/// The origin of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientSource {
    /// The configuration.
    Configured,
    /// A client id metadata document.
    Document,
    /// plugbay has registered it, with this redirect URI. `expires`: seconds since 1970.
    Registered { redirect_uri: String, expires: Option<u64> },
}

impl Client {
    /// The client as used at the token endpoint; its key is in the configuration.
    pub fn at_token_endpoint<'a>(&'a self, settings: &'a OAuthSettings) -> TokenClient<'a> {
        let key = settings.client.as_ref().and_then(|client| client.key.as_ref());
        TokenClient { id: &self.id, secret: self.secret.as_ref(), key, method: self.method }
    }

    /// Notes that the authorization server no longer knows the client, so that the next login registers
    /// another one.
    pub fn expire(&mut self) {
        if let ClientSource::Registered { expires, .. } = &mut self.source {
            *expires = Some(0);
        }
    }

    /// Whether it can be used for another login with this redirect URI.
    fn serves(&self, redirect_uri: &str, now: u64) -> bool {
        match &self.source {
            ClientSource::Registered { redirect_uri: own, expires } => {
                own == redirect_uri && expires.is_none_or(|expires| now < expires)
            }
            ClientSource::Configured | ClientSource::Document => false, // made from the configuration
        }
    }
}

/// The reason why plugbay has no client at an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistrationError {
    #[error("the client {id:?} is registered at {expected}, but the server now names {found}")]
    OtherIssuer { id: String, expected: String, found: String },
    #[error("the authorization server {0} registers no clients by itself")]
    NotOffered(String),
    #[error("\"clientMetadataUrl\" must be an https URL with a path")]
    BadDocument,
    #[error("the authorization server {issuer} rejects the registration: {why}")]
    Rejected { issuer: String, why: String },
    #[error(transparent)]
    Http(#[from] HttpError),
}

/// The requirements for a client.
#[derive(Debug, Clone, Copy)]
pub struct Need<'a> {
    pub settings: &'a OAuthSettings,
    /// The issuer that a configured client belongs to, if that is known.
    pub bound_to: Option<&'a str>,
    /// The client of an earlier login at this issuer.
    pub known: Option<&'a Client>,
    pub redirect_uri: &'a str,
    pub now: u64,
}

/// The client for a login, chosen in the order that the specification gives.
pub async fn obtain(
    http: &Http,
    server: &ServerMetadata,
    need: Need<'_>,
) -> Result<Client, RegistrationError> {
    if let Some(client) = &need.settings.client {
        return configured(client, need.bound_to, server);
    }
    if let Some(url) = &need.settings.client_metadata_url
        && server.client_id_metadata_document_supported
    {
        return document(url);
    }
    if let Some(known) = need.known.filter(|known| known.serves(need.redirect_uri, need.now)) {
        return Ok(known.clone());
    }
    match &server.registration_endpoint {
        Some(endpoint) => register(http, server, endpoint, need).await,
        None => Err(RegistrationError::NotOffered(server.issuer.clone())),
    }
}

/// The client in the configuration. It belongs to one authorization server: its secret must not reach another
/// one.
pub fn configured(
    client: &ClientSettings,
    bound_to: Option<&str>,
    server: &ServerMetadata,
) -> Result<Client, RegistrationError> {
    let expected = client.issuer.as_deref().or(bound_to);
    if let Some(expected) = expected.filter(|expected| *expected != server.issuer) {
        let (id, expected, found) = (client.id.clone(), expected.to_owned(), server.issuer.clone());
        return Err(RegistrationError::OtherIssuer { id, expected, found });
    }
    let method = match (&client.key, &client.secret) {
        (Some(_), _) => AuthMethod::PrivateKeyJwt,
        (None, Some(_)) => method_with_secret(server),
        (None, None) => AuthMethod::None,
    };
    Ok(Client {
        id: client.id.clone(),
        secret: client.secret.clone(),
        method,
        source: ClientSource::Configured,
    })
}

fn document(url: &str) -> Result<Client, RegistrationError> {
    let parsed = Url::parse(url).ok().filter(|url| url.scheme() == "https" && url.path().len() > 1);
    if parsed.is_none() {
        return Err(RegistrationError::BadDocument);
    }
    Ok(Client { id: url.to_owned(), secret: None, method: AuthMethod::None, source: ClientSource::Document })
}

/// The authentication method with a secret: `client_secret_basic`, which every server supports unless it says
/// otherwise.
fn method_with_secret(server: &ServerMetadata) -> AuthMethod {
    let offers = |method: &str| {
        server
            .token_endpoint_auth_methods_supported
            .as_ref()
            .is_none_or(|known| known.iter().any(|name| name == method))
    };
    if !offers("client_secret_basic") && offers("client_secret_post") {
        AuthMethod::ClientSecretPost
    } else {
        AuthMethod::ClientSecretBasic
    }
}

async fn register(
    http: &Http,
    server: &ServerMetadata,
    endpoint: &Url,
    need: Need<'_>,
) -> Result<Client, RegistrationError> {
    let known = server.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
    // A program on the user's machine can keep no secret, but some servers insist on one.
    let public = known.is_empty() || known.iter().any(|method| method == "none");
    let wanted = if public { AuthMethod::None } else { method_with_secret(server) };
    // Without `scope`, which would limit later logins; and servers reject scopes of resources that they do
    // not list.
    let request = json!({
        "client_name": CLIENT_NAME,
        "redirect_uris": [need.redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
        "application_type": "native",
    });
    let response = http.post_json(endpoint, &request).await?;
    let rejected = |why: String| RegistrationError::Rejected { issuer: server.issuer.clone(), why };
    if !response.is_success() {
        return Err(rejected(reason(response.status, &response.body)));
    }
    let registered: Registered = serde_json::from_slice(&response.body)
        .map_err(|_| rejected(format!("{} answered without a client id", origin(endpoint))))?;
    let secret = registered.client_secret.filter(|secret| !secret.is_empty()).map(Secret::new);
    let is_usable =
        |text: &str| text.len() <= LONGEST && text.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
    if registered.client_id.is_empty()
        || ![registered.client_id.as_str(), secret.as_ref().map_or("", Secret::expose)]
            .into_iter()
            .all(is_usable)
    {
        return Err(rejected(format!("{} answered with a client that is of no use", origin(endpoint))));
    }
    let method = match (registered.token_endpoint_auth_method.as_deref(), &secret) {
        (Some("client_secret_post"), Some(_)) => AuthMethod::ClientSecretPost,
        (Some("client_secret_basic"), Some(_)) => AuthMethod::ClientSecretBasic,
        (Some("none"), _) | (_, None) => AuthMethod::None,
        (_, Some(_)) => wanted, // a server that does not say registers what it was asked for
    };
    let expires = registered.client_secret_expires_at.filter(|at| *at > 0 && secret.is_some());
    let source = ClientSource::Registered { redirect_uri: need.redirect_uri.to_owned(), expires };
    Ok(Client { id: registered.client_id, secret, method, source })
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

fn reason(status: u16, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(Value::as_str).map(shown);
    match (text("error"), text("error_description")) {
        (Some(error), Some(description)) => format!("{error}: {description}"),
        (Some(error), None) => error,
        (None, _) => format!("HTTP {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(issuer: &str, methods: Option<&[&str]>) -> ServerMetadata {
        let methods = methods.map(|methods| methods.iter().map(|&method| method.to_owned()).collect());
        ServerMetadata {
            issuer: issuer.into(),
            token_endpoint_auth_methods_supported: methods,
            ..Default::default()
        }
    }

    fn client(secret: Option<&str>, issuer: Option<&str>) -> ClientSettings {
        ClientSettings {
            id: "me".into(),
            secret: secret.map(Secret::new),
            key: None,
            issuer: issuer.map(str::to_owned),
        }
    }

    #[test]
    fn a_configured_client_is_never_sent_to_another_issuer() {
        let check = |own: Option<&str>, bound: Option<&str>, issuer: &str| {
            configured(&client(Some("s"), own), bound, &server(issuer, None)).is_ok()
        };
        assert!(check(None, None, "https://a"));
        assert!(check(Some("https://a"), None, "https://a"));
        assert!(!check(Some("https://a"), None, "https://b"));
        assert!(!check(None, Some("https://a"), "https://b"));
        assert!(!check(Some("https://a"), None, "https://a/"), "byte for byte");
    }

    #[test]
    fn the_method_is_one_that_the_token_endpoint_knows() {
        let method = |secret, known: Option<&[&str]>| {
            configured(&client(secret, None), None, &server("i", known)).unwrap().method
        };
        assert_eq!(method(None, None), AuthMethod::None);
        assert_eq!(method(Some("s"), None), AuthMethod::ClientSecretBasic);
        assert_eq!(method(Some("s"), Some(&["client_secret_post"])), AuthMethod::ClientSecretPost);
        assert_eq!(
            method(Some("s"), Some(&["client_secret_post", "client_secret_basic"])),
            AuthMethod::ClientSecretBasic
        );
    }

    #[test]
    fn a_client_id_metadata_document_has_an_https_url_with_a_path() {
        assert!(document("https://plugbay.example/client.json").is_ok());
        for url in
            ["http://plugbay.example/client.json", "https://plugbay.example/", "https://plugbay.example", "x"]
        {
            assert!(document(url).is_err(), "{url}");
        }
    }
}
