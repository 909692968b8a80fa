//! How the user wants one server's tools to appear.

use std::collections::BTreeMap;

use crate::policy::Policy;

/// Filter, names and description overrides of one server. Keys are the server's own tool names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exposure {
    pub mode: Mode,
    pub policy: Policy,
    /// Tools stand under their names alone, without `{server}__`, wherever that leaves no doubt whose
    /// they are.
    pub bare: bool,
    /// Own tool name → the name that takes its place.
    pub rename: BTreeMap<String, String>,
    /// Own tool name → the description that replaces the server's.
    pub describe: BTreeMap<String, String>,
}

/// Where a server's tools stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// In the list.
    #[default]
    All,
    /// Behind the tools that find, describe and call them.
    Search,
}
