//! The server at the other end: its address, what was negotiated with it, and what can go wrong on the way.

use std::{
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::{Bytes, BytesMut};
use plugbay_core::failure::Failure;
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE},
};
use tokio::sync::watch;

use super::client;
use crate::{
    process::text::clean,
    spec::{HttpSpec, ServerSpec, Transport},
};

pub(super) const SESSION_ID: &str = "mcp-session-id";
pub(super) const PROTOCOL_VERSION: &str = "mcp-protocol-version";

/// How much of an error page is read for the words in it.
const ERROR_BODY: usize = 4096;
/// How much of it is repeated.
const ERROR_WORDS: usize = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Streamable,
    Sse,
}

pub(super) struct Peer {
    client: Client,
    pub(super) url: Url,
    pub(super) flavour: Flavour,
    /// The longest message taken from it.
    pub(super) limit: usize,
    // A std mutex: held for a copy, never across an await.
    negotiated: Mutex<Negotiated>,
    /// Where an SSE server wants its messages.
    pub(super) endpoint: watch::Sender<Option<Url>>,
    /// Whether a legacy server has heard that the opening is over; before, it need not answer.
    initialized: watch::Sender<bool>,
    /// Bytes of requests that are on their way to it.
    outgoing: AtomicUsize,
    /// Bytes of notifications and answers that it has not taken yet.
    untaken: AtomicUsize,
}

#[derive(Default)]
struct Negotiated {
    open: bool,
    /// `None` once open: a modern server, which is told the version by each request.
    version: Option<HeaderValue>,
    session: Option<HeaderValue>,
}

/// Why a request got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransportError {
    /// Not a byte of the request has left.
    Unreachable(String),
    /// The server has forgotten the session; it has not looked at the request.
    SessionGone,
    /// It has answered, but nothing that could be passed on.
    Unusable(&'static str),
    Status {
        code: u16,
        words: String,
        challenge: Option<String>,
    },
    /// It may or may not have been done.
    Broken(String),
    TooLarge,
}

