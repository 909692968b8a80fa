//! Merges the servers of all sources into a plan for one configuration file.

use std::collections::BTreeSet;

use plugbay_core::name::ServerName;
use plugbay_hosts::Entry;
use serde::Serialize;

use super::{
    Found, Origin, Relation,
    launch::{is_same, leads_to_plugbay, other_gateway, relation},
};

/// The effect of an import on one configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Servers that are added to the file, in the order in which they were found.
    pub added: Vec<Added>,
    /// Servers that the configuration already has; they stay unchanged.
    pub same: Vec<Same>,
    pub skipped: Vec<Skipped>,
}

/// A server that is added to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The entry with its new name.
    pub entry: Entry,
    pub renamed: Option<Renamed>,
    /// Every place where it was found; the entry is from the first.
    pub origins: Vec<Origin>,
    /// Notes for the user about the merge, in addition to those of the entry.
    pub notes: Vec<String>,
}

/// The reason why a server gets another name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "why", content = "was")]
pub enum Renamed {
    /// plugbay does not accept this name.
    Invalid(String),
    /// Another server has this name.
    Taken(String),
}

/// A server that the configuration already has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Same {
    /// Its name in the configuration.
    pub name: String,
    pub origins: Vec<Origin>,
    /// Whether the entry in the configuration has other variables or headers, or another folder.
    pub differs: bool,
}

/// An entry that is not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    pub name: String,
    pub origin: Origin,
    pub why: Skip,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Skip {
    /// It leads to plugbay itself.
    Plugbay,
    /// It starts another gateway, whose own servers can be imported from this source.
    Gateway(&'static str),
}

/// The servers that an import must not touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Present {
    /// The servers in the file to change.
    pub servers: Vec<Entry>,
    /// Every name in that file, including those of broken entries.
    pub names: Vec<String>,
    /// The servers in other effective files. A server of the same name may replace them.
    pub beneath: Vec<Entry>,
}

/// Merges the servers found with those that are present. Earlier sources have precedence.
pub fn plan(found: Vec<Found>, present: &Present) -> Plan {
    let mut plan = Plan::default();
    for Found { entry, origin } in found {
        if let Some(why) = skip(&entry) {
            plan.skipped.push(Skipped { name: entry.name, origin, why });
        } else if let Some((name, differs)) = present.counterpart(&entry) {
            plan.already(name, differs, origin);
        } else if let Some(added) = plan.added.iter_mut().find(|added| added.is_same(&entry)) {
            added.merge(entry, origin);
        } else {
            plan.added.push(Added { entry, renamed: None, origins: vec![origin], notes: Vec::new() });
        }
    }
    name_all(&mut plan.added, &present.names);
    plan
}

fn skip(entry: &Entry) -> Option<Skip> {
    if leads_to_plugbay(entry) {
        return Some(Skip::Plugbay);
    }
    other_gateway(entry).map(Skip::Gateway)
}

impl Plan {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    fn already(&mut self, name: &str, differs: bool, origin: Origin) {
        match self.same.iter_mut().find(|same| same.name == name) {
            Some(same) => {
                same.origins.push(origin);
                same.differs |= differs;
            }
            None => self.same.push(Same { name: name.to_owned(), origins: vec![origin], differs }),
        }
    }
}

impl Present {
    /// The server in the configuration that this entry corresponds to, and whether the user has changed it
    /// there. Names given by an earlier import are recognised.
    fn counterpart(&self, entry: &Entry) -> Option<(&str, bool)> {
        let all = || self.servers.iter().chain(&self.beneath);
        if let Some(same) = all().find(|other| is_same(other, entry)) {
            return Some((&same.name, false));
        }
        let name = valid(&entry.name);
        let similar = self.servers.iter().find(|other| {
            other.name.eq_ignore_ascii_case(&name) && relation(other, entry) == Relation::Similar
        });
        similar.map(|other| (other.name.as_str(), true))
    }
}

impl Added {
    fn is_same(&self, entry: &Entry) -> bool {
        is_same(&self.entry, entry)
    }

