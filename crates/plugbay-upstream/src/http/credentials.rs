//! Requests with credentials: each uses the current ones, and is sent again when there are new ones.

use std::sync::{Arc, Mutex, PoisonError};

use plugbay_core::{
    credentials::{Credentials, Generation, Headers, Later, Rejection, Target, Verdict},
    failure::{Cause, Failure},
    secret::Secret,
};
use reqwest::{
    Client, Request, RequestBuilder, Response, StatusCode, Url,
    header::{HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE},
};

use super::error::TransportError;

/// Limit of attempts for one request.
const ATTEMPTS: u32 = 5;
const DPOP_NONCE: &str = "dpop-nonce";

/// The credentials of one server, shared by all its links.
#[derive(Debug)]
pub(crate) struct ServerCredentials {
    source: Arc<dyn Credentials>,
    /// The credentials that were last found to need a login. A std mutex: held for a copy.
    rejected: Mutex<Generation>,
    /// The credentials that were last sent.
    sent: Mutex<(Option<Generation>, Vec<Secret>)>,
}

impl ServerCredentials {
    pub(crate) fn new(source: Arc<dyn Credentials>) -> Arc<Self> {
        let rejected = Mutex::new(source.generation());
        Arc::new(Self { source, rejected, sent: Mutex::default() })
    }

    pub(crate) fn source(&self) -> &Arc<dyn Credentials> {
        &self.source
    }

    /// Ends when there are other credentials than the ones that last needed a login.
    pub(crate) fn changed(self: &Arc<Self>) -> Later<'static, ()> {
        let (source, since) = (Arc::clone(&self.source), *self.lock());
        Box::pin(async move { source.changed(since).await })
    }

    /// Whether there are other credentials than the ones that last needed a login.
    pub(crate) fn have_changed(&self) -> bool {
        self.source.generation() != *self.lock()
    }

    /// Sends a request. A server that rejects the credentials has not carried the request out, so it is sent
    /// again as long as there are new ones.
    pub(super) async fn send(
        &self,
        client: &Client,
        request: RequestBuilder,
    ) -> Result<Response, TransportError> {
        let request = request.build().map_err(TransportError::from_client)?;
        let (method, url) = (request.method().clone(), target_url(request.url()));
        let target = Target { method: method.as_str(), url: &url };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let before = self.source.generation();
            let headers = self.source.headers(target).await;
            let headers = headers.map_err(|failure| self.failed(failure, before))?;
            self.note(&headers);
            let Some(attempt) = request.try_clone() else {
                return Err(TransportError::Unusable("the request cannot be sent twice"));
            };
            let response = client.execute(with_headers(attempt, &headers)?).await;
            let response = response.map_err(TransportError::from_client)?;
            let Some(challenges) = rejection(&response) else { return Ok(response) };
            let verdict = self.source.rejected(Rejection {
                status: response.status().as_u16(),
                challenges,
                dpop_nonce: text(response.headers().get(DPOP_NONCE)),
                request: target,
                generation: headers.generation,
                attempts,
            });
            match verdict.await {
                Verdict::SendAgain if attempts < ATTEMPTS => {}
                Verdict::SendAgain | Verdict::NotOurs => return Ok(response),
                Verdict::NeedsLogin(failure) => return Err(self.needs_login(failure, headers.generation)),
                Verdict::Final(failure) => return Err(TransportError::Rejected(failure)),
            }
        }
    }

    /// The values that were last sent: a response may contain them.
    pub(super) fn sent(&self) -> Vec<Secret> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn note(&self, headers: &Headers) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.0 != Some(headers.generation) {
            *sent =
                (Some(headers.generation), headers.values.iter().map(|(_, value)| value.clone()).collect());
        }
    }

    fn failed(&self, failure: Arc<Failure>, since: Generation) -> TransportError {
        match failure.cause {
            Cause::NeedsLogin => self.needs_login(failure, since),
            _ => TransportError::Rejected(failure),
        }
    }

    fn needs_login(&self, failure: Arc<Failure>, since: Generation) -> TransportError {
        let mut rejected = self.lock();
        *rejected = since.max(*rejected);
        drop(rejected);
        TransportError::NeedsLogin { failure, since }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Generation> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The challenges of a response that rejects the credentials of its request.
fn rejection(response: &Response) -> Option<Vec<String>> {
    let challenges = || -> Vec<String> {
        let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
        values.filter_map(|value| text(Some(value))).collect()
    };
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(challenges()),
        StatusCode::FORBIDDEN => {
            let challenges = challenges();
            challenges.iter().any(|challenge| names_insufficient_scope(challenge)).then_some(challenges)
        }
        _ => None,
    }
}

/// Whether a challenge has `error="insufficient_scope"`.
fn names_insufficient_scope(challenge: &str) -> bool {
    challenge.split([',', ' ']).any(|part| {
        let (name, value) = part.split_once('=').unwrap_or_default();
        name.trim().eq_ignore_ascii_case("error") && value.trim().trim_matches('"') == "insufficient_scope"
    })
}

fn text(value: Option<&HeaderValue>) -> Option<String> {
    value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn with_headers(mut request: Request, headers: &Headers) -> Result<Request, TransportError> {
    let mut added = HeaderMap::new();
    for (name, value) in &headers.values {
        // Neither is shown: both may come from a program.
        let header = HeaderName::from_bytes(name.as_bytes()).ok();
        let value = HeaderValue::from_str(value.expose()).ok();
        let (Some(name), Some(mut value)) = (header, value) else {
            return Err(TransportError::Unusable("its credentials are no valid HTTP headers"));
        };
        value.set_sensitive(true);
        added.append(name, value);
    }
    for name in added.keys() {
        request.headers_mut().remove(name);
    }
    request.headers_mut().extend(added);
    Ok(request)
}

/// A URL without query, fragment, user name and password.
fn target_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = (url.set_username(""), url.set_password(None)); // an HTTP URL can be without
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insufficient_scope_is_an_error_of_a_challenge_and_no_other_word() {
        for (challenge, is) in [
            (r#"Bearer error="insufficient_scope", scope="a b""#, true),
            (r#"Bearer realm="x",error=insufficient_scope"#, true),
            (r#"Bearer scope="a", error="insufficient_scope""#, true),
            (r#"Bearer error="invalid_token""#, false),
            (r#"Bearer realm="insufficient_scope""#, false),
        ] {
            assert_eq!(names_insufficient_scope(challenge), is, "{challenge}");
        }
    }

    #[test]
    fn the_target_of_a_request_has_neither_query_nor_password() {
        let url = Url::parse("https://ann:key@h.example/mcp?key=1#x").unwrap();
        assert_eq!(target_url(&url), "https://h.example/mcp");
    }
}
