//! Requests to a token endpoint, and their responses.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use plugbay_core::{credentials::SigningKey, secret::Secret, text::stripped};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::{Url, form_urlencoded::byte_serialize};

use crate::{
    assertion::{self, DpopKey, Proof, SignError},
    http::{Http, HttpError, Post, Response},
};

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const CLIENT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Longest lifetime of a token, in seconds; a longer one is cut to it.
const LONGEST_LIFE: f64 = 10.0 * 366.0 * 24.0 * 3600.0;
/// Longest token, and longest list of scopes.
const LONGEST: usize = 64 * 1024;
/// How much of an error's text is shown.
const ERROR_TEXT: usize = 300;

/// The way in which a client authenticates at the token endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthMethod {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

/// A client as used at the token endpoint.
#[derive(Debug, Clone)]
pub struct TokenClient<'a> {
    pub id: &'a str,
    pub secret: Option<&'a Secret>,
    pub key: Option<&'a SigningKey>,
    pub method: AuthMethod,
}

/// The token endpoint of an authorization server.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint<'a> {
    pub http: &'a Http,
    pub url: &'a Url,
    pub issuer: &'a str,
    /// The current time, in seconds since 1970.
    pub now: u64,
}

/// The grant that is exchanged for a token.
#[derive(Debug)]
pub enum TokenGrant<'a> {
    Code {
        code: &'a Secret,
        verifier: &'a Secret,
        redirect_uri: &'a str,
    },
    Refresh {
        token: &'a Secret,
    },
    ClientCredentials,
    /// A statement signed by an issuer that the authorization server trusts.
    Assertion {
        assertion: &'a Secret,
    },
    /// The user's ID token, to be exchanged for a statement to another authorization server.
    IdJag {
        id_token: &'a Secret,
        audience: &'a str,
    },
}

/// A request for a token.
#[derive(Debug)]
pub struct TokenRequest<'a> {
    pub client: TokenClient<'a>,
    pub grant: TokenGrant<'a>,
    pub resource: Option<&'a str>,
    pub scopes: &'a [String],
    pub dpop: Option<&'a DpopKey>,
}

/// A token with its data, as issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    pub access: Secret,
    pub refresh: Option<Secret>,
    /// The lifetime in seconds; `None` if the authorization server did not say.
    pub expires_in: Option<u64>,
    /// `None` if they are those asked for.
    pub scopes: Option<Vec<String>>,
    /// Whether the token is usable only with a proof of possession.
    pub is_dpop: bool,
}

/// The reason why there is no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The authorization server rejected the request; `code` is one of RFC 6749.
    #[error("the authorization server answered {code}{}", described(.description.as_ref()))]
    Rejected { code: String, description: Option<String> },
    /// It has a temporary failure, or limits the rate.
    #[error("the authorization server answered HTTP {0}")]
    Unavailable(u16),
    #[error("the authorization server's answer is of no use: {0}")]
    Unusable(&'static str),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Sign(#[from] SignError),
}

impl TokenError {
    /// Whether the grant has become useless, so that another attempt with it cannot succeed.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Rejected { code, .. } if matches!(code.as_str(), "invalid_grant" | "invalid_client" | "unauthorized_client"))
    }

    /// Whether the authorization server does not know the client, or no longer does.
    pub fn forgets_client(&self) -> bool {
        matches!(self, Self::Rejected { code, .. } if matches!(code.as_str(), "invalid_client" | "unauthorized_client"))
    }

    /// The error without our secrets, which the authorization server may repeat.
    fn without(self, secrets: &[&Secret]) -> Self {
        let hidden = |text: String| {
            let long = secrets.iter().filter(|secret| secret.expose().len() >= 4);
            shown(&long.fold(text, |text, secret| text.replace(secret.expose(), "…")))
        };
        match self {
            Self::Rejected { code, description } => {
                Self::Rejected { code: hidden(code), description: description.map(hidden) }
            }
            other => other,
        }
    }
}

fn described(text: Option<&String>) -> String {
    text.map(|text| format!(": {text}")).unwrap_or_default()
}

