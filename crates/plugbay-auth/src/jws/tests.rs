//! Each algorithm, compared with the independent crate `jsonwebtoken` for signing and verifying.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Validation, crypto, jwk::Jwk};
use p256::pkcs8::{EncodePrivateKey as _, LineEnding};

use super::*;

const RSA: &[u8] = include_bytes!("../../../plugbay/tests/it/authorization/rsa_one.pem");
const OTHER_RSA: &[u8] = include_bytes!("../../../plugbay/tests/it/authorization/rsa_two.pem");
const EC: &[u8] = include_bytes!("../../../plugbay/tests/it/authorization/ec.pem");
const ED: &[u8] = include_bytes!("../../../plugbay/tests/it/authorization/ed.pem");
/// Made by `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384`.
const EC_384: &[u8] = include_bytes!("ec_384.pem");

fn pem_for(algorithm: SignatureAlgorithm) -> &'static [u8] {
    match algorithm {
        Es256 => EC,
        Es384 => EC_384,
        EdDsa => ED,
        _ => RSA,
    }
}

/// The same key and algorithm, for the other crate.
fn theirs(algorithm: SignatureAlgorithm) -> (EncodingKey, Algorithm) {
    let pem = pem_for(algorithm);
    let key = match algorithm {
        Es256 | Es384 => EncodingKey::from_ec_pem(pem),
        EdDsa => EncodingKey::from_ed_pem(pem),
        _ => EncodingKey::from_rsa_pem(pem),
    };
    (key.unwrap(), algorithm.name().parse().unwrap())
}

fn public(algorithm: SignatureAlgorithm) -> (PublicKey, Jwk) {
    let (key, name) = theirs(algorithm);
    let jwk = Jwk::from_encoding_key(&key, name).unwrap();
    let members = serde_json::to_value(&jwk).unwrap();
    let bytes = |member: &str| BASE64.decode(members[member].as_str().unwrap()).unwrap();
    let key = match algorithm {
        Es256 => PublicKey::p256(&bytes("x"), &bytes("y")).unwrap(),
        Es384 => PublicKey::p384(&bytes("x"), &bytes("y")).unwrap(),
        EdDsa => PublicKey::Ed25519(bytes("x")),
        _ => PublicKey::Rsa { n: bytes("n"), e: bytes("e") },
    };
    (key, jwk)
}

#[test]
fn a_token_that_plugbay_signs_is_valid_for_another_library() {
    for algorithm in SignatureAlgorithm::ALL {
        let key = PrivateKey::from_pem(pem_for(algorithm), algorithm).unwrap();
        let token = key.token(json!({ "typ": "JWT" }), &json!({ "sub": "ada" })).unwrap();
        let mut validation = Validation::new(algorithm.name().parse().unwrap());
        validation.required_spec_claims.clear();
        let key = DecodingKey::from_jwk(&public(algorithm).1).unwrap();
        let read = jsonwebtoken::decode::<Value>(&token, &key, &validation).unwrap();
        assert_eq!((read.header.typ.as_deref(), &read.claims["sub"]), (Some("JWT"), &json!("ada")));
    }
}

#[test]
fn a_signature_of_another_library_is_verified_with_its_algorithm_alone() {
    for algorithm in SignatureAlgorithm::ALL {
        let (key, name) = theirs(algorithm);
        let signature = crypto::sign(b"message", &key, name).unwrap();
        let (public, _) = public(algorithm);
        for other in SignatureAlgorithm::ALL {
            assert_eq!(
                public.verifies(other, b"message", &signature),
                other == algorithm,
                "{algorithm:?} {other:?}"
            );
        }
        assert!(!public.verifies(algorithm, b"messagE", &signature));
        for broken in [
            "",
            "x",
            &signature[..signature.len() - 4],
            &format!("{signature}AAAA"),
            &format!("{signature}="),
        ] {
            assert!(!public.verifies(algorithm, b"message", broken), "{algorithm:?} {broken}");
        }
    }
    let signature =
        crypto::sign(b"message", &EncodingKey::from_rsa_pem(OTHER_RSA).unwrap(), Algorithm::RS256);
    assert!(!public(Rs256).0.verifies(Rs256, b"message", &signature.unwrap()));
}

#[test]
fn a_signature_of_zeros_is_not_valid() {
    for (algorithm, length) in [(Rs256, 256), (Ps256, 256), (Es256, 64), (Es384, 96), (EdDsa, 64)] {
        let zeros = BASE64.encode(vec![0; length]);
        assert!(!public(algorithm).0.verifies(algorithm, b"message", &zeros), "{algorithm:?}");
    }
}

#[test]
fn a_private_key_is_used_only_for_its_algorithms() {
    for algorithm in SignatureAlgorithm::ALL {
        for other in SignatureAlgorithm::ALL {
            let fits = pem_for(algorithm) == pem_for(other);
            assert_eq!(
                PrivateKey::from_pem(pem_for(algorithm), other).is_ok(),
                fits,
                "{algorithm:?} {other:?}"
            );
        }
        for none in [&b""[..], b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", b"no key"] {
            assert!(PrivateKey::from_pem(none, algorithm).is_err());
        }
    }
}

/// Earlier versions stored DPoP keys that the crate `p256` had written.
#[test]
fn a_stored_key_of_an_earlier_version_is_read() {
    let pem = p256::SecretKey::from_slice(&[7; 32]).unwrap().to_pkcs8_pem(LineEnding::LF).unwrap();
    let key = PrivateKey::from_pem(pem.as_bytes(), Es256).unwrap();
    let encoding = EncodingKey::from_ec_pem(pem.as_bytes()).unwrap();
    let theirs = serde_json::to_value(Jwk::from_encoding_key(&encoding, Algorithm::ES256).unwrap()).unwrap();
    let ours = key.public_jwk().unwrap();
    assert_eq!((&ours["x"], &ours["y"]), (&theirs["x"], &theirs["y"]));
}

#[test]
fn a_new_key_can_be_read_again() {
    let (one, two) = (PrivateKey::new_pem().unwrap(), PrivateKey::new_pem().unwrap());
    assert_ne!(one, two);
    assert!(EncodingKey::from_ec_pem(one.as_bytes()).is_ok());
    let jwk = PrivateKey::from_pem(one.as_bytes(), Es256).unwrap().public_jwk();
    assert_eq!(jwk.unwrap()["crv"], "P-256");
}
