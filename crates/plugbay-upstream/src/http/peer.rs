//! The HTTP server: its URL, the negotiated version and session, and the sending of single requests.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::{Bytes, BytesMut};
use plugbay_core::{
    credentials::Generation,
    failure::Failure,
    secret::{HIDDEN, KnownSecrets},
};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE},
};
use tokio::sync::watch;

use super::{
    client,
    credentials::ServerCredentials,
    error::{TransportError, redacted, redirect_target},
    plain_api::KnownTools,
    remote,
};
use crate::{process::text::clean, spec::HttpSpec};

pub(super) const SESSION_ID: &str = "mcp-session-id";
pub(super) const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// How much of an error body is read.
const ERROR_BODY: usize = 4096;
/// How much of that text is shown, in characters.
const ERROR_TEXT: usize = 300;

/// The transport of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Streamable,
    /// The transport of 2024-11-05.
    Sse,
    /// The plain API of a remote gateway, without MCP.
    PlainApi,
}

/// One HTTP server, shared by all requests of a link.
pub(super) struct Peer {
    pub(super) client: Client,
    /// Credentials in addition to the configured headers.
    credentials: Option<Arc<ServerCredentials>>,
    pub(super) url: Url,
    /// Values that no text about the server may show.
    pub(super) secrets: KnownSecrets,
    pub(super) flavour: Flavour,
    /// Whether it is a remote gateway: if one request cannot reach it, the whole link is lost.
    pub(super) remote: bool,
    /// Limit of message length that is accepted from it.
    pub(super) limit: usize,
    // A std mutex: held for a copy, never across an await.
    negotiated: Mutex<Negotiated>,
    /// The URL to which an SSE server wants messages.
    pub(super) endpoint: watch::Sender<Option<Url>>,
    /// Whether a legacy server has accepted `notifications/initialized`; before that it need not answer
    /// requests.
    initialized: watch::Sender<bool>,
    /// Bytes of requests that are being sent.
    outgoing: AtomicUsize,
    /// Bytes of notifications and responses that the server has not accepted yet.
    untaken: AtomicUsize,
    /// The tools of a remote with the plain API, as last read.
    pub(super) known_tools: KnownTools,
}

/// The results of the opening.
#[derive(Default)]
struct Negotiated {
    open: bool,
    /// `None` for an open modern server, whose requests carry the version themselves.
    version: Option<HeaderValue>,
    session: Option<HeaderValue>,
}

impl Peer {
    pub(super) fn new(
        spec: &HttpSpec,
        flavour: Flavour,
        limit: usize,
        session_id: Option<&str>,
        credentials: Option<Arc<ServerCredentials>>,
    ) -> Result<Self, Failure> {
        let url = client::url(spec)?;
        let client = client::build(spec, &url, session_id)?;
        Ok(Self {
            client,
            credentials,
            url: if spec.remote && flavour != Flavour::PlainApi { remote::mcp(&url) } else { url },
            secrets: spec.secrets(),
            remote: spec.remote,
            flavour,
            limit,
            negotiated: Mutex::default(),
            endpoint: watch::channel(None).0,
            initialized: watch::channel(false).0,
            outgoing: AtomicUsize::new(0),
            untaken: AtomicUsize::new(0),
            known_tools: KnownTools::default(),
        })
    }

    pub(super) fn opened(&self, version: Option<&str>) {
        let mut negotiated = self.lock();
        negotiated.open = true;
        negotiated.version = version.and_then(|version| HeaderValue::from_str(version).ok());
    }

    pub(super) fn is_open(&self) -> bool {
        self.lock().open
    }

    pub(super) fn is_modern(&self) -> bool {
        let negotiated = self.lock();
        negotiated.open && negotiated.version.is_none()
    }

    pub(super) fn is_legacy(&self) -> bool {
        let negotiated = self.lock();
        negotiated.open && negotiated.version.is_some()
    }

    /// Waits until requests may be sent.
    pub(super) async fn ready(&self) {
        if self.is_legacy() {
            let _ = self.initialized.subscribe().wait_for(|initialized| *initialized).await;
        }
    }

    pub(super) fn is_initialized(&self) -> bool {
        *self.initialized.borrow()
    }

    pub(super) fn mark_initialized(&self) {
        self.initialized.send_replace(true);
    }

    pub(super) fn backlog(&self) -> usize {
        self.outgoing.load(Ordering::Relaxed) + self.untaken()
    }

    pub(super) fn untaken(&self) -> usize {
        self.untaken.load(Ordering::Relaxed)
    }

