//! The login at one server: keeps its tokens, renews them, and says when the user must log in.
//!
//! Many processes of the user share the login. Each adopts from the store what another has got.

mod credentials;
mod interactive;
mod machine;
mod renewal;

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugbay_core::{
    credentials::{Generation, Grant, OAuthSettings},
    failure::{Cause, Failure},
};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    task::spawn_blocking,
    time::Instant,
};
use url::Url;

pub use self::interactive::{LoginError, LoginFlow};
use crate::{
    address::AddressPolicy,
    challenge::Challenge,
    discovery::{self, Discovered, DiscoveryError},
    http::{Http, origin},
    store::{Logins, ServerKey, Stamp, Store, StoreError},
};

/// Returns the seconds since 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// How long a server's metadata is not requested again.
const DISCOVERY_LIFE: Duration = Duration::from_secs(30);

/// After how many seconds saving is tried again, if logins could not be written.
const SAVE_AGAIN: u64 = 10;

/// The parts that a login needs.
#[derive(Clone)]
pub struct LoginSettings {
    pub name: String,
    pub url: String,
    pub oauth: OAuthSettings,
    /// Certificates to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    pub store: Store,
    /// The folder in which `mcp-remote` keeps its tokens.
    pub mcp_remote: Option<PathBuf>,
    pub clock: Clock,
}

/// The login at one server, shared by all requests to it. Cheap to clone.
#[derive(Clone)]
pub struct ServerLogin(Arc<Shared>);

struct Shared {
    key: ServerKey,
    url: Url,
    oauth: OAuthSettings,
    http: Http,
    store: Store,
    mcp_remote: Option<PathBuf>,
    clock: Clock,
    // A std mutex: held for a copy, never across an await.
    known: Mutex<Known>,
    generation: watch::Sender<Generation>,
    /// Allows one renewal at a time in this process.
    renewing: AsyncMutex<()>,
    /// The login flow that the user has been offered.
    offered: AsyncMutex<Option<LoginFlow>>,
}

/// This process's knowledge of the login.
#[derive(Default)]
struct Known {
    logins: Logins,
    stamp: Option<Stamp>,
    /// The server's last challenge.
    challenge: Option<Challenge>,
    discovered: Option<(Instant, Discovered)>,
    /// The nonce that the server wants in proofs.
    nonce: Option<String>,
    /// The pause after failed renewals.
    pause: Option<Pause>,
    failures: u32,
    /// The generation of tokens that the server has rejected although they were new.
    futile: Option<Generation>,
    /// When `logins` could not be written, in seconds since 1970. A later request tries again.
    unsaved: Option<u64>,
    /// Counts the changes of `logins`.
    version: u64,
}

/// A pause after a failed renewal. It also ends if the clock is set back.
#[derive(Clone)]
struct Pause {
    /// Seconds since 1970.
    since: u64,
    until: u64,
    failure: Arc<Failure>,
}

impl ServerLogin {
    pub fn new(settings: LoginSettings) -> Result<Self, Failure> {
        let LoginSettings { name, url, oauth, ca_file, store, mcp_remote, clock } = settings;
        let broken = |why: String| Failure::new(format!("no login is possible: {why}"), Vec::new());
        let parsed = Url::parse(&url).map_err(|error| broken(error.to_string()))?;
        let policy = AddressPolicy::new(&parsed, oauth.private_network);
        let http = Http::new(policy, &parsed, ca_file);
        Ok(Self(Arc::new(Shared {
            key: ServerKey { name, url },
            url: parsed,
            oauth,
            http,
            store,
            mcp_remote,
            clock,
            known: Mutex::default(),
            generation: watch::channel(Generation::default()).0,
            renewing: AsyncMutex::default(),
            offered: AsyncMutex::default(),
        })))
    }

    /// The logins that are now in the store.
    pub async fn logins(&self) -> Result<Logins, StoreError> {
        self.0.reload().await?;
        Ok(self.0.known().logins.clone())
    }

    /// Waits until no renewal is in progress: a process that ends in the middle of one loses the new tokens.
    pub async fn settled(&self) {
        drop(self.0.renewing.lock().await);
    }

