//! Decides when keys are fetched, and how long they are used. The time is passed in.

use std::{sync::Arc, time::Duration};

use plugbay_core::access_token::TokenError;
use tokio::time::Instant;

use super::{
    keys::{Key, KeySet, NoKey},
    unproven::Header,
};

/// Keys of this age are fetched again, and used meanwhile.
pub(super) const OLD: Duration = Duration::from_secs(15 * 60);
/// Keys are dropped this long after they were fetched.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Least time between fetches that are caused by tokens with unknown keys.
pub(super) const UNKNOWN_EVERY: Duration = Duration::from_secs(30);
/// Least time before the next attempt after a failure.
pub(super) const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The current keys, and when they were fetched.
#[derive(Debug, Default)]
pub(super) struct KeyCache {
    keys: KeySet,
    generation: u64,
    fetched: Option<Instant>,
    failed: Option<Instant>,
    /// The last fetch for an unknown key.
    for_unknown: Option<Instant>,
}

/// The result of looking up a token's key.
#[derive(Debug)]
pub(super) enum Lookup {
    Found {
        key: Arc<Key>,
        generation: u64,
        /// Whether the keys should be fetched again.
        is_old: bool,
    },
    /// Keys must be fetched before this can be decided.
    Fetch(Reason),
    Refused(TokenError),
}

/// The reason for fetching keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// There are no keys, or they are old.
    Age,
    UnknownKey,
}

impl KeyCache {
    /// The generation of the keys while they are young: tokens proven with them need no further check. The
    /// number counts the key sets that were fetched.
    pub(super) fn young_generation(&self, now: Instant) -> Option<u64> {
        within(self.fetched, OLD, now).then_some(self.generation)
    }

    pub(super) fn look_up(&self, header: &Header, now: Instant) -> Lookup {
        let may_try = !within(self.failed, AFTER_FAILURE, now);
        if !within(self.fetched, LONGEST, now) {
            return if may_try {
                Lookup::Fetch(Reason::Age)
            } else {
                Lookup::Refused(TokenError::Unavailable)
            };
        }
        match self.keys.find(header) {
            Ok(key) => {
                let is_old = may_try && !within(self.fetched, OLD, now);
                Lookup::Found { key, generation: self.generation, is_old }
            }
            Err(NoKey::Unknown) if may_try && !within(self.for_unknown, UNKNOWN_EVERY, now) => {
                Lookup::Fetch(Reason::UnknownKey)
            }
            Err(why) => Lookup::Refused(self.refusal(why)),
        }
    }

    /// The same after a fetch; there is no further fetch.
    pub(super) fn look_up_fetched(
        &self,
        header: &Header,
        now: Instant,
    ) -> Result<(Arc<Key>, u64), TokenError> {
        if !within(self.fetched, LONGEST, now) {
            return Err(TokenError::Unavailable);
        }
        self.keys.find(header).map(|key| (key, self.generation)).map_err(|why| self.refusal(why))
    }

    fn refusal(&self, why: NoKey) -> TokenError {
        match why {
            // The key may be a new one that could not be fetched.
            NoKey::Unknown if self.failed.is_some() => TokenError::Unavailable,
            NoKey::Unknown => TokenError::Invalid("the issuer has no such key"),
            NoKey::Ambiguous => {
                TokenError::Invalid("the issuer has several keys, and the token does not say which")
            }
        }
    }

    /// Notes the start of a fetch.
    pub(super) fn begins(&mut self, reason: Reason, now: Instant) {
        if reason == Reason::UnknownKey {
            self.for_unknown = Some(now);
        }
    }

    /// Notes the end of a fetch. If it failed, the keys stay as they were.
    pub(super) fn ended(&mut self, keys: Option<KeySet>, now: Instant) {
        let Some(keys) = keys else {
            self.failed = Some(now);
            return;
        };
        self.keys = keys;
        self.generation += 1;
        (self.fetched, self.failed) = (Some(now), None);
    }
}

fn within(then: Option<Instant>, time: Duration, now: Instant) -> bool {
    then.is_some_and(|then| now.saturating_duration_since(then) < time)
}
