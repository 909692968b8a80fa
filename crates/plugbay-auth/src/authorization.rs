//! The authorization request that a browser makes, and the check of its answer.

use std::collections::BTreeMap;

use plugbay_core::secret::Secret;
use subtle::ConstantTimeEq as _;
use url::Url;

use crate::{
    metadata::ServerMetadata,
    random::{self, RandomError},
    token::shown,
};

/// A login for which a browser was sent to the authorization server.
#[derive(Debug, Clone)]
pub struct AuthorizationRequest {
    /// The page where the user logs in.
    pub url: Url,
    pub redirect_uri: String,
    pub verifier: Secret,
    state: Secret,
    /// The issuer of the authorization server, as its metadata writes it.
    issuer: String,
    /// Whether the authorization server always names itself in its answer.
    names_itself: bool,
}

/// The content of an authorization request.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub client_id: &'a str,
    pub redirect_uri: &'a str,
    pub resource: &'a str,
    pub scopes: &'a [String],
}

/// The reason why a login cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotAsk {
    #[error("the authorization server {0} names no authorization endpoint")]
    NoEndpoint(String),
    #[error("the authorization server {0} does not support PKCE with S256, so a login there is not safe")]
    NoPkce(String),
    #[error("the authorization server {0} names an authorization endpoint that is too long for a browser")]
    TooLong(String),
    #[error(transparent)]
    Random(#[from] RandomError),
}

/// Longest URL that a browser is asked to open.
const LONGEST_URL: usize = 16 * 1024;

/// The fault in an authorization server's answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It belongs to no login of ours, so the current login goes on.
    #[error("this answer belongs to another login")]
    OtherState,
    #[error("the answer names no authorization server, although {0} always does")]
    NoIssuer(String),
    #[error("the answer is of another authorization server than {0}")]
    OtherIssuer(String),
    #[error("{code}{}", .description.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Denied { code: String, description: Option<String> },
    #[error("the answer has no authorization code")]
    NoCode,
}

impl AuthorizationRequest {
    pub fn new(server: &ServerMetadata, asked: Asked<'_>) -> Result<Self, CannotAsk> {
        let issuer = server.issuer.clone();
        let Some(endpoint) = &server.authorization_endpoint else {
            return Err(CannotAsk::NoEndpoint(issuer));
        };
        if !server.knows_s256() {
            return Err(CannotAsk::NoPkce(issuer));
        }
        let (state, verifier) = (random::text()?, random::text()?);
        let (challenge, scope) = (random::digest(&verifier), asked.scopes.join(" "));
        let mut parameters = vec![
            ("response_type", "code"),
            ("client_id", asked.client_id),
            ("redirect_uri", asked.redirect_uri),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", asked.resource),
        ];
        if !scope.is_empty() {
            parameters.push(("scope", &scope));
        }
        // With OpenID Connect, a refresh token is issued only with the user's consent.
        if asked.scopes.iter().any(|scope| scope == "offline_access") {
            parameters.push(("prompt", "consent"));
        }
        let url = with_parameters(endpoint, &parameters);
        if url.as_str().len() > LONGEST_URL {
            return Err(CannotAsk::TooLong(issuer));
        }
        let names_itself = server.authorization_response_iss_parameter_supported;
        let (state, verifier) = (Secret::new(state), Secret::new(verifier));
        Ok(Self { url, redirect_uri: asked.redirect_uri.to_owned(), verifier, state, issuer, names_itself })
    }

    /// The code in an answer, given as the query of the redirect. Nothing in it is used before its origin is
    /// known.
    pub fn code(&self, query: &str) -> Result<Secret, AnswerError> {
        let answer = Answer::read(query);
        let state = answer.get("state").unwrap_or_default();
        if !bool::from(self.state.expose().as_bytes().ct_eq(state.as_bytes())) {
            return Err(AnswerError::OtherState);
        }
        if answer.doubled {
            return Err(AnswerError::NoCode);
        }
        match answer.get("iss") {
            Some(issuer) if issuer != self.issuer => {
                return Err(AnswerError::OtherIssuer(self.issuer.clone()));
            }
            None if self.names_itself => return Err(AnswerError::NoIssuer(self.issuer.clone())),
            _ => {}
        }
        if let Some(code) = answer.get("error") {
            let description = answer.get("error_description").map(shown);
            return Err(AnswerError::Denied { code: shown(code), description });
        }
        answer.get("code").filter(|code| !code.is_empty()).map(Secret::new).ok_or(AnswerError::NoCode)
    }
}

/// The parameters of an answer. A repeated parameter makes it unreadable.
#[derive(Default)]
struct Answer {
    parameters: BTreeMap<String, String>,
    doubled: bool,
}

impl Answer {
    fn read(query: &str) -> Self {
        let mut answer = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let name = name.into_owned();
            if answer.parameters.contains_key(&name) {
                answer.doubled = true;
                // Two states count as none.
                answer.parameters.insert(name, String::new());
            } else {
                answer.parameters.insert(name, value.into_owned());
            }
        }
        answer
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }
}