    /// Merges the same server from another source. Notes of that entry are dropped, because they concern its
    /// own spelling.
    fn merge(&mut self, other: Entry, origin: Origin) {
        let host = &origin.host;
        if other.name != self.entry.name {
            self.notes.push(format!("{host} calls it {:?}", other.name));
        }
        if self.entry.disabled != other.disabled {
            let enabled = if other.disabled { &self.origins[0].host } else { host };
            self.notes.push(format!("enabled, as in {enabled}"));
            self.entry.disabled = false;
        }
        if self.entry.include != other.include || self.entry.exclude != other.exclude {
            self.notes.push("its hosts allow other tools; the narrower choice holds".to_owned());
            restrict(&mut self.entry, &other);
        }
        self.entry.start_seconds = self.entry.start_seconds.max(other.start_seconds);
        self.entry.call_milliseconds = self.entry.call_milliseconds.max(other.call_milliseconds);
        add_new(&mut self.entry.pass_env, other.pass_env);
        self.origins.push(origin);
    }
}

/// Merges the filters: a tool that one host hides stays hidden.
fn restrict(entry: &mut Entry, other: &Entry) {
    add_new(&mut entry.exclude, other.exclude.iter().cloned());
    if entry.include.is_empty() {
        entry.include.clone_from(&other.include);
    } else if !other.include.is_empty() {
        let both: Vec<String> =
            entry.include.iter().filter(|tool| other.include.contains(tool)).cloned().collect();
        // If nothing is common to both, an empty list would allow everything.
        if !both.is_empty() {
            entry.include = both;
        }
    }
}

fn add_new(list: &mut Vec<String>, items: impl IntoIterator<Item = String>) {
    for item in items {
        if !list.contains(&item) {
            list.push(item);
        }
    }
}

/// Gives every added server a name that plugbay accepts and that no other server has, ignoring case.
fn name_all(added: &mut [Added], present: &[String]) {
    let mut taken: BTreeSet<String> = present.iter().map(|name| name.to_lowercase()).collect();
    for server in added {
        let was = server.entry.name.clone();
        let wanted = valid(&was);
        let name = free(&wanted, &server.origins[0].host, &taken);
        server.renamed = match (&name, &wanted) {
            (name, wanted) if name != wanted => Some(Renamed::Taken(was)),
            _ if wanted != was => Some(Renamed::Invalid(was)),
            _ => None,
        };
        taken.insert(name.to_lowercase());
        server.entry.name = name;
    }
}

/// The name itself, or the most similar one that plugbay accepts.
fn valid(name: &str) -> String {
    match ServerName::parse(name) {
        Ok(_) => name.to_owned(),
        Err(_) => ServerName::suggest(name).map_or_else(|| "server".to_owned(), |name| name.to_string()),
    }
}

/// `wanted` if it is free, else a name that also contains the server's origin.
fn free(wanted: &str, host: &str, taken: &BTreeSet<String>) -> String {
    let endings = (2..).map(|number| format!("-{host}-{number}"));
    let endings = [String::new(), format!("-{host}")].into_iter().chain(endings);
    let names = endings.map(|ending| with_ending(wanted, &ending));
    names.into_iter().find(|name| !taken.contains(&name.to_lowercase())).unwrap_or_default()
}

