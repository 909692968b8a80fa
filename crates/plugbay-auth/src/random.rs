//! Random text for states, verifiers and identifiers.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use sha2::{Digest, Sha256};

/// 256 random bits, as text of 43 characters.
pub fn text() -> Result<String, RandomError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| RandomError)?;
    Ok(BASE64.encode(bytes))
}

/// The system has no random numbers, so no secret can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct RandomError;

/// The SHA-256 of a text, in the form of PKCE and DPoP.
pub fn digest(text: &str) -> String {
    BASE64.encode(Sha256::digest(text))
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}
