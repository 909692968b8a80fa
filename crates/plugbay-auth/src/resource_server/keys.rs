//! The public keys of an issuer (a JWK set), and the choice of the key for a token.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde::Deserialize;
use serde_json::Value;

use super::{SignatureAlgorithm, unproven::Header};
use crate::jws::PublicKey;

/// Shorter RSA keys can be factored.
const SHORTEST_RSA: usize = 2048;

/// The keys with which tokens may be signed.
#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<Arc<Key>>);

/// A public key for signatures.
pub(super) struct Key {
    kid: Option<String>,
    /// The only algorithm that it is for, if the set says so.
    algorithm: Option<String>,
    public: PublicKey,
}

/// The reason why a set has no key for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoKey {
    /// A newer set may have it.
    Unknown,
    Ambiguous,
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    kid: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    /// The private part of a key: everybody who can read the set could sign with such a key.
    d: Option<Value>,
}

impl KeySet {
    /// Parses a JWK set; `None` if it is invalid. Keys for other purposes are left out.
    pub(super) fn read(document: &[u8]) -> Option<Self> {
        let Document { keys } = serde_json::from_slice(document).ok()?;
        Some(Self(keys.into_iter().filter_map(Key::read).map(Arc::new).collect()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one key with the id and algorithm in this header. Without an id it must be the only key for the
    /// algorithm.
    pub(super) fn find(&self, header: &Header) -> Result<Arc<Key>, NoKey> {
        let has_id = |key: &Key| header.kid.is_none() || key.kid == header.kid;
        let mut fitting = self.0.iter().filter(|key| has_id(key) && key.fits(header.algorithm));
        match (fitting.next(), fitting.next()) {
            (None, _) => Err(NoKey::Unknown),
            (Some(key), None) => Ok(Arc::clone(key)),
            _ => Err(NoKey::Ambiguous),
        }
    }
}

impl Key {
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let is_for_signatures = jwk.usage.as_deref().is_none_or(|usage| usage == "sig")
            && jwk.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|name| name == "verify"));
        if !is_for_signatures || jwk.d.is_some() {
            return None;
        }
        let public = public_key(&jwk)?;
        Some(Self { kid: jwk.kid, algorithm: jwk.alg, public })
    }

    /// Whether signatures with this algorithm can be checked with the key. A key for one algorithm is never
    /// used for another.
    pub(super) fn fits(&self, algorithm: SignatureAlgorithm) -> bool {
        let is_named = |name: &String| {
            name == algorithm.name() || (name == "Ed25519" && algorithm == SignatureAlgorithm::EdDsa)
        };
        self.public.fits(algorithm) && self.algorithm.as_ref().is_none_or(is_named)
    }

    /// Whether this is the signature of a message.
    pub(super) fn verifies(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &str) -> bool {
        self.fits(algorithm) && self.public.verifies(algorithm, message, signature)
    }
}

fn public_key(jwk: &Jwk) -> Option<PublicKey> {
    match (&*jwk.kty, jwk.crv.as_deref()) {
        ("RSA", _) => {
            let (n, e) = (number(jwk.n.as_ref())?, number(jwk.e.as_ref())?);
            (bits(&n) >= SHORTEST_RSA).then_some(PublicKey::Rsa { n, e })
        }
        ("EC", Some("P-256")) => PublicKey::p256(&bytes(jwk.x.as_ref())?, &bytes(jwk.y.as_ref())?),
        ("EC", Some("P-384")) => PublicKey::p384(&bytes(jwk.x.as_ref())?, &bytes(jwk.y.as_ref())?),
        ("OKP", Some("Ed25519")) => Some(PublicKey::Ed25519(bytes(jwk.x.as_ref())?)),
        _ => None,
    }
}

fn bytes(base64: Option<&String>) -> Option<Vec<u8>> {
    BASE64.decode(base64?).ok()
}

/// A number, without leading zeros.
fn number(base64: Option<&String>) -> Option<Vec<u8>> {
    let bytes = bytes(base64)?;
    let first = bytes.iter().position(|byte| *byte != 0)?;
    Some(bytes[first..].to_vec())
}

fn bits(number: &[u8]) -> usize {
    let zeros = number.first().map_or(0, |byte| byte.leading_zeros() as usize);
    number.len() * 8 - zeros
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("kid", &self.kid).field("public", &self.public).finish_non_exhaustive()
    }
}