    pub(super) fn queued(&self, bytes: usize) {
        self.untaken.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn taken(&self, bytes: usize) {
        self.untaken.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Posts one message. Returns a response with a success status, or with a JSON body.
    pub(super) async fn post(&self, message: Bytes, headers: HeaderMap) -> Result<Response, TransportError> {
        let url = match self.flavour {
            Flavour::Streamable | Flavour::PlainApi => self.url.clone(),
            Flavour::Sse => self.endpoint().await?,
        };
        let _counted = Outgoing::count(&self.outgoing, message.len());
        let legacy = headers.is_empty();
        let request = self
            .client
            .post(url)
            .headers(headers)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(message);
        let response = self.send(request).await?;
        if legacy && response.status().is_success() {
            self.keep_session(response.headers()); // a modern server has none to give
        }
        Ok(response)
    }

    /// Requests a stream; `after` is the id of the last event received.
    pub(super) async fn get(&self, after: Option<&Bytes>) -> Result<Response, TransportError> {
        let mut request = self.client.get(self.url.clone()).header(ACCEPT, "text/event-stream");
        if let Some(id) = after {
            request = request.header("last-event-id", id.as_ref());
        }
        self.send(request).await
    }

    pub(super) fn take_session(&self) -> Option<HeaderValue> {
        self.lock().session.take()
    }

    pub(super) async fn end_session(&self, session: HeaderValue) {
        let _ = self.send(self.client.delete(self.url.clone()).header(SESSION_ID, session)).await;
    }

    pub(super) fn has_session(&self) -> bool {
        self.lock().session.is_some()
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, TransportError> {
        let (request, in_session) = self.in_session(request);
        let response = self.exchange(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(TransportError::SessionGone);
        }
        if !status.is_redirection() && is_json(&response) {
            return Ok(response); // its body holds the JSON-RPC error
        }
        Err(self.status_error(response).await)
    }

    /// Sends a request unchanged, with the current credentials.
    pub(super) async fn exchange(&self, request: RequestBuilder) -> Result<Response, TransportError> {
        match &self.credentials {
            Some(credentials) => credentials.send(&self.client, request).await,
            None => request.send().await.map_err(TransportError::from_client),
        }
    }

    /// Waits until there are other credentials than these.
    pub(super) async fn credentials_changed(&self, since: Generation) {
        match &self.credentials {
            Some(credentials) => credentials.source().changed(since).await,
            None => std::future::pending().await,
        }
    }

    /// Adds the negotiated headers. Also returns whether a session is among them.
    fn in_session(&self, mut request: RequestBuilder) -> (RequestBuilder, bool) {
        let negotiated = self.lock();
        if let Some(version) = &negotiated.version {
            request = request.header(PROTOCOL_VERSION, version);
        }
        if let Some(session) = &negotiated.session {
            request = request.header(SESSION_ID, session);
        }
        (request, negotiated.session.is_some())
    }

    fn keep_session(&self, headers: &HeaderMap) {
        if let Some(session) = headers.get(SESSION_ID).filter(|_| !self.is_modern()) {
            let mut session = session.clone();
            session.set_sensitive(true);
            self.lock().session.get_or_insert(session);
        }
    }

    /// The error for a response with an error status.
    pub(super) async fn status_error(&self, response: Response) -> TransportError {
        let (status, challenge) = (response.status(), challenge(&response));
        self.error_of(status, error_page(response).await, challenge)
    }

    /// The error for a response with this status and text, without secrets.
    pub(super) fn error_of(
        &self,
        status: StatusCode,
        text: String,
        challenge: Option<String>,
    ) -> TransportError {
        let secrets = self.response_secrets();
        // Secrets are hidden before the text is cut: half a secret would not be recognised.
        let text = secrets.hide(text).chars().take(ERROR_TEXT).collect();
        let challenge = challenge.map(|challenge| secrets.hide(challenge).into_owned());
        TransportError::Status { code: status.as_u16(), text, challenge }
    }

    /// Values that no text of a response may show: a response may repeat its request.
    pub(super) fn response_secrets(&self) -> KnownSecrets {
        let sent = self.credentials.as_ref().map(|credentials| credentials.sent()).unwrap_or_default();
        let words = sent.iter().flat_map(|value| value.expose().split_whitespace());
        self.secrets.and_likely(words.map(|word| (word.into(), HIDDEN.to_owned())))
    }

    async fn endpoint(&self) -> Result<Url, TransportError> {
        let mut endpoint = self.endpoint.subscribe();
        let url = endpoint.wait_for(Option::is_some).await.map(|url| url.clone());
        url.ok().flatten().ok_or_else(|| TransportError::Broken("its stream has ended".to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, Negotiated> {
        // Nothing can panic half-way through a change.
        self.negotiated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows no secrets.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("url", &redacted(&self.url)).finish_non_exhaustive()
    }
}

struct Outgoing<'a>(&'a AtomicUsize, usize);

impl<'a> Outgoing<'a> {
    fn count(total: &'a AtomicUsize, bytes: usize) -> Self {
        total.fetch_add(bytes, Ordering::Relaxed);
        Self(total, bytes)
    }
}

impl Drop for Outgoing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

pub(super) fn is_json(response: &Response) -> bool {
    content_type(response).is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

pub(super) fn is_stream(response: &Response) -> bool {
    content_type(response).is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
}

fn content_type(response: &Response) -> Option<&str> {
    let value = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}

/// The body, up to the limit.
pub(super) async fn body(mut response: Response, limit: usize) -> Result<BytesMut, TransportError> {
    let expected = response.content_length().and_then(|length| usize::try_from(length).ok());
    if expected.is_some_and(|length| length > limit) {
        return Err(TransportError::TooLarge);
    }
    let mut body = BytesMut::with_capacity(expected.unwrap_or_default());
    while let Some(chunk) = response.chunk().await.map_err(TransportError::from_client)? {
        if body.len() + chunk.len() > limit {
            return Err(TransportError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The text of a response with an error status: the target of its redirect, or the first line of its body.
async fn error_page(mut response: Response) -> String {
    if let Some(url) = location(&response).filter(|_| response.status().is_redirection()) {
        return format!("it redirects to {}", redirect_target(response.url(), &url));
    }
    let mut page = Vec::new();
    while page.len() < ERROR_BODY
        && let Ok(Some(chunk)) = response.chunk().await
    {
        page.extend_from_slice(&chunk);
    }
    page.truncate(ERROR_BODY);
    let line = page.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let markup = |line: &&[u8]| line.trim_ascii_start().starts_with(b"<");
    line.filter(|line| !markup(line)).map(clean).unwrap_or_default()
}

/// The challenge exactly as in the response: it may contain secrets.
pub(super) fn challenge(response: &Response) -> Option<String> {
    response.headers().get(WWW_AUTHENTICATE).map(|value| clean(value.as_bytes()))
}

fn location(response: &Response) -> Option<Url> {
    response.url().join(response.headers().get("location")?.to_str().ok()?).ok()
}
