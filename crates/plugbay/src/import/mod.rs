//! The import of servers into plugbay's configuration: from the files of hosts, other gateways and plugins.
//!
//! Reading and writing are separate. `source` reads files into [`Found`] servers, [`plan`] merges them into a
//! [`Plan`] for one configuration file, and [`Plan::apply`] edits the text of that file. Only `target` knows
//! which files those are.

mod apply;
mod gateway;
mod launch;
mod needs;
mod plan;
mod plugin;
mod source;
mod target;

use std::path::PathBuf;

use plugbay_hosts::Entry;
use serde::Serialize;

pub use apply::CONTAINERS;
pub use gateway::Setting;
pub use launch::{Relation, is_same, leads_to_plugbay, relation};
pub use needs::{Needs, needs};
pub use plan::{Added, Plan, Present, Renamed, Skip, plan};
pub use source::{Elsewhere, Problem, Reading, SourceError, Sources};
pub use target::{Change, TargetError, project_change, user_change};

/// A server of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub entry: Entry,
    pub origin: Origin,
}

/// Where a server was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The id of the host, gateway or format, such as `cursor`.
    pub host: String,
    pub file: PathBuf,
    /// The project that the server belongs to; `None` for a server of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
}
