//! Renews tokens: once for all processes of the user, and without losing a token on the way.

use std::sync::Arc;

use plugbay_core::{
    credentials::Generation,
    failure::{Cause, Failure},
};

use super::{Pause, Shared, failure};
use crate::{
    assertion::DpopKey,
    freshness::{Freshness, freshness},
    store::{Login, Logins, Tokens},
    token::{Endpoint, Issued, TokenError, TokenGrant, TokenRequest},
};

/// The pause after a renewal that failed, in seconds; it doubles with each failure.
const FIRST_PAUSE: u64 = 2;
const LONGEST_PAUSE: u64 = 60;

/// The reason for renewing tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// They have expired, or soon will.
    Age,
    /// The server has rejected the tokens of this generation.
    Rejected(Generation),
}

impl Shared {
    /// Renews the tokens in a separate task: a call that is cancelled must not take the answer with it.
    pub(super) async fn renew(self: &Arc<Self>, reason: Reason) -> Result<(), Arc<Failure>> {
        let shared = Arc::clone(self);
        let renewed = tokio::spawn(async move { shared.renew_alone(reason).await }).await;
        renewed.unwrap_or_else(|_| Err(failure("the renewal of its token was interrupted")))
    }

    async fn renew_alone(self: &Arc<Self>, reason: Reason) -> Result<(), Arc<Failure>> {
        let _alone = self.renewing.lock().await;
        let stored = |error: crate::store::StoreError| failure(format!("its login cannot be read: {error}"));
        self.reload().await.map_err(stored)?;
        if self.is_renewed(reason) {
            return Ok(());
        }
        let (pause, now) = (self.known().pause.clone(), self.now());
        if let Some(pause) = pause.filter(|pause| (pause.since..pause.until).contains(&now)) {
            return Err(pause.failure);
        }
        let _lock = match self.store.lock(&self.key).await {
            Err(error) if error.is_read_only() => {
                tracing::warn!(server = %self.key.name, "its token is renewed for this process alone: {error}");
                None
            }
            lock => Some(lock.map_err(stored)?),
        };
        self.reload().await.map_err(stored)?;
        // Another process may have renewed them already.
        if self.is_renewed(reason) {
            return Ok(());
        }
        let logins = self.known().logins.clone();
        let result = if self.is_machine() {
            self.request_for_machine(logins).await
        } else {
            self.refresh(logins).await
        };
        if let Err(failure) = &result
            && failure.cause != Cause::NeedsLogin
        {
            self.pause(failure);
        }
        result
    }

    /// Whether there are other tokens than those that should be renewed.
    fn is_renewed(&self, reason: Reason) -> bool {
        let current = self.generation();
        let known = self.known();
        let Some(tokens) = known.logins.current().and_then(|login| login.tokens.as_ref()) else {
            return false;
        };
        match reason {
            Reason::Age => freshness(tokens, self.now()) == Freshness::Fresh,
            Reason::Rejected(generation) => current != generation,
        }
    }

    fn pause(&self, failure: &Arc<Failure>) {
        let (since, failure) = (self.now(), Arc::clone(failure));
        let mut known = self.known();
        let pause = (FIRST_PAUSE << known.failures.min(10)).min(LONGEST_PAUSE);
        known.failures = known.failures.saturating_add(1);
        known.pause = Some(Pause { since, until: since + pause, failure });
    }

    /// Exchanges the refresh token. It is sent to the token endpoint of the login, whatever the MCP server
    /// says now.
    async fn refresh(self: &Arc<Self>, mut logins: Logins) -> Result<(), Arc<Failure>> {
        let issuer = logins.current.clone().unwrap_or_default();
        let Some(login) = logins.current_mut() else { return Err(self.needs_login(None)) };
        let why = login.rejected.clone();
        let refresh = login.tokens.as_ref().and_then(|tokens| tokens.refresh.clone());
        let (None, Some(refresh)) = (&why, refresh) else {
            return Err(self.needs_login(Some(why.as_deref().unwrap_or("its token has expired"))));
        };
        let dpop = dpop_key(login)?;
        let request = TokenRequest {
            client: login.client.at_token_endpoint(&self.oauth),
            grant: TokenGrant::Refresh { token: &refresh },
            resource: Some(&login.resource),
            scopes: &[],
            dpop: dpop.as_ref(),
        };
        match self.endpoint(&login.token_endpoint, &issuer).request(&request).await {
            Ok(new) => {
                login.tokens = Some(self.tokens(new, login));
                login.rejected = None;
                tracing::debug!(server = %self.key.name, "refreshed its token");
                self.keep(logins).await;
                Ok(())
            }
            Err(error) if error.is_final() => {
                // Nothing is deleted: the access token may still be valid, and the user may want to know.
                login.rejected = Some(error.to_string());
                if error.forgets_client() {
                    login.client.expire();
                }
                tracing::warn!(server = %self.key.name, "its token cannot be refreshed: {error}");
                self.keep(logins).await;
                Err(self.needs_login(Some(&error.to_string())))
            }
            Err(error) => Err(cannot_renew(&error)),
        }
    }

    /// Writes the logins. If that fails, they are at least kept in memory.
    pub(super) async fn keep(&self, logins: Logins) {
        if let Err(error) = self.save(logins).await {
            tracing::warn!(server = %self.key.name, "its login is kept in memory alone: {error}");
        }
    }

    pub(super) fn endpoint<'a>(&'a self, url: &'a url::Url, issuer: &'a str) -> Endpoint<'a> {
        Endpoint { http: &self.http, url, issuer, now: self.now() }
    }

    /// The issued tokens, completed by the earlier ones where the answer omits something.
    pub(super) fn tokens(&self, issued: Issued, login: &Login) -> Tokens {
        let before = login.tokens.as_ref();
        Tokens {
            access: issued.access,
            // A server may keep the old refresh token valid and issue no new one.
            refresh: issued.refresh.or_else(|| before.and_then(|tokens| tokens.refresh.clone())),
            issued_at: self.now(),
            expires_in: issued.expires_in,
            scopes: issued.scopes.unwrap_or_else(|| {
                before.map_or_else(|| login.scopes.clone(), |tokens| tokens.scopes.clone())
            }),
            is_dpop: issued.is_dpop,
        }
    }

    pub(super) async fn revoke(&self, issuer: &str, login: &Login) -> Result<(), TokenError> {
        let (Some(url), Some(tokens)) = (&login.revocation_endpoint, &login.tokens) else { return Ok(()) };
        let (token, hint) = match &tokens.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&tokens.access, "access_token"),
        };
        self.endpoint(url, issuer).revoke(&login.client.at_token_endpoint(&self.oauth), token, hint).await
    }
}

pub(super) fn cannot_renew(error: &TokenError) -> Arc<Failure> {
    let failure = Failure::new(format!("its token cannot be renewed now: {error}"), Vec::new());
    Arc::new(failure.with_remedy("try again soon; plugbay keeps the login"))
}

/// The key to which the tokens of this login are bound.
fn dpop_key(login: &Login) -> Result<Option<DpopKey>, Arc<Failure>> {
    let key = login.dpop_key.clone().map(DpopKey::from_pem).transpose();
    key.map_err(|error| failure(format!("its token is bound to a key that is of no use: {error}")))
}
