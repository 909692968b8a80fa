//! A login as the server side uses it: headers before each request, a verdict after each rejection.

use std::{sync::Arc, time::Duration};

use plugbay_core::{
    credentials::{Credentials, Generation, Headers, Later, LoginOffer, Rejection, Target, Verdict},
    failure::{Cause, Failure},
    secret::Secret,
};
use tokio::time::sleep;

use super::{LoginError, ServerLogin, Shared, failure, interactive::shown_issuer, renewal::Reason};
use crate::{
    assertion::{DpopKey, Proof},
    challenge::{self, Challenge},
    discovery::DiscoveryError,
    freshness::{Freshness, freshness},
    mcp_remote, scopes,
    store::Login,
};

/// A request that is rejected more often than this fails.
const MOST_ATTEMPTS: u32 = 3;
/// How often another process's login is checked for while somebody waits for it.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

impl Credentials for ServerLogin {
    fn headers<'a>(&'a self, request: Target<'a>) -> Later<'a, Result<Headers, Arc<Failure>>> {
        Box::pin(async move { self.0.headers(request).await })
    }

    fn rejected<'a>(&'a self, rejection: Rejection<'a>) -> Later<'a, Verdict> {
        Box::pin(async move { self.0.judge(rejection).await.unwrap_or_else(verdict) })
    }

    fn login(&self) -> Later<'_, Result<LoginOffer, Arc<Failure>>> {
        Box::pin(async move {
            let mut offered = self.0.offered.lock().await;
            let flow = match &*offered {
                Some(flow) if !flow.is_over() => flow.clone(),
                _ => self.begin(&[]).await.map_err(|error| self.0.no_login(&error))?,
            };
            *offered = Some(flow.clone());
            let (name, issuer) = (&self.0.key.name, shown_issuer(&flow.issuer));
            let missing = self.0.known().logins.current().map(|login| login.missing.join(" "));
            let message = match missing.filter(|scopes| !scopes.is_empty()) {
                None => format!("Log in to {name} at {issuer} to let plugbay use it."),
                Some(scopes) => format!("Log in to {name} at {issuer} to allow more: {scopes}."),
            };
            Ok(LoginOffer { url: flow.url.to_string(), id: flow.id, message })
        })
    }

    fn login_failed<'a>(&'a self, id: &'a str) -> Later<'a, Arc<Failure>> {
        Box::pin(async move {
            let flow = self.0.offered.lock().await.clone().filter(|flow| flow.id == id);
            match flow {
                Some(flow) => match flow.finished().await {
                    Err(error) => self.0.no_login(&error),
                    Ok(()) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        })
    }

    fn changed(&self, since: Generation) -> Later<'_, ()> {
        Box::pin(async move {
            let mut generation = self.0.generation.subscribe();
            loop {
                if let Err(error) = self.0.reload().await {
                    tracing::debug!(server = %self.0.key.name, "{error}");
                }
                if *generation.borrow_and_update() != since {
                    return;
                }
                tokio::select! {
                    _ = generation.changed() => {}
                    () = sleep(LOOK_AGAIN) => {}
                }
            }
        })
    }

    fn settled(&self) -> Later<'_, ()> {
        Box::pin(ServerLogin::settled(self))
    }

    fn generation(&self) -> Generation {
        self.0.look();
        self.0.generation()
    }
}

/// A failure as a verdict.
fn verdict(failure: Arc<Failure>) -> Verdict {
    if failure.cause == Cause::NeedsLogin { Verdict::NeedsLogin(failure) } else { Verdict::Final(failure) }
}

impl Shared {
    async fn headers(self: &Arc<Self>, request: Target<'_>) -> Result<Headers, Arc<Failure>> {
        if let Err(error) = self.reload().await {
            tracing::warn!(server = %self.key.name, "{error}");
        }
        if self.wants_to_save() {
            let shared = Arc::clone(self);
            tokio::spawn(async move { shared.restore().await });
        }
        let state = {
            let known = self.known();
            let tokens = known.logins.current().and_then(|login| login.tokens.as_ref());
            tokens.map(|tokens| (freshness(tokens, self.now()), tokens.refresh.is_some()))
        };
        match state {
            // The token can only be tried: the server will say if a new login is needed.
            Some((Freshness::Due | Freshness::Expired, false)) if !self.is_machine() => {}
            Some((Freshness::Due, _)) => {
                // The token is still valid, so nobody waits for the renewal.
                let shared = Arc::clone(self);
                tokio::spawn(async move { shared.renew(Reason::Age).await });
            }
            Some((Freshness::Expired, _)) => self.renew(Reason::Age).await?,
            Some((Freshness::Fresh, _)) | None => {}
        }
        self.current_headers(request)
    }

