//! The sender of a session's requests: what it may use, how much of it, and who hears of its calls.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use plugbay_core::{
    access_token::HeldScopes,
    limit::CallLimits,
    name::ServerName,
    observe::{Observer, SessionMark},
    policy::ToolGrant,
    scope::SessionKey,
    surface::Snapshot,
};

use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::rate::{Limited, Meter};

/// Views of one caller that are kept: sessions with servers of their own see different snapshots.
const KEPT_VIEWS: usize = 16;

/// How often a caller may have the servers list their tools again.
const REFRESH_EVERY: Duration = Duration::from_secs(5);

/// What a caller may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// The name of the caller, if it has one.
    pub name: Option<Arc<str>>,
    /// The tools that it may use; `None` for all.
    pub tools: Option<ToolGrant>,
    /// Its own limits, which go before those of the configuration.
    pub limits: CallLimits,
    /// The OAuth client that acts for the caller.
    pub client: Option<Arc<str>>,
    /// The scopes of its access token: others may allow more tools.
    pub scopes: Option<HeldScopes>,
}

/// A caller with one grant. Sessions that have both in common share it.
#[derive(Default)]
pub struct Account {
    pub(crate) grant: Grant,
    usage: Arc<Usage>,
    views: Arc<GrantedViews>,
}

/// What a caller has used so far, whatever its grant.
#[derive(Default)]
pub(crate) struct Usage {
    // Std mutexes: held for a look-up, never across an await.
    meter: Mutex<Meter>,
    refreshed: Mutex<Option<Instant>>,
    skills_refreshed: Mutex<Option<Instant>>,
}

/// Snapshots as they were published, and as callers with the same tools see them.
#[derive(Default)]
pub(crate) struct GrantedViews(Mutex<Vec<(Snapshot, Snapshot)>>);

/// The account of a session. A new access token of the same caller may have another grant, and replaces it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CurrentAccount(Arc<Mutex<Arc<Account>>>);

impl CurrentAccount {
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Self(Arc::new(Mutex::new(account)))
    }

    pub(crate) fn get(&self) -> Arc<Account> {
        Arc::clone(&lock(&self.0))
    }

    /// Returns whether it was another one.
    pub(crate) fn replace(&self, account: &Arc<Account>) -> bool {
        let mut current = lock(&self.0);
        let is_other = !Arc::ptr_eq(&current, account);
        if is_other {
            *current = Arc::clone(account);
        }
        is_other
    }
}

/// The sender of the requests of one session.
#[derive(Debug, Clone, Default)]
pub struct Principal {
    pub(crate) account: CurrentAccount,
    pub(crate) session: SessionMark,
    /// The session is that of all requests under one name: it does not end with a connection.
    pub(crate) lasts: bool,
    /// The session as which the gateway was entered.
    pub(crate) key: Option<SessionKey>,
    /// Hears of every call to a server.
    pub observer: Option<Arc<dyn Observer>>,
    /// The number of live sessions of all callers.
    pub sessions: Arc<AtomicUsize>,
    /// How often a caller was refused something because it had used up its share.
    pub refused: Arc<AtomicU64>,
}

impl Principal {
    pub fn observed_by(observer: Option<Arc<dyn Observer>>) -> Self {
        Self { observer, ..Self::default() }
    }

    /// The same in a session with servers of its own.
    pub(crate) fn within(self, session: &SessionKey) -> Self {
        Self { key: Some(session.clone()), ..self }
    }

    /// The same for a session of this key. Operators see the digest: the key stays secret.
    pub(crate) fn marked_by(mut self, session: &SessionKey) -> Self {
        self.session = mark(session);
        self.lasts = session.lasts();
        self
    }

    /// The same for a session of its own, whose id nobody knows.
    pub(crate) fn marked(mut self) -> Self {
        if self.session == SessionMark::default() {
            let _ = getrandom::fill(&mut self.session.0);
        }
        self
    }

