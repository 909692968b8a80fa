//! An authorization server with keys that can be rotated, and tokens of any kind.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use jsonwebtoken::{Algorithm, EncodingKey, crypto, jwk::Jwk};
use plugbay_testkit::{Endpoint, Play};
use serde_json::{Value, json};

pub(crate) const RESOURCE: &str = "https://gw.example/mcp";
pub(crate) const METADATA: &str = "https://gw.example/.well-known/oauth-protected-resource/mcp";

/// Private keys for tests only.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Private {
    RsaOne,
    RsaTwo,
    /// 1024 bits.
    RsaShort,
    Ec,
    Ed,
}

impl Private {
    fn pem(self) -> &'static [u8] {
        match self {
            Self::RsaOne => include_bytes!("rsa_one.pem"),
            Self::RsaTwo => include_bytes!("rsa_two.pem"),
            Self::RsaShort => include_bytes!("rsa_short.pem"),
            Self::Ec => include_bytes!("ec.pem"),
            Self::Ed => include_bytes!("ed.pem"),
        }
    }

    fn key(self) -> (EncodingKey, Algorithm) {
        let pem = self.pem();
        match self {
            Self::RsaOne | Self::RsaTwo | Self::RsaShort => {
                (EncodingKey::from_rsa_pem(pem).unwrap(), Algorithm::RS256)
            }
            Self::Ec => (EncodingKey::from_ec_pem(pem).unwrap(), Algorithm::ES256),
            Self::Ed => (EncodingKey::from_ed_pem(pem).unwrap(), Algorithm::EdDSA),
        }
    }

    /// The public key as a JWK with this id, with further members.
    pub(crate) fn public(self, kid: &str, members: &Value) -> Value {
        let (key, algorithm) = self.key();
        let mut jwk = json!(Jwk::from_encoding_key(&key, algorithm).unwrap());
        jwk.as_object_mut().unwrap().retain(|name, _| !matches!(&**name, "alg" | "use" | "key_ops"));
        jwk["kid"] = json!(kid);
        jwk.as_object_mut().unwrap().extend(members.as_object().cloned().unwrap_or_default());
        jwk
    }
}

/// How a token is signed.
#[derive(Debug, Clone)]
pub(crate) enum Signature {
    With(Private, Algorithm),
    /// HS256 with this secret.
    Secret(Vec<u8>),
    Written(&'static str),
}

/// A token before it is signed: raw JSON, so that anything can be in it.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) header: String,
    pub(crate) claims: String,
    pub(crate) signature: Signature,
}

impl Recipe {
    pub(crate) fn token(&self) -> String {
        let signed = format!("{}.{}", BASE64.encode(&self.header), BASE64.encode(&self.claims));
        let signature = match &self.signature {
            Signature::With(private, algorithm) => {
                crypto::sign(signed.as_bytes(), &private.key().0, *algorithm).unwrap()
            }
            Signature::Secret(secret) => {
                crypto::sign(signed.as_bytes(), &EncodingKey::from_secret(secret), Algorithm::HS256).unwrap()
            }
            Signature::Written(text) => (*text).to_owned(),
        };
        format!("{signed}.{signature}")
    }

    /// Sets these members of the claims; `null` removes one.
    pub(crate) fn claims(mut self, changes: &Value) -> Self {
        self.claims = changed(&self.claims, changes);
        self
    }

    pub(crate) fn header(mut self, changes: &Value) -> Self {
        self.header = changed(&self.header, changes);
        self
    }

    pub(crate) fn signed(mut self, private: Private, algorithm: Algorithm) -> Self {
        self.signature = Signature::With(private, algorithm);
        self
    }
}

fn changed(json: &str, changes: &Value) -> String {
    let mut object: Value = serde_json::from_str(json).unwrap();
    let members = object.as_object_mut().unwrap();
    for (key, value) in changes.as_object().unwrap() {
        members.insert(key.clone(), value.clone());
    }
    members.retain(|_, value| !value.is_null());
    object.to_string()
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// The authorization server.
pub(crate) struct Issuer {
    endpoint: Endpoint,
    keys: Arc<Mutex<Vec<Value>>>,
    fetches: Arc<AtomicUsize>,
}

impl Issuer {
    pub(crate) fn start(keys: Vec<Value>) -> Self {
        let (keys, fetches) = (Arc::new(Mutex::new(keys)), Arc::new(AtomicUsize::new(0)));
        let (served, counted) = (Arc::clone(&keys), Arc::clone(&fetches));
        let endpoint = Endpoint::answering(move |asked| {
            let host = asked.header("host").unwrap_or_default();
            match &*asked.path {
                "/.well-known/openid-configuration" => {
                    let issuer = format!("http://{host}");
                    Play::json(200, &json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/jwks") }))
                }
                "/jwks" | "/other-jwks" => {
                    counted.fetch_add(1, Ordering::Relaxed);
                    Play::json(200, &json!({ "keys": *served.lock().unwrap() }))
                }
                _ => Play::json(404, &json!({})),
            }
        });
        Self { endpoint, keys, fetches }
    }

    pub(crate) fn url(&self) -> String {
        self.endpoint.url()
    }

    pub(crate) fn publish(&self, keys: Vec<Value>) {
        *self.keys.lock().unwrap() = keys;
    }

    /// How often its keys were fetched.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::Relaxed)
    }

    /// A valid token for the gateway.
    pub(crate) fn good(&self) -> Recipe {
        let now = now();
        let claims = json!({
            "iss": self.url(), "aud": RESOURCE, "sub": "ada", "client_id": "app", "scope": "read",
            "exp": now + 600, "iat": now, "nbf": now, "jti": "CANARY-jti",
        });
        let header = json!({ "alg": "RS256", "typ": "at+jwt", "kid": "rsa-1" });
        let signature = Signature::With(Private::RsaOne, Algorithm::RS256);
        Recipe { header: header.to_string(), claims: claims.to_string(), signature }
    }

    /// The value of `authorization` in a configuration that trusts it.
    pub(crate) fn authorization(&self) -> Value {
        json!({
            "issuer": self.url(),
            "resource": RESOURCE,
            "scopes": { "read": { "tools": ["s__echo"] }, "write": { "tools": ["s__*", "team__*"] } },
        })
    }
}
