//! Access control: the `Host` and `Origin` headers, and the bearer token.
//!
//! A web page can make its visitor's browser send requests to any address, including ours, by letting its own
//! domain name resolve to it. `Host` and `Origin` give such a request away.

use std::{net::IpAddr, sync::Arc};

use hyper::{
    HeaderMap, StatusCode, Uri,
    header::{AUTHORIZATION, HOST, ORIGIN},
};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use super::{
    authorization::{Authorization, Authorizations, Fault},
    callers::{Callers, Known, NamedTokens},
    listen::Address,
    negotiate::{Ambiguous, single},
    reject::Rejection,
    shares::Share,
};
use crate::{principal::Account, seal::Owner};

/// The holder of a token, or the only caller if there are no tokens. A session belongs to its caller.
///
/// The owner of an unnamed token is a digest of it and all other unnamed tokens. The store holds the owner of
/// a named token; that of an access token is computed from its subject. Every process with these tokens
/// computes the same owner. The holder of one token cannot compute it, so cannot forge what is sealed with
/// it.
#[derive(Debug, Clone, Default)]
pub(super) struct Identity {
    pub(super) owner: Owner,
    account: Arc<Account>,
}

/// A caller and its share of this process.
#[derive(Debug, Clone)]
#[cfg_attr(test, derive(Default))]
pub(super) struct Caller {
    identity: Identity,
    share: Arc<Share>,
}

impl Caller {
    pub(super) fn new(identity: Identity, share: Arc<Share>) -> Self {
        Self { identity, share }
    }

    /// The owner of the caller's suspended calls.
    pub(super) fn owner(&self) -> Owner {
        self.identity.owner
    }

    /// What the gateway knows of the caller.
    pub(super) fn account(&self) -> &Arc<Account> {
        &self.identity.account
    }

    pub(super) fn share(&self) -> &Arc<Share> {
        &self.share
    }
}

#[derive(Debug, Clone)]
pub struct Access {
    names: Names,
    /// Further accepted host names, with or without a port.
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Digests of the tokens, so that comparing them reveals neither bytes nor lengths.
    tokens: Vec<[u8; 32]>,
    /// One digest of all tokens, whatever order they were given in.
    together: [u8; 32],
    callers: Callers,
}

/// The host names that are accepted without being configured.
#[derive(Debug, Clone, Copy)]
enum Names {
    Loopback,
    One(IpAddr),
    /// For a gateway on all interfaces: any IP address. A web page cannot redirect an IP address, as it can a
    /// name.
    AnyNumber,
}

/// The error for an address that other machines can reach while no token is needed.
#[derive(Debug, PartialEq, Eq)]
pub struct Unguarded;

impl Access {
    /// Access to a gateway at `address`. If other machines can reach it, it must have a token.
    pub fn new(
        address: &Address,
        hosts: Vec<String>,
        origins: Vec<String>,
        tokens: &[String],
    ) -> Result<Self, Unguarded> {
        Self::with_callers(address, hosts, origins, tokens, None, false)
    }

    /// The same with named tokens. `guarded`: a token is needed even while none exists.
    pub fn with_callers(
        address: &Address,
        hosts: Vec<String>,
        origins: Vec<String>,
        tokens: &[String],
        callers: Option<NamedTokens>,
        guarded: bool,
    ) -> Result<Self, Unguarded> {
        let mut tokens: Vec<[u8; 32]> = tokens.iter().map(|token| Sha256::digest(token).into()).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let callers = Callers::new(callers, tokens.len(), guarded);
        if !callers.is_guarded() && !address.is_local() {
            return Err(Unguarded);
        }
        let names = match address {
            Address::Tcp(address) if address.ip().is_unspecified() => Names::AnyNumber,
            Address::Tcp(address) if !address.ip().is_loopback() => Names::One(address.ip()),
            Address::Tcp(_) | Address::Unix(_) => Names::Loopback,
        };
        let together = Sha256::digest(tokens.concat()).into();
        Ok(Self { names, hosts, origins, tokens, together, callers })
    }

