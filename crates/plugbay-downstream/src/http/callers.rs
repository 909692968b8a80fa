//! Named callers: their tokens come from a store that may change at any time, or from an authorization
//! server.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use plugbay_core::access_token::AccessToken;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{
    authorization::{Authorization, Authorizations},
    token_accounts::TokenAccounts,
};
use crate::{
    principal::{Account, Grant},
    seal::Owner,
};

/// Expiries are checked at least this often, because the clock may be changed.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The digest of a token, and what its holder may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedToken {
    /// SHA-256 of the token.
    pub digest: [u8; 32],
    /// The owner of the caller's sessions and tasks: the same in every process, and unknown to the holder.
    pub owner: [u8; 32],
    pub expires: Option<SystemTime>,
    pub grant: Grant,
}

impl NamedToken {
    fn is_valid(&self, now: SystemTime) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

/// All tokens of the store at the moment.
pub type NamedTokens = watch::Receiver<Arc<Vec<NamedToken>>>;

/// The result of looking up a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    Unknown,
    Expired,
    Caller([u8; 32]),
}

/// The callers of a gateway, with what each has used. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Callers {
    tokens: Option<NamedTokens>,
    authorizations: Option<Authorizations>,
    /// Once there was a token, requests without one stay rejected.
    guarded: Arc<AtomicBool>,
    /// Several callers have tokens without names.
    unnamed_are_many: bool,
    // A std mutex: held for a look-up, never across an await.
    accounts: Arc<Mutex<Accounts>>,
}

#[derive(Debug, Default)]
struct Accounts {
    known: HashMap<Owner, Arc<Account>>,
    with_access_tokens: TokenAccounts,
    /// Former accounts of callers whose grants have changed; their sessions must end.
    changed: Vec<Arc<Account>>,
}

/// Accounts whose tokens are no longer valid. The sessions of `revoked` ones end, also if a named token has
/// expired. `expired` ones had an access token, and their sessions wait for a fresh one.
#[derive(Debug, Default)]
pub(super) struct Gone {
    pub(super) revoked: Vec<Arc<Account>>,
    pub(super) expired: Vec<Arc<Account>>,
}

impl Gone {
    pub(super) fn is_empty(&self) -> bool {
        self.revoked.is_empty() && self.expired.is_empty()
    }
}

impl Callers {
    /// `unnamed`: how many tokens without a name there are. `guarded`: a token is needed even while none exists.
    pub(super) fn new(tokens: Option<NamedTokens>, unnamed: usize, guarded: bool) -> Self {
        let guarded = Arc::new(AtomicBool::new(guarded || unnamed > 0));
        let unnamed_are_many = unnamed > 1;
        Self { tokens, authorizations: None, guarded, unnamed_are_many, accounts: Arc::default() }
    }

    pub(super) fn authorized_by(self, authorizations: Authorizations) -> Self {
        Self { authorizations: Some(authorizations), ..self }
    }

    /// The current terms for callers of an authorization server.
    pub(super) fn authorization(&self) -> Option<Arc<Authorization>> {
        self.authorizations.as_ref()?.borrow().clone()
    }

    /// Whether requests need a token.
    pub(super) fn is_guarded(&self) -> bool {
        if self.guarded.load(Ordering::Relaxed) {
            return true;
        }
        let guarded = !self.list().is_empty() || self.authorization().is_some();
        if guarded {
            self.guarded.store(true, Ordering::Relaxed);
        }
        guarded
    }

    /// Looks up a token. Compares it with all tokens, so that the time does not reveal which one matched.
    pub(super) fn find(&self, digest: &[u8; 32]) -> Known {
        let (tokens, mut found, mut place) = (self.list(), Choice::from(0), 0_u64);
        for (number, token) in (0_u64..).zip(tokens.iter()) {
            let same = token.digest.ct_eq(digest);
            place.conditional_assign(&number, same);
            found |= same;
        }
        let token = usize::try_from(place).ok().and_then(|place| tokens.get(place));
        match token.filter(|_| bool::from(found)) {
            None => Known::Unknown,
            Some(token) if token.is_valid(SystemTime::now()) => Known::Caller(token.owner),
            Some(_) => Known::Expired,
        }
    }

    /// The account of a caller; an unnamed caller has no limits of its own.
    pub(super) fn account(&self, owner: Owner) -> Arc<Account> {
        let tokens = self.list();
        let grant = tokens.iter().find(|token| token.owner == owner.0).map(|token| &token.grant);
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = accounts.known.get(&owner);
        if let Some(account) = known.filter(|account| grant.is_none_or(|grant| account.grant == *grant)) {
            return Arc::clone(account);
        }
        let account = Arc::new(match grant {
            None if self.unnamed_are_many => Account::of_many(),
            grant => Account::new(grant.cloned().unwrap_or_default()),
        });
        if let Some(former) = accounts.known.insert(owner, Arc::clone(&account)) {
            accounts.changed.push(former);
        }
        account
    }

    /// The caller of a valid access token, and its account.
    pub(super) fn admit(
        &self,
        authorization: &Arc<Authorization>,
        token: &AccessToken,
    ) -> (Owner, Arc<Account>) {
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.with_access_tokens.admit(authorization, token, Instant::now())
    }

    /// Removes the accounts whose tokens are gone, expired or changed, and returns them.
    pub(super) fn gone(&self) -> Gone {
        let (tokens, now, authorization) = (self.list(), SystemTime::now(), self.authorization());
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gone = Gone { revoked: std::mem::take(&mut accounts.changed), expired: Vec::new() };
        accounts.with_access_tokens.forget(&mut gone, authorization.as_ref(), now, Instant::now());
        accounts.known.retain(|owner, account| {
            let token = tokens.iter().find(|token| token.owner == owner.0 && token.is_valid(now));
            let kept =
                account.grant.name.is_none() || token.is_some_and(|token| token.grant == account.grant);
            if !kept {
                gone.revoked.push(Arc::clone(account));
            }
            kept
        });
        gone
    }

    /// Waits until the store or the terms of authorization have changed, or a token has expired.
    pub(super) async fn changed(&mut self) {
        let wait = self.next_expiry();
        let expiry = async move {
            match wait {
                Some(wait) => sleep(wait.min(LOOK_AGAIN)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = next(&mut self.tokens) => {}
            () = next(&mut self.authorizations) => {}
            () = expiry => {}
        }
    }

    fn next_expiry(&self) -> Option<Duration> {
        let (tokens, now) = (self.list(), SystemTime::now());
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = tokens.iter().filter_map(|token| token.expires).filter(|ends| now < *ends);
        let next = ends.chain(accounts.with_access_tokens.next_end()).min()?;
        Some(next.duration_since(now).unwrap_or_default() + Duration::from_millis(1))
    }

    fn list(&self) -> Arc<Vec<NamedToken>> {
        self.tokens.as_ref().map(|tokens| Arc::clone(&tokens.borrow())).unwrap_or_default()
    }
}

/// Waits for the next value. Waits for ever if nobody can send one.
async fn next<T>(values: &mut Option<watch::Receiver<T>>) {
    let Some(receiver) = values else { return std::future::pending().await };
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}
