//! The `requestState` that a modern host returns: authenticated, for one caller, one request and a short time.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use bytes::Bytes;
use hmac::{Hmac, Mac, digest::KeyInit};
use plugbay_core::{exchange::Ticket, scope::SessionKey, wire::Span};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::message::Request;

/// The caller that a `requestState` belongs to: the holder of a token over HTTP, the only host on stdio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Owner(pub(crate) [u8; 32]);

impl Owner {
    /// The same caller in one of its sessions, whose calls and tasks are separate from the others'.
    pub(crate) fn within(self, session: &SessionKey) -> Self {
        let mut mac =
            <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(b"session ");
        mac.update(session.as_bytes());
        Self(mac.finalize().into_bytes().into())
    }
}

/// The subject of a request; the request that resumes it must have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) method: Bytes,
    /// Raw JSON.
    pub(crate) name: Bytes,
    /// Raw JSON too, or nothing.
    pub(crate) arguments: Bytes,
}

impl Subject {
    pub(crate) fn of(request: &Request) -> Self {
        let slice = |span: &Span| request.message.slice(span.clone());
        let name = request.name.as_ref().or(request.uri.as_ref());
        let arguments = request.arguments().map(|raw| request.message.slice_ref(raw));
        Self {
            method: slice(&request.method),
            name: name.map(slice).unwrap_or_default(),
            arguments: arguments.unwrap_or_default(),
        }
    }

    /// Digest of the arguments in any order, because a host may serialise them anew.
    fn digest(&self) -> [u8; 32] {
        match serde_json::from_slice::<serde_json::Value>(&self.arguments) {
            Ok(value) => Sha256::digest(value.to_string()).into(),
            Err(_) => Sha256::digest(&self.arguments).into(),
        }
    }
}

/// Why a `requestState` is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    #[error("\"requestState\" was not given to this caller for this request")]
    Foreign,
    #[error("\"requestState\" has expired; send the request anew, without it")]
    Expired,
}

/// Seals `requestState` with a key of this process. The next process has no suspended calls, so needs no key
/// of this one.
#[derive(Debug)]
pub(crate) struct Seal {
    key: [u8; 64],
    /// Prefix of every sealed state, unique to this gateway.
    mark: String,
    born: Instant,
}

const TICKET: usize = 8;
const PAYLOAD: usize = 16;

impl Seal {
    /// A new seal; `None` if the system gives no random numbers.
    pub(crate) fn new() -> Option<Self> {
        let (mut key, mut nonce) = ([0; 64], [0; 9]);
        getrandom::fill(&mut key).and_then(|()| getrandom::fill(&mut nonce)).ok()?;
        Some(Self { key, mark: format!("plugbay.{}.", BASE64.encode(nonce)), born: Instant::now() })
    }

    pub(crate) fn is_ours(&self, state: &str) -> bool {
        state.starts_with(&self.mark)
    }

    pub(crate) fn close(&self, ticket: Ticket, owner: &Owner, subject: &Subject, expires: Instant) -> String {
        let mut sealed = Vec::with_capacity(PAYLOAD + 32);
        sealed.extend_from_slice(&ticket.0.to_be_bytes());
        let expires = u64::try_from(expires.duration_since(self.born).as_millis()).unwrap_or(u64::MAX);
        sealed.extend_from_slice(&expires.to_be_bytes());
        let tag = self.mac(&sealed, owner, subject).finalize().into_bytes();
        sealed.extend_from_slice(&tag);
        format!("{}{}", self.mark, BASE64.encode(sealed))
    }

    pub(crate) fn open(
        &self,
        state: &str,
        owner: &Owner,
        subject: &Subject,
        now: Instant,
    ) -> Result<Ticket, SealError> {
        let sealed = state.strip_prefix(&self.mark).and_then(|text| BASE64.decode(text).ok());
        let sealed = sealed.ok_or(SealError::Foreign)?;
        let (payload, tag) = sealed.split_at_checked(PAYLOAD).ok_or(SealError::Foreign)?;
        self.mac(payload, owner, subject).verify_slice(tag).map_err(|_| SealError::Foreign)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let expires = Duration::from_millis(number(&payload[TICKET..]));
        if now.duration_since(self.born) >= expires {
            return Err(SealError::Expired);
        }
        Ok(Ticket(number(&payload[..TICKET])))
    }

    /// The MAC of everything that must be the same again. The method is preceded by its length, to separate
    /// it from the name.
    fn mac(&self, payload: &[u8], owner: &Owner, subject: &Subject) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new((&self.key).into());
        mac.update(payload);
        mac.update(&owner.0);
        mac.update(&(subject.method.len() as u64).to_be_bytes());
        mac.update(&subject.method);
        mac.update(&subject.digest());
        mac.update(&subject.name);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(method: &'static str, name: &'static str) -> Subject {
        Subject { method: Bytes::from(method), name: Bytes::from(name), arguments: Bytes::new() }
    }

    #[test]
    fn a_request_state_accepts_reordered_arguments_only() {
        let with = |arguments: &'static str| {
            Subject { arguments: Bytes::from(arguments), ..subject("tools/call", "s__echo") }.digest()
        };
        assert_eq!(with(r#"{"a":1,"b":[2]}"#), with(r#"{ "b": [2], "\u0061": 1 }"#));
        assert_ne!(with(r#"{"a":1,"b":[2]}"#), with(r#"{"a":1,"b":[3]}"#));
        assert_ne!(with("{}"), with(""));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_state_opens_for_its_owner_and_request_only() {
        let seal = Seal::new().unwrap();
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        let (owner, what) = (Owner([1; 32]), subject("tools/call", "s__echo"));
        let state = seal.close(Ticket(77), &owner, &what, now + minute);
        assert!(seal.is_ours(&state));
        assert_eq!(seal.open(&state, &owner, &what, now), Ok(Ticket(77)));
        assert_eq!(seal.open(&state, &owner, &what, now + minute), Err(SealError::Expired));
        let foreign = [
            seal.open(&state, &Owner([2; 32]), &what, now),
            seal.open(&state, &owner, &subject("tools/call", "s__other"), now),
            seal.open(&state, &owner, &subject("tools/calls", "__echo"), now),
            seal.open(&state[..state.len() - 1], &owner, &what, now),
            seal.open(&format!("{state}A"), &owner, &what, now),
            seal.open("", &owner, &what, now),
            Seal::new().unwrap().open(&state, &owner, &what, now),
        ];
        assert_eq!(foreign, [Err(SealError::Foreign); 7]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_state_cannot_be_altered() {
        let seal = Seal::new().unwrap();
        let (owner, what) = (Owner::default(), subject("tools/call", "s__echo"));
        let now = Instant::now();
        let state = seal.close(Ticket(77), &owner, &what, now + Duration::from_secs(60));
        for place in 0..state.len() {
            for letter in ['A', 'b', '_'] {
                let mut changed: Vec<char> = state.chars().collect();
                if std::mem::replace(&mut changed[place], letter) != letter {
                    let changed: String = changed.into_iter().collect();
                    assert_eq!(seal.open(&changed, &owner, &what, now), Err(SealError::Foreign), "{changed}");
                }
            }
        }
    }
}
