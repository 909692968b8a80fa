//! A login by the user: in a browser on this machine, or with a redirect that the user pastes.

use std::{io, sync::Arc, time::Duration};

use plugbay_core::{secret::Secret, wire::write};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::timeout,
};
use url::Url;

use super::{ServerLogin, Shared};
use crate::{
    assertion::{DpopKey, SignError},
    authorization::{AnswerError, Asked, AuthorizationRequest, CannotAsk},
    callback::{Arrival, Callback, Page},
    challenge,
    client::{self, Client, ClientSource, Need, RegistrationError},
    discovery::{Discovered, DiscoveryError},
    http::{HttpError, origin},
    metadata::{ServerMetadata, canonical},
    random,
    store::{Login, StoreError},
    token::{TokenError, TokenGrant, TokenRequest},
};

/// How long the user may take for a login.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// How long a browser may take to read the last page.
const PAGE_PATIENCE: Duration = Duration::from_secs(2);

/// The reason why a login did not succeed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoginError {
    #[error("it does not ask for a login")]
    NotNeeded,
    #[error("plugbay gets its token without a user: \"grant\" in \"oauth\" says so")]
    Machine,
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Client(#[from] RegistrationError),
    #[error(transparent)]
    CannotAsk(#[from] CannotAsk),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error("the redirect cannot be received: {0}")]
    Listen(String),
    #[error("{issuer} did not log you in: {answer}")]
    Answer { issuer: String, answer: AnswerError },
    #[error("{issuer} gives no token: {error}")]
    Token { issuer: String, error: TokenError },
    #[error("the login cannot be kept: {0}")]
    Store(String),
    #[error("nobody has logged in for {} min", PATIENCE.as_secs() / 60)]
    OutOfTime,
}

impl LoginError {
    /// A remedy for the user, if there is one.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Client(RegistrationError::NotOffered(issuer)) => format!(
                "register plugbay at {issuer} yourself, with the redirect URI http://127.0.0.1/callback (any port), and write its id into the server's entry: \"oauth\": {{ \"clientId\": \"…\" }}"
            ),
            Self::Client(RegistrationError::OtherIssuer { .. }) => {
                "check that you trust the new authorization server; then register a client there and change \"clientId\" and \"issuer\"".to_owned()
            }
            Self::Discovery(DiscoveryError::Nothing) => {
                "it may take a key instead: give it an \"Authorization\" header in \"headers\"".to_owned()
            }
            Self::Discovery(DiscoveryError::Http(HttpError::NotAllowed { .. })) | Self::Http(HttpError::NotAllowed { .. }) => {
                "if its authorization server is in your own network, write \"oauth\": { \"privateNetwork\": true } into the server's entry".to_owned()
            }
            Self::Listen(_) => "choose another \"callbackPort\", or log in with --no-browser".to_owned(),
            _ => return None,
        })
    }
}

impl LoginError {
    /// Whether another attempt by the user may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Answer { answer: AnswerError::Denied { .. }, .. } | Self::OutOfTime)
    }
}

/// A login in progress. It goes on when this is dropped.
#[derive(Debug, Clone)]
pub struct LoginFlow {
    /// The page where the user logs in.
    pub url: Url,
    /// The id of the login for hosts.
    pub id: String,
    /// The authorization server.
    pub issuer: String,
    /// The address to which the browser returns.
    pub redirect_uri: String,
    arrivals: mpsc::Sender<Arrival>,
    outcome: watch::Receiver<Option<Result<(), LoginError>>>,
}

impl LoginFlow {
    /// Waits until the user has logged in or the login has failed.
    pub async fn finished(&self) -> Result<(), LoginError> {
        let mut outcome = self.outcome.clone();
        let finished = outcome.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        finished.ok().flatten().unwrap_or(Err(LoginError::OutOfTime))
    }

    pub fn is_over(&self) -> bool {
        self.outcome.borrow().is_some() || self.outcome.has_changed().is_err()
    }

    /// Takes the address to which the browser was redirected, as pasted by the user. False if it belongs to
    /// another login.
    pub async fn paste(&self, text: &str) -> bool {
        let text = text.trim();
        let query =
            text.split_once('?').map_or(text, |(_, query)| query).split('#').next().unwrap_or_default();
        let (outcome, heard) = oneshot::channel();
        let _ = self.arrivals.send(Arrival { query: Secret::new(query), outcome, shown: None }).await;
        !matches!(heard.await, Ok(Page::Stranger) | Err(_))
    }
}

impl ServerLogin {
    /// Begins a login. `scopes` are added to those that the server wants.
    pub async fn begin(&self, scopes: &[String]) -> Result<LoginFlow, LoginError> {
        self.begin_with(scopes, false).await
    }

    /// The same for a user who pastes the redirect: the client's registered port need not be free.
    pub async fn begin_pasted(&self, scopes: &[String]) -> Result<LoginFlow, LoginError> {
        self.begin_with(scopes, true).await
    }

