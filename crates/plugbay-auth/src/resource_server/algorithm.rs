//! The signature algorithms that tokens may have: those with a public key, and no others.

use std::{fmt, str::FromStr};

use jsonwebtoken::Algorithm;

/// An algorithm by its name in JWS. There is no value for `none` or for a shared secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SignatureAlgorithm(Algorithm);

/// The kinds of public keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

const ALL: [(&str, Algorithm, KeyKind); 9] = [
    ("RS256", Algorithm::RS256, KeyKind::Rsa),
    ("RS384", Algorithm::RS384, KeyKind::Rsa),
    ("RS512", Algorithm::RS512, KeyKind::Rsa),
    ("PS256", Algorithm::PS256, KeyKind::Rsa),
    ("PS384", Algorithm::PS384, KeyKind::Rsa),
    ("PS512", Algorithm::PS512, KeyKind::Rsa),
    ("ES256", Algorithm::ES256, KeyKind::P256),
    ("ES384", Algorithm::ES384, KeyKind::P384),
    ("EdDSA", Algorithm::EdDSA, KeyKind::Ed25519),
];

impl SignatureAlgorithm {
    /// Those that count unless the user chooses.
    pub const USUAL: [Self; 4] =
        [Self(Algorithm::RS256), Self(Algorithm::PS256), Self(Algorithm::ES256), Self(Algorithm::EdDSA)];

    /// The names of all.
    pub fn names() -> [&'static str; 9] {
        ALL.map(|(name, ..)| name)
    }

    pub fn name(self) -> &'static str {
        self.row().0
    }

    pub(super) fn kind(self) -> KeyKind {
        self.row().2
    }

    pub(super) fn algorithm(self) -> Algorithm {
        self.0
    }

    fn row(self) -> (&'static str, Algorithm, KeyKind) {
        let row = ALL.into_iter().find(|(_, algorithm, _)| *algorithm == self.0);
        row.unwrap_or(ALL[0]) // all values are made from a row
    }
}

impl FromStr for SignatureAlgorithm {
    type Err = ();

    /// Exactly as written: the names are case-sensitive.
    fn from_str(name: &str) -> Result<Self, ()> {
        let row = ALL.into_iter().find(|(known, ..)| *known == name);
        row.map(|(_, algorithm, _)| Self(algorithm)).ok_or(())
    }
}

impl fmt::Debug for SignatureAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
