//! The user's logins at servers: their storage, and the credentials that requests get from them.

use std::{path::PathBuf, sync::Arc};

use plugbay_auth::{
    HeaderSource, LoginSettings, ServerLogin,
    keychain::{SessionBus, SystemKeychain},
    store::{Keychain, Store},
};
use plugbay_core::{
    credentials::{CredentialSource, Credentials, OAuthSettings},
    failure::Failure,
    name::ServerName,
};
use plugbay_upstream::{CredentialsFor, spec::HttpSpec};

use crate::clock;

/// The places where the user's logins are stored.
#[derive(Debug, Clone)]
pub struct LoginPlaces {
    pub folder: PathBuf,
    /// The folder in which `mcp-remote` keeps its logins.
    pub mcp_remote: Option<PathBuf>,
    /// How the system's keychain can be reached.
    pub bus: SessionBus,
}

impl LoginPlaces {
    /// The login at one server.
    pub fn login(
        &self,
        name: &ServerName,
        http: &HttpSpec,
        oauth: &OAuthSettings,
    ) -> Result<ServerLogin, Failure> {
        ServerLogin::new(LoginSettings {
            name: name.as_str().to_owned(),
            url: http.url.clone(),
            oauth: oauth.clone(),
            ca_file: http.ca_file.clone(),
            store: Store::new(self.folder.clone(), self.keychain()).with_placement(oauth.placement),
            mcp_remote: self.mcp_remote.clone(),
            clock: Arc::new(clock::now),
        })
    }
}

impl LoginPlaces {
    /// Logins in the keychain are found there, even if new ones go to files.
    fn keychain(&self) -> Option<Arc<dyn Keychain>> {
        SystemKeychain::at(&self.bus).map(|keychain| Arc::new(keychain) as Arc<dyn Keychain>)
    }
}

/// Makes the credentials of each server according to its entry.
pub fn credentials_for(places: Option<LoginPlaces>) -> CredentialsFor {
    Arc::new(move |name, http| match (&http.credentials, &places) {
        (CredentialSource::OAuth(oauth), Some(places)) => match places.login(name, http, oauth) {
            Ok(login) => Some(Arc::new(login) as Arc<dyn Credentials>),
            Err(failure) => {
                tracing::warn!(server = %name, "{failure}");
                None
            }
        },
        (CredentialSource::Command(command), _) => {
            Some(Arc::new(HeaderSource::of_command(command.clone(), name.as_str(), &http.url)))
        }
        (CredentialSource::File(path), _) => Some(Arc::new(HeaderSource::of_file(path.clone()))),
        (CredentialSource::OAuth(_), None) | (CredentialSource::Headers, _) => None,
    })
}
