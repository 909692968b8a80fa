//! Finds the keys of an issuer: through its metadata, or at the address that the user gave.

use serde::Deserialize;
use url::Url;

use super::{
    ResourceServerSettings,
    fetch::{Fetch, FetchError, is_allowed},
    keys::KeySet,
};

const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// The part of the metadata that is used here.
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    jwks_uri: String,
}

pub(super) async fn keys(settings: &ResourceServerSettings, fetch: &dyn Fetch) -> Result<KeySet, FetchError> {
    let address = match &settings.jwks_uri {
        Some(address) => Url::parse(address).map_err(|_| FetchError::Forbidden)?,
        None => address(&settings.issuer, fetch).await?,
    };
    if !is_allowed(&address) {
        return Err(FetchError::Forbidden);
    }
    KeySet::read(&fetch.get(&address).await?).ok_or(FetchError::NoKeySet)
}

/// The address of the keys, from the first metadata document that belongs to the issuer.
async fn address(issuer: &str, fetch: &dyn Fetch) -> Result<Url, FetchError> {
    let base = Url::parse(issuer).ok().filter(is_allowed).ok_or(FetchError::Forbidden)?;
    let mut first_error = None;
    for place in places(&base) {
        match metadata(&place, issuer, fetch).await {
            // A document from the network must not direct plugbay to other services on this machine.
            Ok(keys) if keys.scheme() == "http" && base.scheme() != "http" => {
                first_error.get_or_insert(FetchError::Forbidden);
            }
            Ok(keys) => return Ok(keys),
            Err(error) => _ = first_error.get_or_insert(error),
        }
    }
    Err(first_error.unwrap_or(FetchError::Forbidden))
}

async fn metadata(place: &Url, issuer: &str, fetch: &dyn Fetch) -> Result<Url, FetchError> {
    let document = fetch.get(place).await?;
    let Metadata { issuer: theirs, jwks_uri } =
        serde_json::from_slice(&document).map_err(|_| FetchError::NoMetadata)?;
    if theirs != issuer {
        return Err(FetchError::OtherIssuer);
    }
    Url::parse(&jwks_uri).map_err(|_| FetchError::NoMetadata)
}

/// The places of metadata: RFC 8414 first, then the two places of OpenID Connect.
fn places(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let at = |path: String| {
        let mut place = issuer.clone();
        place.set_path(&path);
        place
    };
    let mut places = vec![at(format!("{OAUTH}{path}")), at(format!("{OPENID}{path}"))];
    if !path.is_empty() {
        places.push(at(format!("{path}{OPENID}")));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_at_the_places_of_oauth_and_openid() {
        let all = |issuer: &str| -> Vec<String> {
            places(&Url::parse(issuer).unwrap()).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            all("https://idp.example/realms/one"),
            [
                "https://idp.example/.well-known/oauth-authorization-server/realms/one",
                "https://idp.example/.well-known/openid-configuration/realms/one",
                "https://idp.example/realms/one/.well-known/openid-configuration",
            ]
        );
        let root = [
            "https://idp.example/.well-known/oauth-authorization-server",
            "https://idp.example/.well-known/openid-configuration",
        ];
        assert_eq!(all("https://idp.example"), root);
        assert_eq!(all("https://idp.example/"), root);
    }
}
