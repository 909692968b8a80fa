//! The tokens of a scripted authorization server: short access tokens, and refresh tokens for a single use.
//!
//! A refresh token that is used twice revokes the whole grant. As with most real servers, the predecessor
//! stays valid for a short time: otherwise a lost answer would log the user out, and no client could prevent
//! it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::atomic::{AtomicU64, Ordering},
};

/// Every credential that a scripted server issues contains this.
pub const SECRET: &str = "canary-secret";

/// Form parameters.
pub type Form = BTreeMap<String, String>;

/// The state of all grants and clients.
#[derive(Debug)]
pub struct Grants {
    /// The lifetime of an access token, in seconds.
    pub life: u64,
    /// How long a refresh token's predecessor stays valid, in seconds.
    pub grace: u64,
    /// Whether each refresh issues a new refresh token.
    pub rotates: bool,
    /// Whether a login gives a refresh token.
    pub refreshes: bool,
    /// Clients by their id, with their secret.
    pub clients: HashMap<String, Option<String>>,
    /// Whether registered clients get a secret.
    pub secret_clients: bool,
    /// The nonce that proofs of possession need.
    pub nonce: Option<String>,
    /// The scopes that are granted, instead of those asked for.
    pub scopes: Option<String>,
    /// The times at which tokens were refreshed.
    pub refreshed: Vec<u64>,
    /// How often a predecessor was accepted.
    pub graced: usize,
    /// How often a refresh token was used twice: this must not happen.
    pub reused: usize,
    pub logins: usize,
    pub registered: usize,
    count: u64,
    codes: HashMap<String, Code>,
    access: HashMap<String, Access>,
    refresh: HashMap<String, Refresh>,
    revoked: Vec<u64>,
}

#[derive(Debug, Clone)]
pub struct Code {
    pub client: String,
    pub redirect_uri: String,
    pub challenge: String,
    pub scopes: String,
}

#[derive(Debug, Clone)]
pub struct Access {
    pub grant: u64,
    pub expires: u64,
    pub scopes: String,
    /// The public key to which the token is bound.
    pub key: Option<String>,
}

#[derive(Debug, Clone)]
struct Refresh {
    grant: u64,
    client: String,
    scopes: String,
    replaced: Option<u64>,
}

/// An answer with tokens.
#[derive(Debug, Clone)]
pub struct Issued {
    pub access: String,
    pub refresh: Option<String>,
    pub scopes: String,
    pub key: Option<String>,
}

impl Default for Grants {
    fn default() -> Self {
        Self {
            life: 600,
            grace: 60,
            rotates: true,
            refreshes: true,
            clients: HashMap::new(),
            secret_clients: false,
            nonce: None,
            scopes: None,
            refreshed: Vec::new(),
            graced: 0,
            reused: 0,
            logins: 0,
            registered: 0,
            count: 0,
            codes: HashMap::new(),
            access: HashMap::new(),
            refresh: HashMap::new(),
            revoked: Vec::new(),
        }
    }
}

impl Grants {
    fn name(&mut self, kind: &str) -> String {
        // Unique among all sites, so that its owner is known.
        static COUNT: AtomicU64 = AtomicU64::new(100_000);
        self.count += 1;
        format!("{SECRET}-{kind}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
    }

    pub fn register(&mut self) -> (String, Option<String>) {
        self.registered += 1;
        let id = format!("client-{}", self.registered);
        let secret = self.secret_clients.then(|| self.name("client"));
        self.clients.insert(id.clone(), secret.clone());
        (id, secret)
    }

    pub fn code(&mut self, code: Code) -> String {
        let name = self.name("code");
        self.codes.insert(name.clone(), code);
        name
    }

    pub fn redeem(
        &mut self,
        client: &str,
        form: &Form,
        challenge: &str,
        now: u64,
        key: Option<String>,
    ) -> Result<Issued, &'static str> {
        let code = self.codes.remove(&form["code"]).ok_or("invalid_grant")?;
        let same = code.client == client && code.challenge == challenge;
        if !same || form.get("redirect_uri") != Some(&code.redirect_uri) {
            return Err("invalid_grant");
        }
        self.logins += 1;
        self.count += 1;
        Ok(self.issue(self.count, client, &code.scopes, now, key))
    }

    /// Tokens for a grant without a user.
    pub fn machine(&mut self, client: &str, form: &Form, now: u64, key: Option<String>) -> Issued {
        self.count += 1;
        let scopes = form.get("scope").cloned().unwrap_or_default();
        Issued { refresh: None, ..self.issue(self.count, client, &scopes, now, key) }
    }

    pub fn refresh(
        &mut self,
        client: &str,
        form: &Form,
        now: u64,
        key: Option<String>,
    ) -> Result<Issued, &'static str> {
        let token = &form["refresh_token"];
        let found = self.refresh.get(token).cloned().ok_or("invalid_grant")?;
        if found.client != client || self.revoked.contains(&found.grant) {
            return Err("invalid_grant");
        }
        match found.replaced {
            None => {}
            Some(at) if now <= at + self.grace => self.graced += 1,
            Some(_) => {
                self.reused += 1;
                self.revoked.push(found.grant);
                return Err("invalid_grant");
            }
        }
        self.refreshed.push(now);
        let mut issued = self.issue(found.grant, client, &found.scopes, now, key);
        if self.rotates {
            self.refresh.get_mut(token).expect("it was found").replaced.get_or_insert(now);
        } else {
            self.refresh.remove(issued.refresh.as_ref().expect("it was issued"));
            issued.refresh = None;
        }
        Ok(issued)
    }

    fn issue(&mut self, grant: u64, client: &str, scopes: &str, now: u64, key: Option<String>) -> Issued {
        let scopes = self.scopes.clone().unwrap_or_else(|| scopes.to_owned());
        let access = self.name("access");
        let expires = now + self.life;
        let bound = Access { grant, expires, scopes: scopes.clone(), key: key.clone() };
        self.access.insert(access.clone(), bound);
        let refresh = self.refreshes.then(|| self.name("refresh"));
        if let Some(refresh) = &refresh {
            let (client, scopes) = (client.to_owned(), scopes.clone());
            self.refresh.insert(refresh.clone(), Refresh { grant, client, scopes, replaced: None });
        }
        Issued { access, refresh, scopes, key }
    }

    /// The access token, if it is valid.
    pub fn check(&self, token: &str, now: u64) -> Option<&Access> {
        self.access.get(token).filter(|access| now < access.expires && !self.revoked.contains(&access.grant))
    }

    /// Invalidates all access tokens issued so far.
    pub fn expire_all(&mut self) {
        self.access.clear();
    }

    /// Ends all grants, as if the user had withdrawn consent.
    pub fn revoke_all(&mut self) {
        self.access.clear();
        self.refresh.clear();
    }

    pub fn revoke(&mut self, token: &str) {
        self.refresh.remove(token);
        self.access.remove(token);
    }
}
