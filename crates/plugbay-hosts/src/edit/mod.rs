//! Edits of hosts' files that leave everything else unchanged, byte for byte.

pub mod allowed;
pub(crate) mod braced;
pub(crate) mod json;
pub(crate) mod splice;
mod toml;
mod yaml;
mod yaml_nodes;

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use crate::{
    known::{Format, Host, Members},
    read::{Found, ReadError, tree::Tree},
};

/// plugbay's own entry in a host's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnEntry {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// The reason why a host's file is not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("this is not {format}: {message}")]
    Syntax { format: &'static str, message: String },
    #[error("`{0}` is not a table")]
    Shape(String),
    #[error("`{0}` occurs twice in the file; remove one of them")]
    Duplicate(String),
    #[error("plugbay cannot edit this file without changing other parts of it: {0}")]
    Unsafe(String),
}

/// Adds plugbay's entry in the host's own syntax, and removes the entries that move to plugbay.
///
/// The entry comes after the user's other entries. An entry of the same name is replaced. Entries in `moved`
/// that the file does not have are ignored.
pub fn wire(host: &Host, text: &str, own: &OwnEntry, moved: &[Found]) -> Result<String, EditError> {
    let own = Own { container: &host.container, name: &own.name, members: host.own_members(own) };
    let moved: Vec<&[String]> = moved.iter().map(|found| found.key.as_slice()).collect();
    rewire(host, text, &own, &moved)
}

/// Removes the entries that move to plugbay, for a host that already has plugbay's entry.
pub fn take_out(host: &Host, text: &str, moved: &[Found]) -> Result<String, EditError> {
    has_whole_breaks(text)?;
    let before = Tree::parse(host.format, text)?;
    let moved: HashSet<&Vec<String>> = moved.iter().map(|found| &found.key).collect();
    let gone: Vec<Vec<String>> = keys(host, &before).into_iter().filter(|key| moved.contains(key)).collect();
    let mut out = text.to_owned();
    for key in &gone {
        out = with_mark(&out, |text| remove(host.format, text, key))?;
    }
    let nothing = [host.container.clone(), String::new()];
    check(host, text, &out, &nothing, |tree| gone.iter().for_each(|key| take(tree, key)))?;
    Ok(out)
}

/// Removes plugbay's entry, and restores the entries that `original` has and `text` lacks.
///
/// If only [`wire`] has changed the file since, the result is `original`, byte for byte. Otherwise every
/// other change stays, and restored entries are at the end of their table.
///
/// Without `original`, the result is the text before [`wire`] if no entry was moved: the style of [`wire`]
/// shows whether the table around the entry, or the whole file, existed before.
pub fn unwire(host: &Host, text: &str, own_name: &str, original: Option<&str>) -> Result<String, EditError> {
    has_whole_breaks(text)?;
    let own_key = [host.container.clone(), own_name.to_owned()];
    let tree = Tree::parse(host.format, text)?;
    let Some(original) = original else { return remove_own(host, text, &tree, &own_key) };
    let before = Tree::parse(host.format, original)?;
    let lost: Vec<Vec<String>> =
        keys(host, &before).into_iter().filter(|key| *key == own_key || at(&tree, key).is_none()).collect();
    if let Some(Tree::Object(members)) = at(&tree, &own_key) {
        let members = members.iter().map(|(key, value)| (key.clone(), value.to_value())).collect();
        let own = Own { container: &host.container, name: own_name, members };
        let moved: Vec<&[String]> = lost.iter().map(Vec::as_slice).filter(|key| *key != own_key).collect();
        if rewire(host, original, &own, &moved).is_ok_and(|wired| wired == text) {
            return Ok(original.to_owned());
        }
    }
    let mut out = remove_own(host, text, &tree, &own_key)?;
    for key in &lost {
        out = with_mark(&out, |text| put_back(host.format, text, without_mark(original), key))?;
    }
    check(host, text, &out, &own_key, |tree| restore(tree, &before, &lost))?;
    Ok(out)
}