    /// Forgets the login here and, if possible, at the authorization server. Returns whether there was one,
    /// and why the authorization server could not be told.
    pub async fn logout(&self) -> Result<LoggedOut, StoreError> {
        let shared = &self.0;
        let _lock = shared.store.lock(&shared.key).await?;
        let mut problem = match shared.reload().await {
            // A login that cannot be read can also be forgotten.
            Err(StoreError::Keychain(_)) => Some("its tokens could not be read".to_owned()),
            reloaded => reloaded.map(|()| None)?,
        };
        let logins = shared.known().logins.clone();
        for (issuer, login) in logins.by_issuer.iter().filter(|(_, login)| login.tokens.is_some()) {
            match shared.revoke(issuer, login).await {
                Err(error) => problem = Some(error.to_string()),
                Ok(()) if login.revocation_endpoint.is_none() => {
                    problem = Some("it takes no tokens back; they hold until they end".to_owned());
                }
                Ok(()) => {}
            }
        }
        let was_logged_in =
            problem.is_some() || logins.by_issuer.values().any(|login| login.tokens.is_some());
        let (store, key) = (shared.store.clone(), shared.key.clone());
        match finish(spawn_blocking(move || store.remove(&key)).await) {
            Err(StoreError::Keychain(error)) => {
                problem = Some(format!("its tokens may still be in the keychain: {error}"));
            }
            removed => removed?,
        }
        // The remaining entry says that logins of other programs do not count either.
        shared.keep(Logins { logged_out: true, ..Logins::default() }).await;
        Ok(LoggedOut { was_logged_in, problem })
    }
}

/// The result of a logout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedOut {
    pub was_logged_in: bool,
    /// The reason why the authorization server may not know of it, or why tokens may be left in the keychain.
    pub problem: Option<String>,
}