    /// Checks the `Host` and `Origin` of a request, on every route.
    pub(super) fn check_place(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Rejection> {
        let host = self.check_host(uri, headers)?;
        self.check_origin(host, headers)
    }

    /// The `Host` of a request, if it is one of our names.
    pub(super) fn check_host<'h>(&self, uri: &Uri, headers: &'h HeaderMap) -> Result<&'h str, Rejection> {
        let forbidden = |why| Err(Rejection::new(StatusCode::FORBIDDEN, why));
        let Ok(Some(host)) = single(headers, HOST.as_str()) else {
            return forbidden("the request must have one Host");
        };
        let elsewhere = uri.authority().is_some_and(|authority| authority.as_str() != host);
        if elsewhere || !self.is_ours(host) {
            return forbidden("this gateway is not known by this Host; --allow-host makes it known");
        }
        Ok(host)
    }

    pub(super) fn check_origin(&self, host: &str, headers: &HeaderMap) -> Result<(), Rejection> {
        match single(headers, ORIGIN.as_str()) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.is_trusted(origin, host) => Ok(()),
            _ => {
                let why = "this Origin is not trusted; --allow-origin makes it so";
                Err(Rejection::new(StatusCode::FORBIDDEN, why))
            }
        }
    }

    /// Whether a `Host` is a loopback name.
    pub(super) fn is_loopback(host: &str) -> bool {
        let name = without_port(host);
        let number = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name.eq_ignore_ascii_case("localhost") || number.is_ok_and(|number| number.is_loopback())
    }

    /// Whether a token is needed.
    pub(super) fn is_guarded(&self) -> bool {
        self.callers.is_guarded()
    }

    /// The same, with callers that an authorization server vouches for.
    #[must_use]
    pub fn authorized_by(mut self, authorizations: Authorizations) -> Self {
        self.callers = self.callers.authorized_by(authorizations);
        self
    }

    /// The caller of a request, by its token. Checked on every route except the health probes, the server card
    /// and the authorization metadata.
    pub(super) async fn check_token(&self, headers: &HeaderMap) -> Result<Identity, Rejection> {
        if !self.callers.is_guarded() {
            return Ok(self.caller(Owner::default()));
        }
        let authorization = self.callers.authorization();
        let token = bearer(headers).map_err(|fault| match &authorization {
            Some(authorization) => Rejection::challenged(authorization, &fault),
            None => Rejection::unauthorized(),
        })?;
        match (self.known(token)?, authorization) {
            (Some(caller), _) => Ok(caller),
            (None, None) => Err(Rejection::unknown_token()),
            (None, Some(authorization)) => self.check_access_token(&authorization, token).await,
        }
    }

    /// The caller of a token that this gateway has made or was given itself.
    fn known(&self, token: &str) -> Result<Option<Identity>, Rejection> {
        let given: [u8; 32] = Sha256::digest(token).into();
        // All tokens are compared, so that the time does not reveal which one matched.
        let known = self.tokens.iter().fold(Choice::from(0), |known, token| known | token.ct_eq(&given));
        match self.callers.find(&given) {
            Known::Caller(owner) => Ok(Some(self.caller(Owner(owner)))),
            Known::Expired => Err(Rejection::expired()),
            Known::Unknown if bool::from(known) => {
                Ok(Some(self.caller(Owner(Sha256::digest([self.together, given].concat()).into()))))
            }
            Known::Unknown => Ok(None),
        }
    }

    /// The caller of a token that the authorization server has issued.
    async fn check_access_token(
        &self,
        authorization: &Arc<Authorization>,
        token: &str,
    ) -> Result<Identity, Rejection> {
        let verified = authorization.verifier().verify(token).await;
        let token = verified.map_err(|error| Rejection::of_access_token(authorization, error))?;
        if let Some(scope) = authorization.scopes().lacking(&token.scopes) {
            return Err(Rejection::missing_scope(Some(authorization), b"null", &scope));
        }
        let (owner, account) = self.callers.admit(authorization, &token);
        Ok(Identity { owner, account })
    }

    /// The current terms for callers of an authorization server.
    pub(super) fn authorization(&self) -> Option<Arc<Authorization>> {
        self.callers.authorization()
    }

    pub(super) fn callers(&self) -> Callers {
        self.callers.clone()
    }

    fn caller(&self, owner: Owner) -> Identity {
        Identity { owner, account: self.callers.account(owner) }
    }

    fn is_ours(&self, host: &str) -> bool {
        let name = without_port(host);
        let number = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let own = match (self.names, number) {
            (_, None) => name.eq_ignore_ascii_case("localhost") && !matches!(self.names, Names::One(_)),
            (Names::Loopback, Some(number)) => number.is_loopback(),
            (Names::One(ours), Some(number)) => ours == number,
            (Names::AnyNumber, Some(_)) => true,
        };
        own || self.hosts.iter().any(|allowed| {
            let whole = allowed.eq_ignore_ascii_case(host);
            whole || (without_port(allowed) == allowed && allowed.eq_ignore_ascii_case(name))
        })
    }

    /// Whether an origin is trusted: a page of our own would have our own origin, and any other must be
    /// configured.
    fn is_trusted(&self, origin: &str, host: &str) -> bool {
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        own.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
            || (origin != "null" && self.origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin)))
    }
}

