//! Signed statements: the assertion with which a client authenticates, and proofs of possession (DPoP).

use std::sync::Arc;

use plugbay_core::{
    credentials::{SecretSource, SigningKey},
    secret::Secret,
};
use serde_json::{Value, json};

use crate::{
    jws::{PrivateKey, SignatureAlgorithm},
    random,
};

/// How long a client's assertion is valid, in seconds.
const ASSERTION_LIFE: u64 = 300;

/// The reason why something cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignError {
    #[error("{0:?} is not an algorithm for signatures with a private key; use ES256, RS256 or EdDSA")]
    Algorithm(String),
    #[error(
        "the private key cannot be used with {0}: it must be PEM for this algorithm, as `openssl genpkey` writes it"
    )]
    Key(String),
    #[error("{0} cannot be read: {1}")]
    File(String, String),
    #[error(transparent)]
    Random(#[from] random::RandomError),
}

/// The assertion of a client about itself, for the authorization server with this issuer.
pub fn of_client(client: &str, issuer: &str, key: &SigningKey, now: u64) -> Result<Secret, SignError> {
    let algorithm: SignatureAlgorithm =
        key.algorithm.parse().map_err(|()| SignError::Algorithm(key.algorithm.clone()))?;
    let bad_key = |_| SignError::Key(key.algorithm.clone());
    let signing = PrivateKey::from_pem(read(&key.pem)?.expose().as_bytes(), algorithm).map_err(bad_key)?;
    let mut header = json!({ "typ": "JWT" });
    if let Some(id) = &key.id {
        header["kid"] = id.as_str().into();
    }
    let (id, expires) = (random::text()?, now + ASSERTION_LIFE);
    let claims =
        json!({ "iss": client, "sub": client, "aud": issuer, "jti": id, "iat": now, "exp": expires });
    signing.token(header, &claims).map(Secret::new).map_err(bad_key)
}

/// Size limit: more than any secret needs.
const LONGEST_SECRET: u64 = 64 * 1024;

/// The secret itself, or the current content of its file.
pub fn read(source: &SecretSource) -> Result<Secret, SignError> {
    match source {
        SecretSource::Value(secret) => Ok(secret.clone()),
        SecretSource::File(path) => match plugbay_files::read_text(path, LONGEST_SECRET) {
            Ok(text) => Ok(Secret::new(text.trim())),
            Err(error) => Err(SignError::File(path.display().to_string(), error.to_string())),
        },
    }
}

/// The algorithm of proofs.
const DPOP: SignatureAlgorithm = SignatureAlgorithm::Es256;

/// A key whose possession is proved with each request. A token that is bound to it is useless without it.
#[derive(Clone)]
pub struct DpopKey {
    pem: Secret,
    private: Arc<PrivateKey>,
    /// The public key as a JWK.
    public: Value,
}

impl DpopKey {
    pub fn generate() -> Result<Self, SignError> {
        Self::from_pem(Secret::new(PrivateKey::new_pem().map_err(|_| random::RandomError)?))
    }

    pub fn from_pem(pem: Secret) -> Result<Self, SignError> {
        let failed = || SignError::Key(DPOP.name().to_owned());
        let private = PrivateKey::from_pem(pem.expose().as_bytes(), DPOP).map_err(|_| failed())?;
        let public = private.public_jwk().ok_or_else(failed)?;
        Ok(Self { pem, private: Arc::new(private), public })
    }

    /// The private key, for the store.
    pub fn pem(&self) -> &Secret {
        &self.pem
    }

    /// A proof for one request; `token` is the access token sent with it.
    pub fn proof(&self, proof: &Proof<'_>) -> Result<Secret, SignError> {
        let header = json!({ "typ": "dpop+jwt", "jwk": self.public });
        let mut claims = json!({
            "jti": random::text()?, "htm": proof.method, "htu": proof.url, "iat": proof.now,
        });
        if let Some(token) = proof.token {
            claims["ath"] = random::digest(token).into();
        }
        if let Some(nonce) = proof.nonce {
            claims["nonce"] = nonce.into();
        }
        let failed = |_| SignError::Key(DPOP.name().to_owned());
        self.private.token(header, &claims).map(Secret::new).map_err(failed)
    }
}

/// Shows no key.
impl std::fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DpopKey")
    }
}

/// The request that a proof is for.
#[derive(Debug, Clone, Copy)]
pub struct Proof<'a> {
    pub method: &'a str,
    /// The URL without query and fragment.
    pub url: &'a str,
    pub token: Option<&'a str>,
    pub nonce: Option<&'a str>,
    /// Seconds since 1970.
    pub now: u64,
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
    use jsonwebtoken::{Algorithm, DecodingKey, Validation, jwk::Jwk};

    use super::*;

    fn part(token: &str, number: usize) -> Value {
        serde_json::from_slice(&BASE64.decode(token.split('.').nth(number).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn a_dpop_proof_names_the_request_and_proves_the_key() {
        let key = DpopKey::generate().unwrap();
        let again = DpopKey::from_pem(key.pem().clone()).unwrap();
        let about =
            Proof { method: "POST", url: "https://h/mcp", token: Some("abc"), nonce: Some("n"), now: 1000 };
        let (one, two) = (key.proof(&about).unwrap(), again.proof(&about).unwrap());
        let (header, claims) = (part(one.expose(), 0), part(one.expose(), 1));
        assert_eq!((&header["typ"], &header["alg"]), (&json!("dpop+jwt"), &json!("ES256")));
        assert_eq!(header["jwk"].as_object().unwrap().keys().collect::<Vec<_>>(), ["crv", "kty", "x", "y"]);
        assert_eq!((&claims["htm"], &claims["htu"]), (&json!("POST"), &json!("https://h/mcp")));
        assert_eq!(claims["ath"], "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
        assert_eq!(claims["nonce"], "n");
        assert_ne!(claims["jti"], part(two.expose(), 1)["jti"]);
        let public: Jwk = serde_json::from_value(header["jwk"].clone()).unwrap();
        let mut validation = Validation::new(Algorithm::ES256);
        validation.required_spec_claims.clear();
        let checked = jsonwebtoken::decode::<Value>(
            two.expose(),
            &DecodingKey::from_jwk(&public).unwrap(),
            &validation,
        );
        assert!(checked.is_ok(), "{checked:?}");
    }

    #[test]
    fn a_client_assertion_is_for_the_issuer() {
        let pem = DpopKey::generate().unwrap().pem().clone();
        let key = SigningKey {
            pem: SecretSource::Value(pem.clone()),
            algorithm: "ES256".into(),
            id: Some("k1".into()),
        };
        let assertion = of_client("me", "https://issuer", &key, 1000).unwrap();
        let claims = part(assertion.expose(), 1);
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"]),
            (&json!("me"), &json!("me"), &json!("https://issuer"))
        );
        assert_eq!((&claims["iat"], &claims["exp"]), (&json!(1000), &json!(1300)));
        assert_eq!(part(assertion.expose(), 0)["kid"], "k1");
        for (algorithm, error) in [("HS256", true), ("none", true), ("RS256", true)] {
            let key = SigningKey { algorithm: algorithm.into(), ..key.clone() };
            assert_eq!(of_client("me", "i", &key, 1).is_err(), error, "{algorithm}");
        }
    }
}