impl Endpoint<'_> {
    /// Requests a token.
    pub async fn request(&self, request: &TokenRequest<'_>) -> Result<Issued, TokenError> {
        let response = self.send(request, None).await?;
        let response = match (request.dpop, response.header("dpop-nonce")) {
            // It wants its own nonce in the proof, and has checked nothing else.
            (Some(_), Some(nonce)) if error_code(&response).as_deref() == Some("use_dpop_nonce") => {
                let nonce = nonce.to_owned();
                self.send(request, Some(&nonce)).await?
            }
            _ => response,
        };
        issued(&response).map_err(|error| error.without(&request.secrets()))
    }

    /// Revokes a token, as far as the authorization server supports that.
    pub async fn revoke(
        &self,
        client: &TokenClient<'_>,
        token: &Secret,
        hint: &str,
    ) -> Result<(), TokenError> {
        let mut post = Post::default();
        post.form.push(("token", token.expose().to_owned()));
        post.form.push(("token_type_hint", hint.to_owned()));
        self.authenticate(client, &mut post)?;
        let response = self.http.post(self.url, &post).await?;
        let mut secrets = vec![token];
        secrets.extend(client.secret);
        if response.is_success() { Ok(()) } else { Err(rejected(&response).without(&secrets)) }
    }

    async fn send(&self, request: &TokenRequest<'_>, nonce: Option<&str>) -> Result<Response, TokenError> {
        let mut post = Post { form: form(request), ..Post::default() };
        self.authenticate(&request.client, &mut post)?;
        if let Some(key) = request.dpop {
            let mut url = self.url.clone();
            url.set_query(None);
            url.set_fragment(None);
            let proof = Proof { method: "POST", url: url.as_str(), token: None, nonce, now: self.now };
            post.dpop = Some(key.proof(&proof)?);
        }
        Ok(self.http.post(self.url, &post).await?)
    }

    fn authenticate(&self, client: &TokenClient<'_>, post: &mut Post<'_>) -> Result<(), TokenError> {
        let id = client.id.to_owned();
        match (client.method, client.secret, client.key) {
            (AuthMethod::ClientSecretBasic, Some(secret), _) => {
                let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
                let pair = format!("{}:{}", encoded(&id), encoded(secret.expose()));
                post.authorization = Some(Secret::new(format!("Basic {}", STANDARD.encode(pair))));
            }
            (AuthMethod::ClientSecretPost, Some(secret), _) => {
                post.form.push(("client_id", id));
                post.form.push(("client_secret", secret.expose().to_owned()));
            }
            (AuthMethod::PrivateKeyJwt, _, Some(key)) => {
                let assertion = assertion::of_client(&id, self.issuer, key, self.now)?;
                post.form.push(("client_id", id));
                post.form.push(("client_assertion_type", CLIENT_ASSERTION.to_owned()));
                post.form.push(("client_assertion", assertion.expose().to_owned()));
            }
            _ => post.form.push(("client_id", id)),
        }
        Ok(())
    }
}

impl TokenRequest<'_> {
    /// All values that must not be shown.
    fn secrets(&self) -> Vec<&Secret> {
        let mut secrets: Vec<&Secret> = self.client.secret.into_iter().collect();
        match &self.grant {
            TokenGrant::Code { code, verifier, .. } => secrets.extend([code, verifier]),
            TokenGrant::Refresh { token: secret }
            | TokenGrant::Assertion { assertion: secret }
            | TokenGrant::IdJag { id_token: secret, .. } => secrets.push(secret),
            TokenGrant::ClientCredentials => {}
        }
        secrets
    }
}

fn form<'a>(request: &TokenRequest<'_>) -> Vec<(&'a str, String)> {
    let owned = |secret: &Secret| secret.expose().to_owned();
    let mut form = match &request.grant {
        TokenGrant::Code { code, verifier, redirect_uri } => vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", owned(code)),
            ("code_verifier", owned(verifier)),
            ("redirect_uri", (*redirect_uri).to_owned()),
        ],
        TokenGrant::Refresh { token } => {
            vec![("grant_type", "refresh_token".to_owned()), ("refresh_token", owned(token))]
        }
        TokenGrant::ClientCredentials => vec![("grant_type", "client_credentials".to_owned())],
        TokenGrant::Assertion { assertion } => {
            vec![("grant_type", JWT_BEARER.to_owned()), ("assertion", owned(assertion))]
        }
        TokenGrant::IdJag { id_token, audience } => vec![
            ("grant_type", TOKEN_EXCHANGE.to_owned()),
            ("requested_token_type", ID_JAG.to_owned()),
            ("subject_token", owned(id_token)),
            ("subject_token_type", ID_TOKEN.to_owned()),
            ("audience", (*audience).to_owned()),
        ],
    };
    if let Some(resource) = request.resource {
        form.push(("resource", resource.to_owned()));
    }
    // The scopes for a code were requested with it. A refresh without scopes keeps the granted ones.
    let asks = !matches!(request.grant, TokenGrant::Code { .. } | TokenGrant::Refresh { .. });
    if asks && !request.scopes.is_empty() {
        form.push(("scope", request.scopes.join(" ")));
    }
    form
}

