//! How the user wants one server's tools to appear.

use std::{collections::BTreeMap, fmt};

use crate::{
    fit::ResultRules,
    policy::{Patterns, Policy},
};

/// Filter, names and description overrides of one server. Keys are the server's own tool names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exposure {
    /// The server's own mode for every host, if the user has set one.
    pub mode: Option<Mode>,
    /// Tools that are listed in every mode.
    pub pin: Patterns,
    pub policy: Policy,
    /// Tools stand under their own names, without `{server}__`, wherever it is clear whose they are.
    pub bare: bool,
    /// The server is a remote gateway: its tools keep the names that it gives them, but a local tool of the
    /// same name wins.
    pub remote: bool,
    /// The server's tool name → the name that replaces it.
    pub rename: BTreeMap<String, String>,
    /// The server's tool name → the description that replaces the server's.
    pub describe: BTreeMap<String, String>,
    pub suite: Suite,
    /// Instructions for the model that uses this server's tools in agent runs.
    pub instructions: Option<String>,
    /// The rules for large results.
    pub results: ResultRules,
}

/// The mode of a server: where its tools stand.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Tools are in the list.
    #[default]
    All,
    /// Tools are behind other tools that find, describe and call them.
    Search,
    /// Tools are in the list once they have been switched on.
    Activate,
    /// Tools are behind one tool for the whole server.
    Suite,
    /// Tools are behind a tool that runs scripts, and one that finds tools for them.
    Code,
}

/// The settings of a server that is shown as one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suite {
    /// The tool's name; `None` for `{server}_suite`.
    pub name: Option<String>,
    pub description: Option<String>,
    /// The longest summary of a tool, in characters.
    pub summary: Option<usize>,
    /// Introspection always shows whole schemas.
    pub full: bool,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::Search => "search",
            Self::Activate => "activate",
            Self::Suite => "suite",
            Self::Code => "code",
        })
    }
}
