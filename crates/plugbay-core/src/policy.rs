//! Whether a tool may be used: checked once for a listing and once on every forward.

use std::{collections::BTreeMap, fmt, sync::Arc};

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::name::{self, ServerName, ServerPrefixes};

/// Which of a server's tools may be seen and called. `deny` wins over `allow`; an absent `allow`
/// allows everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    pub allow: Option<Patterns>,
    pub deny: Patterns,
    /// A pattern may also name a tool without the server's name in front: a remote gateway shows both as one name.
    pub own_names: bool,
    /// The most that the caller of this policy may use.
    pub grant: Option<ServerGrant>,
}

impl Policy {
    pub fn may(&self, tool: &str) -> bool {
        !self.matches(&self.deny, tool)
            && self.allow.as_ref().is_none_or(|allow| self.matches(allow, tool))
            && self.grant.as_ref().is_none_or(|grant| grant.may(tool))
    }

    fn matches(&self, patterns: &Patterns, tool: &str) -> bool {
        patterns.matches(tool) || self.own_names && patterns.matches(name::own(tool))
    }
}

/// The tools that a caller may use, as patterns of exposed names: `github__get_*`, `files__*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGrant(Arc<Patterns>);

/// The part of a grant that is about one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerGrant {
    patterns: Arc<Patterns>,
    server: ServerName,
    /// The names of all servers: its tools must not have those in front.
    servers: Arc<ServerPrefixes>,
    /// The names of its tools, as in its exposure.
    rename: BTreeMap<String, String>,
    bare: bool,
    name_limit: usize,
}

impl ToolGrant {
    pub fn compile<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, PatternError> {
        Patterns::compile(globs).map(|patterns| Self(Arc::new(patterns)))
    }

    /// A grant of everything that one of these allows.
    pub fn any_of<'g>(grants: impl IntoIterator<Item = &'g Self>) -> Self {
        // Each pattern was compiled before. An error would lead to a grant of nothing.
        Self::compile(grants.into_iter().flat_map(Self::globs)).unwrap_or_else(|_| Self(Arc::default()))
    }

    /// The patterns as they were written.
    pub fn globs(&self) -> &[String] {
        &self.0.globs
    }

    /// Whether the caller may use the server as a whole: other items than tools, and tools that it may get.
    pub fn is_whole(&self, server: &ServerName) -> bool {
        self.0.matches(&name::before(server))
    }

    /// Whether a pattern begins with the name of this server.
    pub fn names(&self, server: &ServerName) -> bool {
        let before = name::before(server);
        self.globs().iter().any(|glob| glob.starts_with(&before))
    }

    /// The grant for one server, whose tools are renamed and shown like this.
    pub fn of(
        &self,
        server: &ServerName,
        servers: &Arc<ServerPrefixes>,
        rename: &BTreeMap<String, String>,
        bare: bool,
        name_limit: usize,
    ) -> ServerGrant {
        let (patterns, servers) = (Arc::clone(&self.0), Arc::clone(servers));
        let (server, rename) = (server.clone(), rename.clone());
        ServerGrant { patterns, server, servers, rename, bare, name_limit }
    }
}

impl ServerGrant {
    /// Whether the caller may use this tool, by the server's own name for it.
    pub fn may(&self, tool: &str) -> bool {
        let visible = self.rename.get(tool).map_or(tool, String::as_str);
        let full = |tool: &str| self.patterns.matches(&format!("{}{tool}", name::before(&self.server)));
        let shown = || self.patterns.matches(&name::expose(&self.server, visible, self.name_limit));
        // A bare name could pass for a tool of another server, which the pattern is about.
        let reads_joined = || name::split(visible).is_some() || self.servers.claim(&self.server, visible);
        let bare = || self.bare && !reads_joined() && self.patterns.matches(visible);
        full(tool) || full(visible) || shown() || bare()
    }
}

/// A set of globs over tool names (`get_*`, `{read,list}_file`), compiled once.
#[derive(Clone, Default)]
pub struct Patterns {
    globs: Vec<String>,
    set: GlobSet,
}

/// The pattern that does not compile, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is not a valid pattern: {reason}")]
pub struct PatternError {
    pub pattern: String,
    pub reason: String,
}

impl Patterns {
    pub fn compile<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, PatternError> {
        let mut builder = GlobSetBuilder::new();
        let mut sources = Vec::new();
        for glob in globs {
            let glob = glob.as_ref();
            let error =
                |e: globset::Error| PatternError { pattern: glob.into(), reason: e.kind().to_string() };
            builder.add(Glob::new(glob).map_err(error)?);
            sources.push(glob.to_owned());
        }
        let set = builder
            .build()
            .map_err(|e| PatternError { pattern: sources.join(", "), reason: e.kind().to_string() })?;
        Ok(Self { globs: sources, set })
    }

    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    pub fn matches(&self, tool: &str) -> bool {
        self.set.is_match(tool)
    }
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.globs == other.globs
    }
}

impl Eq for Patterns {}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.globs.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deny_wins_and_an_absent_allow_allows() {
        let policy = Policy {
            allow: Some(Patterns::compile(["get_*", "list_issues"]).unwrap()),
            deny: Patterns::compile(["get_secret*"]).unwrap(),
            own_names: false,
            grant: None,
        };
        let allowed = ["get_issue", "list_issues"].map(|tool| policy.may(tool));
        let denied = ["get_secrets", "delete_issue"].map(|tool| policy.may(tool));
        assert_eq!((allowed, denied), ([true; 2], [false; 2]));
        assert!(Policy::default().may("anything"));
    }

    #[test]
    fn an_empty_allow_list_allows_nothing() {
        let policy = Policy { allow: Some(Patterns::default()), ..Policy::default() };
        assert!(!policy.may("get_issue"));
    }

    #[test]
    fn a_remote_tool_is_allowed_by_its_whole_name_or_by_its_own() {
        let allow = Patterns::compile(["web_search", "memory__*", "db_{query,list}"]).unwrap();
        let policy = Policy { allow: Some(allow), deny: Patterns::default(), own_names: true, grant: None };
        let allowed = ["web_search", "web__web_search", "memory__store", "db__db_list"];
        assert_eq!(allowed.map(|tool| policy.may(tool)), [true; 4]);
        let denied = ["web__search", "web_search__x", "db__query", "store"];
        assert_eq!(denied.map(|tool| policy.may(tool)), [false; 4]);
        assert!(!Policy { own_names: false, ..policy }.may("web__web_search"));
    }

    #[test]
    fn a_denied_tool_of_a_remote_is_denied_by_its_own_name_too() {
        let deny = Patterns::compile(["drop_*"]).unwrap();
        let policy = Policy { allow: None, deny, own_names: true, grant: None };
        assert_eq!(
            ["db__drop_all", "drop_all", "db__list"].map(|tool| policy.may(tool)),
            [false, false, true]
        );
    }

    #[test]
    fn a_broken_pattern_is_named() {
        assert_eq!(Patterns::compile(["ok", "[a"]).unwrap_err().pattern, "[a");
    }
}