impl Shared {
    fn now(&self) -> u64 {
        (self.clock)()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing can panic half-way through a change.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn generation(&self) -> Generation {
        *self.generation.borrow()
    }

    /// Adopts the store's content, if it has changed.
    async fn reload(&self) -> Result<(), StoreError> {
        loop {
            let (seen, version) = {
                let known = self.known();
                (known.stamp, known.version)
            };
            let stamp = self.store.stamp(&self.key);
            if stamp == seen {
                return Ok(());
            }
            let (store, key) = (self.store.clone(), self.key.clone());
            // A keychain may be slow.
            let logins = finish(spawn_blocking(move || store.load(&key)).await);
            if let Err(StoreError::Corrupt(..)) = &logins {
                self.outlive_file();
            }
            let logins = logins?;
            // Another task may have got newer logins in the meantime, which must not be replaced.
            if self.adopt_after(Some(version), logins, stamp) {
                return Ok(());
            }
        }
    }

    /// The same without waiting. If the store cannot be read, it is read again soon.
    fn look(&self) {
        let (seen, version) = {
            let known = self.known();
            (known.stamp, known.version)
        };
        let stamp = self.store.stamp(&self.key);
        if stamp == seen {
            return;
        }
        match self.store.load(&self.key) {
            Ok(logins) => {
                self.adopt_after(Some(version), logins, stamp);
            }
            Err(error @ StoreError::Corrupt(..)) => {
                tracing::warn!(server = %self.key.name, "{error}");
                self.outlive_file();
            }
            Err(_) => {}
        }
    }

    /// Handles a corrupt file that is gone. The logins of this process are still valid, and are written
    /// again.
    fn outlive_file(&self) {
        let mut known = self.known();
        known.stamp = None;
        known.unsaved = Some(0);
    }

    fn adopt(&self, logins: Logins, stamp: Option<Stamp>) {
        self.adopt_after(None, logins, stamp);
    }

    /// Makes the logins the state of this process, unless that has changed since this version. If the tokens
    /// differ, a new generation begins.
    fn adopt_after(&self, version: Option<u64>, logins: Logins, stamp: Option<Stamp>) -> bool {
        let tokens = |logins: &Logins| logins.current().and_then(|login| login.tokens.clone());
        let mut known = self.known();
        if version.is_some_and(|version| version != known.version) {
            return false;
        }
        let changed = tokens(&known.logins) != tokens(&logins);
        if changed {
            (known.pause, known.failures) = (None, 0);
        }
        known.logins = logins;
        known.stamp = stamp;
        known.unsaved = None;
        known.version += 1;
        if changed {
            // Under the same lock as the tokens, so that nobody sees new ones with an old generation.
            self.generation.send_modify(|generation| generation.0 += 1);
        }
        true
    }

    /// Whether it is time to try again to write logins.
    fn wants_to_save(&self) -> bool {
        let now = self.now();
        let mut known = self.known();
        let is_time = known.unsaved.is_some_and(|at| now < at || now - at >= SAVE_AGAIN);
        if is_time {
            known.unsaved = Some(now);
        }
        is_time
    }

    /// Writes logins that only this process has, because the file was corrupt or could not be written.
    async fn restore(&self) {
        let _alone = self.renewing.lock().await;
        let Ok(_lock) = self.store.lock(&self.key).await else { return };
        let (logins, stamp) = {
            let known = self.known();
            (known.logins.clone(), known.stamp)
        };
        // Logins that others have written in the meantime are newer.
        if logins.current().is_some() && self.store.stamp(&self.key) == stamp {
            let _ = self.save(logins).await;
        }
    }

    /// Writes the current logins, and makes them the state of this process. The caller holds the lock of the
    /// store.
    async fn save(&self, logins: Logins) -> Result<(), StoreError> {
        let (store, key, written) = (self.store.clone(), self.key.clone(), logins.clone());
        let saved =
            finish(spawn_blocking(move || store.save(&key, &written).map(|()| store.stamp(&key))).await);
        // Tokens that cannot be written are still valid for this process.
        let stamp = saved.as_ref().ok().copied().flatten().or(self.known().stamp);
        self.adopt(logins, stamp);
        self.known().unsaved = saved.is_err().then(|| self.now());
        saved.map(|_| ())
    }

    /// Finds out how to log in at this server. The last answer is reused for a while.
    async fn discover(&self, challenge: Option<&Challenge>) -> Result<Discovered, DiscoveryError> {
        let fresh = self.known().discovered.clone().filter(|(at, _)| at.elapsed() < DISCOVERY_LIFE);
        if let Some((_, discovered)) = fresh {
            return Ok(discovered);
        }
        let discovered =
            discovery::discover(&self.http, &self.url, challenge, self.oauth.client.as_ref()).await?;
        self.known().discovered = Some((Instant::now(), discovered.clone()));
        Ok(discovered)
    }

    /// Whether plugbay acts for itself, without a user.
    fn is_machine(&self) -> bool {
        self.oauth.grant != Grant::AuthorizationCode
    }

    /// The failure that only a login by the user can resolve.
    fn needs_login(&self, why: Option<&str>) -> Arc<Failure> {
        let issuer = {
            let known = self.known();
            let discovered =
                known.discovered.as_ref().map(|(_, discovered)| discovered.server.issuer.clone());
            discovered.or_else(|| known.logins.current.clone())
        };
        let place = issuer
            .and_then(|issuer| Url::parse(&issuer).ok())
            .map_or_else(|| origin(&self.url), |url| origin(&url));
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        let failure = Failure::new(format!("needs a login at {place}{why}"), Vec::new());
        Arc::new(failure.because(Cause::NeedsLogin).with_remedy(self.remedy()))
    }

    fn remedy(&self) -> String {
        format!("run `plugbay auth login {}`", self.key.name)
    }
}

/// A failure that may be temporary.
fn failure(what: impl Into<String>) -> Arc<Failure> {
    Arc::new(Failure::new(what, Vec::new()))
}

/// Returns the result of a blocking call. A panic in it continues here.
fn finish<T>(ended: Result<T, tokio::task::JoinError>) -> T {
    ended.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Shows no secrets.
impl fmt::Debug for ServerLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLogin").field("server", &self.0.key.name).finish_non_exhaustive()
    }
}
