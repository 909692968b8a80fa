//! Reads logins that were made with `mcp-remote`. Its files are never changed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use plugbay_core::secret::Secret;
use serde::Deserialize;
use url::Url;

use crate::{
    client::{Client, ClientSource},
    discovery::Discovered,
    random,
    store::{Login, Tokens},
    token::AuthMethod,
};

/// The files are named after the MD5 of the server's URL.
fn file_names(server: &Url) -> Vec<String> {
    let text = server.as_str();
    let mut names = vec![md5(text.as_bytes())];
    if let Some(bare) = text.strip_suffix('/') {
        names.push(md5(bare.as_bytes()));
    }
    names
}

/// The newest login for this server, if it is usable at the authorization server that the MCP server names.
pub fn find(folder: &Path, server: &Url, discovered: &Discovered, now: u64) -> Option<Login> {
    let endpoint = discovered.server.token_endpoint.clone()?;
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    for version in fs::read_dir(folder).ok()?.flatten().filter(|entry| is_version(&entry.path())) {
        for name in file_names(server) {
            let path = version.path().join(format!("{name}_tokens.json"));
            if let Ok(modified) = fs::metadata(&path).and_then(|metadata| metadata.modified()) {
                found.push((modified, path));
            }
        }
    }
    let (written, path) = found.into_iter().max()?;
    let tokens: RemoteTokens = read(&path)?;
    let client: RemoteClient = read(&with_kind(&path, "client_info")?)?;
    let written = written.duration_since(SystemTime::UNIX_EPOCH).map_or(now, |time| time.as_secs());
    if !tokens.access_token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    // Its files do not say who issued the tokens. A refresh token is sent only to the server itself, and not
    // if there is a sign of another issuer: a server that names itself today may have named another one
    // before.
    let issuer = Url::parse(&discovered.server.issuer).ok()?;
    let signs = [issuer_of(&tokens.access_token), client.registration_client_uri.clone()];
    let elsewhere = |sign: &String| Url::parse(sign).map_or(true, |url| url.origin() != server.origin());
    let own = issuer.origin() == server.origin()
        && endpoint.origin() == server.origin()
        && !signs.iter().flatten().any(elsewhere);
    let method = match client.client_secret.as_deref() {
        Some(secret) if !secret.is_empty() => AuthMethod::ClientSecretBasic,
        _ => AuthMethod::None,
    };
    let source = ClientSource::Registered {
        redirect_uri: client.redirect_uris.into_iter().next().unwrap_or_default(),
        expires: None,
    };
    let secret = client.client_secret.filter(|secret| own && !secret.is_empty()).map(Secret::new);
    let client = Client { id: client.client_id, secret, method, source };
    let scopes: Vec<String> =
        tokens.scope.iter().flat_map(|scope| scope.split_whitespace()).map(str::to_owned).collect();
    let mut login = Login::new(client, endpoint, discovered.resource.clone(), scopes.clone());
    login.tokens = Some(Tokens {
        access: Secret::new(tokens.access_token),
        refresh: tokens.refresh_token.filter(|_| own).map(Secret::new),
        issued_at: written,
        expires_in: tokens.expires_in,
        scopes,
        is_dpop: false,
    });
    Some(login)
}

#[derive(Deserialize)]
struct RemoteTokens {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
    scope: Option<String>,
}

#[derive(Deserialize)]
struct RemoteClient {
    client_id: String,
    client_secret: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    registration_client_uri: Option<String>,
}

/// The issuer that a token names, if it is a JWT.
fn issuer_of(token: &str) -> Option<String> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: serde_json::Value = serde_json::from_slice(&claims).ok()?;
    claims.get("iss")?.as_str().map(str::to_owned)
}

fn is_version(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("mcp-remote-"))
}

fn with_kind(path: &Path, kind: &str) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix("_tokens.json")?;
    Some(path.with_file_name(format!("{name}_{kind}.json")))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&plugbay_files::read(path, 1 << 20).ok()?).ok()
}

/// MD5 only names files here, and protects nothing.
fn md5(bytes: &[u8]) -> String {
    use md5::{Digest as _, Md5};
    random::hex(&Md5::digest(bytes))
}
