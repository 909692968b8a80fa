//! Edits of hosts' files that leave everything else as it was, byte for byte.

use std::collections::BTreeMap;

use crate::{known::Host, read::Found};

/// plugbay's own entry in a host's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnEntry {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// Why a host's file is not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("this is not {format}: {message}")]
    Syntax { format: &'static str, message: String },
    #[error("`{0}` is not a table")]
    Shape(String),
    #[error("`{0}` occurs twice in the file; remove one of them")]
    Duplicate(String),
    #[error("this file is written in a way that plugbay cannot edit without changing other parts: {0}")]
    Unsafe(String),
}

/// Adds plugbay's entry in the host's own syntax and removes the entries that move to plugbay.
pub fn wire(host: &Host, text: &str, own: &OwnEntry, moved: &[Found]) -> Result<String, EditError> {
    let _ = (host, text, own, moved);
    Err(EditError::Unsafe("not supported yet".to_owned()))
}

/// Removes plugbay's entry and puts back the entries that `original` has and `text` lacks.
///
/// The result is `original`, byte for byte, if nobody but [`wire`] has changed the file since. Otherwise every other change stays.
pub fn unwire(host: &Host, text: &str, own_name: &str, original: Option<&str>) -> Result<String, EditError> {
    let _ = (host, text, own_name, original);
    Err(EditError::Unsafe("not supported yet".to_owned()))
}