    async fn begin_with(&self, scopes: &[String], pasted: bool) -> Result<LoginFlow, LoginError> {
        let shared = &self.0;
        if shared.is_machine() {
            return Err(LoginError::Machine);
        }
        shared.reload().await.map_err(|error| LoginError::Store(error.to_string()))?;
        if shared.known().challenge.is_none() {
            shared.probe().await?;
        }
        let (discovered, is_guess) = shared.discover_for_login().await?;
        let prepared = match shared.prepare(discovered, scopes, pasted).await {
            // So it is no server of 2025-03-26 either.
            Err(LoginError::Client(_)) if is_guess => return Err(DiscoveryError::Nothing.into()),
            prepared => prepared?,
        };
        Ok(shared.start(prepared))
    }
}

/// Everything needed to handle the authorization server's answer.
struct Prepared {
    callback: Callback,
    request: AuthorizationRequest,
    server: ServerMetadata,
    login: Login,
    dpop: Option<DpopKey>,
}

impl Shared {
    /// Sends a request without credentials: the server's answer says how to log in.
    async fn probe(&self) -> Result<(), LoginError> {
        // Some servers accept `initialize` from everybody.
        let message = write::request(b"0", "tools/list", b"{}");
        let message = String::from_utf8_lossy(&message).into_owned();
        let response = self.http.probe(&self.url, message, "2025-11-25").await?;
        let challenges =
            response.headers.get_all("www-authenticate").iter().filter_map(|value| value.to_str().ok());
        let found = challenge::of_oauth(challenges);
        match (response.status, found) {
            (_, Some(found)) => self.known().challenge = Some(found),
            (401 | 403, None) => {}
            // A server that needs no login may still offer one.
            _ => {
                self.discover(None).await.map_err(|_| LoginError::NotNeeded)?;
            }
        }
        Ok(())
    }

    /// Like `discover`, but a server of 2025-03-26 may have no metadata: then the result is a guess.
    async fn discover_for_login(&self) -> Result<(Discovered, bool), LoginError> {
        self.known().discovered = None; // the user wants to know how it is now
        let challenge = self.known().challenge.clone();
        match self.discover(challenge.as_ref()).await {
            Err(DiscoveryError::Nothing) if self.http.check(&self.url).is_ok() => {
                let server = ServerMetadata::of_2025_03_26(&self.url);
                let resource = canonical(&self.url);
                Ok((Discovered { resource, scopes: None, needs_dpop: false, server }, true))
            }
            found => Ok((found?, false)),
        }
    }

    async fn prepare(
        &self,
        discovered: Discovered,
        more: &[String],
        pasted: bool,
    ) -> Result<Prepared, LoginError> {
        let logins = self.known().logins.clone();
        let before = logins.by_issuer.get(&discovered.server.issuer);
        let mut scopes = self.scopes_for(&discovered, before);
        scopes.extend(more.iter().filter(|scope| !scopes.contains(scope)).cloned().collect::<Vec<_>>());
        let known = before.map(|login| &login.client);
        let listen = |error: io::Error| LoginError::Listen(error.to_string());
        let callback = Callback::listen(self.oauth.callback_port, known.and_then(port), pasted).await;
        let callback = callback.map_err(listen)?;
        let server = discovered.server.clone();
        let (bound_to, now) = (self.bound_to(&logins), self.now());
        let need = Need {
            settings: &self.oauth,
            bound_to: bound_to.as_deref(),
            known,
            redirect_uri: &callback.redirect_uri,
            now,
        };
        let client = client::obtain(&self.http, &server, need).await?;
        let endpoint = server.token_endpoint.clone();
        let endpoint = endpoint.ok_or_else(|| DiscoveryError::NoMetadata(server.issuer.clone()))?;
        // Both are checked before a browser is sent there.
        self.http.check(&endpoint)?;
        let asked = Asked {
            client_id: &client.id,
            redirect_uri: &callback.redirect_uri,
            resource: &discovered.resource,
            scopes: &scopes,
        };
        let request = AuthorizationRequest::new(&server, asked)?;
        self.http.check(&request.url)?;
        let dpop = self.uses_dpop(&discovered).then(DpopKey::generate).transpose()?;
        let is_new = known != Some(&client);
        let mut login = Login::new(client, endpoint, discovered.resource, scopes);
        login.revocation_endpoint =
            server.revocation_endpoint.clone().filter(|url| self.http.check(url).is_ok());
        if is_new && matches!(login.client.source, ClientSource::Registered { .. }) {
            self.keep_client(&server.issuer, &login).await;
        }
        login.dpop_key = dpop.as_ref().map(|key| key.pem().clone());
        Ok(Prepared { callback, request, server, login, dpop })
    }

