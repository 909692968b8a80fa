//! The addresses that an authorization server may have: metadata comes from outside, and must not point to
//! internal hosts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// The kind of network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Public,
    /// A network that cannot be reached from outside.
    Private,
    /// This machine.
    Loopback,
    /// Link-local addresses, where clouds serve credentials, and all addresses that no server has.
    Forbidden,
}

/// The addresses that the user's own configuration allows. The address of the MCP server shows which network
/// is meant.
#[derive(Debug, Clone)]
pub struct AddressPolicy {
    /// The host of the MCP server, which may be anywhere because the user has chosen it.
    own: Option<Host<String>>,
    /// Whether the MCP server is on this machine, so that its authorization server may be too.
    loopback: bool,
    /// Whether the user has allowed authorization servers in a private network.
    private: bool,
}

/// The reason why a request is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAllowed {
    #[error("its address does not begin with https://")]
    Scheme,
    #[error("its address holds a user name or a password")]
    UserInfo,
    #[error("its address has no host")]
    NoHost,
    #[error("it leads to {0}, which is not a public address")]
    Address(String),
}

impl AddressPolicy {
    /// The policy for the MCP server at this URL. `private`: the user allows private networks.
    pub fn new(server: &Url, private: bool) -> Self {
        let own = server.host().map(|host| host.to_owned());
        let loopback = own.as_ref().is_some_and(is_loopback);
        let in_private = matches!(own.as_ref().and_then(literal).map(place), Some(Place::Private));
        Self { own, loopback, private: private || in_private }
    }

    /// Whether a URL may be requested, judging by the URL alone. The addresses of a name are checked when it
    /// is resolved.
    pub fn check(&self, url: &Url) -> Result<(), NotAllowed> {
        let host = url.host().ok_or(NotAllowed::NoHost)?.to_owned();
        if !url.username().is_empty() || url.password().is_some() {
            return Err(NotAllowed::UserInfo);
        }
        let plain = url.scheme() == "http" && self.loopback && is_loopback(&host);
        if url.scheme() != "https" && !plain {
            return Err(NotAllowed::Scheme);
        }
        let allowed = match literal(&host) {
            Some(address) => self.allows(&host, address),
            None => self.loopback || !is_loopback(&host),
        };
        if allowed { Ok(()) } else { Err(NotAllowed::Address(host.to_string())) }
    }

    /// Whether a connection to this address may be made for this host.
    pub fn allows(&self, host: &Host<String>, address: IpAddr) -> bool {
        if self.own.as_ref() == Some(host) {
            return true;
        }
        match place(address) {
            Place::Public => true,
            Place::Private => self.private,
            Place::Loopback => self.loopback,
            Place::Forbidden => false,
        }
    }
}

/// Whether the URL names this machine.
pub fn is_on_this_machine(url: &Url) -> bool {
    url.host().is_some_and(|host| is_loopback(&host.to_owned()))
}

fn is_loopback(host: &Host<String>) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => place((*address).into()) == Place::Loopback,
        Host::Ipv6(address) => place((*address).into()) == Place::Loopback,
    }
}

fn literal(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some((*address).into()),
        Host::Ipv6(address) => Some((*address).into()),
    }
}

fn place(address: IpAddr) -> Place {
    match address {
        IpAddr::V4(address) => place_v4(address),
        IpAddr::V6(address) => place_v6(address),
    }
}

fn place_v4(address: Ipv4Addr) -> Place {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (127, ..) => Place::Loopback,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Place::Private,
        // "This network", link-local, benchmarks, documentation, multicast, reserved.
        (0 | 224..=255, ..)
        | (169, 254, _)
        | (198, 18..=19, _)
        | (192, 0, 0 | 2)
        | (198, 51, 100)
        | (203, 0, 113) => Place::Forbidden,
        _ => Place::Public,
    }
}