fn issued(response: &Response) -> Result<Issued, TokenError> {
    if !response.is_success() {
        return Err(rejected(response));
    }
    let body: Value =
        serde_json::from_slice(&response.body).map_err(|_| TokenError::Unusable("it is not JSON"))?;
    // GitHub and others answer errors with status 200.
    if body.get("error").is_some_and(Value::is_string) {
        return Err(rejected(response));
    }
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let access = text("access_token").ok_or(TokenError::Unusable("it has no access token"))?;
    if !access.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(TokenError::Unusable("its access token cannot be sent in a header"));
    }
    if [Some(access), text("refresh_token"), text("scope")]
        .into_iter()
        .flatten()
        .any(|text| text.len() > LONGEST)
    {
        return Err(TokenError::Unusable("its token is too long"));
    }
    let expires_in = match body.get("expires_in") {
        Some(Value::Number(seconds)) => seconds.as_f64(),
        Some(Value::String(seconds)) => seconds.parse().ok(),
        _ => None,
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
    let expires_in = expires_in.map(|seconds: f64| seconds.clamp(0.0, LONGEST_LIFE) as u64);
    Ok(Issued {
        access: Secret::new(access),
        refresh: text("refresh_token").map(Secret::new),
        expires_in,
        scopes: text("scope").map(|scopes| scopes.split_whitespace().map(str::to_owned).collect()),
        is_dpop: text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("dpop")),
    })
}

fn rejected(response: &Response) -> TokenError {
    match error_code(response) {
        Some(code) if response.status < 500 => {
            let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            let description = body.get("error_description").and_then(Value::as_str).map(str::to_owned);
            TokenError::Rejected { code, description }
        }
        _ => TokenError::Unavailable(response.status),
    }
}

fn error_code(response: &Response) -> Option<String> {
    let body: Value = serde_json::from_slice(&response.body).ok()?;
    Some(body.get("error")?.as_str()?.to_owned())
}

/// A server's text for the user: one line without control characters.
pub fn shown(text: &str) -> String {
    let visible = |c: char| if c.is_control() || c.is_whitespace() { ' ' } else { c };
    stripped(text).chars().map(visible).take(ERROR_TEXT).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Result<Issued, TokenError> {
        issued(&Response {
            status,
            headers: reqwest::header::HeaderMap::new(),
            body: body.as_bytes().to_vec(),
        })
        .map_err(|error| error.without(&[]))
    }

    #[test]
    fn token_responses_are_read_as_servers_write_them() {
        let issued =
            answer(200, r#"{"access_token":"a","token_type":"bearer","expires_in":"600","scope":"x y"}"#)
                .unwrap();
        assert_eq!((issued.expires_in, issued.scopes.unwrap().len(), issued.refresh), (Some(600), 2, None));
        assert_eq!(answer(200, r#"{"access_token":"a","expires_in":-5}"#).unwrap().expires_in, Some(0));
        assert_eq!(
            answer(200, r#"{"access_token":"a","expires_in":1e300}"#).unwrap().expires_in,
            Some(316_224_000)
        );
        assert_eq!(answer(200, r#"{"access_token":"a"}"#).unwrap().expires_in, None);
        assert!(answer(200, r#"{"access_token":"a","token_type":"DPoP"}"#).unwrap().is_dpop);
        for body in
            ["", "[]", r#"{"access_token":""}"#, r#"{"access_token":"a\r\nX: y"}"#, r#"{"access_token":7}"#]
        {
            assert!(matches!(answer(200, body), Err(TokenError::Unusable(_))), "{body}");
        }
    }

    #[test]
    fn token_errors_tell_final_ones_from_trouble() {
        let rejected =
            answer(400, r#"{"error":"invalid_grant","error_description":"used\ntwice"}"#).unwrap_err();
        assert_eq!(rejected.to_string(), "the authorization server answered invalid_grant: used twice");
        assert!(rejected.is_final());
        assert!(answer(200, r#"{"error":"invalid_grant"}"#).unwrap_err().is_final());
        for (status, body) in
            [(500, r#"{"error":"invalid_grant"}"#), (503, ""), (429, ""), (404, "<html>"), (400, "{}")]
        {
            assert!(!answer(status, body).unwrap_err().is_final(), "{status}");
        }
        assert!(!answer(400, r#"{"error":"temporarily_unavailable"}"#).unwrap_err().is_final());
    }
}
