//! Configuration: from files on disk to settings that say everything the rest of the program needs.
//!
//! The path of a file: `paths` finds it, `files` reads it and asks `approve` whether it may be used,
//! `document` turns its bytes into the structs of `raw` (`read` does the work), `discover` adds the files
//! that its patterns match, `load` merges them all, and `entry` turns each entry into a server's settings.
//!
//! Nothing in here reads the process's environment or prints. Problems are collected as [`Diagnostic`]s.
//! Loading itself cannot fail, because a broken file or entry must not affect the others.

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

/// Looks up `${VAR}`.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// All settings of the configuration, resolved.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
pub struct Settings {
    /// `None`: the mode that fits each host.
    pub mode: Option<Mode>,
    /// The profiles of hosts, with the user's changes.
    pub hosts: Profiles,
    /// Whether search mode also lists `proxy_status` and `proxy_refresh`.
    pub admin_tools: bool,
    /// Whether tools that only read are called with `execute_read_tool`.
    pub split_execute: bool,
    /// Whether arguments of tools are repaired if only one repair is possible.
    pub repair: bool,
    /// How many of the most used tools every mode lists.
    pub learn: usize,
    /// How scripts of models are run.
    pub code: CodeSettings,
    pub search: SearchSettings,
    /// The model for `natural_language`, if there is one.
    pub natural_language: Option<NaturalLanguage>,
    /// The strongest effect of calls that need no consent by the user.
    pub unasked: Effect,
    /// All servers, sorted by name. A broken one has the reason.
    pub servers: Vec<ServerSettings>,
    /// Servers disabled by their entries, sorted by name.
    pub disabled: Vec<ServerName>,
    pub limits: Limits,
    /// The audit log of calls, if there is one.
    pub audit: Option<AuditSettings>,
    /// The settings for the logins at all servers.
    pub logins: LoginSettings,
    /// The issuers whose access tokens a gateway over HTTP accepts.
    pub authorization: AuthorizationSettings,
    /// How long a first listing may wait for servers that have never connected.
    pub list_wait: Duration,
    /// Files to watch: those that were read, and those that would be read if they existed.
    pub sources: Vec<PathBuf>,
    /// Folders to watch: a new file in them may match a pattern.
    pub folders: Vec<PathBuf>,
    /// Every file that was read, with its content.
    pub contents: Vec<Content>,
    /// Whether a file could not be parsed, so that its servers are missing here.
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
    /// How many tools a search shows, unless the call says otherwise.
    pub hits: usize,
    /// The model that ranks search hits.
    pub model: Option<SearchModel>,
    /// Whether plugbay remembers which tools were called after which searches.
    pub remember: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchModel {
    pub source: ModelSource,
    /// How long a search may wait for the model.
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
    /// The host's own model, through sampling.
    Host,
}

/// The settings for the logins at all servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoginSettings {
    /// plugbay's client id metadata document. It is already in the settings of servers.
    pub client_metadata_url: Option<String>,
    pub store: Placement,
}

#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub name: ServerName,
    /// How to start it, or why it cannot be started: the problem, its place and the remedy.
    pub spec: Result<ServerSpec, String>,
    pub exposure: Exposure,
    pub sharing: SharingSettings,
    /// When it starts.
    pub warm: Warm,
}

/// The sharing of a server's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharingSettings {
    /// `None`: plugbay chooses from its knowledge about the server.
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
    /// How many servers start at a time; `None`: a number that suits the machine.
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