/// Rejects a lone carriage return: some formats treat it as a line break, which edits do not support.
fn has_whole_breaks(text: &str) -> Result<(), EditError> {
    let mut lines = text.split_inclusive('\n').map(|line| line.strip_suffix("\r\n").unwrap_or(line));
    if lines.any(|line| line.contains('\r')) {
        let reason = "it has a carriage return that does not belong to a line break";
        return Err(EditError::Unsafe(reason.to_owned()));
    }
    Ok(())
}

/// plugbay's entry in the form to write.
struct Own<'a> {
    container: &'a str,
    name: &'a str,
    members: Members,
}

fn rewire(host: &Host, text: &str, own: &Own<'_>, moved: &[&[String]]) -> Result<String, EditError> {
    has_whole_breaks(text)?;
    let before = Tree::parse(host.format, text)?;
    let own_key = [own.container.to_owned(), own.name.to_owned()];
    let value = Value::Object(own.members.iter().cloned().collect());
    let is_there = at(&before, &own_key).is_some_and(|tree| tree.to_value() == value);
    let mut out =
        if is_there { text.to_owned() } else { with_mark(text, |text| insert(host.format, text, own))? };
    // In the order of the file, so that the order in `moved` leaves no trace.
    let moved: HashSet<&[String]> = moved.iter().copied().collect();
    let gone: Vec<Vec<String>> = keys(host, &before)
        .into_iter()
        .filter(|key| *key != own_key && moved.contains(key.as_slice()))
        .collect();
    for key in &gone {
        out = with_mark(&out, |text| remove(host.format, text, key))?;
    }
    check(host, text, &out, &own_key, |tree| gone.iter().for_each(|key| take(tree, key)))?;
    let written = Tree::parse(host.format, &out)?;
    if at(&written, &own_key).is_some_and(|tree| tree.to_value() == value) {
        Ok(out)
    } else {
        Err(EditError::Unsafe("its own entry would not be read as it was written".to_owned()))
    }
}

fn insert(format: Format, text: &str, own: &Own<'_>) -> Result<String, EditError> {
    match format {
        Format::Json => json::insert(text, own),
        Format::Toml => toml::insert(text, own),
        Format::Yaml => yaml::insert(text, own),
    }
}

fn remove_own(host: &Host, text: &str, tree: &Tree, key: &[String; 2]) -> Result<String, EditError> {
    if at(tree, key).is_none() {
        return Ok(text.to_owned());
    }
    let [container, name] = key;
    let out = with_mark(text, |text| match host.format {
        Format::Json => json::remove_own(text, container, name),
        Format::Toml => toml::remove_own(text, container, name),
        Format::Yaml => yaml::remove_own(text, container, name),
    })?;
    check(host, text, &out, key, |_| {})?;
    Ok(out)
}

fn remove(format: Format, text: &str, key: &[String]) -> Result<String, EditError> {
    let removed = match format {
        Format::Json => json::remove(text, key)?,
        Format::Toml => toml::remove(text, key)?,
        Format::Yaml => yaml::remove(text, key)?,
    };
    Ok(removed.unwrap_or_else(|| text.to_owned()))
}

fn put_back(format: Format, text: &str, original: &str, key: &[String]) -> Result<String, EditError> {
    match format {
        Format::Json => json::put_back(text, original, key),
        Format::Toml => toml::put_back(text, original, key),
        Format::Yaml => yaml::put_back(text, original, key),
    }
}

/// Makes sure that an edit did exactly what was intended: both texts are parsed, and `change` says how they
/// may differ besides plugbay's own entry.
fn check(
    host: &Host,
    before: &str,
    after: &str,
    own_key: &[String; 2],
    change: impl Fn(&mut Tree),
) -> Result<(), EditError> {
    let mut expected = Tree::parse(host.format, before)?;
    change(&mut expected);
    take(&mut expected, own_key);
    let found = Tree::parse(host.format, after);
    let mut found =
        found.map_err(|error| EditError::Unsafe(format!("the result would be broken, {error}")))?;
    take(&mut found, own_key);
    for tree in [&mut expected, &mut found] {
        drop_empty(tree, &own_key[0]);
    }
    let is_same = sorted(expected) == sorted(found);
    if is_same { Ok(()) } else { Err(EditError::Unsafe("another part of it would change".to_owned())) }
}