    fn current_headers(&self, request: Target<'_>) -> Result<Headers, Arc<Failure>> {
        let generation = self.generation();
        let known = self.known();
        let Some(login) = known.logins.current() else {
            return Ok(Headers { values: Vec::new(), generation });
        };
        let Some(tokens) = &login.tokens else { return Ok(Headers { values: Vec::new(), generation }) };
        let scheme = if tokens.is_dpop { "DPoP" } else { "Bearer" };
        let authorization = Secret::new(format!("{scheme} {}", tokens.access.expose()));
        let mut values = vec![("authorization".to_owned(), authorization)];
        if let Some(pem) = login.dpop_key.clone().filter(|_| tokens.is_dpop) {
            let proof = Proof {
                method: request.method,
                url: request.url,
                token: Some(tokens.access.expose()),
                nonce: known.nonce.as_deref(),
                now: self.now(),
            };
            let proof = DpopKey::from_pem(pem).and_then(|key| key.proof(&proof));
            let proof = proof.map_err(|error| failure(format!("no proof of possession: {error}")))?;
            values.push(("dpop".to_owned(), proof));
        }
        Ok(Headers { values, generation })
    }

    async fn judge(self: &Arc<Self>, rejection: Rejection<'_>) -> Result<Verdict, Arc<Failure>> {
        let found = challenge::of_oauth(rejection.challenges.iter().map(String::as_str));
        let error =
            found.as_ref().and_then(|challenge| challenge.get("error")).unwrap_or_default().to_owned();
        if let Some(nonce) = &rejection.dpop_nonce {
            let changed = self.known().nonce.replace(nonce.clone()).as_ref() != Some(nonce);
            if error == "use_dpop_nonce" && changed && rejection.attempts <= MOST_ATTEMPTS {
                return Ok(Verdict::SendAgain);
            }
        }
        if let Err(error) = self.reload().await {
            tracing::warn!(server = %self.key.name, "{error}");
        }
        if self.generation() != rejection.generation && rejection.attempts <= MOST_ATTEMPTS {
            return Ok(Verdict::SendAgain);
        }
        match (rejection.status, found) {
            (403, Some(challenge)) if error == "insufficient_scope" => {
                self.step_up(&challenge, &rejection).await
            }
            (401, found) => self.unauthorized(found, &rejection).await,
            _ => Ok(Verdict::NotOurs),
        }
    }

    async fn unauthorized(
        self: &Arc<Self>,
        found: Option<Challenge>,
        rejection: &Rejection<'_>,
    ) -> Result<Verdict, Arc<Failure>> {
        if found.is_some() {
            self.known().challenge.clone_from(&found);
        }
        if rejection.attempts > MOST_ATTEMPTS {
            return Err(failure("rejects the token that was issued for it").advised(self.remedy()));
        }
        let futile = self.is_futile();
        // First the step that needs no user: the refresh token, sent to the authorization server that issued
        // it.
        if rejection.attempts <= 1 && self.can_renew() && !futile {
            self.renew(Reason::Rejected(rejection.generation)).await?;
            return Ok(Verdict::SendAgain);
        }
        if self.known().logins.current().is_some_and(|login| login.tokens.is_some()) {
            if rejection.attempts > 1 {
                self.known().futile = Some(rejection.generation);
            }
            self.known().discovered = None; // a token that does not fit: the server may have moved to another issuer
        }
        match self.discover(found.as_ref()).await {
            Ok(_) if self.is_machine() && rejection.attempts <= 2 && !futile => {
                self.renew(Reason::Rejected(rejection.generation)).await?;
                Ok(Verdict::SendAgain)
            }
            Ok(_) if self.is_machine() => Err(failure("rejects the token that was issued for it")),
            Ok(discovered) if self.adopt_mcp_remote(&discovered).await => Ok(Verdict::SendAgain),
            Ok(_) => Err(self.needs_login(None)),
            Err(DiscoveryError::Nothing) => Ok(Verdict::NotOurs),
            Err(error) => Err(failure(format!("needs a login, but {error}"))),
        }
    }