fn place_v6(address: Ipv6Addr) -> Place {
    if address.is_loopback() {
        return Place::Loopback;
    }
    if let Some(inner) = embedded(address) {
        return place_v4(inner);
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => Place::Private,
        // Within the public range: Teredo, documentation. Outside it are link-local and translated addresses, multicast …
        [0x2001, 0 | 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => Place::Forbidden,
        [0x2000..=0x3fff, ..] => Place::Public,
        _ => Place::Forbidden,
    }
}

/// The IPv4 address within: mapped, compatible, NAT64, 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(join(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(server: &str, url: &str) -> bool {
        AddressPolicy::new(&Url::parse(server).unwrap(), false).check(&Url::parse(url).unwrap()).is_ok()
    }

    #[test]
    fn metadata_of_a_public_server_leads_to_public_addresses_only() {
        let server = "https://mcp.example/mcp";
        for url in [
            "https://auth.example",
            "https://auth.example:8443/x",
            "https://[2606:4700::1]/",
            "https://1.1.1.1/",
        ] {
            assert!(check(server, url), "{url}");
        }
        #[rustfmt::skip]
        let rejected = [
            "http://auth.example/", "ftp://auth.example/", "file:///etc/passwd", "javascript:alert(1)", "data:text/html,x",
            "https://user@auth.example/", "https://user:pw@auth.example/",
            "https://127.0.0.1/", "https://127.1/", "https://0x7f000001/", "https://0177.0.0.1/", "https://2130706433/",
            "https://localhost/", "https://LOCALHOST./", "https://a.localhost/", "https://0.0.0.0/", "https://[::]/",
            "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[::ffff:7f00:1]/", "https://[::127.0.0.1]/",
            "https://10.0.0.1/", "https://172.16.0.1/", "https://172.31.255.255/", "https://192.168.1.1/", "https://100.64.0.1/",
            "https://169.254.169.254/latest/meta-data/", "https://[fe80::1]/", "https://[fd00:ec2::254]/", "https://[fc00::1]/",
            "https://[64:ff9b::7f00:1]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:7f00:1::]/", "https://[2002:a9fe:a9fe::]/",
            "https://[2001::1]/", "https://[2001:db8::1]/", "https://[ff02::1]/", "https://[fec0::1]/", "https://[64:ff9b:1::1]/",
            "https://255.255.255.255/", "https://224.0.0.1/", "https://240.0.0.1/", "https://198.18.0.1/", "https://192.0.2.1/",
        ];
        for url in rejected {
            assert!(!check(server, url), "{url}");
        }
    }

    #[test]
    fn the_network_of_the_server_is_open_to_its_authorization_server() {
        for url in ["http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]:9/", "https://127.0.0.1/"] {
            assert!(check("http://127.0.0.1:8080/mcp", url), "{url}");
        }
        assert!(
            !check("http://127.0.0.1:8080/mcp", "http://auth.example/"),
            "plain HTTP on this machine alone"
        );
        assert!(!check("http://127.0.0.1:8080/mcp", "https://10.0.0.1/"));
        assert!(!check("http://127.0.0.1:8080/mcp", "https://169.254.169.254/"));
        assert!(check("https://10.0.0.5/mcp", "https://10.0.0.6/"));
        assert!(!check("https://10.0.0.5/mcp", "https://127.0.0.1/"));
        assert!(check("https://10.0.0.5/mcp", "https://10.0.0.5/token"));
    }

    #[test]
    fn a_name_is_judged_by_the_addresses_it_resolves_to() {
        let policy = AddressPolicy::new(&Url::parse("https://mcp.example/mcp").unwrap(), false);
        let host = |name: &str| Host::parse(name).unwrap();
        assert!(policy.allows(&host("auth.example"), [93, 184, 215, 14].into()));
        assert!(!policy.allows(&host("auth.example"), [127, 0, 0, 1].into()));
        assert!(!policy.allows(&host("auth.example"), [169, 254, 169, 254].into()));
        assert!(policy.allows(&host("mcp.example"), [10, 1, 2, 3].into()), "the user has chosen this host");
    }
}
