//! Callers with names: their tokens come from a store that may change at any time.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use tokio::{sync::watch, time::sleep};

use super::access::Caller;
use crate::{
    principal::{Account, Grant},
    seal::Owner,
};

/// The clock may be set, so an expiry is looked for at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// A token by its digest, and what its holder may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedToken {
    /// SHA-256 of the token.
    pub digest: [u8; 32],
    /// What sessions and tasks of the caller are bound to: the same in every process, and unknown to the holder.
    pub owner: [u8; 32],
    pub expires: Option<SystemTime>,
    pub grant: Grant,
}

impl NamedToken {
    fn is_valid(&self, now: SystemTime) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

/// All tokens of the store, as they are now.
pub type NamedTokens = watch::Receiver<Arc<Vec<NamedToken>>>;

/// What a token is worth.
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
    /// Once there was a token, the gateway stays closed to others.
    guarded: Arc<AtomicBool>,
    // A std mutex: held for a look-up, never across an await.
    accounts: Arc<Mutex<Accounts>>,
}

#[derive(Debug, Default)]
struct Accounts {
    known: HashMap<Owner, Arc<Account>>,
    /// Callers whose grants have changed: sessions with the former ones must end.
    changed: Vec<Owner>,
}

impl Callers {
    pub(super) fn new(tokens: Option<NamedTokens>, guarded: bool) -> Self {
        Self { tokens, guarded: Arc::new(AtomicBool::new(guarded)), accounts: Arc::default() }
    }

    /// Whether requests need a token.
    pub(super) fn is_guarded(&self) -> bool {
        if !self.guarded.load(Ordering::Relaxed) && !self.list().is_empty() {
            self.guarded.store(true, Ordering::Relaxed);
        }
        self.guarded.load(Ordering::Relaxed)
    }

    /// Compares with all tokens, so that the time tells nothing of which it was.
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

    /// The account of a caller; one that has no name has no limits of its own.
    pub(super) fn account(&self, caller: Caller) -> Arc<Account> {
        let owner = caller.owner();
        let tokens = self.list();
        let grant = tokens.iter().find(|token| token.owner == owner.0).map(|token| &token.grant);
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let known = accounts.known.get(&owner);
        if let Some(account) = known.filter(|account| grant.is_none_or(|grant| account.grant == *grant)) {
            return Arc::clone(account);
        }
        let account = Arc::new(Account::new(grant.cloned().unwrap_or_default()));
        if accounts.known.insert(owner, Arc::clone(&account)).is_some() {
            accounts.changed.push(owner);
        }
        account
    }

    /// Forgets the callers whose tokens are gone, expired or changed, and returns them.
    pub(super) fn gone(&self) -> Vec<Owner> {
        let (tokens, now) = (self.list(), SystemTime::now());
        let mut accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut gone = std::mem::take(&mut accounts.changed);
        accounts.known.retain(|owner, account| {
            let token = tokens.iter().find(|token| token.owner == owner.0 && token.is_valid(now));
            let kept =
                account.grant.name.is_none() || token.is_some_and(|token| token.grant == account.grant);
            if !kept {
                gone.push(*owner);
            }
            kept
        });
        gone
    }

    /// Waits until the store has changed or a token has expired.
    pub(super) async fn changed(&mut self) {
        let wait = self.next_expiry();
        let Some(tokens) = &mut self.tokens else { return std::future::pending().await };
        let expiry = async move {
            match wait {
                Some(wait) => sleep(wait.min(LOOK_AGAIN)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = tokens.changed() => if changed.is_err() { self.tokens_are_final().await },
            () = expiry => {}
        }
    }

    /// The store is followed no more; tokens still expire.
    async fn tokens_are_final(&self) {
        match self.next_expiry() {
            Some(wait) => sleep(wait.min(LOOK_AGAIN)).await,
            None => std::future::pending().await,
        }
    }

    fn next_expiry(&self) -> Option<Duration> {
        let (tokens, now) = (self.list(), SystemTime::now());
        let left = tokens.iter().filter_map(|token| token.expires?.duration_since(now).ok());
        left.min().map(|left| left + Duration::from_millis(1))
    }

    fn list(&self) -> Arc<Vec<NamedToken>> {
        self.tokens.as_ref().map(|tokens| Arc::clone(&tokens.borrow())).unwrap_or_default()
    }
}
