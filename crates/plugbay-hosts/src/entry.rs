//! A server as a host's file describes it, in one form for all hosts.

use std::collections::BTreeMap;

/// One server of a host's file. Variables are written `${VAR}` or `${VAR:-default}`, whatever the host's own form is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub launch: Launch,
    pub disabled: bool,
    /// Only these tools; empty for all.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// Time to start, in seconds.
    pub start_seconds: Option<u64>,
    /// How long a call may be silent, in milliseconds.
    pub call_milliseconds: Option<u64>,
    /// Environment variables that the host passes on by name.
    pub pass_env: Vec<String>,
    /// What the user should know about the translation, such as a variable that must be set from now on.
    pub notes: Vec<String>,
}

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    Process { command: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<String> },
    Remote(Remote),
}

/// A server behind a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    pub url: String,
    pub kind: RemoteKind,
    pub headers: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RemoteKind {
    /// The file does not say; plugbay finds out.
    #[default]
    Unsaid,
    Http,
    Sse,
}

impl Entry {
    /// An entry with nothing but a name and a launch.
    pub fn new(name: impl Into<String>, launch: Launch) -> Self {
        Self {
            name: name.into(),
            launch,
            disabled: false,
            include: Vec::new(),
            exclude: Vec::new(),
            start_seconds: None,
            call_milliseconds: None,
            pass_env: Vec::new(),
            notes: Vec::new(),
        }
    }
}
