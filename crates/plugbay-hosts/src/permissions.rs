//! Permission rules for tools in hosts' settings: counterparts for tools that move behind plugbay.
//!
//! A rule for a tool of a moved server would silently stop matching, because the host then sees the tool under another name.

use std::{collections::BTreeMap, ops::Range};

use jsonc_parser::ast;

use crate::{
    edit::{
        EditError,
        braced::{Braced, Comments},
        json::{self, File, quoted},
        splice::{self, Splice},
    },
    known::{Host, RuleSyntax},
};

/// Adds a rule for plugbay's tool after each rule for a tool of a moved server; `None` if there is nothing to
/// add.
///
/// `servers` maps the host's name of each moved server to its name in plugbay; `own` is the name of plugbay's
/// entry. `mcp__github__get_issue` gets `mcp__plugbay__github__get_issue`. The old rules stay. The text is
/// Claude Code's settings.
pub fn counterparts(
    text: &str,
    servers: &BTreeMap<String, String>,
    own: &str,
) -> Result<Option<String>, EditError> {
    add(text, Rules { syntax: RuleSyntax::Claude, servers, own })
}

/// The same for any host; also `None` for a host whose rules are unknown.
pub fn counterparts_for(
    host: &Host,
    text: &str,
    servers: &BTreeMap<String, String>,
    own: &str,
) -> Result<Option<String>, EditError> {
    host.rules.map_or(Ok(None), |syntax| add(text, Rules { syntax, servers, own }))
}

/// Removes the rules that [`counterparts_for`] has added, except those in `original`; `None` if there are
/// none.
///
/// If nobody else has changed the file since, the result is the original text, byte for byte.
pub fn without_counterparts(
    host: &Host,
    text: &str,
    servers: &BTreeMap<String, String>,
    own: &str,
    original: Option<&str>,
) -> Result<Option<String>, EditError> {
    let Some(syntax) = host.rules else { return Ok(None) };
    let rules = Rules { syntax, servers, own };
    let before = original.map(|original| rules.in_file(bare(original))).transpose()?.unwrap_or_default();
    let mut out = text.to_owned();
    while let Some(splices) = rules.next_added(bare(&out), &before)? {
        out = edited(&out, splices);
    }
    Ok((out != text).then_some(out))
}

fn add(text: &str, rules: Rules<'_>) -> Result<Option<String>, EditError> {
    let body = bare(text);
    let file = File::parse(body)?;
    let mut splices = Vec::new();
    for list in rules.in_file(body)? {
        for (index, rule) in list.rules.iter().enumerate() {
            let Some(new) = rules.counterpart(rule).filter(|new| !list.rules.contains(new)) else { continue };
            let is_repeated =
                list.rules[..index].iter().any(|above| rules.counterpart(above).as_ref() == Some(&new));
            if !is_repeated {
                let write =
                    |_: Option<&str>| format!("{}{}", quoted(&new), &body[list.values[index].clone()]);
                splices.extend(list.braced.insert_after(body, index, file.layout(), &write));
            }
        }
    }
    Ok((!splices.is_empty()).then(|| edited(text, splices)))
}

#[derive(Clone, Copy)]
struct Rules<'a> {
    syntax: RuleSyntax,
    servers: &'a BTreeMap<String, String>,
    own: &'a str,
}

/// A list or an object of rules.
#[derive(Debug)]
struct List {
    /// The keys from the root.
    place: Vec<String>,
    rules: Vec<String>,
    /// The text after each rule: empty in a list, `: value` in an object.
    values: Vec<Range<usize>>,
    braced: Braced,
}