/// The keys of all entries, in the order of the file.
fn keys(host: &Host, tree: &Tree) -> Vec<Vec<String>> {
    let mut keys = Vec::new();
    let mut known = HashSet::new();
    let mut collect = |tree: &Tree, above: &[&String]| {
        let entries = tree.get(&host.container).and_then(Tree::members).unwrap_or_default();
        for (name, _) in entries {
            let above = above.iter().map(|key| (*key).clone());
            let key: Vec<String> = above.chain([host.container.clone(), name.clone()]).collect();
            if known.insert(key.clone()) {
                keys.push(key);
            }
        }
    };
    collect(tree, &[]);
    if let Some(key) = &host.projects {
        for (project, settings) in tree.get(key).and_then(Tree::members).unwrap_or_default() {
            collect(settings, &[key, project]);
        }
    }
    keys
}

fn at<'t>(tree: &'t Tree, key: &[String]) -> Option<&'t Tree> {
    key.iter().try_fold(tree, |tree, key| tree.get(key))
}

/// Removes the member at these keys.
fn take(tree: &mut Tree, key: &[String]) {
    let (Tree::Object(members), [first, rest @ ..]) = (tree, key) else { return };
    if rest.is_empty() {
        members.retain(|(name, _)| name != first);
    } else if let Some((_, child)) = members.iter_mut().find(|(name, _)| name == first) {
        take(child, rest);
    }
}

/// Restores members from another tree.
fn restore(tree: &mut Tree, from: &Tree, keys: &[Vec<String>]) {
    for key in keys.iter().filter(|key| at(tree, key).is_none()).cloned().collect::<Vec<_>>() {
        let Some(value) = at(from, &key) else { continue };
        put(tree, &key, value);
    }
}

fn put(tree: &mut Tree, key: &[String], value: &Tree) {
    let (Tree::Object(members), [first, rest @ ..]) = (tree, key) else { return };
    let index = members.iter().position(|(name, _)| name == first).unwrap_or_else(|| {
        members.push((first.clone(), Tree::Object(Vec::new())));
        members.len() - 1
    });
    if rest.is_empty() { members[index].1 = value.clone() } else { put(&mut members[index].1, rest, value) }
}

/// Removes an empty container, which means the same to the host as none.
fn drop_empty(tree: &mut Tree, container: &str) {
    let Tree::Object(members) = tree else { return };
    let is_empty = |value: &Tree| match value {
        Tree::Object(members) => members.is_empty(),
        Tree::Leaf(value) => value.is_null(),
        Tree::Array(_) | Tree::Written { .. } => false,
    };
    members.retain(|(name, value)| name != container || !is_empty(value));
}

/// Members sorted by their keys, because an edit may move an entry after another.
fn sorted(tree: Tree) -> Tree {
    match tree {
        Tree::Object(members) => {
            let mut members: Vec<_> = members.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Tree::Object(members)
        }
        Tree::Array(items) => Tree::Array(items.into_iter().map(sorted).collect()),
        leaf @ (Tree::Leaf(_) | Tree::Written { .. }) => leaf,
    }
}

/// Edits the text after its byte order mark.
fn with_mark(text: &str, edit: impl FnOnce(&str) -> Result<String, EditError>) -> Result<String, EditError> {
    let bare = without_mark(text);
    let edited = edit(bare)?;
    Ok(format!("{}{edited}", &text[..text.len() - bare.len()]))
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

impl From<ReadError> for EditError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Syntax { format, message } => Self::Syntax { format, message },
            ReadError::Shape(key) => Self::Shape(key),
            ReadError::NoServers => Self::Shape("the file".to_owned()),
        }
    }
}
