//! The claims of a token: whether it is a valid access token of the issuer, for this gateway, at this time.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, UNIX_EPOCH},
};

use plugbay_core::access_token::{AccessToken, TokenError};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::Value;

use super::ResourceServerSettings;

/// Allowed difference between the clocks of the issuer and of this machine, in seconds.
pub(super) const LEEWAY: u64 = 60;
/// Longest name of a caller, in bytes.
const LONGEST_NAME: usize = 1024;

/// The members of a JSON object. A repeated one is an error: two readers could see two values.
#[derive(Debug, Default)]
pub(super) struct Members(BTreeMap<String, Value>);

impl Members {
    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

/// Checks the claims and returns their content.
pub(super) fn check(
    claims: &Members,
    is_typed: bool,
    settings: &ResourceServerSettings,
    now: u64,
) -> Result<AccessToken, TokenError> {
    if claims.text("iss") != Some(&settings.issuer) {
        return Err(TokenError::Invalid("the token is of another issuer"));
    }
    check_audience(claims, &settings.audiences)?;
    let ends = check_time(claims, now)?;
    if !is_typed && is_other_kind(claims) {
        return Err(TokenError::Invalid("this is no access token"));
    }
    if claims.get("cnf").is_some() {
        return Err(TokenError::Invalid("the token is bound to a key; plugbay takes bearer tokens only"));
    }
    let client = ["client_id", "azp", "appid"].into_iter().find_map(|key| claims.text(key));
    Ok(AccessToken {
        issuer: settings.issuer.clone(),
        subject: subject(claims, &settings.caller_claim)?,
        client: client.filter(|client| is_name(client)).map(str::to_owned),
        scopes: scopes(claims)?,
        ends,
    })
}

fn check_audience(claims: &Members, ours: &[String]) -> Result<(), TokenError> {
    let is_ours = |audience: &str| ours.iter().any(|our| our == audience);
    let is_for_us = match claims.get("aud") {
        Some(Value::String(audience)) => is_ours(audience),
        Some(Value::Array(all)) => {
            all.iter().all(Value::is_string) && all.iter().filter_map(Value::as_str).any(is_ours)
        }
        _ => false,
    };
    if is_for_us { Ok(()) } else { Err(TokenError::Invalid("the token is for another audience")) }
}

/// Compares the times with the clock, and returns the end of the token.
fn check_time(claims: &Members, now: u64) -> Result<Duration, TokenError> {
    let ends = seconds(claims, "exp")?.ok_or(TokenError::Invalid("the token has no expiry"))?;
    let ends = ends.checked_add(LEEWAY).ok_or(BAD_TIME)?;
    if now >= ends {
        return Err(TokenError::Invalid("the token has expired"));
    }
    for key in ["nbf", "iat"] {
        if seconds(claims, key)?.is_some_and(|begin| begin > now.saturating_add(LEEWAY)) {
            return Err(TokenError::Invalid("the token is not valid yet"));
        }
    }
    // A time that the clock cannot represent is invalid.
    let ends = Duration::from_secs(ends);
    UNIX_EPOCH.checked_add(ends).map(|_| ends).ok_or(BAD_TIME)
}

const BAD_TIME: TokenError = TokenError::Invalid("a time in the token is wrong");

/// A time in seconds since 1970. A fraction is cut off.
fn seconds(claims: &Members, key: &str) -> Result<Option<u64>, TokenError> {
    match claims.get(key) {
        None => Ok(None),
        Some(Value::Number(number)) => match (number.as_u64(), number.as_f64()) {
            (Some(seconds), _) => Ok(Some(seconds)),
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in range")]
            (None, Some(seconds)) if (0.0..9e15).contains(&seconds) => Ok(Some(seconds as u64)),
            _ => Err(BAD_TIME),
        },
        Some(_) => Err(BAD_TIME),
    }
}

/// Whether an untyped token is an ID token, a refresh token or a message of the issuer, which are signed with
/// the same keys. `nonce` alone proves nothing: some issuers put it into access tokens, which then have
/// scopes.
fn is_other_kind(claims: &Members) -> bool {
    let has = |key: &str| claims.get(key).is_some();
    let says = |key: &str, ours: &str| {
        claims.get(key).is_some_and(|kind| !kind.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case(ours)))
    };
    ["at_hash", "c_hash", "s_hash", "events"].into_iter().any(has)
        || says("typ", "Bearer") // Keycloak
        || says("token_use", "access") // Amazon Cognito
        || has("nonce") && !has("scope") && !has("scp")
}

fn subject(claims: &Members, key: &str) -> Result<String, TokenError> {
    let subject = claims.text(key).filter(|subject| is_name(subject));
    subject.map(str::to_owned).ok_or(TokenError::Invalid("the token does not name its caller"))
}

/// Whether the text is readable for operators on one line.
fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= LONGEST_NAME && !text.chars().any(char::is_control)
}

/// `scope` is one text; `scp` is one text or a list.
fn scopes(claims: &Members) -> Result<Vec<String>, TokenError> {
    let mut scopes = Vec::new();
    for key in ["scope", "scp"] {
        let bad = TokenError::Invalid("the scopes of the token are wrong");
        match claims.get(key) {
            None => {}
            Some(Value::String(text)) => scopes.extend(text.split_ascii_whitespace().map(str::to_owned)),
            Some(Value::Array(all)) => {
                for scope in all {
                    scopes.push(scope.as_str().ok_or(bad)?.to_owned());
                }
            }
            Some(_) => return Err(bad),
        }
    }
    scopes.sort_unstable();
    scopes.dedup();
    Ok(scopes)
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((key, value)) = map.next_entry()? {
                    if members.insert(key, value).is_some() {
                        return Err(A::Error::custom("a member stands twice"));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
