//! When keys are fetched, and for how long they count: times in, decisions out.

use std::{sync::Arc, time::Duration};

use plugbay_core::access_token::TokenError;
use tokio::time::Instant;

use super::{
    keys::{Key, KeySet, NoKey},
    unproven::Header,
};

/// Keys of this age are fetched again, while they are used.
pub(super) const OLD: Duration = Duration::from_secs(15 * 60);
/// Keys are forgotten so long after they were fetched.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// At most so often a token with an unknown key makes plugbay fetch keys.
pub(super) const UNKNOWN_EVERY: Duration = Duration::from_secs(30);
/// After a failure the next try is not earlier than this.
pub(super) const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// The keys that are known, and when they were fetched.
#[derive(Debug, Default)]
pub(super) struct KeyCache {
    keys: KeySet,
    generation: u64,
    fetched: Option<Instant>,
    failed: Option<Instant>,
    /// The last fetch for an unknown key.
    for_unknown: Option<Instant>,
}

/// What is known of a token's key.
#[derive(Debug)]
pub(super) enum Lookup {
    Found {
        key: Arc<Key>,
        generation: u64,
        /// It is time to fetch the keys again.
        is_old: bool,
    },
    /// Keys must be fetched before anything can be said.
    Fetch(Reason),
    Refused(TokenError),
}

/// Why keys are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// There are none, or they are old.
    Age,
    UnknownKey,
}

impl KeyCache {
    /// The generation of the keys while they are young: tokens that were proven with them need no second look. The
    /// number counts the sets of keys that were fetched.
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

    /// The same after a fetch: there is no other one.
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

    /// A fetch begins.
    pub(super) fn begins(&mut self, reason: Reason, now: Instant) {
        if reason == Reason::UnknownKey {
            self.for_unknown = Some(now);
        }
    }

    /// A fetch has ended. If it failed, the keys stay as they were.
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