    /// Saves a registered client, so that an abandoned login leaves no second one behind. The client of a
    /// login with tokens stays, because only it can renew them.
    async fn keep_client(&self, issuer: &str, login: &Login) {
        let Ok(_lock) = self.store.lock(&self.key).await else { return };
        if self.reload().await.is_err() {
            return; // an old state must not replace one that cannot be read now
        }
        let mut logins = self.known().logins.clone();
        if logins.by_issuer.get(issuer).is_none_or(|login| login.tokens.is_none()) {
            logins.by_issuer.insert(issuer.to_owned(), login.clone());
            self.keep(logins).await;
        }
    }

    fn start(self: &Arc<Self>, prepared: Prepared) -> LoginFlow {
        let (arrivals, inbox) = mpsc::channel(4);
        let (outcome, heard) = watch::channel(None);
        let flow = LoginFlow {
            url: prepared.request.url.clone(),
            id: random::text().unwrap_or_default(),
            issuer: prepared.server.issuer.clone(),
            redirect_uri: prepared.request.redirect_uri.clone(),
            arrivals: arrivals.clone(),
            outcome: heard,
        };
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let result = timeout(PATIENCE, shared.run(prepared, arrivals, inbox)).await;
            outcome.send_replace(Some(result.unwrap_or(Err(LoginError::OutOfTime))));
        });
        flow
    }

    async fn run(
        self: &Arc<Self>,
        prepared: Prepared,
        arrivals: mpsc::Sender<Arrival>,
        mut inbox: mpsc::Receiver<Arrival>,
    ) -> Result<(), LoginError> {
        let Prepared { callback, request, server, login, dpop } = prepared;
        // It listens as long as there is an inbox.
        tokio::spawn(callback.serve(arrivals));
        loop {
            let Some(Arrival { query, outcome, shown }) = inbox.recv().await else {
                break Err(LoginError::OutOfTime);
            };
            let result = match request.code(query.expose()) {
                Err(AnswerError::OtherState) => {
                    let _ = outcome.send(Page::Stranger);
                    continue;
                }
                Err(answer) => Err(LoginError::Answer { issuer: shown_issuer(&server.issuer), answer }),
                Ok(code) => self.redeem(&code, &request, &server, login, dpop.as_ref()).await,
            };
            let _ = outcome.send(match &result {
                Ok(()) => Page::LoggedIn { server: self.key.name.clone() },
                Err(error) => Page::Failed { server: self.key.name.clone(), why: error.to_string() },
            });
            // A command ends with the login, so the page must reach the browser first.
            if let Some(shown) = shown {
                let _ = timeout(PAGE_PATIENCE, shown.notified()).await;
            }
            break result;
        }
    }

    async fn redeem(
        &self,
        code: &Secret,
        asked: &AuthorizationRequest,
        server: &ServerMetadata,
        mut login: Login,
        dpop: Option<&DpopKey>,
    ) -> Result<(), LoginError> {
        let request = TokenRequest {
            client: login.client.at_token_endpoint(&self.oauth),
            grant: TokenGrant::Code { code, verifier: &asked.verifier, redirect_uri: &asked.redirect_uri },
            resource: Some(&login.resource),
            scopes: &login.scopes,
            dpop,
        };
        let issued = self.endpoint(&login.token_endpoint, &server.issuer).request(&request).await;
        let issued = match issued {
            Ok(issued) => issued,
            Err(error) => {
                if error.forgets_client() {
                    self.expire_client(&server.issuer).await;
                }
                return Err(LoginError::Token { issuer: shown_issuer(&server.issuer), error });
            }
        };
        login.tokens = Some(self.tokens(issued, &login));
        let failed = |error: StoreError| LoginError::Store(error.to_string());
        let _lock = match self.store.lock(&self.key).await {
            // The login is still valid for this process. The attempt to save it reports that it cannot be
            // saved.
            Err(error) if error.is_read_only() => None,
            lock => Some(lock.map_err(failed)?),
        };
        self.reload().await.map_err(failed)?;
        let mut logins = self.known().logins.clone();
        (logins.current, logins.logged_out) = (Some(server.issuer.clone()), false);
        logins.by_issuer.insert(server.issuer.clone(), login);
        self.save(logins).await.map_err(failed)
    }

    /// Marks the client as expired, because the authorization server has forgotten it: the next login uses
    /// another one.
    async fn expire_client(&self, issuer: &str) {
        let Ok(_lock) = self.store.lock(&self.key).await else { return };
        if self.reload().await.is_err() {
            return;
        }
        let mut logins = self.known().logins.clone();
        if let Some(login) = logins.by_issuer.get_mut(issuer) {
            login.client.expire();
            self.keep(logins).await;
        }
    }
}

/// The port that a client is registered with.
fn port(client: &Client) -> Option<u16> {
    let ClientSource::Registered { redirect_uri, .. } = &client.source else { return None };
    Url::parse(redirect_uri).ok()?.port()
}

pub(super) fn shown_issuer(issuer: &str) -> String {
    Url::parse(issuer).map_or_else(|_| issuer.to_owned(), |url| origin(&url))
}
