//! A file that describes servers: one server, as in Switchboard, or several, as in hosts.

use std::collections::BTreeMap;

use jsonc_parser::{
    ast::Value,
    common::{Range, Ranged},
};

use super::{
    raw::{Argv, Entry, EntryKind, Plugbay, Server, Servers, Suite},
    read::{At, Read, object},
    report::Report,
};

/// The command that Switchboard by default starts in a server's folder.
const STANDARD: [&str; 2] = ["node", "dist/index.js"];

#[derive(Debug)]
pub(super) enum Found {
    /// Its name may be empty; then the folder's name is used.
    One(Box<Entry>),
    Many(Servers),
}

object! {
    /// Either of the two.
    struct Description {
        "name" => name: At<String>,
        "switchboardDescription" => role: String,
        "command" => command: At<Launch>,
        "mcpServers" | "servers" | "context_servers" | "mcp_servers" | "mcp" | "mcps" => servers: Servers,
    }
    ignored: ["$schema", "description", "inputs", "version"]
}

object! {
    /// How Switchboard starts a server.
    struct Launch {
        "cmd" => program: Argv,
        "args" => args: Vec<At<String>>,
        "env" => env: BTreeMap<String, At<String>>,
    }
    ignored: []
}

impl Found {
    pub(super) fn into_entries(self) -> Vec<Entry> {
        match self {
            Self::One(entry) => vec![*entry],
            Self::Many(servers) => servers.0,
        }
    }
}

impl Default for Found {
    fn default() -> Self {
        Self::Many(Servers(Vec::new()))
    }
}

impl Read for Found {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        let (description, problem) = report.watch(|report| one_or_many(value, report));
        let Description { name, role, command, servers } = description?;
        if let Some(servers) = servers {
            return Some(Self::Many(servers));
        }
        let launch = command.map(|command| command.value).unwrap_or_default();
        let standard = || STANDARD.map(|word| At { value: word.to_owned(), at: value.range() }).to_vec();
        let suite = role
            .filter(|role| !is_placeholder(role))
            .map(|role| Suite { description: Some(role), ..Suite::default() });
        let server = Server {
            command: Some(launch.program.unwrap_or_else(|| Argv(standard()))),
            args: launch.args,
            env: launch.env,
            plugbay: Some(Plugbay { suite, ..Plugbay::default() }),
            ..Server::default()
        };
        let key = name.unwrap_or_else(|| At::unwritten(String::new()));
        Some(Self::One(Box::new(Entry { key, server, problem, kind: EntryKind::Server })))
    }
}

fn one_or_many(value: &Value<'_>, report: &mut Report<'_>) -> Option<Description> {
    let (description, problem) = report.watch(|report| Description::read(value, report));
    let description = description?;
    if problem.is_some() {
        return Some(description);
    }
    let Description { name, command, servers, .. } = &description;
    let help = "write \"name\" and \"command\": { \"cmd\": …, \"args\": […] }, or \"mcpServers\"";
    match command {
        Some(At { value: Launch { program: None, .. }, at }) => {
            report.error(*at, "`command` names no program", "name it: \"cmd\": \"npx\"");
        }
        None if servers.is_none() && name.is_none() => {
            report.error(Range::new(value.start(), value.start() + 1), "this file describes no server", help);
        }
        _ => {}
    }
    Some(description)
}

/// The placeholder that `switchboard init` writes.
fn is_placeholder(role: &str) -> bool {
    role.starts_with("describe what ") && role.ends_with(" in one line for the LLM")
}