    /// Whether the server rejects even new tokens: then another one would not help, and each request would
    /// ask for one.
    fn is_futile(&self) -> bool {
        let current = self.generation();
        self.known().futile == Some(current)
    }

    /// Whether another token is available without the user.
    fn can_renew(&self) -> bool {
        let known = self.known();
        let Some(login) = known.logins.current() else { return false };
        let refreshes = login.tokens.as_ref().is_some_and(|tokens| tokens.refresh.is_some());
        self.is_machine() || (refreshes && login.rejected.is_none())
    }

    /// Handles a request that needs scopes that the token does not have.
    async fn step_up(
        self: &Arc<Self>,
        challenge: &Challenge,
        rejection: &Rejection<'_>,
    ) -> Result<Verdict, Arc<Failure>> {
        let needed = challenge.scopes().unwrap_or_default();
        let granted = {
            let known = self.known();
            known
                .logins
                .current()
                .and_then(|login| login.tokens.clone())
                .map(|tokens| tokens.scopes)
                .unwrap_or_default()
        };
        let names = needed.join(" ");
        // Another login with the same scopes would not help.
        if rejection.attempts > MOST_ATTEMPTS || scopes::covers(&granted, &needed) {
            let what = match names.as_str() {
                "" => "rejects a token for want of scopes, and does not say which".to_owned(),
                names => format!("rejects a token for want of the scopes {names:?}, which it has"),
            };
            return Err(failure(what).advised("ask its operator for the rights"));
        }
        self.note_missing(&needed).await;
        self.known().challenge = Some(challenge.clone());
        if self.is_machine() {
            self.renew(Reason::Rejected(rejection.generation)).await?;
            return Ok(Verdict::SendAgain);
        }
        if self.known().discovered.is_none() {
            let _ = self.discover(Some(challenge)).await; // for the message
        }
        Err(self.needs_login(Some(&format!("this needs more rights: {names}"))))
    }

    /// Saves the scopes that a login must ask for, so that a login in any process asks for them.
    async fn note_missing(&self, needed: &[String]) {
        let Ok(_lock) = self.store.lock(&self.key).await else { return };
        if self.reload().await.is_err() {
            return; // an old state must not replace one that cannot be read now
        }
        let mut logins = self.known().logins.clone();
        let Some(login) = logins.current_mut() else { return };
        let missing =
            needed.iter().filter(|scope| !login.missing.contains(scope)).cloned().collect::<Vec<_>>();
        if !missing.is_empty() {
            login.missing.extend(missing);
            self.keep(logins).await;
        }
    }

    /// Uses the login that the user made with `mcp-remote`, if plugbay has none of its own.
    async fn adopt_mcp_remote(&self, discovered: &crate::discovery::Discovered) -> bool {
        let Some(folder) = &self.mcp_remote else { return false };
        let has_own = {
            let known = self.known();
            known.logins.logged_out || known.logins.current().is_some()
        };
        if has_own {
            return false;
        }
        let Some(login) = mcp_remote::find(folder, &self.url, discovered, self.now()) else { return false };
        self.adopt_login(&discovered.server.issuer, login).await
    }

    async fn adopt_login(&self, issuer: &str, login: Login) -> bool {
        let Ok(_lock) = self.store.lock(&self.key).await else { return false };
        if self.reload().await.is_err() {
            return false; // there may be a login, in a keychain that is locked
        }
        let mut logins = self.known().logins.clone();
        if logins.current().is_some() {
            return true; // another process was faster
        }
        logins.current = Some(issuer.to_owned());
        logins.by_issuer.insert(issuer.to_owned(), login);
        tracing::info!(server = %self.key.name, "uses the login of mcp-remote");
        self.keep(logins).await;
        true
    }

    fn no_login(&self, error: &LoginError) -> Arc<Failure> {
        let failure =
            Failure::new(format!("needs a login, but {error}"), Vec::new()).because(Cause::NeedsLogin);
        Arc::new(failure.with_remedy(error.remedy().unwrap_or_else(|| self.remedy())))
    }
}

/// A failure with advice.
trait Advised {
    fn advised(self, remedy: impl Into<String>) -> Self;
}

impl Advised for Arc<Failure> {
    fn advised(self, remedy: impl Into<String>) -> Self {
        Arc::new(Failure::clone(&self).with_remedy(remedy))
    }
}
