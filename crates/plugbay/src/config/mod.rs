//! Configuration: from files on disk to settings that say everything the rest of the program needs.
//!
//! The way of a file: `paths` finds it, `files` reads it and asks `approve` whether it may be used,
//! `document` turns its bytes into the structs of `raw` (`read` does the work), `discover` adds the files
//! that its patterns lead to, `load` merges them all, `entry` makes a server's settings of each entry.
//!
//! Nothing in here reads the process's environment or prints. Problems are collected as
//! [`Diagnostic`]s; loading itself cannot fail, because one broken file or entry must not take the
//! healthy ones down.

mod approve;
mod audit;
mod authorization;
mod code;
mod credentials;
mod diagnostic;
mod discover;
mod document;
mod edit;
mod entry;
mod expand;
mod export;
mod files;
mod found;
mod glob;
mod identity;
mod load;
pub mod masked;
mod model;
mod oauth;
mod pass_env;
mod paths;
mod problems;
mod raw;
mod read;
mod remote;
mod renames;
mod report;
mod results;
mod scan;
mod schema;
mod source;
mod switchboard;
#[cfg(all(test, unix))]
mod tests;
mod units;
mod word;
mod written;
mod yaml;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use plugbay_core::{
    credentials::Placement,
    exposure::{Exposure, Mode},
    limit::CallLimits,
    name::{DEFAULT_NAME_LIMIT, ServerName},
    profile::Profiles,
    scope::Scope,
    start::Warm,
    surface::{CodeSettings, Effect},
};
use plugbay_telemetry::AuditSettings;
use plugbay_upstream::spec::{DEFAULT_MESSAGE_LIMIT, ServerSpec};

pub use approve::{ApproveError, Content, approve, is_approved};
pub use audit::audit_settings;
pub use authorization::{AuthorizationSettings, ProtectedResource};
pub use diagnostic::{Diagnostic, Kind, Position, Severity};
pub use edit::{EditError, Editable, Layer};
#[cfg(fuzzing)]
pub(crate) use expand::expanded;
pub use expand::{unset_variables, with_folders};
pub use export::{Listed, servers_in};
pub use identity::{hex_digest, identity};
pub use load::{entries, load, preview};
pub use paths::{Paths, project_file, project_folder, within_project};
pub use remote::REMOTE;
pub use schema::schema_json;
pub use units::parse_duration;
pub use written::{WrittenEntry, origin, public_url};

/// How `${VAR}` is looked up.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Everything the configuration says, resolved.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
pub struct Settings {
    /// `None`: what fits the host.
    pub mode: Option<Mode>,
    /// The profiles of hosts, with the user's changes.
    pub hosts: Profiles,
    /// Search mode also lists `proxy_status` and `proxy_refresh`.
    pub admin_tools: bool,
    /// Tools that only read are called with `execute_read_tool`.
    pub split_execute: bool,
    /// Arguments of tools are repaired where only one thing can be meant.
    pub repair: bool,
    /// How many of the most used tools every mode lists.
    pub learn: usize,
    /// How scripts of models are run.
    pub code: CodeSettings,
    pub search: SearchSettings,
    /// The model that calls tools for a sentence, if there is one.
    pub natural_language: Option<NaturalLanguage>,
    /// The effects that need no consent of the user.
    pub unasked: Effect,
    /// Sorted by name; broken ones too, with their reason.
    pub servers: Vec<ServerSettings>,
    /// Disabled by their entry, sorted by name.
    pub disabled: Vec<ServerName>,
    pub limits: Limits,
    /// Where calls are logged for auditors, if they are.
    pub audit: Option<AuditSettings>,
    /// What holds for the logins at all servers.
    pub logins: LoginSettings,
    /// Whose access tokens a gateway over HTTP takes.
    pub authorization: AuthorizationSettings,
    /// How long a first listing may wait for servers never seen before.
    pub list_wait: Duration,
    /// Files to watch: those that were read, and those that would be if they existed.
    pub sources: Vec<PathBuf>,
    /// Folders to watch: a new file in them may match a pattern.
    pub folders: Vec<PathBuf>,
    /// Every file that was read, with its content.
    pub contents: Vec<Content>,
    /// A file could not be parsed, so its servers are missing here.
    pub unreadable: bool,
    pub diagnostics: Vec<Diagnostic>,
}

impl Settings {
    /// Logs every problem of the files, for a command whose output nobody reads.
    pub fn log_problems(&self) {
        for problem in &self.diagnostics {
            match problem.severity {
                Severity::Error => tracing::error!("{}", problem.one_line()),
                Severity::Warning => tracing::warn!("{}", problem.one_line()),
            }
        }
        if let Some(problem) = self.no_server() {
            tracing::warn!("{problem}");
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSettings {
    /// How many tools a search shows, unless it asks for another number.
    pub hits: usize,
    /// The model that ranks the tools which a search finds.
    pub model: Option<SearchModel>,
    /// Which tools were called after which searches is remembered.
    pub remember: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchModel {
    pub source: ModelSource,
    /// How long a search may wait for it.
    pub deadline: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NaturalLanguage {
    pub model: ModelSource,
    pub limits: plugbay_downstream::agent::Limits,
    /// Further instructions for the model.
    pub instructions: Option<String>,
    /// The servers whose tools it may use; `None` for all.
    pub servers: Option<BTreeSet<ServerName>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    Remote(plugbay_model::Endpoint),
    /// The host's own model, by sampling.
    Host,
}

/// What holds for the logins at all servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoginSettings {
    /// The client id metadata document of plugbay. The settings of servers have it already.
    pub client_metadata_url: Option<String>,
    pub store: Placement,
}

#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub name: ServerName,
    /// How to start it, or why it cannot be started: what is wrong, where, and the remedy.
    pub spec: Result<ServerSpec, String>,
    pub exposure: Exposure,
    pub sharing: SharingSettings,
    /// When it starts.
    pub warm: Warm,
}

/// Who shares the processes of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharingSettings {
    /// `None`: plugbay chooses by what it knows of the server.
    pub scope: Option<Scope>,
    /// How many instances may run at a time, if each session has its own.
    pub instances: usize,
}

impl Default for SharingSettings {
    fn default() -> Self {
        Self { scope: None, instances: 8 }
    }
}

impl ServerSettings {
    /// Whether it is a remote gateway.
    pub fn is_remote(&self) -> bool {
        self.spec.as_ref().map_or(self.exposure.remote, ServerSpec::is_remote)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest message accepted, in bytes.
    pub message: usize,
    /// The longest tool name shown to a host.
    pub name_length: usize,
    /// How many servers start at a time; `None`: as many as suit the machine.
    pub starts: Option<usize>,
    /// How many calls callers and sessions may make.
    pub calls: CallLimits,
    /// How long calls in flight may go on at the end; `None`: 2 s on stdio, 30 s over HTTP.
    pub drain: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: DEFAULT_MESSAGE_LIMIT,
            name_length: DEFAULT_NAME_LIMIT,
            starts: None,
            calls: CallLimits::default(),
            drain: None,
        }
    }
}
