//! Signatures of JSON Web Tokens (JWS): the algorithms, and the keys for signing and verifying.
//!
//! Only algorithms with a public key are supported, so a token can ask neither for `none` nor for a shared
//! secret.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    rand::SystemRandom,
    signature::{
        self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
        RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
    },
};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject as _};
use serde_json::{Value, json};

/// The byte before the coordinates of an uncompressed point.
const UNCOMPRESSED: u8 = 4;

/// A signature algorithm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SignatureAlgorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

use SignatureAlgorithm::{EdDsa, Es256, Es384, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};

impl SignatureAlgorithm {
    const ALL: [Self; 9] = [Rs256, Rs384, Rs512, Ps256, Ps384, Ps512, Es256, Es384, EdDsa];

    /// The algorithms that are accepted unless the user chooses.
    pub const USUAL: [Self; 4] = [Rs256, Ps256, Es256, EdDsa];

    /// The names of all algorithms.
    pub fn names() -> [&'static str; 9] {
        Self::ALL.map(Self::name)
    }

    /// Its name in JWS.
    pub fn name(self) -> &'static str {
        match self {
            Rs256 => "RS256",
            Rs384 => "RS384",
            Rs512 => "RS512",
            Ps256 => "PS256",
            Ps384 => "PS384",
            Ps512 => "PS512",
            Es256 => "ES256",
            Es384 => "ES384",
            EdDsa => "EdDSA",
        }
    }
}

impl FromStr for SignatureAlgorithm {
    type Err = ();

    /// Parses a name, exactly as written: names are case-sensitive.
    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name).ok_or(())
    }
}

impl fmt::Debug for SignatureAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A public key for verifying signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PublicKey {
    /// Modulus and exponent, without leading zeros.
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    /// An uncompressed point; the same for `P384`.
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl PublicKey {
    /// The key of a point with these coordinates, which have the full length of the curve.
    pub(crate) fn p256(x: &[u8], y: &[u8]) -> Option<Self> {
        Some(Self::P256(point(x, y, 32)?))
    }

    pub(crate) fn p384(x: &[u8], y: &[u8]) -> Option<Self> {
        Some(Self::P384(point(x, y, 48)?))
    }

    /// Whether the key is for this algorithm.
    pub(crate) fn fits(&self, algorithm: SignatureAlgorithm) -> bool {
        match self {
            Self::Rsa { .. } => matches!(algorithm, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512),
            Self::P256(_) => algorithm == Es256,
            Self::P384(_) => algorithm == Es384,
            Self::Ed25519(_) => algorithm == EdDsa,
        }
    }

    /// Whether this is the Base64 signature of a message. A key for another algorithm verifies nothing.
    pub(crate) fn verifies(&self, algorithm: SignatureAlgorithm, message: &[u8], signature: &str) -> bool {
        let Ok(signature) = BASE64.decode(signature) else { return false };
        let by = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key).verify(message, &signature).is_ok()
        };
        match self {
            _ if !self.fits(algorithm) => false,
            Self::Rsa { n, e } => rsa_verification(algorithm).is_some_and(|algorithm| {
                RsaPublicKeyComponents { n, e }.verify(algorithm, message, &signature).is_ok()
            }),
            Self::P256(point) => by(&signature::ECDSA_P256_SHA256_FIXED, point),
            Self::P384(point) => by(&signature::ECDSA_P384_SHA384_FIXED, point),
            Self::Ed25519(key) => by(&signature::ED25519, key),
        }
    }
}

fn point(x: &[u8], y: &[u8], length: usize) -> Option<Vec<u8>> {
    (x.len() == length && y.len() == length).then(|| [&[UNCOMPRESSED], x, y].concat())
}

fn rsa_verification(algorithm: SignatureAlgorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Rs256 => Some(&signature::RSA_PKCS1_2048_8192_SHA256),
        Rs384 => Some(&signature::RSA_PKCS1_2048_8192_SHA384),
        Rs512 => Some(&signature::RSA_PKCS1_2048_8192_SHA512),
        Ps256 => Some(&signature::RSA_PSS_2048_8192_SHA256),
        Ps384 => Some(&signature::RSA_PSS_2048_8192_SHA384),
        Ps512 => Some(&signature::RSA_PSS_2048_8192_SHA512),
        Es256 | Es384 | EdDsa => None,
    }
}

