//! How the user wants one server's tools to appear.

use std::collections::BTreeMap;

use crate::policy::Policy;

/// Filter, renames and description overrides of one server. Keys are the server's own tool names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exposure {
    pub policy: Policy,
    /// Own tool name → the name that takes its place behind `{server}__`.
    pub rename: BTreeMap<String, String>,
    /// Own tool name → the description that replaces the server's.
    pub describe: BTreeMap<String, String>,
}
