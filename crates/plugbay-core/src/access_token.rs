//! Access tokens of callers: the trait by which the host side has tokens checked, and what scopes allow.

use std::{fmt, sync::Arc, time::Duration};

use crate::{credentials::Later, policy::ToolGrant};

/// Checks the access tokens that callers bring from an authorization server.
pub trait TokenVerifier: Send + Sync + fmt::Debug {
    /// What the token says, if the authorization server has issued it for this gateway and it is valid now.
    fn verify<'a>(&'a self, token: &'a str) -> Later<'a, Result<Arc<AccessToken>, TokenError>>;
}

/// What a valid access token says of its caller. The token itself is not in here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    pub issuer: String,
    /// The caller: the same in every token that the issuer makes for it.
    pub subject: String,
    /// The program that got the token, if the token names it.
    pub client: Option<String>,
    pub scopes: Vec<String>,
    /// When it expires: the time since 1970.
    pub ends: Duration,
}

/// Why a token is not valid. Contains no part of the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("{0}")]
    Invalid(&'static str),
    /// Its validity cannot be checked now.
    #[error("the keys of the authorization server cannot be had at the moment")]
    Unavailable,
}

/// The scopes that a caller needs, and the tools that each of them allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScopeRules {
    /// Every token needs all of them.
    pub required: Vec<String>,
    /// Rules, the narrowest first, as the user wrote them. Without any, each valid token is for all tools.
    pub rules: Vec<ScopeRule>,
}

/// A scope and its tools; `None` for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeRule {
    pub scope: String,
    pub tools: Option<ToolGrant>,
}

impl ScopeRules {
    /// All scopes that have a meaning here, each once.
    pub fn supported(&self) -> Vec<&str> {
        distinct(self.required.iter().chain(self.rules.iter().map(|rule| &rule.scope)))
    }

    /// The scopes that a host without a token should ask for: those that every token needs, else the first one.
    pub fn basic(&self) -> Vec<&str> {
        let first = self.rules.first().map(|rule| &rule.scope).filter(|_| self.required.is_empty());
        distinct(self.required.iter().chain(first))
    }

    /// The scopes to ask for when a token with these lacks one that every token needs.
    pub fn lacking(&self, held: &[String]) -> Option<String> {
        let lacks = self.required.iter().any(|scope| !held.contains(scope));
        lacks.then(|| self.with(held, None))
    }

    /// The tools that these scopes allow together; `None` for all.
    pub fn tools(&self, held: &[String]) -> Option<ToolGrant> {
        if self.rules.is_empty() {
            return None;
        }
        let held = self.rules.iter().filter(|rule| held.contains(&rule.scope));
        let grants: Option<Vec<&ToolGrant>> = held.map(|rule| rule.tools.as_ref()).collect();
        grants.map(ToolGrant::any_of)
    }

    /// The scopes to ask for when a token with these does not allow a tool: these, and the first that does.
    pub fn needed(&self, held: &[String], allows: impl Fn(&ToolGrant) -> bool) -> Option<String> {
        let allows = |rule: &&ScopeRule| rule.tools.as_ref().is_none_or(&allows);
        let needed = self.rules.iter().find(allows)?;
        // If the token has a scope that allows it, something else is missing.
        (!held.contains(&needed.scope)).then(|| self.with(held, Some(&needed.scope)))
    }

    /// Scopes as one line, with those that the token has: a host that asks for these alone loses nothing.
    fn with(&self, held: &[String], needed: Option<&String>) -> String {
        let kept = self.rules.iter().map(|rule| &rule.scope).filter(|scope| held.contains(scope));
        distinct(self.required.iter().chain(kept).chain(needed)).join(" ")
    }
}

/// The scopes that a token has, with the rules for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldScopes {
    pub held: Vec<String>,
    pub rules: Arc<ScopeRules>,
}

fn distinct<'s>(scopes: impl Iterator<Item = &'s String>) -> Vec<&'s str> {
    let mut all: Vec<&str> = Vec::new();
    for scope in scopes {
        if !all.contains(&scope.as_str()) {
            all.push(scope);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(required: &[&str]) -> ScopeRules {
        let rule = |scope: &str, tools: Option<&[&str]>| ScopeRule {
            scope: scope.to_owned(),
            tools: tools.map(|globs| ToolGrant::compile(globs).unwrap()),
        };
        ScopeRules {
            required: owned(required),
            rules: vec![
                rule("read", Some(&["s__get_*"])),
                rule("write", Some(&["s__*", "t__put"])),
                rule("all", None),
            ],
        }
    }

    fn owned(scopes: &[&str]) -> Vec<String> {
        scopes.iter().map(|&scope| scope.to_owned()).collect()
    }

    #[test]
    fn the_scopes_of_a_token_allow_their_tools_together() {
        let globs = |held: &[&str]| rules(&[]).tools(&owned(held)).map(|grant| grant.globs().to_vec());
        assert_eq!(globs(&["read"]), Some(owned(&["s__get_*"])));
        assert_eq!(globs(&["write", "read", "other"]), Some(owned(&["s__get_*", "s__*", "t__put"])));
        assert_eq!(globs(&["other"]), Some(vec![]));
        assert_eq!(globs(&["read", "all"]), None);
        assert_eq!(ScopeRules::default().tools(&[]), None, "without rules a token is for all tools");
    }

    #[test]
    fn the_first_scope_that_allows_a_tool_is_asked_for_beside_those_of_the_token() {
        let rules = rules(&["base"]);
        let needed = |held: &[&str], glob: &str| {
            rules.needed(&owned(held), |grant| grant.globs().contains(&glob.to_owned()))
        };
        assert_eq!(needed(&["base"], "s__get_*").as_deref(), Some("base read"));
        assert_eq!(needed(&["base", "read", "foreign"], "t__put").as_deref(), Some("base read write"));
        assert_eq!(needed(&[], "elsewhere").as_deref(), Some("base all"));
        let narrow = ScopeRules { rules: rules.rules[..2].to_vec(), ..rules.clone() };
        assert_eq!(narrow.needed(&[], |_| false), None, "no scope helps");
    }

    #[test]
    fn a_required_scope_that_a_token_lacks_is_asked_for() {
        assert_eq!(rules(&["base"]).lacking(&owned(&["read"])).as_deref(), Some("base read"));
        assert_eq!(rules(&["base"]).lacking(&owned(&["base"])), None);
        assert_eq!(rules(&["base"]).basic(), ["base"]);
        assert_eq!(rules(&[]).basic(), ["read"]);
        assert_eq!(rules(&["read"]).supported(), ["read", "write", "all"]);
        assert!(ScopeRules::default().basic().is_empty());
    }
}
