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
mod diagnostic;
mod discover;
mod document;
mod entry;
mod expand;
mod files;
mod found;
mod glob;
mod identity;
mod load;
mod model;
mod paths;
mod raw;
mod read;
mod report;
mod scan;
mod schema;
mod source;
mod switchboard;
#[cfg(all(test, unix))]
mod tests;
mod units;
mod word;

use std::{collections::BTreeSet, path::PathBuf, time::Duration};

use plugbay_core::{
    exposure::{Exposure, Mode},
    name::{DEFAULT_NAME_LIMIT, ServerName},
    profile::Profiles,
    surface::Effect,
};
use plugbay_upstream::spec::{DEFAULT_MESSAGE_LIMIT, ServerSpec};

pub use approve::{ApproveError, Content, approve};
pub use diagnostic::{Diagnostic, Position, Severity};
pub use identity::{hex_digest, identity};
pub use load::load;
pub use paths::{Paths, project_file};
pub use schema::schema_json;

/// How `${VAR}` is looked up.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Everything the configuration says, resolved.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
pub struct Settings {
    /// `None`: what fits the host.
    pub mode: Option<Mode>,
    /// What the user knows better of hosts.
    pub hosts: Profiles,
    /// Search mode lists its tools for looking after servers too.
    pub admin_tools: bool,
    /// Tools that only read are called by a tool that only reads.
    pub split_execute: bool,
    /// Arguments of found tools are put right where only one thing can be meant.
    pub repair: bool,
    /// So many of the tools that a project uses most are listed in every mode.
    pub learn: usize,
    pub search: SearchSettings,
    /// Who calls tools for a sentence, if anybody does.
    pub natural_language: Option<NaturalLanguage>,
    /// What is done for a sentence without asking the user.
    pub unasked: Effect,
    /// Sorted by name; broken ones too, with their reason.
    pub servers: Vec<ServerSettings>,
    /// Switched off by their entry, sorted by name.
    pub disabled: Vec<ServerName>,
    pub limits: Limits,
    /// How long a first listing may wait for servers never seen before.
    pub list_wait: Duration,
    /// Files that were read, or would be if they came into being: watch these.
    pub sources: Vec<PathBuf>,
    /// Folders that were looked through: what comes or goes there may be one more file.
    pub folders: Vec<PathBuf>,
    /// Every file that was read, as it was.
    pub contents: Vec<Content>,
    /// A file that counts could not be used at all, so its servers are missing here.
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
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSettings {
    /// How many tools a search shows, unless it asks for another number.
    pub hits: usize,
    /// Who ranks what is found.
    pub model: Option<SearchModel>,
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
    /// What the model is told besides.
    pub instructions: Option<String>,
    /// Whose tools it may use, if not everybody's.
    pub servers: Option<BTreeSet<ServerName>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    Remote(plugbay_model::Endpoint),
    /// The one that the host has.
    Host,
}

#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub name: ServerName,
    /// How to start it, or why it cannot be started: what is wrong, where, and the remedy.
    pub spec: Result<ServerSpec, String>,
    pub exposure: Exposure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest message accepted, in bytes.
    pub message: usize,
    /// The longest tool name shown to a host.
    pub name_length: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: DEFAULT_MESSAGE_LIMIT, name_length: DEFAULT_NAME_LIMIT }
    }
}
