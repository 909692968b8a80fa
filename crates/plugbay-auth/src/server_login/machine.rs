//! Tokens without a user: client credentials, workload identities, and enterprises' identity providers.

use std::sync::Arc;

use plugbay_core::{
    credentials::{EnterpriseSettings, Grant},
    failure::Failure,
    secret::Secret,
};
use url::Url;

use super::{Shared, renewal::cannot_renew};
use crate::{
    assertion::{self, DpopKey},
    client::{self, RegistrationError},
    discovery::{self, Discovered, DiscoveryError},
    scopes::{self, ScopeSources},
    store::{Login, Logins},
    token::{AuthMethod, TokenClient, TokenError, TokenGrant, TokenRequest},
};

/// The reason why there is no token for a machine.
#[derive(Debug, thiserror::Error)]
enum MachineError {
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    #[error(transparent)]
    Client(#[from] RegistrationError),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Sign(#[from] assertion::SignError),
    #[error("\"oauth\" names no client; add \"clientId\"")]
    NoClient,
    #[error("{0} names no token endpoint")]
    NoEndpoint(String),
}

impl Shared {
    /// Requests a token with the configured grant.
    pub(super) async fn request_for_machine(self: &Arc<Self>, logins: Logins) -> Result<(), Arc<Failure>> {
        match self.machine_login(&logins).await {
            Ok((issuer, login)) => {
                let mut logins = logins;
                logins.current = Some(issuer.clone());
                logins.by_issuer.insert(issuer, login);
                self.keep(logins).await;
                Ok(())
            }
            Err(MachineError::Token(error)) if !error.is_final() => Err(cannot_renew(&error)),
            Err(error) => {
                let failure = Failure::new(format!("gets no token: {error}"), Vec::new());
                Err(Arc::new(failure.with_remedy("check \"oauth\" in its entry")))
            }
        }
    }

    async fn machine_login(&self, logins: &Logins) -> Result<(String, Login), MachineError> {
        let challenge = self.known().challenge.clone();
        let discovered = self.discover(challenge.as_ref()).await?;
        let Discovered { server, resource, .. } = &discovered;
        let before = logins.by_issuer.get(&server.issuer);
        let bound_to = self.bound_to(logins);
        let configured = self.oauth.client.as_ref().ok_or(MachineError::NoClient)?;
        let client = client::configured(configured, bound_to.as_deref(), server)?;
        let endpoint =
            server.token_endpoint.clone().ok_or_else(|| MachineError::NoEndpoint(server.issuer.clone()))?;
        let asked = self.scopes_for(&discovered, before);
        let mut login = Login::new(client, endpoint.clone(), resource.clone(), asked);
        login.revocation_endpoint = server.revocation_endpoint.clone();
        let dpop = self.uses_dpop(&discovered).then(DpopKey::generate).transpose()?;
        login.dpop_key = dpop.as_ref().map(|key| key.pem().clone());
        let statement = self.statement(&discovered).await?;
        let grant = match &statement {
            Some(assertion) => TokenGrant::Assertion { assertion },
            None => TokenGrant::ClientCredentials,
        };
        let request = TokenRequest {
            client: login.client.at_token_endpoint(&self.oauth),
            grant,
            resource: Some(resource),
            scopes: &login.scopes,
            dpop: dpop.as_ref(),
        };
        let issued = self.endpoint(&endpoint, &server.issuer).request(&request).await?;
        login.tokens = Some(self.tokens(issued, &login));
        Ok((server.issuer.clone(), login))
    }

    /// The statement to exchange, for grants that need one.
    async fn statement(&self, discovered: &Discovered) -> Result<Option<Secret>, MachineError> {
        match &self.oauth.grant {
            Grant::WorkloadIdentity { assertion } => Ok(Some(assertion::read(assertion)?)),
            Grant::EnterpriseManaged(idp) => self.id_jag(idp, discovered).await.map(Some),
            Grant::ClientCredentials | Grant::AuthorizationCode => Ok(None),
        }
    }

    /// Asks the enterprise's identity provider to vouch for the user at the authorization server.
    async fn id_jag(
        &self,
        idp: &EnterpriseSettings,
        discovered: &Discovered,
    ) -> Result<Secret, MachineError> {
        let endpoint = self.idp_endpoint(idp).await?;
        let id_token = assertion::read(&idp.id_token)?;
        let method =
            if idp.client_secret.is_some() { AuthMethod::ClientSecretBasic } else { AuthMethod::None };
        let request = TokenRequest {
            client: TokenClient { id: &idp.client_id, secret: idp.client_secret.as_ref(), key: None, method },
            grant: TokenGrant::IdJag { id_token: &id_token, audience: &discovered.server.issuer },
            resource: Some(&discovered.resource),
            scopes: self.oauth.scopes.as_deref().unwrap_or_default(),
            dpop: None,
        };
        Ok(self
            .endpoint(&endpoint, idp.issuer.as_deref().unwrap_or_default())
            .request(&request)
            .await?
            .access)
    }

    async fn idp_endpoint(&self, idp: &EnterpriseSettings) -> Result<Url, MachineError> {
        let none = |place: &str| MachineError::NoEndpoint(place.to_owned());
        match (&idp.token_endpoint, &idp.issuer) {
            (Some(endpoint), _) => Url::parse(endpoint).map_err(|_| none(endpoint)),
            (None, Some(issuer)) => {
                discovery::of_issuer(&self.http, issuer).await?.token_endpoint.ok_or_else(|| none(issuer))
            }
            (None, None) => Err(none("the identity provider")),
        }
    }

    /// The authorization server that a configured client belongs to, once the client has been used there.
    pub(super) fn bound_to(&self, logins: &Logins) -> Option<String> {
        let client = self.oauth.client.as_ref()?;
        let is_its = |login: &Login| {
            login.client.id == client.id && login.client.source == client::ClientSource::Configured
        };
        logins.by_issuer.iter().find(|(_, login)| is_its(login)).map(|(issuer, _)| issuer.clone())
    }

    pub(super) fn scopes_for(&self, discovered: &Discovered, before: Option<&Login>) -> Vec<String> {
        let challenge = self.known().challenge.as_ref().and_then(crate::challenge::Challenge::scopes);
        let missing = before.map(|login| login.missing.as_slice()).unwrap_or_default();
        // A step-up adds to the scopes asked for before. Any other login starts from scratch.
        let kept: &[String] =
            before.filter(|_| !missing.is_empty()).map(|login| login.scopes.as_slice()).unwrap_or_default();
        let challenged = if missing.is_empty() { challenge.as_deref() } else { Some(missing) };
        scopes::select(&ScopeSources {
            configured: self.oauth.scopes.as_deref(),
            challenge: challenged,
            resource: discovered.scopes.as_deref(),
            server: discovered.server.scopes_supported.as_deref().filter(|_| !self.is_machine()),
            before: kept,
        })
    }

    /// Whether tokens are bound to a key, because the MCP server demands it.
    pub(super) fn uses_dpop(&self, discovered: &Discovered) -> bool {
        let asks = self.known().challenge.as_ref().is_some_and(|challenge| challenge.scheme == "dpop");
        let known = discovered.server.dpop_signing_alg_values_supported.iter().flatten();
        (asks || discovered.needs_dpop) && known.into_iter().any(|algorithm| algorithm == "ES256")
    }
}
