//! Tokens whose signatures were checked recently: a host sends the same token with every request.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use plugbay_core::access_token::AccessToken;
use sha2::{Digest, Sha256};

const MOST: usize = 4096;

/// Tokens by their digests; the tokens themselves are not kept.
#[derive(Debug, Default)]
pub(super) struct ProvenTokens {
    /// The generation of the keys with which all of them were proven.
    generation: u64,
    known: HashMap<[u8; 32], Arc<AccessToken>>,
}

impl ProvenTokens {
    pub(super) fn find(&self, token: &str, generation: u64, now: SystemTime) -> Option<Arc<AccessToken>> {
        if self.generation != generation {
            return None;
        }
        self.known.get(&digest(token)).filter(|known| now < UNIX_EPOCH + known.ends).cloned()
    }

    pub(super) fn add(&mut self, token: &str, generation: u64, proven: &Arc<AccessToken>) {
        if self.generation != generation || self.known.len() >= MOST {
            self.known.clear();
            self.generation = generation;
        }
        self.known.insert(digest(token), Arc::clone(proven));
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}