    /// Counts a call, unless it exceeds a limit.
    pub(crate) fn admit(&self, general: CallLimits) -> Result<(), Limited> {
        let account = self.account.get();
        let limits = account.grant.limits.or(general);
        if limits.is_none() {
            return Ok(());
        }
        lock(&account.usage.meter).admit(&limits, self.session)
    }

    /// Whether the servers may be asked for their tools again. Then they are, as of now.
    pub(crate) fn may_refresh(&self) -> bool {
        may_refresh(&self.account.get().usage.refreshed)
    }

    /// The same for servers with skills, which are asked whenever a host lists skills.
    pub(crate) fn may_refresh_skills(&self) -> bool {
        may_refresh(&self.account.get().usage.skills_refreshed)
    }

    /// The snapshot as the caller sees it, if that is not the whole.
    pub(crate) fn narrowed(&self, now: &Snapshot) -> Option<Snapshot> {
        let account = self.account.get();
        let tools = account.grant.tools.as_ref()?;
        let mut views = lock(&account.views.0);
        if let Some(at) = views.iter().position(|(source, _)| source.is_same_moment(now)) {
            let view = views.remove(at);
            views.push(view); // the last is the one used last
        } else {
            if views.len() >= KEPT_VIEWS {
                views.remove(0);
            }
            views.push((now.clone(), now.granted(tools)));
        }
        views.last().map(|(_, granted)| granted.clone())
    }

    /// Whether the caller may know of this server.
    pub(crate) fn sees(&self, server: &ServerName, now: &Snapshot) -> bool {
        self.narrowed(now).is_none_or(|granted| granted.knows(server))
    }

    /// The scopes to ask for, if another access token of the caller could allow this tool.
    pub(crate) fn scopes_for(&self, name: &str, whole: &Snapshot) -> Option<String> {
        let account = self.account.get();
        let HeldScopes { held, rules } = account.grant.scopes.as_ref()?;
        let found = whole.names.get(name)?;
        let target = &found.target;
        let exposure = whole.layout.exposures.get(&target.server).cloned().unwrap_or_default();
        let allows = |grant: &ToolGrant| {
            let (servers, limit) = (&whole.names.prefixes, whole.layout.name_limit);
            let here = grant.of(&target.server, servers, &exposure.rename, exposure.bare, limit);
            here.may(&target.tool)
        };
        rules.needed(held, allows)
    }

    /// Whether the caller may use some tools only, so that what concerns no single tool is not for it.
    pub(crate) fn is_restricted(&self) -> bool {
        self.account.get().grant.tools.is_some()
    }
}

impl Account {
    pub(crate) fn new(grant: Grant) -> Self {
        Self { grant, ..Self::default() }
    }

    /// With what the caller has used under other grants, and with what callers with the same tools see.
    pub(crate) fn sharing(grant: Grant, usage: &Arc<Usage>, views: Arc<GrantedViews>) -> Self {
        Self { grant, usage: Arc::clone(usage), views }
    }
}

impl fmt::Debug for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usage").finish_non_exhaustive()
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("grant", &self.grant).finish_non_exhaustive()
    }
}

/// The digest by which operators see a session.
pub(crate) fn mark(session: &SessionKey) -> SessionMark {
    let (mut mark, digest) = (SessionMark::default(), Sha256::digest(session.as_bytes()));
    mark.0.iter_mut().zip(digest).for_each(|(byte, of_digest)| *byte = of_digest);
    mark
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing can panic half-way through a change, so what it holds is still whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts one live session, until it is dropped.
#[derive(Debug)]
pub(crate) struct CountedSession(Arc<AtomicUsize>);

impl CountedSession {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for CountedSession {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether it is long enough ago. Then it is now.
fn may_refresh(last: &Mutex<Option<Instant>>) -> bool {
    let (now, mut last) = (Instant::now(), lock(last));
    let may = last.is_none_or(|last| now.duration_since(last) >= REFRESH_EVERY);
    if may {
        *last = Some(now);
    }
    may
}