impl Rules<'_> {
    /// Every list of rules in a file.
    fn in_file(self, text: &str) -> Result<Vec<List>, EditError> {
        let file = File::parse(text)?;
        let Some(root) = file.root()? else { return Ok(Vec::new()) };
        let mut lists = Vec::new();
        match self.syntax {
            RuleSyntax::Claude => {
                let permissions = root.get_object("permissions");
                for kind in ["allow", "ask", "deny"] {
                    let list = permissions.and_then(|permissions| permissions.get_array(kind));
                    lists.extend(list.map(|list| list_of(kind, list)));
                }
            }
            RuleSyntax::Opencode => {
                lists.extend(objects_of(&[], root));
                let agents = root.get_object("agent").into_iter().flat_map(|agents| &agents.properties);
                for agent in agents {
                    let settings = agent.value.as_object();
                    lists.extend(
                        settings.into_iter().flat_map(|it| objects_of(&["agent", agent.name.as_str()], it)),
                    );
                }
            }
        }
        Ok(lists)
    }

    /// The edit that removes the first added rule.
    fn next_added(self, text: &str, before: &[List]) -> Result<Option<Vec<Splice>>, EditError> {
        for list in self.in_file(text)? {
            let old = before.iter().find(|old| old.place == list.place);
            let is_added = |rule: &String| {
                let is_counterpart =
                    list.rules.iter().any(|other| self.counterpart(other).as_ref() == Some(rule));
                is_counterpart && !old.is_some_and(|old| old.rules.contains(rule))
            };
            if let Some(index) = list.rules.iter().position(is_added) {
                return Ok(Some(list.braced.remove(text, index, Comments::Slashes)));
            }
        }
        Ok(None)
    }

    /// The rule for the same tools behind plugbay.
    fn counterpart(self, rule: &str) -> Option<String> {
        let named = |(host, ours): (&String, &String)| match self.syntax {
            RuleSyntax::Claude => {
                let rest = rule.strip_prefix("mcp__")?.strip_prefix(&plain(host))?;
                let tool = if rest.is_empty() {
                    "*"
                } else {
                    rest.strip_prefix("__").filter(|tool| !tool.is_empty())?
                };
                Some((host.len(), format!("mcp__{}__{ours}__{tool}", plain(self.own))))
            }
            RuleSyntax::Opencode => {
                let rest = rule.strip_prefix(&plain(host))?;
                let tool =
                    if rest == "*" { "*" } else { rest.strip_prefix('_').filter(|tool| !tool.is_empty())? };
                Some((host.len(), format!("{}_{ours}__{tool}", plain(self.own))))
            }
        };
        // If both `git` and `git_hub` match, the longer name is meant.
        let best = self.servers.iter().filter_map(named).max_by_key(|(length, _)| *length);
        best.map(|(_, rule)| rule)
    }
}

fn list_of(kind: &str, list: &ast::Array<'_>) -> List {
    let range = |value: &ast::Value<'_>| json::range(value);
    let rules =
        list.elements.iter().map(|rule| rule.as_string_lit().map_or("", |rule| &rule.value).to_owned());
    let members: Vec<_> = list.elements.iter().map(range).collect();
    let braced = Braced { inside: list.range.start + 1..list.range.end - 1, members: members.clone() };
    let values = members.iter().map(|member| member.end..member.end).collect();
    List { place: vec![kind.to_owned()], rules: rules.collect(), values, braced }
}

/// The rules of opencode, for all agents or for one.
fn objects_of(above: &[&str], settings: &ast::Object<'_>) -> Vec<List> {
    let objects =
        ["permission", "tools"].into_iter().filter_map(|key| Some((key, settings.get_object(key)?)));
    let lists = objects.map(|(key, object)| List {
        place: above.iter().chain(&[key]).map(|key| (*key).to_owned()).collect(),
        rules: object.properties.iter().map(|member| member.name.as_str().to_owned()).collect(),
        values: object.properties.iter().map(behind_name).collect(),
        braced: json::braced(object),
    });
    lists.collect()
}

/// The colon and the value of a member.
fn behind_name(member: &ast::ObjectProp<'_>) -> Range<usize> {
    let name = match &member.name {
        ast::ObjectPropName::String(name) => name.range,
        ast::ObjectPropName::Word(name) => name.range,
    };
    name.end..member.range.end
}

/// A server's name as it appears in the names of its tools.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

