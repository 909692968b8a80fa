//! The session of a request: named by its `X-Session-ID` header, else by other properties.

use std::{fmt::Write as _, sync::Arc};

use hyper::{HeaderMap, StatusCode, Uri};
use plugbay_core::{capabilities::ClientCapabilities, scope::SessionKey};
use sha2::{Digest as _, Sha256};

use super::{Shared, access::Caller, host_views, negotiate::single, reject::Rejection};
use crate::{
    gateway::Gateway,
    principal::{CurrentAccount, Principal},
};

pub(super) const SESSION_ID: &str = "x-session-id";

/// Longest session id that a client may choose, in bytes.
const LONGEST: usize = 128;

impl Shared {
    /// The gateway as seen by the session that the request names, for this caller alone. Requests of one
    /// caller that name no session share one.
    pub(super) fn enter(&self, caller: &Caller, headers: &HeaderMap) -> Result<Gateway, Rejection> {
        Ok(self.enter_lasting(caller, Kind::Header, name(headers)?.unwrap_or_default()))
    }

    /// The same for `initialize`. If it names no session, the session is new and has the id in
    /// `Mcp-Session-Id`.
    pub(super) fn enter_new(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        id: &str,
    ) -> Result<Gateway, Rejection> {
        if name(headers)?.is_some() {
            return self.enter(caller, headers);
        }
        Ok(self
            .enter_as(caller, &SessionKey::new(key(caller, Kind::Connection, id)).of(hex(&caller.owner().0))))
    }

    /// The same for a modern request. If it names no session, the host view in its URL does. Otherwise all
    /// requests of the caller with the same client name share a session.
    pub(super) fn enter_modern(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        uri: &Uri,
        client: Option<&str>,
    ) -> Result<Gateway, Rejection> {
        let (kind, name) = match (name(headers)?, host_views::named(uri)) {
            (Some(name), _) => (Kind::Header, name),
            (None, Some(view)) => (Kind::View, view),
            (None, None) => (Kind::Client, client.unwrap_or_default()),
        };
        Ok(self.enter_lasting(caller, kind, name))
    }

    fn enter_lasting(&self, caller: &Caller, kind: Kind, name: &str) -> Gateway {
        let gateway = self.enter_as(caller, &lasting(caller, kind, name));
        // Any host may use this name. A server must not be restarted for each of them, because it would lose
        // its state.
        if gateway.principal.key.is_some() && gateway.host_registry.add_capabilities(ClientCapabilities::ALL)
        {
            gateway.servers.client_capabilities_grew();
        }
        gateway
    }

    fn enter_as(&self, caller: &Caller, session: &SessionKey) -> Gateway {
        self.used_by(caller).enter(session)
    }

    /// The gateway as a caller may use it, in no session.
    pub(super) fn used_by(&self, caller: &Caller) -> Gateway {
        let principal = Principal {
            account: CurrentAccount::new(Arc::clone(caller.account())),
            ..self.gateway.principal.clone()
        };
        Gateway { principal, ..self.gateway.clone() }
    }
}

/// The source of a session's name. Names from different sources never collide.
#[derive(Clone, Copy)]
enum Kind {
    Header,
    View,
    Client,
    Connection,
}

fn key(caller: &Caller, kind: Kind, name: &str) -> String {
    let kind = match kind {
        Kind::Header => "header",
        Kind::View => "view",
        Kind::Client => "client",
        Kind::Connection => "connection",
    };
    let caller = hex(&caller.owner().0);
    match name.len() {
        0..=LONGEST => format!("{kind}:{caller}:{name}"),
        // A client may choose any name. One that is longer than an id is kept as a digest.
        _ => format!("long {kind}:{caller}:{}", hex(&Sha256::digest(name))),
    }
}

fn lasting(caller: &Caller, kind: Kind, name: &str) -> SessionKey {
    SessionKey::lasting(key(caller, kind, name)).of(hex(&caller.owner().0))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The session that the request names, for this caller alone.
pub(super) fn named(caller: &Caller, headers: &HeaderMap) -> Result<SessionKey, Rejection> {
    Ok(lasting(caller, Kind::Header, name(headers)?.unwrap_or_default()))
}

/// The id in the header, if there is one.
pub(super) fn name(headers: &HeaderMap) -> Result<Option<&str>, Rejection> {
    let why = "X-Session-ID must be given once, as 1 to 128 visible ASCII characters";
    let bad = || Rejection::new(StatusCode::BAD_REQUEST, why);
    match single(headers, SESSION_ID).map_err(|_| bad())? {
        Some(name) if name.is_empty() || name.len() > LONGEST || !is_visible(name) => Err(bad()),
        name => Ok(name),
    }
}

fn is_visible(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_keys_of_long_client_names_differ() {
        let beginning = "x".repeat(LONGEST);
        let of = |name: &str| key(&Caller::default(), Kind::Client, name);
        let keys = [of(&beginning), of(&format!("{beginning}1")), of(&format!("{beginning}2"))];
        assert!(keys[0] != keys[1] && keys[1] != keys[2], "{keys:?}");
        assert!(of(&"x".repeat(1_000_000)).len() < 300);
    }
}
