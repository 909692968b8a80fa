//! Permission rules for MCP tools, in Claude Code's syntax.

use plugbay_core::name;
use serde_json::Value;

const EVERYTHING: &str = "mcp__*";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Deny,
    Ask,
    Allow,
}

/// The kinds of rules in a file that apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    All,
    Denials,
}

/// The rules of several files. Among matching rules, a denial overrides a question to the user, and both
/// override a permission.
#[derive(Debug, Default)]
pub(super) struct Rules {
    deny: Vec<String>,
    ask: Vec<String>,
    allow: Vec<String>,
    /// Whether a managed file says that only managed rules count.
    alone: bool,
}

impl Rules {
    /// Adds the rules in a settings file. If its text cannot be parsed, its denials are unknown, so the user
    /// is asked about every tool.
    pub(super) fn with(mut self, file: impl AsRef<str>, weight: Weight) -> Self {
        let Ok(settings) = serde_json::from_str::<Value>(file.as_ref()) else {
            self.ask.push(EVERYTHING.to_owned());
            return self;
        };
        // One invalid value must not invalidate the others.
        let rules = |key: &str| {
            let list = settings["permissions"][key].as_array().into_iter().flatten();
            list.filter_map(|rule| Some(rule.as_str()?.to_owned())).collect::<Vec<_>>()
        };
        self.deny.extend(rules("deny"));
        if weight == Weight::All {
            self.ask.extend(rules("ask"));
            self.allow.extend(rules("allow"));
            self.alone |= settings["allowManagedPermissionRulesOnly"] == true;
        }
        self
    }

    /// Whether permissions in other files are ignored.
    pub(super) fn are_all(&self) -> bool {
        self.alone
    }

    /// The decision about a tool with these names, and the rule behind it.
    pub(super) fn decide(&self, names: &[&str]) -> Option<(Decision, &str)> {
        self.decide_if(|rule| names.iter().any(|name| fits(rule, name)))
    }

    /// The same, regardless of the spelling of rules and names.
    pub(super) fn decide_loosely(&self, names: &[&str]) -> Option<(Decision, &str)> {
        let names: Vec<String> = names.iter().map(|name| loosely(name)).collect();
        self.decide_if(|rule| names.iter().any(|name| fits(&loosely(rule), name)))
    }

    fn decide_if(&self, fits: impl Fn(&str) -> bool) -> Option<(Decision, &str)> {
        let lists =
            [(Decision::Deny, &self.deny), (Decision::Ask, &self.ask), (Decision::Allow, &self.allow)];
        lists.into_iter().find_map(|(decision, rules)| {
            let rule = rules.iter().find(|rule| fits(rule))?;
            Some((decision, rule.as_str()))
        })
    }
}

/// A rule or tool name without its case and separators, except for the separator between server and tool.
fn loosely(text: &str) -> String {
    let Some(rest) = text.strip_prefix("mcp__") else { return text.to_owned() };
    let star = if rest.ends_with('*') { "*" } else { "" };
    match name::split(rest) {
        Some((server, tool)) => {
            format!("mcp__{}{}{}{star}", name::folded(server), name::JOINT, name::folded(tool))
        }
        None => format!("mcp__{}{star}", name::folded(rest)),
    }
}

/// Whether a rule matches a name: `mcp__server` is all of a server, and `*` at the end matches anything.
fn fits(rule: &str, name: &str) -> bool {
    match rule.strip_suffix('*') {
        Some(start) => start.starts_with("mcp__") && name.starts_with(start),
        None => name == rule || rule.starts_with("mcp__") && is_server_of(rule, name),
    }
}

fn is_server_of(rule: &str, name: &str) -> bool {
    let server = |text: &str| text.strip_prefix("mcp__").is_some_and(|rest| !rest.contains("__"));
    server(rule) && name.strip_prefix(rule).is_some_and(|rest| rest.starts_with("__"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(permissions: &str) -> Rules {
        Rules::default().with(format!(r#"{{"permissions":{permissions},"other":1}}"#), Weight::All)
    }

    #[test]
    fn the_strictest_rule_that_fits_counts() {
        let rules = rules(r#"{"allow":["mcp__github","Bash(ls)"],"ask":["mcp__github__merge*"],"deny":["mcp__github__delete_repo"]}"#)
            .with(r#"{"permissions":{"ask":7,"deny":[1,"mcp__plugbay__files__*"]}}"#, Weight::All);
        let decide = |name: &str| rules.decide(&[name, "mcp__plugbay__none"]).map(|(decision, _)| decision);
        assert_eq!(decide("mcp__github__get_issue"), Some(Decision::Allow));
        assert_eq!(decide("mcp__github__merge_pr"), Some(Decision::Ask));
        assert_eq!(decide("mcp__github__delete_repo"), Some(Decision::Deny));
        assert_eq!(decide("mcp__plugbay__files__read"), Some(Decision::Deny));
        for other in ["mcp__githubby__x", "mcp__gitlab__x", "Bash(ls) x"] {
            assert_eq!(decide(other), None, "{other}");
        }
    }

    #[test]
    fn spelling_may_be_overlooked() {
        let rules = rules(
            r#"{"allow":["mcp__git"],"ask":["mcp__git__merge*"],"deny":["mcp__my-hub__delete_repo","mcp__lab__*"]}"#,
        );
        let decide = |name: &str| rules.decide_loosely(&[name]).map(|(decision, _)| decision);
        for denied in ["mcp__My_Hub__delete-repo", "mcp__myhub__delete__repo", "mcp__LAB__x"] {
            assert_eq!(decide(denied), Some(Decision::Deny), "{denied}");
        }
        assert_eq!(decide("mcp__Git__Merge.all"), Some(Decision::Ask));
        assert_eq!(decide("mcp__GIT__log"), Some(Decision::Allow));
        for other in ["mcp__github__x", "mcp__labs__x", "mcp__my-hub__delete"] {
            assert_eq!(decide(other), None, "{other}");
        }
    }

    #[test]
    fn a_bare_star_is_no_rule_for_these_tools() {
        assert!(rules(r#"{"allow":["*","Read(*"]}"#).decide(&["mcp__a__b"]).is_none());
        assert!(rules(r#"{"allow":["mcp__*"]}"#).decide(&["mcp__a__b"]).is_some());
    }
}