/// The name with an ending, shortened so that the whole fits.
fn with_ending(name: &str, ending: &str) -> String {
    let room = ServerName::LIMIT.saturating_sub(ending.len());
    let base = if name.len() > room { name[..room].trim_end_matches(['-', '_']) } else { name };
    valid(&format!("{base}{ending}"))
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use plugbay_hosts::{Launch, Remote, RemoteKind};

    use super::*;

    /// An entry from a command line; trailing words such as `KEY=value` are variables.
    pub(crate) fn process(name: &str, line: &str) -> Entry {
        let is_variable =
            |word: &&str| word.split_once('=').is_some_and(|(name, _)| name == name.to_uppercase());
        let words: Vec<&str> = line.split(' ').collect();
        let variables = words.iter().rev().take_while(|word| is_variable(word)).count();
        let (words, variables) = words.split_at(words.len() - variables);
        let pair =
            |word: &&str| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env: BTreeMap<String, String> = variables.iter().filter_map(pair).collect();
        let mut words = words.iter().map(|word| (*word).to_owned());
        let command = words.next().unwrap_or_default();
        Entry::new(name, Launch::Process { command, args: words.collect(), env, cwd: None })
    }

    pub(crate) fn remote(name: &str, url: &str) -> Entry {
        let remote = Remote { url: url.to_owned(), kind: RemoteKind::Unsaid, ..Remote::default() };
        Entry::new(name, Launch::Remote(remote))
    }

    fn from(host: &str, entry: Entry) -> Found {
        Found { entry, origin: Origin { host: host.to_owned(), file: "/f".into(), project: None } }
    }

    fn present(servers: Vec<Entry>) -> Present {
        let names = servers.iter().map(|entry| entry.name.clone()).collect();
        Present { servers, names, beneath: Vec::new() }
    }

    /// A plan in one line per server.
    fn summary(plan: &Plan) -> Vec<String> {
        let hosts = |origins: &[Origin]| {
            origins.iter().map(|origin| origin.host.as_str()).collect::<Vec<_>>().join("+")
        };
        let added = plan.added.iter().map(|added| {
            let renamed = match &added.renamed {
                None => String::new(),
                Some(Renamed::Invalid(was)) => format!(" invalid {was}"),
                Some(Renamed::Taken(was)) => format!(" taken {was}"),
            };
            let off = if added.entry.disabled { " off" } else { "" };
            format!("add {} from {}{renamed}{off}", added.entry.name, hosts(&added.origins))
        });
        let same = plan.same.iter().map(|same| {
            let differs = if same.differs { " differs" } else { "" };
            format!("same {} in {}{differs}", same.name, hosts(&same.origins))
        });
        let skipped = plan.skipped.iter().map(|skipped| format!("skip {} {:?}", skipped.name, skipped.why));
        added.chain(same).chain(skipped).collect()
    }

    #[track_caller]
    fn check(found: Vec<Found>, servers: Vec<Entry>, expected: &[&str]) {
        assert_eq!(summary(&plan(found, &present(servers))), expected);
    }

    #[test]
    fn a_server_of_two_hosts_is_added_once() {
        let found = vec![
            from("claude-code", process("github", "npx -y gh")),
            from("cursor", process("github", "npx gh")),
            from("zed", process("gh", "npx -y gh")),
            from("zed", remote("docs", "https://d.example/mcp")),
        ];
        check(found.clone(), vec![], &["add github from claude-code+cursor+zed", "add docs from zed"]);
        assert_eq!(plan(found, &Present::default()).added[0].notes, ["zed calls it \"gh\""]);
    }

    #[test]
    fn a_name_of_two_servers_tells_their_hosts() {
        let found = vec![
            from("claude-code", process("github", "npx gh KEY=1")),
            from("cursor", process("GitHub", "npx gh KEY=2")),
            from("cursor", process("github-cursor", "npx other")),
            from("cursor", process("github", "npx third")),
        ];
        let expected = [
            "add github from claude-code",
            "add GitHub-cursor from cursor taken GitHub",
            "add github-cursor-cursor from cursor taken github-cursor",
            "add github-cursor-2 from cursor taken github",
        ];
        check(found, vec![], &expected);
    }

    #[test]
    fn a_name_that_plugbay_rejects_becomes_a_server_name() {
        let long = "a-name-of-exactly-forty-characters-in-it";
        let found = vec![
            from("zed", process("My Server v1.2", "npx a")),
            from("zed", process(long, "npx b")),
            from("zed", process("日本", "npx c")),
            from("zed", process("my-server-V1-2", "npx d")),
        ];
        let expected = [
            "add My-Server-v1-2 from zed invalid My Server v1.2",
            &format!("add a-name-of-exactly-forty-characte from zed invalid {long}"),
            "add server from zed invalid 日本",
            "add my-server-V1-2-zed from zed taken my-server-V1-2",
        ];
        check(found, vec![], &expected);
        let taken = vec![process("a-name-of-exactly-forty-characte", "npx x")];
        let expected = [&format!("add a-name-of-exactly-forty-char-zed from zed taken {long}")[..]];
        check(vec![from("zed", process(long, "npx b"))], taken, &expected);
    }

    #[test]
    fn a_disabled_server_stays_disabled_unless_another_host_enables_it() {
        let off = |entry: Entry| Entry { disabled: true, ..entry };
        check(vec![from("cline", off(process("a", "npx a")))], vec![], &["add a from cline off"]);
        let on_and_off = vec![from("cline", off(process("a", "npx a"))), from("zed", process("a", "npx a"))];
        check(on_and_off.clone(), vec![], &["add a from cline+zed"]);
        assert_eq!(plan(on_and_off, &Present::default()).added[0].notes, ["enabled, as in zed"]);
        let off_and_on = vec![from("zed", process("a", "npx a")), from("cline", off(process("a", "npx a")))];
        assert_eq!(plan(off_and_on, &Present::default()).added[0].notes, ["enabled, as in zed"]);
    }

    #[test]
    fn a_server_of_the_configuration_is_not_touched() {
        let found = vec![
            from("zed", process("a", "npx a KEY=1")),
            from("zed", process("other name", "npx b")),
            from("zed", process("c", "npx another")),
        ];
        let servers = vec![process("A", "npx a KEY=${KEY}"), process("b", "npx b"), process("c", "npx c")];
        let expected = ["add c-zed from zed taken c", "same A in zed differs", "same b in zed"];
        check(found, servers, &expected);
    }

    #[test]
    fn a_second_import_of_the_same_servers_adds_none() {
        let found = vec![
            from("claude-code", process("a b", "npx a")),
            from("claude-code", process("x", "npx x KEY=1")),
            from("cursor", process("x", "npx x KEY=2")),
            from("cursor", remote("r", "https://r.example/mcp")),
        ];
        let first = plan(found.clone(), &Present::default());
        let servers: Vec<Entry> = first.added.into_iter().map(|added| added.entry).collect();
        let expected = [
            "same a-b in claude-code",
            "same x in claude-code",
            "same x-cursor in cursor",
            "same r in cursor",
        ];
        check(found, servers, &expected);
    }

    #[test]
    fn a_project_may_replace_a_server_of_the_user_but_does_not_repeat_it() {
        let beneath = vec![process("a", "npx a"), process("b", "npx b")];
        let found = vec![from("vscode", process("x", "npx a")), from("vscode", process("b", "npx other"))];
        let plan = plan(found, &Present { beneath, ..Present::default() });
        assert_eq!(summary(&plan), ["add b from vscode", "same a in vscode"]);
    }

    #[test]
    fn gateways_are_not_imported() {
        let found = vec![
            from("cursor", process("plugbay", "/opt/plugbay serve")),
            from("cursor", process("p", "env A=1 plugbay serve")),
            from("claude-code", process("mcpflip", "node /h/.claude/mcpflip/gateway.js")),
            from("claude-code", process("mcpzip", "/usr/local/bin/mcpzip serve")),
        ];
        let expected = [
            "skip plugbay Plugbay",
            "skip p Plugbay",
            "skip mcpflip Gateway(\"mcpflip\")",
            "skip mcpzip Gateway(\"mcpzip\")",
        ];
        check(found, vec![], &expected);
    }

    #[test]
    fn a_tool_that_one_host_hides_stays_hidden() {
        let limited = |include: &[&str], exclude: &[&str]| {
            let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
            Entry { include: list(include), exclude: list(exclude), ..process("a", "npx a") }
        };
        let merged = |one: Entry, other: Entry| {
            let plan = plan(vec![from("one", one), from("two", other)], &Present::default());
            let Added { entry, notes, .. } = plan.added[0].clone();
            (entry.include.join(" "), entry.exclude.join(" "), notes.len())
        };
        let row = |include: &str, exclude: &str, notes| (include.to_owned(), exclude.to_owned(), notes);
        assert_eq!(merged(limited(&[], &["x"]), limited(&[], &["y", "x"])), row("", "x y", 1));
        assert_eq!(merged(limited(&[], &[]), limited(&["r"], &[])), row("r", "", 1));
        assert_eq!(merged(limited(&["r", "s"], &[]), limited(&["s", "t"], &[])), row("s", "", 1));
        assert_eq!(merged(limited(&["r"], &[]), limited(&["t"], &[])), row("r", "", 1));
        assert_eq!(merged(limited(&["r"], &["x"]), limited(&["r"], &["x"])), row("r", "x", 0));
    }
}
