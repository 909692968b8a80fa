//! Callers with access tokens: connects the check of tokens to the gateway, and follows the configuration.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use plugbay_auth::resource_server::{HttpFetch, ResourceServer};
use plugbay_downstream::http::{Authorization, AuthorizationTerms, Authorizations};
use tokio::sync::watch;

use crate::{
    config::{AuthorizationSettings, ProtectedResource, Settings},
    error::CommandError,
    gateway_run::Configuration,
    settings::Source,
    token_store::{self, TokenStore},
};

/// The current terms for callers of a gateway; they change with its configuration.
#[derive(Debug)]
pub struct CallerAuthorization {
    terms: watch::Sender<Option<Arc<Authorization>>>,
    current: Mutex<Current>,
    /// The store of named tokens, which holds the secret behind callers' owners.
    store: Option<TokenStore>,
    /// The secret if there is no store.
    own_key: [u8; 32],
}

#[derive(Debug, Default)]
struct Current {
    resource: Option<Arc<ProtectedResource>>,
    key: Option<[u8; 32]>,
}

impl CallerAuthorization {
    /// Starts with these settings. Broken ones are an error, because it is unclear whom they should keep out.
    pub fn new(settings: &AuthorizationSettings, store: Option<PathBuf>) -> Result<Self, CommandError> {
        if *settings == AuthorizationSettings::Broken {
            let error = CommandError::failed("the key `authorization` of the configuration is broken");
            return Err(error.hint("mend it, or remove it; `plugbay doctor` shows what is wrong with it"));
        }
        let (store, own_key) = (store.map(TokenStore), token_store::random()?);
        let new = Self { terms: watch::Sender::new(None), current: Mutex::default(), store, own_key };
        new.follow(settings);
        Ok(new)
    }

    pub fn terms(&self) -> Authorizations {
        self.terms.subscribe()
    }

    /// Applies new settings. Broken ones change nothing.
    pub fn follow(&self, settings: &AuthorizationSettings) {
        let next = match settings {
            AuthorizationSettings::Off => None,
            AuthorizationSettings::On(resource) => Some(Arc::clone(resource)),
            AuthorizationSettings::Broken => {
                tracing::error!("the authorization of callers stays as it was: its new settings are broken");
                return;
            }
        };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.resource == next {
            return;
        }
        let key = *current.key.get_or_insert_with(|| self.key());
        self.terms.send_replace(next.as_deref().map(|resource| Arc::new(authorization(resource, key))));
        current.resource = next;
    }

    /// The secret of the store, shared by all gateways that use it. Without a store, callers' tasks end with
    /// the process.
    fn key(&self) -> [u8; 32] {
        match self.store.as_ref().map(TokenStore::caller_key) {
            Some(Ok(key)) => key,
            Some(Err(error)) => {
                tracing::warn!("{}", error.message);
                self.own_key
            }
            None => self.own_key,
        }
    }
}

fn authorization(resource: &ProtectedResource, key: [u8; 32]) -> Authorization {
    let ProtectedResource { server, resource, scopes } = resource.clone();
    Authorization::new(AuthorizationTerms {
        issuer: server.issuer.clone(),
        verifier: Arc::new(ResourceServer::new(server, HttpFetch::default())),
        scopes,
        resource,
        key,
    })
}

/// The configuration of a gateway over HTTP. Changes of access rules take effect before any others.
pub struct GuardedConfiguration<'a> {
    source: &'a Source,
    authorization: &'a CallerAuthorization,
    read: Mutex<AuthorizationSettings>,
}

impl<'a> GuardedConfiguration<'a> {
    pub fn new(source: &'a Source, authorization: &'a CallerAuthorization) -> Self {
        Self { source, authorization, read: Mutex::default() }
    }
}

impl Configuration for GuardedConfiguration<'_> {
    async fn read(&self) -> Settings {
        let settings = self.source.load();
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = settings.authorization.clone();
        settings
    }

    fn changes(&self) {
        self.authorization.follow(&self.read.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
