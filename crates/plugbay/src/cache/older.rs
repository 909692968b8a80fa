//! Cache files of earlier versions: one JSON object with every definition.

use plugbay_core::catalog::{KnownList, Tool};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    CachedLists,
    head::{StoredOffer, bytes},
    stored::FORMAT,
};

/// The format with lists for several kinds of hosts, and the format before it.
const LISTS: u32 = 5;
const ONE_LIST: u32 = 4;

#[derive(Deserialize)]
struct Older<'a> {
    format: u32,
    /// Empty for a server that never answered.
    #[serde(borrow, default)]
    lists: Vec<&'a RawValue>,
}

/// The tools of a list; its other members are those of [`StoredOffer`].
#[derive(Deserialize)]
struct OlderTools<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

/// Parses an older file; `None` if this is no cache file of any version.
pub(super) fn parse(text: &[u8]) -> Option<CachedLists> {
    let older: Older<'_> = serde_json::from_slice(text).ok()?;
    let lists = match older.format {
        LISTS => {
            older.lists.iter().map(|list| known_list(list.get().as_bytes())).collect::<Option<Vec<_>>>()?
        }
        // The file's own members are those of the one list. A server that never answered has none.
        ONE_LIST => known_list(text).into_iter().collect(),
        // The file has lost its first line.
        FORMAT => return None,
        // A file of another version; it is replaced when the server next lists.
        _ => return Some(CachedLists::Absent),
    };
    Some(if lists.is_empty() { CachedLists::NoAnswer } else { CachedLists::Lists(lists) })
}

fn known_list(list: &[u8]) -> Option<KnownList> {
    let OlderTools { tools } = serde_json::from_slice(list).ok()?;
    let tools = tools.into_iter().map(|raw| Tool::parse(bytes(raw))).collect::<Option<Vec<_>>>()?;
    serde_json::from_slice::<StoredOffer<'_>>(list).ok()?.known_list(tools.into())
}
