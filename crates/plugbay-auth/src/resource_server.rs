//! Checks the bearer tokens that an authorization server has issued to callers of a shared gateway.
//!
//! [`unproven`] reads a token and compares its claims, [`keys`] chooses the key, and [`key_cache`] decides
//! when keys are fetched; none of them uses a clock or the network. [`discovery`] and [`fetch`] get the keys.

mod claims;
mod discovery;
mod fetch;
mod key_cache;
mod keys;
mod proven;
#[cfg(test)]
mod tests;
mod unproven;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use plugbay_core::{
    access_token::{AccessToken, TokenError, TokenVerifier},
    credentials::Later,
};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, timeout},
};

pub use fetch::{Fetch, FetchError, HttpFetch, is_trustworthy};

pub use crate::jws::SignatureAlgorithm;

use self::{
    key_cache::{KeyCache, Lookup, Reason},
    keys::Key,
    proven::ProvenTokens,
    unproven::{Header, Unproven},
};

/// Time limit for all requests of one key fetch.
const WHOLE_FETCH: Duration = Duration::from_secs(20);

/// The requirements for tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceServerSettings {
    /// The issuer, exactly as in tokens.
    pub issuer: String,
    /// The audiences, one of which a token must have.
    pub audiences: Vec<String>,
    /// The address of the keys, if the issuer's metadata must not decide it.
    pub jwks_uri: Option<String>,
    pub algorithms: Vec<SignatureAlgorithm>,
    /// The claim that names the caller.
    pub caller_claim: String,
}

/// Checks tokens with their issuer's keys.
#[derive(Clone)]
pub struct ResourceServer(Arc<Inner>);

struct Inner {
    settings: ResourceServerSettings,
    fetch: Box<dyn Fetch>,
    // Std mutexes: held for a look-up, never across an await.
    cache: Mutex<KeyCache>,
    proven: Mutex<ProvenTokens>,
    /// Held by the one task that fetches keys.
    fetching: AsyncMutex<()>,
}

impl ResourceServer {
    pub fn new(settings: ResourceServerSettings, fetch: impl Fetch + 'static) -> Self {
        let (cache, proven) = (Mutex::default(), Mutex::default());
        let inner = Inner { settings, fetch: Box::new(fetch), cache, proven, fetching: AsyncMutex::new(()) };
        Self(Arc::new(inner))
    }

    async fn check(&self, token: &str, now: SystemTime) -> Result<Arc<AccessToken>, TokenError> {
        let generation = self.0.cache().young_generation(Instant::now());
        let known = generation.and_then(|generation| lock(&self.0.proven).find(token, generation, now));
        if let Some(known) = known {
            return Ok(known);
        }
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let unproven = Unproven::read(token, &self.0.settings, seconds)?;
        let (key, generation) = self.key(&unproven.header).await?;
        let proven = Arc::new(unproven.prove(&key)?);
        lock(&self.0.proven).add(token, generation, &proven);
        Ok(proven)
    }

    /// The key of a token, with the generation of the key set. Fetches keys if necessary.
    async fn key(&self, header: &Header) -> Result<(Arc<Key>, u64), TokenError> {
        if let Ok(settled) = self.look_up(header) {
            return settled;
        }
        let _fetching = self.0.fetching.lock().await;
        // Another request may have fetched them in the meantime.
        let reason = match self.look_up(header) {
            Ok(settled) => return settled,
            Err(reason) => reason,
        };
        self.0.fetch_keys(reason).await;
        self.0.cache().look_up_fetched(header, Instant::now())
    }

    /// The key or a refusal, if that can be decided; `Err` if keys must be fetched first.
    fn look_up(&self, header: &Header) -> Result<Result<(Arc<Key>, u64), TokenError>, Reason> {
        let found = self.0.cache().look_up(header, Instant::now());
        match found {
            Lookup::Found { key, generation, is_old } => {
                if is_old {
                    self.refresh();
                }
                Ok(Ok((key, generation)))
            }
            Lookup::Fetch(reason) => Err(reason),
            Lookup::Refused(error) => Ok(Err(error)),
        }
    }

    /// Fetches keys, while requests go on with the present ones.
    fn refresh(&self) {
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            if let Ok(_fetching) = inner.fetching.try_lock() {
                inner.fetch_keys(Reason::Age).await;
            }
        });
    }
}

impl Inner {
    async fn fetch_keys(&self, reason: Reason) {
        self.cache().begins(reason, Instant::now());
        let fetched = timeout(WHOLE_FETCH, discovery::keys(&self.settings, &*self.fetch)).await;
        let fetched = fetched.unwrap_or(Err(FetchError::TooSlow));
        match &fetched {
            Ok(keys) if keys.is_empty() => {
                tracing::warn!("{} publishes no key that plugbay can use", self.settings.issuer);
            }
            Ok(_) => tracing::info!("fetched the keys of {}", self.settings.issuer),
            Err(error) => {
                tracing::warn!("the keys of {} cannot be fetched: {error}", self.settings.issuer);
            }
        }
        self.cache().ended(fetched.ok(), Instant::now());
    }

    fn cache(&self) -> MutexGuard<'_, KeyCache> {
        lock(&self.cache)
    }
}

impl TokenVerifier for ResourceServer {
    fn verify<'a>(&'a self, token: &'a str) -> Later<'a, Result<Arc<AccessToken>, TokenError>> {
        Box::pin(self.check(token, SystemTime::now()))
    }
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServer").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing can panic half-way through a change, so what it holds is still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
