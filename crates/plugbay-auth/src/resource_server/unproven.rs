//! A token whose signature was not checked yet: if it is genuine, its claims are right.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use plugbay_core::access_token::{AccessToken, TokenError};
use serde_json::Value;

use super::{
    ResourceServerSettings, SignatureAlgorithm,
    claims::{self, Members},
    keys::Key,
};

/// Longest token, in bytes.
pub(super) const LONGEST: usize = 16 * 1024;

/// The header's statements about the signature. Keys in it, or addresses of keys, are not even read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) algorithm: SignatureAlgorithm,
    pub(super) kid: Option<String>,
}

/// An unchecked token. Only its header is accessible without [`Unproven::prove`].
pub(super) struct Unproven<'t> {
    pub(super) header: Header,
    signed: &'t str,
    signature: &'t str,
    claims: AccessToken,
}

impl<'t> Unproven<'t> {
    /// Parses a token and checks its claims at this time, in seconds since 1970.
    pub(super) fn read(
        token: &'t str,
        settings: &ResourceServerSettings,
        now: u64,
    ) -> Result<Self, TokenError> {
        if token.len() > LONGEST {
            return Err(TokenError::Invalid("the token is too long"));
        }
        let parts: Vec<&str> = token.split('.').take(6).collect();
        let (header, payload, signature) = match parts[..] {
            [header, payload, signature] => (header, payload, signature),
            [_, _, _, _, _] => return Err(TokenError::Invalid("the token is encrypted")),
            _ => return Err(MALFORMED),
        };
        let header = members(header)?;
        let is_typed = check_type(&header)?;
        let header = self::header(&header, &settings.algorithms)?;
        let claims = claims::check(&members(payload)?, is_typed, settings, now)?;
        let signed = &token[..token.len() - signature.len() - 1];
        Ok(Self { header, signed, signature, claims })
    }

    /// Checks the signature with the key for the header.
    pub(super) fn prove(self, key: &Key) -> Result<AccessToken, TokenError> {
        let Self { header, signed, signature, claims } = self;
        if key.verifies(header.algorithm, signed.as_bytes(), signature) {
            Ok(claims)
        } else {
            Err(TokenError::Invalid("the signature of the token is wrong"))
        }
    }
}

const MALFORMED: TokenError = TokenError::Invalid("the token is no valid JWT");

fn members(part: &str) -> Result<Members, TokenError> {
    let json = BASE64.decode(part).map_err(|_| MALFORMED)?;
    serde_json::from_slice(&json).map_err(|_| MALFORMED)
}

fn header(members: &Members, allowed: &[SignatureAlgorithm]) -> Result<Header, TokenError> {
    // `crit` names extensions that must be understood; plugbay understands none.
    if members.get("crit").is_some() {
        return Err(TokenError::Invalid("the token needs an extension that plugbay does not have"));
    }
    let algorithm = members.get("alg").and_then(Value::as_str).ok_or(MALFORMED)?;
    let allowed = |algorithm: &SignatureAlgorithm| allowed.contains(algorithm);
    let algorithm = algorithm.parse().ok().filter(allowed);
    let algorithm = algorithm.ok_or(TokenError::Invalid("the signature algorithm is not allowed"))?;
    let kid = match members.get("kid") {
        None => None,
        Some(Value::String(kid)) => Some(kid.clone()),
        Some(_) => return Err(MALFORMED),
    };
    Ok(Header { algorithm, kid })
}

/// Whether the header says that this is an access token. A header with another type is an error.
fn check_type(header: &Members) -> Result<bool, TokenError> {
    match header.get("typ") {
        None => Ok(false),
        Some(Value::String(kind)) => {
            let kind = kind.to_ascii_lowercase();
            match kind.strip_prefix("application/").unwrap_or(&kind) {
                "at+jwt" => Ok(true),
                "jwt" => Ok(false),
                _ => Err(TokenError::Invalid("this is no access token")),
            }
        }
        Some(_) => Err(MALFORMED),
    }
}
