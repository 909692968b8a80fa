//! The logins of the user at servers: where they are kept, and the credentials that requests get from them.

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

/// Where the logins of the user are.
#[derive(Debug, Clone)]
pub struct LoginPlaces {
    pub folder: PathBuf,
    /// Where `mcp-remote` keeps its own.
    pub mcp_remote: Option<PathBuf>,
    /// Where the keychain of the system may be asked.
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
    /// Logins that are in the keychain are found there, also if new ones go to files.
    fn keychain(&self) -> Option<Arc<dyn Keychain>> {
        SystemKeychain::at(&self.bus).map(|keychain| Arc::new(keychain) as Arc<dyn Keychain>)
    }
}

/// The credentials of each server, as its entry says.
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
