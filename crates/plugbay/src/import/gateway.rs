//! The files of other gateways: mcpflip, mcpzip, Switchboard and client-side proxies.

use std::path::{Path, PathBuf};

use plugbay_hosts::{jsonc, known::Places, read};
use serde_json::{Map, Value, json};

use super::source::{Reading, Source};
use crate::config::{self, Paths, Severity};

/// Another gateway whose servers can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gateway {
    /// `servers.json` with nothing but entries by name.
    Mcpflip,
    /// `config.json` with `mcpServers` and search settings.
    Mcpzip,
    /// `switchboard.config.json`, which points to one file per server.
    Switchboard,
    /// `servers-config.json` with `localServers` and `remoteTools`, and the `servers` of the proxy itself.
    ClientSideProxy,
}

/// A key in plugbay's configuration that has the same effect as in the other gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Keys from the root of the file.
    pub key: &'static [&'static str],
    pub value: Value,
}

const MODE: &[&str] = &["mode"];
const REMOTE_TOOLS: &[&str] = &["remoteTools"];
const IDLE: &[&str] = &["defaults", "idle"];
const TIMEOUT: &[&str] = &["defaults", "timeout"];

impl Gateway {
    pub(super) const ALL: [Self; 4] = [Self::Mcpflip, Self::Mcpzip, Self::Switchboard, Self::ClientSideProxy];

    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Mcpflip => "mcpflip",
            Self::Mcpzip => "mcpzip",
            Self::Switchboard => "switchboard",
            Self::ClientSideProxy => "client-side-proxy",
        }
    }

    /// The user's file. Switchboard and client-side proxies keep theirs in projects, under
    /// names that say nothing.
    pub(super) fn file(self, places: &Places) -> Option<PathBuf> {
        match self {
            Self::Mcpflip => Some(super::plugin::claude_folder(places).join("mcpflip/servers.json")),
            Self::Mcpzip => Some(places.config.join("compressed-mcp-proxy/config.json")),
            Self::Switchboard | Self::ClientSideProxy => None,
        }
    }

    /// The gateway that a file is written for.
    pub(super) fn of(path: &Path, text: &str) -> Option<Self> {
        if path.ends_with("switchboard.config.json") {
            return Some(Self::Switchboard);
        }
        if path.ends_with("mcpflip/servers.json") {
            return Some(Self::Mcpflip);
        }
        let root = jsonc::get(text, &[]).ok().flatten()?;
        let has = |key: &str| root.get(key).is_some();
        if has("localServers") || has("remoteTools") {
            Some(Self::ClientSideProxy)
        } else if has("discoverGlobs") {
            Some(Self::Switchboard)
        } else {
            MCPZIP_KEYS.iter().any(|key| has(key)).then_some(Self::Mcpzip)
        }
    }

    pub(super) fn read(self, file: &Path, text: &str, paths: &Paths, reading: &mut Reading) {
        let source = Source::of(self.id(), file);
        match self {
            Self::Mcpflip | Self::Mcpzip => reading.take(&source, read::read_any(file, text)),
            Self::Switchboard => switchboard(&source, paths, reading),
            Self::ClientSideProxy => client_side(&source, text, reading),
        }
        reading.settings.extend(self.settings(text));
    }

    /// The settings that preserve the behaviour a user of the gateway is used to.
    fn settings(self, text: &str) -> Vec<Setting> {
        let mode = match self {
            Self::Mcpflip => "activate",
            Self::Mcpzip => "search",
            Self::Switchboard => "suite",
            Self::ClientSideProxy => "all",
        };
        let mut settings = vec![Setting { key: MODE, value: mode.into() }];
        if self == Self::ClientSideProxy {
            let tools = jsonc::get(text, &["remoteTools"]).ok().flatten();
            settings.extend(tools.map(|value| Setting { key: REMOTE_TOOLS, value }));
        }
        if self == Self::Mcpzip {
            let root = jsonc::get(text, &[]).ok().flatten().unwrap_or_default();
            settings.extend(mcpzip_settings(&root));
        }
        settings
    }
}

/// Keys that only mcpzip has at the top of its file.
const MCPZIP_KEYS: [&str; 3] = ["gemini_api_key", "idle_timeout_minutes", "call_timeout_seconds"];

fn mcpzip_settings(root: &Value) -> Vec<Setting> {
    let number = |key: &str| root.get(key).and_then(Value::as_u64).filter(|number| *number > 0);
    let copied: [(&str, &'static [&'static str]); 2] =
        [("gemini_api_key", &["gemini_api_key"]), ("search", &["search"])];
    let mut settings: Vec<Setting> = copied
        .into_iter()
        .filter_map(|(key, path)| Some(Setting { key: path, value: root.get(key)?.clone() }))
        .collect();
    let idle = number("idle_timeout_minutes").map(|minutes| json!(format!("{minutes}m")));
    let timeout = number("call_timeout_seconds").map(|seconds| json!(format!("{seconds}s")));
    settings.extend(idle.map(|value| Setting { key: IDLE, value }));
    settings.extend(timeout.map(|value| Setting { key: TIMEOUT, value }));
    settings
}

/// Reads Switchboard's files. plugbay itself supports them, with everything that they include.
fn switchboard(source: &Source<'_>, paths: &Paths, reading: &mut Reading) {
    let listed = config::servers_in(source.file, paths);
    reading.files.push(source.file.to_owned());
    for entry in listed.servers {
        reading.server(source, entry, None);
    }
    for problem in listed.diagnostics.iter().filter(|problem| problem.severity == Severity::Error) {
        reading.problem(&problem.file, None, problem.message.clone());
    }
}

/// Reads the file of the stdio wrapper. The proxy's own YAML has its servers in the same place as hosts.
fn client_side(source: &Source<'_>, text: &str, reading: &mut Reading) {
    let root = match jsonc::get(text, &[]) {
        Ok(root) => root.unwrap_or_default(),
        Err(error) => return reading.problem(source.file, None, error.to_string()),
    };
    let mut servers = root.get("localServers").and_then(Value::as_object).cloned().unwrap_or_default();
    servers.values_mut().filter_map(Value::as_object_mut).for_each(in_project);
    let known = json!({ "mcpServers": servers }).to_string();
    reading.take(source, read::read_any(Path::new("servers.json"), &known));
    if root.get("remoteTools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty()) {
        let reason = "`remoteTools` are copied, but this file does not say the address of their remote; \
                      add it to the configuration: \"remotes\": { \"team\": { \"url\": \"https://HOST\" } }";
        reading.problem(source.file, None, reason.to_owned());
    }
}

/// Adapts a server to its project: `project_root` is the wrapper's word for the folder that the host works
/// in.
fn in_project(server: &mut Map<String, Value>) {
    if let Some(folder) = server.get_mut("workingDirectory")
        && folder == "project_root"
    {
        *folder = "${workspaceFolder}".into();
    }
}
