//! The accounts of callers with access tokens: one for each caller and grant, until its last token ends.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use plugbay_core::access_token::AccessToken;
use tokio::time::Instant;

use super::{authorization::Authorization, callers::Gone};
use crate::{
    principal::{Account, Usage},
    seal::Owner,
};

/// How long a caller's usage is remembered after its last request: as long as the longest limit.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Default)]
pub(super) struct TokenAccounts(HashMap<Owner, TokenCaller>);

#[derive(Debug)]
struct TokenCaller {
    usage: Arc<Usage>,
    last: Instant,
    accounts: Vec<TokenAccount>,
}

#[derive(Debug)]
struct TokenAccount {
    account: Arc<Account>,
    /// The terms of its grant.
    authorization: Arc<Authorization>,
    /// When the last of its tokens ends.
    ends: SystemTime,
}

impl TokenAccounts {
    /// The account of a valid token. A fresh token with the same grant prolongs it.
    pub(super) fn admit(
        &mut self,
        authorization: &Arc<Authorization>,
        token: &AccessToken,
        now: Instant,
    ) -> (Owner, Arc<Account>) {
        let (owner, grant) = (authorization.owner(token), authorization.grant(token));
        let ends = UNIX_EPOCH + token.ends;
        let new = || TokenCaller { usage: Arc::default(), last: now, accounts: Vec::new() };
        let caller = self.0.entry(owner).or_insert_with(new);
        caller.last = now;
        let same = |known: &&mut TokenAccount| {
            Arc::ptr_eq(&known.authorization, authorization) && known.account.grant == grant
        };
        if let Some(known) = caller.accounts.iter_mut().find(same) {
            known.ends = known.ends.max(ends);
            return (owner, Arc::clone(&known.account));
        }
        let views = authorization.views(grant.tools.as_ref());
        let account = Arc::new(Account::sharing(grant, &caller.usage, views));
        let authorization = Arc::clone(authorization);
        caller.accounts.push(TokenAccount { account: Arc::clone(&account), authorization, ends });
        (owner, account)
    }

    /// Moves accounts into `gone` whose tokens have ended, or whose terms are no longer the current ones.
    pub(super) fn forget(
        &mut self,
        gone: &mut Gone,
        authorization: Option<&Arc<Authorization>>,
        now: SystemTime,
        moment: Instant,
    ) {
        let is_of_now = |known: &TokenAccount| {
            authorization.is_some_and(|terms| Arc::ptr_eq(terms, &known.authorization))
        };
        self.0.retain(|_, caller| {
            let revoked = caller.accounts.extract_if(.., |known| !is_of_now(known));
            gone.revoked.extend(revoked.map(|known| known.account));
            let expired = caller.accounts.extract_if(.., |known| now >= known.ends);
            gone.expired.extend(expired.map(|known| known.account));
            !caller.accounts.is_empty() || moment.duration_since(caller.last) < REMEMBERED
        });
    }

    /// When the next account ends.
    pub(super) fn next_end(&self) -> Option<SystemTime> {
        self.0.values().flat_map(|caller| &caller.accounts).map(|known| known.ends).min()
    }
}
