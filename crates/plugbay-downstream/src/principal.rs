//! The sender of a session's requests: its rights, its limits, and who observes its calls.

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

/// Limit of views kept for one caller: sessions with their own servers see different snapshots.
const KEPT_VIEWS: usize = 16;

/// How often a caller may make the servers list their tools again.
const REFRESH_EVERY: Duration = Duration::from_secs(5);

/// What a caller may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// The name of the caller, if it has one.
    pub name: Option<Arc<str>>,
    /// The tools that it may use; `None` for all.
    pub tools: Option<ToolGrant>,
    /// The caller's own limits, which override those of the configuration.
    pub limits: CallLimits,
    /// The OAuth client that acts for the caller.
    pub client: Option<Arc<str>>,
    /// The scopes of its access token, if it has one. A token with other scopes may allow more tools.
    pub scopes: Option<HeldScopes>,
}

/// A caller with one grant. Sessions with the same caller and grant share it.
#[derive(Default)]
pub struct Account {
    pub(crate) grant: Grant,
    /// It is one of several callers, even if it has no name.
    is_of_many: bool,
    usage: Arc<Usage>,
    views: Arc<GrantedViews>,
}

/// The usage of a caller so far, under any grant.
#[derive(Default)]
pub(crate) struct Usage {
    // Std mutexes: held for a look-up, never across an await.
    meter: Mutex<Meter>,
    refreshed: Mutex<Option<Instant>>,
    skills_refreshed: Mutex<Option<Instant>>,
}

/// Pairs of a published snapshot, and the same one as callers with these tools see it.
#[derive(Default)]
pub(crate) struct GrantedViews(Mutex<Vec<(Snapshot, Snapshot)>>);

/// The account of a session. A new access token of the same caller may have another grant, which replaces the
/// account.
#[derive(Debug, Clone, Default)]
pub(crate) struct CurrentAccount(Arc<Mutex<Arc<Account>>>);

impl CurrentAccount {
    pub(crate) fn new(account: Arc<Account>) -> Self {
        Self(Arc::new(Mutex::new(account)))
    }

    pub(crate) fn get(&self) -> Arc<Account> {
        Arc::clone(&lock(&self.0))
    }

    /// Replaces the account. Returns whether it was a different one.
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
    /// Whether the session belongs to all requests under one name, so that it does not end with a connection.
    pub(crate) lasts: bool,
    /// The key of the session in which the gateway was entered.
    pub(crate) key: Option<SessionKey>,
    /// Observes every call to a server.
    pub observer: Option<Arc<dyn Observer>>,
    /// The number of live sessions of all callers.
    pub sessions: Arc<AtomicUsize>,
    /// How often a caller was rejected because it had used up its share.
    pub refused: Arc<AtomicU64>,
}

impl Principal {
    pub fn observed_by(observer: Option<Arc<dyn Observer>>) -> Self {
        Self { observer, ..Self::default() }
    }

    /// The same in a session that has its own servers.
    pub(crate) fn within(self, session: &SessionKey) -> Self {
        Self { key: Some(session.clone()), ..self }
    }

    /// The same for a session of this key. Operators see the digest: the key stays secret.
    pub(crate) fn marked_by(mut self, session: &SessionKey) -> Self {
        self.session = mark(session);
        self.lasts = session.lasts();
        self
    }

    /// The same for a session without a known id; its mark is random.
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

    /// Whether the servers may be asked for their tools again. If so, notes the time.
    pub(crate) fn may_refresh(&self) -> bool {
        may_refresh(&self.account.get().usage.refreshed)
    }

    /// The same for skills. Servers with skills are asked again whenever a host lists skills.
    pub(crate) fn may_refresh_skills(&self) -> bool {
        may_refresh(&self.account.get().usage.skills_refreshed)
    }

    /// The snapshot as the caller sees it; `None` if it sees everything.
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

    /// Whether the caller may use only some tools. Then anything that concerns no single tool is off limits.
    pub(crate) fn is_restricted(&self) -> bool {
        self.account.get().grant.tools.is_some()
    }
}

impl Account {
    pub(crate) fn new(grant: Grant) -> Self {
        Self { grant, ..Self::default() }
    }

    /// The account of a caller without a name, whose token is one of several.
    pub(crate) fn of_many() -> Self {
        Self { is_of_many: true, ..Self::default() }
    }

    /// Whether the caller is the user: it has no name, and no other caller has none.
    pub(crate) fn is_user(&self) -> bool {
        self.grant.name.is_none() && !self.is_of_many
    }

    /// An account that shares the caller's usage under other grants, and the views of callers with the same
    /// tools.
    pub(crate) fn sharing(grant: Grant, usage: &Arc<Usage>, views: Arc<GrantedViews>) -> Self {
        Self { grant, usage: Arc::clone(usage), views, is_of_many: true }
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

/// Whether the last refresh is long enough ago. If so, notes the time.
fn may_refresh(last: &Mutex<Option<Instant>>) -> bool {
    let (now, mut last) = (Instant::now(), lock(last));
    let may = last.is_none_or(|last| now.duration_since(last) >= REFRESH_EVERY);
    if may {
        *last = Some(now);
    }
    may
}