fn rsa_signing(algorithm: SignatureAlgorithm) -> Option<&'static dyn RsaEncoding> {
    match algorithm {
        Rs256 => Some(&signature::RSA_PKCS1_SHA256),
        Rs384 => Some(&signature::RSA_PKCS1_SHA384),
        Rs512 => Some(&signature::RSA_PKCS1_SHA512),
        Ps256 => Some(&signature::RSA_PSS_SHA256),
        Ps384 => Some(&signature::RSA_PSS_SHA384),
        Ps512 => Some(&signature::RSA_PSS_SHA512),
        Es256 | Es384 | EdDsa => None,
    }
}

/// A key that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadKey;

/// A private key for signing with one algorithm.
pub(crate) struct PrivateKey {
    algorithm: SignatureAlgorithm,
    pair: Pair,
}

enum Pair {
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl PrivateKey {
    /// Reads a key from PEM, in the form that `openssl genpkey` writes.
    pub(crate) fn from_pem(pem: &[u8], algorithm: SignatureAlgorithm) -> Result<Self, BadKey> {
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| BadKey)?;
        let pair = match (algorithm, &key) {
            (Es256, PrivateKeyDer::Pkcs8(der)) => {
                ecdsa(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, der.secret_pkcs8_der())?
            }
            (Es384, PrivateKeyDer::Pkcs8(der)) => {
                ecdsa(&signature::ECDSA_P384_SHA384_FIXED_SIGNING, der.secret_pkcs8_der())?
            }
            (EdDsa, PrivateKeyDer::Pkcs8(der)) => {
                // OpenSSL omits the public key.
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der());
                Pair::Ed25519(pair.map_err(|_| BadKey)?)
            }
            (_, key) => {
                let encoding = rsa_signing(algorithm).ok_or(BadKey)?;
                let pair = match key {
                    PrivateKeyDer::Pkcs8(der) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()),
                    PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der()),
                    _ => return Err(BadKey),
                };
                Pair::Rsa(pair.map_err(|_| BadKey)?, encoding)
            }
        };
        Ok(Self { algorithm, pair })
    }

    /// The PEM of a new key for ES256.
    pub(crate) fn new_pem() -> Result<String, BadKey> {
        let algorithm = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let der = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).map_err(|_| BadKey)?;
        Ok(pem_of(der.as_ref()))
    }

    /// The public key as a JWK; only for a key for ES256.
    pub(crate) fn public_jwk(&self) -> Option<Value> {
        let Pair::Ecdsa(pair) = &self.pair else { return None };
        let (x, y) = pair.public_key().as_ref().strip_prefix(&[UNCOMPRESSED])?.split_at_checked(32)?;
        (self.algorithm == Es256)
            .then(|| json!({ "crv": "P-256", "kty": "EC", "x": BASE64.encode(x), "y": BASE64.encode(y) }))
    }

    /// A token with these claims. The header gets the algorithm.
    pub(crate) fn token(&self, mut header: Value, claims: &Value) -> Result<String, BadKey> {
        header["alg"] = self.algorithm.name().into();
        let signed = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()));
        let signature = self.sign(signed.as_bytes())?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, BadKey> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair, encoding) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(*encoding, &random, message, &mut signature).map_err(|_| BadKey)?;
                Ok(signature)
            }
            Pair::Ecdsa(pair) => {
                pair.sign(&random, message).map(|signature| signature.as_ref().to_vec()).map_err(|_| BadKey)
            }
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

/// Shows no key.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({:?})", self.algorithm)
    }
}

fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm, der: &[u8]) -> Result<Pair, BadKey> {
    EcdsaKeyPair::from_pkcs8(algorithm, der, &SystemRandom::new()).map(Pair::Ecdsa).map_err(|_| BadKey)
}

/// PKCS #8 as text.
fn pem_of(der: &[u8]) -> String {
    use base64::engine::general_purpose::STANDARD;
    let text = STANDARD.encode(der);
    let mut pem = "-----BEGIN PRIVATE KEY-----\n".to_owned();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, next) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = next;
    }
    pem + "-----END PRIVATE KEY-----\n"
}

#[cfg(test)]
mod tests;
