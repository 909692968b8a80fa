//! The logins of the user at servers: where they are kept, and the credentials that requests get from them.

use std::{path::PathBuf, sync::Arc};

use plugbay_auth::{LoginSettings, ServerLogin, store::Store};
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
            store: Store::new(self.folder.clone(), None),
            mcp_remote: self.mcp_remote.clone(),
            clock: Arc::new(clock::now),
        })
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
        _ => None,
    })
}