impl Peer {
    pub(super) fn new(spec: &HttpSpec, flavour: Flavour, limit: usize) -> Result<Self, Failure> {
        let url = client::url(spec)?;
        Ok(Self {
            client: client::build(spec, &url)?,
            url,
            flavour,
            limit,
            negotiated: Mutex::default(),
            endpoint: watch::channel(None).0,
            initialized: watch::channel(false).0,
            outgoing: AtomicUsize::new(0),
            untaken: AtomicUsize::new(0),
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

    /// Sends one message. What comes back has a status of success, or says in JSON why not.
    pub(super) async fn post(&self, message: Bytes, headers: HeaderMap) -> Result<Response, TransportError> {
        let url = match self.flavour {
            Flavour::Streamable => self.url.clone(),
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
        let response = self.answer(request).await?;
        if legacy && response.status().is_success() {
            self.note_session(response.headers()); // a modern server has none to give
        }
        Ok(response)
    }

    /// Asks for a stream; `after` is the last event that was seen of it.
    pub(super) async fn get(&self, after: Option<&Bytes>) -> Result<Response, TransportError> {
        let mut request = self.client.get(self.url.clone()).header(ACCEPT, "text/event-stream");
        if let Some(id) = after {
            request = request.header("last-event-id", id.as_ref());
        }
        self.answer(request).await
    }

    pub(super) fn take_session(&self) -> Option<HeaderValue> {
        self.lock().session.take()
    }

    pub(super) async fn end_session(&self, session: HeaderValue) {
        let _ = self.answer(self.client.delete(self.url.clone()).header(SESSION_ID, session)).await;
    }

    pub(super) fn has_session(&self) -> bool {
        self.lock().session.is_some()
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Response, TransportError> {
        let (request, in_session) = self.in_session(request);
        let response = request.send().await.map_err(TransportError::from_client)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status == StatusCode::NOT_FOUND && in_session {
            return Err(TransportError::SessionGone);
        }
        if !status.is_redirection() && is_json(&response) {
            return Ok(response); // the reason is for the protocol to tell
        }
        Err(refused(response).await)
    }

    /// With what was negotiated at the opening; whether a session is part of it.
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

    fn note_session(&self, headers: &HeaderMap) {
        if let Some(session) = headers.get(SESSION_ID).filter(|_| !self.is_modern()) {
            let mut session = session.clone();
            session.set_sensitive(true);
            self.lock().session.get_or_insert(session);
        }
    }

    async fn endpoint(&self) -> Result<Url, TransportError> {
        let mut known = self.endpoint.subscribe();
        let url = known.wait_for(Option::is_some).await.map(|url| url.clone());
        url.ok().flatten().ok_or_else(|| TransportError::Broken("its stream has ended".to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, Negotiated> {
        // Nothing can panic half-way through a change.
        self.negotiated.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without anything secret.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("url", &shown(&self.url)).finish_non_exhaustive()
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

pub(super) async fn refused(mut response: Response) -> TransportError {
    let code = response.status().as_u16();
    let challenge = challenge(&response);
    let mut words = match leads_to(&response) {
        Some(url) if response.status().is_redirection() => format!("it leads to {}", shown(&url)),
        _ => String::new(),
    };
    if words.is_empty() {
        let mut page = Vec::new();
        while page.len() < ERROR_BODY
            && let Ok(Some(chunk)) = response.chunk().await
        {
            page.extend_from_slice(&chunk);
        }
        page.truncate(ERROR_BODY);
        let line = page.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
        let markup = |line: &&[u8]| line.trim_ascii_start().starts_with(b"<");
        words = line.filter(|line| !markup(line)).map(clean).unwrap_or_default();
        words = words.chars().take(ERROR_WORDS).collect();
    }
    TransportError::Status { code, words, challenge }
}

pub(super) fn challenge(response: &Response) -> Option<String> {
    response.headers().get(WWW_AUTHENTICATE).map(|value| clean(value.as_bytes()))
}

fn leads_to(response: &Response) -> Option<Url> {
    response.url().join(response.headers().get("location")?.to_str().ok()?).ok()
}

impl TransportError {
    pub(super) fn from_client(error: reqwest::Error) -> Self {
        let connecting = error.is_connect();
        let words = Self::words(error);
        if connecting { Self::Unreachable(words) } else { Self::Broken(words) }
    }

    /// The cause of the cause: what is above it only repeats that something failed. The address may
    /// have a secret in it.
    pub(super) fn words(error: reqwest::Error) -> String {
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        cause.to_string()
    }

    /// The same, told to the user.
    fn failure_at(&self, url: &str) -> Failure {
        let new = |what: String| Failure::new(what, Vec::new());
        match self {
            Self::Unreachable(why) => new(format!("cannot be reached at {url}: {why}"))
                .with_remedy("start it, or check \"url\", the network and the proxy settings"),
            Self::SessionGone => new("has forgotten its session".to_owned()),
            Self::Status { code, words, challenge } => {
                let reason = StatusCode::from_u16(*code).ok().and_then(|code| code.canonical_reason());
                let mut what = format!("answered HTTP {code} {}", reason.unwrap_or_default());
                for more in [Some(words), challenge.as_ref()].into_iter().flatten() {
                    if !more.is_empty() {
                        what = format!("{}: {more}", what.trim_end());
                    }
                }
                match remedy(*code) {
                    Some(remedy) => new(what).with_remedy(remedy),
                    None => new(what),
                }
            }
            Self::Broken(why) => new(format!("the connection broke before the answer was whole: {why}")),
            Self::Unusable(why) => new((*why).to_owned()),
            Self::TooLarge => new("sent more than is allowed".to_owned()),
        }
    }

    pub(super) fn failure(&self, peer: &Peer) -> Failure {
        self.failure_at(&shown(&peer.url))
    }

    pub(crate) fn failure_of(&self, spec: &ServerSpec) -> Failure {
        let url = match &spec.transport {
            Transport::Http(http) => Url::parse(&http.url).ok().as_ref().map(shown),
            Transport::Stdio(_) => None,
        };
        self.failure_at(&url.unwrap_or_default())
    }

    /// Some servers have another status for a session that they do not know.
    pub(super) fn within_session(self) -> Self {
        match &self {
            Self::Status { code: 400, words, .. } if words.to_ascii_lowercase().contains("session") => {
                Self::SessionGone
            }
            _ => self,
        }
    }

    /// Asking in another way would not help.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Status { code, .. } => matches!(code, 300..=399 | 401 | 403 | 407 | 429 | 502..=504),
            Self::SessionGone | Self::Broken(_) | Self::Unusable(_) | Self::TooLarge => false,
        }
    }

    /// A server of the old transport says so by one of these when it is sent a POST.
    pub(crate) fn suggests_sse(&self) -> bool {
        matches!(self, Self::Status { code: 400 | 404 | 405, .. })
    }
}

fn remedy(code: u16) -> Option<&'static str> {
    match code {
        401 => Some("give it credentials: an \"Authorization\" header in \"headers\""),
        403 => Some("check that the credentials in \"headers\" may use this server"),
        404 | 405 => Some("check the path of \"url\""),
        407 => Some("give the proxy credentials in HTTPS_PROXY"),
        429 => Some("wait, or ask its operator for a higher limit"),
        300..=399 => Some("use the address it leads to as \"url\", if you trust it"),
        _ => None,
    }
}

/// An address without what may be secret in it.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}
