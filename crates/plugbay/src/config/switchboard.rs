//! Switchboard's files: its configuration, and the files beside it.

use std::{collections::BTreeMap, time::Duration};

use jsonc_parser::common::Range;
use plugbay_core::exposure::Mode;

use super::{
    glob::Pathname,
    glob::Pattern,
    raw::{ConfigFile, Entry, EntryKind, Filter, NaturalLanguage, Plugbay, Server, Servers, Suite},
    read::{At, object},
    units::{Count, Limit, Milliseconds},
    word::{Detail, Word},
};

/// The default place of servers.
const LAYOUT: &str = ".switchboard/mcps/*/.mcp.json";
const SPAWN: Duration = Duration::from_secs(8);
const RPC: Duration = Duration::from_secs(60);

object! {
    /// `switchboard.config.json`.
    pub(super) struct Switchboard {
        "discoverGlobs" => discover: Vec<At<Pathname>>,
        "suites" => suites: BTreeMap<String, At<ServerSuite>>,
        "timeouts" => timeouts: Timeouts,
        "introspection" => introspection: Introspection,
        // plugbay's own key, for a server whose wrapper is left out.
        "naturalLanguage" => natural_language: NaturalLanguage,
    }
    ignored: ["$schema"]
}

object! {
    /// How one server is shown.
    pub(super) struct ServerSuite {
        "suiteName" => name: String,
        "description" => description: String,
        "expose" => expose: Expose,
        "summaryMaxChars" => summary: Count,
    }
    ignored: []
}

object! {
    /// Which tools are shown.
    pub(super) struct Expose {
        "allow" => allow: Filter,
        "deny" => deny: Filter,
    }
    ignored: []
}

object! {
    /// How patient it is.
    pub(super) struct Timeouts {
        "childSpawnMs" => spawn: Milliseconds,
        "rpcMs" => rpc: Milliseconds,
    }
    ignored: []
}

object! {
    /// What an overview of a server's tools shows.
    pub(super) struct Introspection {
        "mode" => mode: Word<Detail>,
        "summaryMaxChars" => summary: Count,
    }
    ignored: []
}

object! {
    /// `mcp-descriptions.json`: descriptions of servers for models.
    pub(super) struct Descriptions {
        "mcps" => servers: BTreeMap<String, Description>,
    }
    ignored: ["$schema"]
}

object! {
    /// The description of one server.
    pub(super) struct Description {
        "switchboard" => role: String,
        "claude" => instructions: String,
    }
    ignored: []
}

impl Switchboard {
    /// The same settings in plugbay's own keys.
    pub(super) fn into_config(self) -> ConfigFile {
        let introspection = self.introspection.unwrap_or_default();
        let full = introspection.mode.map(|mode| mode.0 == Detail::Full);
        let shown = Suite { summary: introspection.summary, full, ..Suite::default() };
        let suites = self.suites.unwrap_or_default().into_iter();
        let mut suites: Vec<Entry> =
            suites.map(|(name, suite)| suite.value.into_entry(name, suite.at)).collect();
        suites.sort_by_key(|entry| entry.key.at.start);
        ConfigFile {
            mode: Some(Word(Some(Mode::Suite))),
            discover: Some(self.discover.unwrap_or_else(layout)),
            servers: Some(Servers(suites)),
            defaults: Some(Plugbay {
                suite: Some(shown),
                ..self.timeouts.unwrap_or_default().into_plugbay()
            }),
            natural_language: self.natural_language,
            ..ConfigFile::default()
        }
    }
}

fn layout() -> Vec<At<Pathname>> {
    let pattern = Pattern::parse(LAYOUT).expect("it is one");
    vec![At::unwritten(Pathname(pattern))]
}

impl ServerSuite {
    /// An entry with settings for the server of its name.
    fn into_entry(self, name: String, at: Range) -> Entry {
        let Expose { allow, deny } = self.expose.unwrap_or_default();
        let Self { name: suite, description, summary, .. } = self;
        let suite = Suite { name: suite, description, summary, full: None };
        let plugbay = Plugbay { allow, deny, suite: Some(suite), ..Plugbay::default() };
        Entry {
            key: At { value: name, at },
            server: Server { plugbay: Some(plugbay), ..Server::default() },
            problem: None,
            kind: EntryKind::Server,
        }
    }
}

impl Timeouts {
    /// In Switchboard a server has both times until it has listed its tools: a download may use up the first
    /// one.
    fn into_plugbay(self) -> Plugbay {
        let Self { spawn, rpc } = self;
        let some = spawn.is_some() || rpc.is_some();
        let start = spawn.map_or(SPAWN, |limit| limit.0) + rpc.map_or(RPC, |limit| limit.0);
        Plugbay {
            start: some.then_some(Limit(start)),
            timeout: rpc.map(|limit| Limit(limit.0)),
            ..Plugbay::default()
        }
    }
}