/// The token in the one `Authorization` header. A token in the URL does not count.
fn bearer(headers: &HeaderMap) -> Result<&str, Fault<'static>> {
    let value = match single(headers, AUTHORIZATION.as_str()) {
        Ok(value) => value.unwrap_or_default(),
        Err(Ambiguous) => return Err(Fault::BadRequest("send one Authorization header, as visible ASCII")),
    };
    let (scheme, token) = value.split_once(' ').unwrap_or_default();
    match token.trim() {
        token if scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() => Ok(token),
        _ => Err(Fault::NoToken),
    }
}

/// `[::1]:80` → `[::1]`, `localhost:80` → `localhost`.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && is_whole(name) => name,
        _ => host,
    }
}

/// Whether this is a whole host name, not the inside of an IPv6 address.
fn is_whole(name: &str) -> bool {
    name.starts_with('[') == name.ends_with(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: &str, hosts: &[&str]) -> Access {
        let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        Access::new(&address.parse().unwrap(), hosts, Vec::new(), &["secret".to_owned()]).unwrap()
    }

    #[test]
    fn the_host_header_must_name_the_gateway() {
        let check = |address: &str, allowed: &[&str], host: &str, ours: bool| {
            assert_eq!(access(address, allowed).is_ours(host), ours, "{address} {allowed:?} {host}");
        };
        for host in ["localhost", "LocalHost:80", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:80"] {
            check("127.0.0.1:80", &[], host, true);
            check("unix:/tmp/x", &[], host, true);
        }
        let strangers = [
            "",
            ":80",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "10.0.0.1",
            "[::2]",
        ];
        for host in strangers {
            check("127.0.0.1:80", &[], host, false);
            check("127.0.0.1:80", &["good.example"], host, false);
        }
        check("10.0.0.1:80", &[], "10.0.0.1:80", true);
        check("10.0.0.1:80", &[], "10.0.0.2:80", false);
        check("10.0.0.1:80", &[], "localhost", false);
        check("0.0.0.0:80", &[], "10.0.0.2:80", true);
        check("0.0.0.0:80", &[], "evil.example", false);
        check("127.0.0.1:80", &["good.example"], "Good.example:81", true);
        check("127.0.0.1:80", &["good.example:80"], "good.example:81", false);
        check("127.0.0.1:80", &["good.example:80"], "good.example:80", true);
    }

    #[test]
    fn a_caller_is_derived_from_all_bearer_tokens() {
        let caller = |tokens: [&str; 2], token: &str| {
            let access =
                Access::new(&"[::1]:1".parse().unwrap(), vec![], vec![], &tokens.map(str::to_owned)).unwrap();
            access.known(token).ok().flatten().unwrap().owner
        };
        let one = caller(["one", "two"], "one");
        assert_eq!(one, caller(["two", "one"], "one"));
        assert_ne!(one, caller(["one", "two"], "two"));
        assert_ne!(one, caller(["one", "three"], "one"));
    }

    #[test]
    fn an_address_that_others_can_reach_needs_a_bearer_token() {
        for (address, local) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("unix:/x", true),
            ("0.0.0.0:1", false),
            ("10.0.0.1:1", false),
        ] {
            let access = Access::new(&address.parse().unwrap(), Vec::new(), Vec::new(), &[]);
            assert_eq!(access.is_ok(), local, "{address}");
        }
    }
}