fn bare(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The text, with its byte order mark, after edits of what follows the mark.
fn edited(text: &str, splices: Vec<Splice>) -> String {
    let body = bare(text);
    format!("{}{}", &text[..text.len() - body.len()], splice::apply(body, splices))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known;

    fn servers(names: &[(&str, &str)]) -> BTreeMap<String, String> {
        names.iter().map(|(host, ours)| ((*host).to_owned(), (*ours).to_owned())).collect()
    }

    const SETTINGS: &str = r#"{
  // mine
  "model": "x",
  "permissions": {
    "allow": [
      "Bash(ls:*)",
      "mcp__fs__read_file", // reads
      "mcp__git hub__*",
      "mcp__git_hub"
    ],
    "ask": ["mcp__fs__write_file", "mcp__other__x"],
    "deny": [ "mcp__fs", ],
  },
}
"#;

    #[test]
    fn a_permission_rule_gets_its_counterpart_behind_it() {
        let servers = servers(&[("fs", "fs"), ("git_hub", "github")]);
        let text = counterparts(SETTINGS, &servers, "plugbay").unwrap().unwrap();
        let expected = SETTINGS
            .replace(
                "\"mcp__fs__read_file\", // reads",
                "\"mcp__fs__read_file\", // reads\n      \"mcp__plugbay__fs__read_file\",",
            )
            .replace("\"mcp__git_hub\"\n", "\"mcp__git_hub\",\n      \"mcp__plugbay__github__*\"\n")
            .replace("\"mcp__fs__write_file\",", "\"mcp__fs__write_file\", \"mcp__plugbay__fs__write_file\",")
            .replace("\"mcp__fs\",", "\"mcp__fs\", \"mcp__plugbay__fs__*\",");
        assert_eq!(text, expected);
        assert_eq!(counterparts(&text, &servers, "plugbay").unwrap(), None);
        let host = known::by_id("claude-code").unwrap();
        let back = without_counterparts(host, &text, &servers, "plugbay", Some(SETTINGS)).unwrap();
        assert_eq!(back.as_deref(), Some(SETTINGS));
    }

    #[test]
    fn a_permission_rule_of_the_user_for_plugbay_stays() {
        let servers = servers(&[("fs", "fs")]);
        let host = known::by_id("claude-code").unwrap();
        let before = r#"{"permissions":{"deny":["mcp__fs__a","mcp__plugbay__fs__a"]}}"#;
        assert_eq!(counterparts(before, &servers, "plugbay").unwrap(), None);
        assert_eq!(without_counterparts(host, before, &servers, "plugbay", Some(before)).unwrap(), None);
        let later = r#"{"permissions":{"deny":["mcp__fs__a", "mcp__plugbay__fs__a","mcp__plugbay__own"]}}"#;
        let original = r#"{"permissions":{"deny":["mcp__fs__a"]}}"#;
        let back = without_counterparts(host, later, &servers, "plugbay", Some(original)).unwrap();
        assert_eq!(back.unwrap(), r#"{"permissions":{"deny":["mcp__fs__a","mcp__plugbay__own"]}}"#);
    }

    #[test]
    fn a_permission_rule_names_its_server_exactly() {
        let servers = servers(&[("fs", "fs"), ("fs2", "files"), ("my.srv", "srv")]);
        for (rule, expected) in [
            ("mcp__fs2__x", Some("mcp__p__files__x")),
            ("mcp__fs", Some("mcp__p__fs__*")),
            ("mcp__fs3__x", None),
            ("mcp__fs_x", None),
            ("mcp__fs__", None),
            ("mcp__*", None),
            ("Read(fs)", None),
            ("mcp__my_srv__get_*", Some("mcp__p__srv__get_*")),
        ] {
            let rules = Rules { syntax: RuleSyntax::Claude, servers: &servers, own: "p" };
            assert_eq!(rules.counterpart(rule).as_deref(), expected, "{rule}");
        }
    }

    #[test]
    fn permission_rules_of_opencode_are_keys_in_the_order_of_the_file() {
        let servers = servers(&[("fs", "fs")]);
        let text = r#"{
  "permission": { "*": "ask", "fs_write*": "deny", "bash": { "git *": "allow" } },
  "agent": { "plan": { "tools": { "fs*": false } } }
}"#;
        let host = known::by_id("opencode").unwrap();
        let added = counterparts_for(host, text, &servers, "plugbay").unwrap().unwrap();
        assert!(added.contains(r#""fs_write*": "deny", "plugbay_fs__write*": "deny", "bash""#), "{added}");
        assert!(added.contains(r#"{ "fs*": false, "plugbay_fs__*": false }"#), "{added}");
        let back = without_counterparts(host, &added, &servers, "plugbay", None).unwrap();
        assert_eq!(back.as_deref(), Some(text));
    }

    #[test]
    fn settings_without_permission_rules_stay() {
        let servers = servers(&[("fs", "fs")]);
        for text in
            ["", "{}", "// c\n", r#"{"permissions":7}"#, r#"{"permissions":{"allow":[7,null],"deny":{}}}"#]
        {
            assert_eq!(counterparts(text, &servers, "plugbay").unwrap(), None, "{text}");
        }
        assert!(counterparts("{", &servers, "plugbay").is_err());
        assert_eq!(counterparts_for(known::by_id("zed").unwrap(), "{", &servers, "plugbay").unwrap(), None);
    }
}
