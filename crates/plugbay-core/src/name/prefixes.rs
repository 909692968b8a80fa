//! The servers whose names another name begins with, however it is written.

use std::collections::BTreeMap;

use super::{ServerName, folded, split, without_host};

/// The names of servers by their spelling without case and separators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerPrefixes(BTreeMap<String, Vec<ServerName>>);

impl ServerPrefixes {
    pub fn new<'a>(servers: impl IntoIterator<Item = &'a ServerName>) -> Self {
        let mut prefixes: BTreeMap<String, Vec<ServerName>> = BTreeMap::new();
        for server in servers {
            let alike = prefixes.entry(folded(server.as_str())).or_default();
            if !alike.contains(server) {
                alike.push(server.clone());
            }
        }
        Self(prefixes)
    }

    /// The servers that a name begins with. If a separator or nothing follows some of them, only those.
    pub fn of(&self, name: &str) -> Vec<&ServerName> {
        let (mut apart, mut all) = (Vec::new(), Vec::new());
        self.visit(name, |servers, rest| {
            all.extend(servers);
            if !rest.starts_with(char::is_alphanumeric) {
                apart.extend(servers);
            }
        });
        if apart.is_empty() { all } else { apart }
    }

    /// Whether a name without its server reads like a tool of another server: that server's name and a
    /// separator are in front, or the prefix of a host. With the joint, its own server's name in front
    /// counts, too.
    pub fn claim(&self, own: &ServerName, name: &str) -> bool {
        let plain = self.without_host(name);
        let joined = split(plain).is_some_and(|(server, _)| self.are_alike(server));
        let mut claimed = joined || plain.len() != name.len();
        self.visit(plain, |servers, rest| {
            let is_apart = rest.starts_with(|next: char| !next.is_alphanumeric());
            claimed |= is_apart && servers.iter().any(|server| server != own);
        });
        claimed
    }

    /// A name without the prefix of a host, unless the prefix is a server of ours: then that server is meant.
    pub fn without_host<'n>(&self, name: &'n str) -> &'n str {
        let as_direct = name.strip_prefix("mcp__").filter(|direct| match split(direct) {
            Some((host, _)) => self.are_alike(host),
            None => self.begin(direct),
        });
        as_direct.unwrap_or_else(|| without_host(name))
    }

    /// The servers whose names differ only in case and separators.
    pub fn twins(&self) -> impl Iterator<Item = &[ServerName]> {
        self.0.values().map(Vec::as_slice).filter(|alike| alike.len() > 1)
    }

    /// Whether a name begins with a server's, and a separator follows.
    fn begin(&self, name: &str) -> bool {
        let mut begins = false;
        self.visit(name, |_, rest| begins |= rest.starts_with(|next: char| !next.is_alphanumeric()));
        begins
    }

    fn are_alike(&self, server: &str) -> bool {
        server.len() <= ServerName::LIMIT && self.0.contains_key(&folded(server))
    }

    /// Goes through the servers that a name begins with, each time with the rest of the name.
    fn visit<'s>(&'s self, name: &str, mut found: impl FnMut(&'s [ServerName], &str)) {
        let mut start = String::new();
        for (at, next) in name.char_indices().filter(|(_, next)| next.is_alphanumeric()) {
            start.extend(next.to_lowercase());
            if start.len() > ServerName::LIMIT {
                return;
            }
            if let Some(servers) = self.0.get(&start) {
                found(servers, &name[at + next.len_utf8()..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(servers: &[&str]) -> ServerPrefixes {
        let servers: Vec<ServerName> = servers.iter().map(|name| ServerName::parse(name).unwrap()).collect();
        ServerPrefixes::new(&servers)
    }

    #[test]
    fn a_name_begins_with_a_server_however_it_is_written() {
        let known = prefixes(&["git", "git-hub", "va"]);
        let of = |name| known.of(name).into_iter().map(ServerName::as_str).collect::<Vec<_>>().join(" ");
        assert_eq!(of("git.log"), "git");
        assert_eq!(of("GIT_HUB/log"), "git git-hub");
        assert_eq!(of("GitHub__log"), "git-hub");
        assert_eq!(of("githublog"), "git git-hub", "no separator tells");
        assert_eq!(of("\u{212A}git"), "");
        assert_eq!(of("value"), "va");
        assert_eq!(of(&"x".repeat(4 << 20)), "");
    }

    #[test]
    fn a_bare_name_that_reads_like_another_servers_is_claimed() {
        let known = prefixes(&["good", "evil", "my-git"]);
        let evil = ServerName::parse("evil").unwrap();
        for taken in [
            "good__echo",
            "good.echo",
            "GOOD__ECHO",
            "good_echo",
            "good-echo",
            "mcp__good__echo",
            "mcp__good.echo",
            "my_git_log",
            "mcp__plugbay__echo",
            "My.Git.log",
            "evil__x",
            "mcp__evil__x",
        ] {
            assert!(known.claim(&evil, taken), "{taken}");
        }
        for free in ["echo", "goodness", "good", "evil_x", "evil.x", "mcp__x", "mcp", "", "_", "git_log"] {
            assert!(!known.claim(&evil, free), "{free}");
        }
    }

    #[test]
    fn servers_that_differ_only_in_case_and_separators_are_twins() {
        let known = prefixes(&["va", "VA", "v-a", "vb"]);
        let twins: Vec<&[ServerName]> = known.twins().collect();
        assert_eq!(twins.len(), 1);
        assert_eq!(twins[0].iter().map(ServerName::as_str).collect::<Vec<_>>(), ["va", "VA", "v-a"]);
    }
}
