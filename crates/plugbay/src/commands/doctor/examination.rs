//! The facts that checks judge: gathered once, never changed by a check.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use plugbay_core::{catalog::LeftOut, failure::Failure, secret::KnownSecrets};
use plugbay_hosts::{
    Entry,
    known::{Host, Scope},
    read::{Found, Reading},
};
use plugbay_upstream::{
    process::SpawnError,
    spec::{HttpSpec, ServerSpec, StdioSpec, Transport},
};
use serde_json::Value;

use super::left::LeftServer;
use crate::{
    cache::Inspection,
    commands::approve::Proposed,
    config::{Position, Settings},
    import::leads_to_plugbay,
    settings::Variables,
    status_file::GatewayStatus,
};

/// Everything that `doctor` knows before it judges.
#[derive(Debug)]
pub struct Examination {
    pub settings: Settings,
    /// The places of servers' entries. A later one replaces an earlier one of the same name.
    pub entries: Vec<EntryPlace>,
    /// The servers in the user's own file as written there, without those that a project replaces.
    pub written: Vec<Entry>,
    pub servers: Vec<ServerFacts>,
    pub variables: Variables,
    /// The executable of this plugbay.
    pub program: PathBuf,
    /// The project's file, if plugbay ignores it because it is not approved.
    pub unapproved: Option<Proposed>,
    pub cache: Inspection,
    /// Status files of gateways that no longer run.
    pub left_behind: Vec<PathBuf>,
    /// The hosts that are installed.
    pub hosts: Vec<HostFacts>,
    /// The servers that hosts start themselves.
    pub left: Vec<LeftServer>,
    pub gateways: Vec<GatewayFacts>,
}

/// The facts about a host on this machine.
#[derive(Debug)]
pub struct HostFacts {
    pub host: &'static Host,
    pub files: Vec<HostFileFacts>,
    /// Its processes that belong to this user.
    pub processes: Vec<u32>,
    /// The switches that it sets itself, by name. Values are kept only if they hold no secrets.
    pub variables: Variables,
}

/// A file of a host that exists.
#[derive(Debug)]
pub struct HostFileFacts {
    pub path: PathBuf,
    pub scope: Scope,
    pub reading: Result<Reading, String>,
    /// The programs of plugbay's own entries that do not exist.
    pub missing_programs: Vec<String>,
}

/// A gateway that runs.
#[derive(Debug)]
pub struct GatewayFacts {
    pub status: GatewayStatus,
    /// Whether its program was replaced since it started.
    pub outdated: bool,
    /// The processes above it, the nearest first.
    pub parents: Vec<u32>,
}

/// The place of one server's entry in a configuration file.
#[derive(Debug, Clone)]
pub struct EntryPlace {
    pub server: String,
    pub file: PathBuf,
    /// The keys from the root to the entry.
    pub path: Vec<String>,
    pub value: Value,
    pub start: Position,
    pub end: Position,
}

/// The facts about one server.
#[derive(Debug)]
pub struct ServerFacts {
    pub name: String,
    pub spec: Result<ServerSpec, String>,
    /// The program of a stdio server, or why there is none.
    pub program: Option<Result<PathBuf, SpawnError>>,
    /// Programs of the same name in usual folders that are not on PATH.
    pub elsewhere: Vec<PathBuf>,
    /// Another program that does the same and is on PATH.
    pub substitute: Option<&'static str>,
    /// Its arguments that look like paths but do not exist.
    pub dead_paths: Vec<DeadPath>,
    /// Absent if it was not started.
    pub start: Option<Start>,
}

/// A word of a command line that names a file which does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadPath {
    pub word: String,
    /// Existing files that the user may have meant.
    pub near: Vec<PathBuf>,
}

/// The outcome of a start.
#[derive(Debug, Clone)]
pub struct Start {
    pub took: Duration,
    pub outcome: Result<Offered, Arc<Failure>>,
}

/// The offer of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    pub tools: usize,
    /// Tools that hosts may use.
    pub shown: usize,
    /// Resources and prompts.
    pub others: usize,
    /// Definitions with hidden characters.
    pub hidden: Vec<String>,
    /// Items that plugbay leaves out of its lists.
    pub left_out: Option<LeftOut>,
}

impl Examination {
    /// The effective entry of a server.
    pub fn entry(&self, server: &str) -> Option<&EntryPlace> {
        self.entries.iter().rfind(|entry| entry.server.eq_ignore_ascii_case(server))
    }

    /// The server whose entry contains this place.
    pub fn server_at(&self, file: &std::path::Path, position: Position) -> Option<&str> {
        let holds =
            |entry: &&EntryPlace| entry.file == file && entry.start <= position && position <= entry.end;
        self.entries.iter().find(holds).map(|entry| entry.server.as_str())
    }

    pub fn sources(&self) -> BTreeSet<&PathBuf> {
        self.settings.contents.iter().map(|content| &content.file).collect()
    }
}

impl ServerFacts {
    /// Values that no text about the server may show.
    pub fn secrets(&self) -> Option<KnownSecrets> {
        self.spec.as_ref().ok().map(ServerSpec::secrets)
    }

    pub fn stdio(&self) -> Option<&StdioSpec> {
        match &self.spec.as_ref().ok()?.transport {
            Transport::Stdio(stdio) => Some(stdio),
            Transport::Http(_) => None,
        }
    }

    pub fn http(&self) -> Option<&HttpSpec> {
        match &self.spec.as_ref().ok()?.transport {
            Transport::Http(http) => Some(http),
            Transport::Stdio(_) => None,
        }
    }

    pub fn failure(&self) -> Option<&Failure> {
        self.start.as_ref()?.outcome.as_ref().err().map(|failure| &**failure)
    }

    pub fn offered(&self) -> Option<&Offered> {
        self.start.as_ref()?.outcome.as_ref().ok()
    }

    /// The name of its program without folders.
    pub fn runner(&self) -> Option<&str> {
        self.stdio()?.command.rsplit('/').next()
    }

    /// The environment that its entry sets.
    pub fn env(&self) -> Option<&BTreeMap<String, String>> {
        self.stdio().map(|stdio| &stdio.env)
    }
}

impl HostFacts {
    /// The effective entries, with their files: those of this project and of the user.
    pub fn entries(&self) -> impl Iterator<Item = (&HostFileFacts, &Found)> {
        let read = self.files.iter().filter_map(|file| Some((file, file.reading.as_ref().ok()?)));
        let entries = read.flat_map(|(file, reading)| reading.found.iter().map(move |found| (file, found)));
        entries.filter(|(_, found)| !found.entry.disabled && found.project.is_none())
    }

    /// plugbay's own entries.
    pub fn own(&self) -> impl Iterator<Item = (&HostFileFacts, &Found)> {
        self.entries().filter(|(_, found)| leads_to_plugbay(&found.entry))
    }
}

impl EntryPlace {
    /// The keys from the root to a key of the entry.
    pub fn key(&self, key: &str) -> Vec<String> {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key)?.as_str()
    }
}
