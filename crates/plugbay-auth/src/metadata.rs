//! The two documents needed for a login: of the protected resource (RFC 9728) and of the authorization server
//! (RFC 8414).

use serde::{Deserialize, Deserializer};
use url::Url;

/// The metadata of an MCP server as a protected resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResourceMetadata {
    pub resource: String,
    #[serde(default, deserialize_with = "or_default")]
    pub authorization_servers: Vec<String>,
    #[serde(default)]
    pub scopes_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_default")]
    pub dpop_bound_access_tokens_required: bool,
}

/// The metadata of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct ServerMetadata {
    pub issuer: String,
    #[serde(default)]
    pub authorization_endpoint: Option<Url>,
    #[serde(default)]
    pub token_endpoint: Option<Url>,
    #[serde(default)]
    pub registration_endpoint: Option<Url>,
    #[serde(default)]
    pub revocation_endpoint: Option<Url>,
    #[serde(default)]
    pub scopes_supported: Option<Vec<String>>,
    #[serde(default)]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub grant_types_supported: Option<Vec<String>>,
    #[serde(default)]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(default, deserialize_with = "or_default")]
    pub client_id_metadata_document_supported: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub authorization_response_iss_parameter_supported: bool,
}

/// Treats `null` like an absent value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl ServerMetadata {
    /// Whether the authorization server supports PKCE with S256. If it does not say so, it counts as no.
    pub fn knows_s256(&self) -> bool {
        self.code_challenge_methods_supported.iter().flatten().any(|method| method == "S256")
    }

    /// The endpoints of a server of 2025-03-26 without any metadata.
    pub fn of_2025_03_26(server: &Url) -> Self {
        let at = |path: &str| server.join(path).ok();
        Self {
            issuer: server.origin().ascii_serialization(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..Self::default()
        }
    }
}

/// The URLs of an MCP server's metadata if it has not named one: below its path, then at the root.
pub fn resource_metadata_urls(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let forms = [
        format!("/.well-known/oauth-protected-resource{path}"),
        "/.well-known/oauth-protected-resource".to_owned(),
    ];
    well_known(server, forms)
}

/// The URLs of an authorization server's metadata: OAuth before OpenID, an inserted path before an appended
/// one.
pub fn server_metadata_urls(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let forms = [
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
    ];
    well_known(issuer, forms)
}

fn well_known(base: &Url, paths: impl IntoIterator<Item = String>) -> Vec<Url> {
    let mut urls: Vec<Url> = Vec::new();
    for path in paths {
        let mut url = base.clone();
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    urls
}

/// The URI that identifies an MCP server: without query, fragment, and a slash at the end.
pub fn canonical(server: &Url) -> String {
    let mut url = server.clone();
    url.set_query(None);
    url.set_fragment(None);
    let text = String::from(url);
    text.strip_suffix('/').map_or_else(|| text.clone(), str::to_owned)
}

/// Whether a resource named in metadata is this MCP server, or a part of its host that contains it.
pub fn is_resource_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (whole, part) = (server.path().trim_end_matches('/'), resource.path().trim_end_matches('/'));
    let below = whole.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && resource.fragment().is_none() && below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn texts(urls: Vec<Url>) -> Vec<String> {
        urls.into_iter().map(String::from).collect()
    }

    #[test]
    fn resource_metadata_is_looked_for_by_path_and_at_the_root() {
        assert_eq!(
            texts(resource_metadata_urls(&url("https://h.example/public/mcp?k=1"))),
            [
                "https://h.example/.well-known/oauth-protected-resource/public/mcp",
                "https://h.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            texts(resource_metadata_urls(&url("https://h.example/"))),
            ["https://h.example/.well-known/oauth-protected-resource",]
        );
    }

    #[test]
    fn server_metadata_is_looked_for_in_the_specified_order() {
        assert_eq!(
            texts(server_metadata_urls(&url("https://a.example/tenant1"))),
            [
                "https://a.example/.well-known/oauth-authorization-server/tenant1",
                "https://a.example/.well-known/openid-configuration/tenant1",
                "https://a.example/tenant1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            texts(server_metadata_urls(&url("https://a.example"))),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn a_resource_is_the_server_or_contains_it() {
        let server = url("https://h.example/public/mcp");
        for resource in [
            "https://h.example",
            "https://h.example/",
            "https://H.example/public",
            "https://h.example/public/mcp/",
        ] {
            assert!(is_resource_of(resource, &server), "{resource}");
        }
        for resource in [
            "https://h.example/pub",
            "https://h.example/public/mcp/more",
            "https://other.example/public/mcp",
            "http://h.example/public/mcp",
            "https://h.example:8443/",
            "h.example",
            "",
            "https://h.example/public/mcp#x",
        ] {
            assert!(!is_resource_of(resource, &server), "{resource}");
        }
        assert_eq!(canonical(&url("https://H.example/?q#f")), "https://h.example");
        assert_eq!(canonical(&url("https://h.example/mcp")), "https://h.example/mcp");
    }

    #[test]
    fn metadata_may_have_null_for_nothing() {
        let text = r#"{"issuer":"https://a","token_endpoint":null,"client_id_metadata_document_supported":null,"more":[1]}"#;
        let metadata: ServerMetadata = serde_json::from_str(text).unwrap();
        assert!(!metadata.client_id_metadata_document_supported && !metadata.knows_s256());
    }
}
