//! Errors of HTTP requests that got no response, and their text for the user.

use std::sync::Arc;

use plugbay_core::{
    credentials::Generation,
    failure::{Cause, Failure},
};
use reqwest::{StatusCode, Url};

use super::peer::Peer;
use crate::spec::{ServerSpec, Transport};

/// The reason why a request got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransportError {
    /// No byte of the request was sent.
    Unreachable(String),
    /// The server no longer knows the session, and has not read the request.
    SessionGone,
    /// The response cannot be forwarded.
    Unusable(&'static str),
    Status {
        code: u16,
        /// The text of the error body.
        text: String,
        challenge: Option<String>,
    },
    /// The connection broke: the request may or may not have been carried out.
    Broken(String),
    TooLarge,
    /// The server rejected the credentials and has not carried out the request. Only a login by the user can
    /// help.
    NeedsLogin {
        failure: Arc<Failure>,
        /// The credentials that were rejected.
        since: Generation,
    },
    /// The server rejected the credentials, or none are available now.
    Rejected(Arc<Failure>),
}

impl TransportError {
    pub(super) fn from_client(error: reqwest::Error) -> Self {
        let connecting = error.is_connect();
        let cause = Self::cause(error);
        if connecting { Self::Unreachable(cause) } else { Self::Broken(cause) }
    }

    /// The innermost cause: the outer ones only repeat that something failed. The URL is left out, because it
    /// may hold a secret.
    pub(super) fn cause(error: reqwest::Error) -> String {
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause.to_string()
    }

    /// The failure as reported to the user.
    fn failure_at(&self, url: &str) -> Failure {
        let new = |what: String| Failure::new(what, Vec::new());
        match self {
            Self::Unreachable(why) => new(format!("cannot be reached at {url}: {why}"))
                .because(Cause::Unreachable)
                .with_remedy("start it, or check \"url\", the network and the proxy settings"),
            Self::SessionGone => new("has forgotten its session".to_owned()),
            Self::Status { code, text, challenge } => {
                let reason = StatusCode::from_u16(*code).ok().and_then(|code| code.canonical_reason());
                let mut what = format!("answered HTTP {code} {}", reason.unwrap_or_default());
                for more in [Some(text), challenge.as_ref()].into_iter().flatten() {
                    if !more.is_empty() {
                        what = format!("{}: {more}", what.trim_end());
                    }
                }
                let failure = new(what).because(Cause::HttpStatus(*code));
                match remedy(*code) {
                    Some(remedy) => failure.with_remedy(remedy),
                    None => failure,
                }
            }
            Self::Broken(why) => new(format!("the connection broke before the answer was whole: {why}"))
                .with_remedy("look whether the call had an effect, then call again"),
            Self::Unusable(why) => new((*why).to_owned()),
            Self::TooLarge => new("sent more than is allowed".to_owned()),
            Self::NeedsLogin { failure, .. } | Self::Rejected(failure) => Failure::clone(failure),
        }
    }

    pub(super) fn failure(&self, peer: &Peer) -> Failure {
        self.failure_at(&redacted(&peer.url)).hiding(&peer.secrets)
    }

    pub(crate) fn failure_of(&self, spec: &ServerSpec) -> Failure {
        let Transport::Http(http) = &spec.transport else { return self.failure_at("") };
        let url = Url::parse(&http.url).ok().as_ref().map(redacted);
        let failure = self.failure_at(&url.unwrap_or_default()).hiding(&http.secrets());
        let has_credentials = http.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        match self {
            Self::Status { code: 401 | 403, .. } if http.remote && has_credentials => {
                failure.with_remedy(REMOTE_REJECTED)
            }
            Self::Status { code: 401, .. } if http.remote => failure.with_remedy(REMOTE_TOKEN),
            Self::Status { code: 401, .. } if has_credentials => failure.with_remedy(REJECTED),
            _ => failure,
        }
    }

    /// The error of a request in a session: some servers answer an unknown session with status 400.
    pub(super) fn within_session(self) -> Self {
        match &self {
            Self::Status { code: 400, text, .. } if text.to_ascii_lowercase().contains("session") => {
                Self::SessionGone
            }
            _ => self,
        }
    }

    /// Whether another request would fail in the same way.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::NeedsLogin { .. } | Self::Rejected(_) => true,
            Self::Status { code, .. } => matches!(code, 300..=399 | 401 | 403 | 407 | 429 | 502..=504),
            Self::SessionGone | Self::Broken(_) | Self::Unusable(_) | Self::TooLarge => false,
        }
    }

    /// Whether a remote that has only the plain API would answer a request to `/mcp` like this.
    pub(crate) fn suggests_plain_api(&self) -> bool {
        matches!(self, Self::Status { code: 404 | 405, .. })
    }

    /// Whether a server that knows only the SSE transport would answer a POST like this.
    pub(crate) fn suggests_sse(&self) -> bool {
        matches!(self, Self::Status { code: 400 | 404 | 405, .. })
    }
}

/// The remedy if the server got an `Authorization` header.
const REJECTED: &str = "the server rejects the credentials in the \"Authorization\" header: check that they are whole and still hold";

/// The remedies for a remote, which has no `headers` if the command line names it.
const REMOTE_REJECTED: &str =
    "the remote rejects the token: it may be wrong, expired, revoked, or not allowed to do this";
const REMOTE_TOKEN: &str = "give it a token: PLUGBAY_REMOTE_TOKEN for a remote of `--remote` or PLUGBAY_REMOTE, else \"bearer_token_env_var\" in its entry";

fn remedy(code: u16) -> Option<&'static str> {
    match code {
        401 => Some("give it credentials: an \"Authorization\" header in \"headers\""),
        403 => Some("check that the credentials in \"headers\" may use this server"),
        404 | 405 => Some("check the path of \"url\""),
        407 => Some("give the proxy credentials in HTTPS_PROXY"),
        429 => Some("wait, or ask its operator for a higher limit"),
        300..=399 => Some("use the address it redirects to as \"url\", if you trust it"),
        _ => None,
    }
}

/// The part of a URL that holds no secret: many hosted servers have the API key in the path.
pub(super) fn redacted(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The target of a redirect. Parts of the path that also occur in the configured URL may be an API key.
pub(super) fn redirect_target(from: &Url, to: &Url) -> String {
    let known: Vec<&str> = from.path_segments().into_iter().flatten().collect();
    let shown =
        |part: &str| if part.len() > SHORT_PART && known.contains(&part) { "…" } else { part }.to_owned();
    let path: Vec<String> = to.path_segments().into_iter().flatten().map(shown).collect();
    format!("{}/{}", redacted(to), path.join("/"))
}

/// Path parts up to this length, such as `mcp` or `sse`, are too short for an API key.
const SHORT_PART: usize = 4;