/// The endpoint with these parameters, which replace its own ones of the same name.
fn with_parameters(endpoint: &Url, parameters: &[(&str, &str)]) -> Url {
    let ours = |name: &str| parameters.iter().any(|(own, _)| *own == name);
    let kept: Vec<(String, String)> = endpoint
        .query_pairs()
        .filter(|(name, _)| !ours(name))
        .map(|(n, v)| (n.into_owned(), v.into_owned()))
        .collect();
    let mut url = endpoint.clone();
    url.set_fragment(None);
    url.query_pairs_mut().clear().extend_pairs(kept).extend_pairs(parameters);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> ServerMetadata {
        ServerMetadata {
            issuer: "https://a.example".into(),
            authorization_endpoint: Url::parse(
                "https://a.example/auth?tenant=1&state=evil&redirect_uri=https://evil/",
            )
            .ok(),
            code_challenge_methods_supported: Some(vec!["S256".into()]),
            ..Default::default()
        }
    }

    fn request(server: &ServerMetadata) -> AuthorizationRequest {
        let scopes = ["read".to_owned(), "offline_access".to_owned()];
        let asked = Asked {
            client_id: "me",
            redirect_uri: "http://127.0.0.1:9/callback",
            resource: "https://h/mcp",
            scopes: &scopes,
        };
        AuthorizationRequest::new(server, asked).unwrap()
    }

    fn parameter(url: &Url, name: &str) -> Vec<String> {
        url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value.into_owned()).collect()
    }

    #[test]
    fn an_authorization_request_has_pkce_state_and_resource() {
        let request = request(&server());
        let one = |name: &str| parameter(&request.url, name).join("|");
        assert_eq!(
            (one("tenant").as_str(), one("redirect_uri").as_str()),
            ("1", "http://127.0.0.1:9/callback")
        );
        assert_eq!(
            (one("code_challenge_method").as_str(), one("resource").as_str()),
            ("S256", "https://h/mcp")
        );
        assert_eq!((one("scope").as_str(), one("prompt").as_str()), ("read offline_access", "consent"));
        assert_eq!(one("code_challenge"), random::digest(request.verifier.expose()));
        assert!(one("state").len() == 43 && !format!("{request:?}").contains(request.verifier.expose()));
    }

    #[test]
    fn a_login_without_pkce_is_refused() {
        for methods in [None, Some(vec![]), Some(vec!["plain".to_owned()])] {
            let server = ServerMetadata { code_challenge_methods_supported: methods, ..server() };
            let asked = Asked { client_id: "me", redirect_uri: "r", resource: "x", scopes: &[] };
            assert!(matches!(AuthorizationRequest::new(&server, asked), Err(CannotAsk::NoPkce(_))));
        }
    }

    #[test]
    fn an_answer_counts_only_with_state_and_issuer() {
        let check = |names_itself: bool, rest: &str| {
            let server =
                ServerMetadata { authorization_response_iss_parameter_supported: names_itself, ..server() };
            let request = request(&server);
            let query = rest.replace("STATE", request.state.expose());
            request.code(&query).map(|code| code.expose().to_owned())
        };
        let issuer = "https%3A%2F%2Fa.example";
        assert_eq!(check(false, "code=c&state=STATE"), Ok("c".into()));
        assert_eq!(check(true, &format!("code=c&state=STATE&iss={issuer}")), Ok("c".into()));
        assert_eq!(check(true, "code=c&state=STATE"), Err(AnswerError::NoIssuer("https://a.example".into())));
        for other in [
            "https%3A%2F%2Fa.example%2F",
            "https%3A%2F%2FA.example",
            "https%3A%2F%2Fa.example%3A443",
            "",
            "x",
        ] {
            let answer = check(false, &format!("code=c&state=STATE&iss={other}"));
            assert_eq!(answer, Err(AnswerError::OtherIssuer("https://a.example".into())), "{other}");
        }
        for state in ["", "state=", "state=x", "state=STATEx"] {
            assert_eq!(check(false, &format!("code=c&{state}")), Err(AnswerError::OtherState), "{state}");
        }
        assert_eq!(check(false, "state=STATE"), Err(AnswerError::NoCode));
        assert_eq!(check(false, "code=c&code=d&state=STATE"), Err(AnswerError::NoCode));
        for stranger in ["code=c&code=d", "state=x&state=STATE", "state=STATE&state=STATE&code=c"] {
            assert_eq!(check(false, stranger), Err(AnswerError::OtherState), "{stranger}");
        }
        assert!(matches!(check(false, "error=access_denied&state=STATE"), Err(AnswerError::Denied { .. })));
        // The error of a stranger is not even shown.
        assert!(matches!(check(false, "error=x&state=STATE&iss=evil"), Err(AnswerError::OtherIssuer(_))));
    }
}
