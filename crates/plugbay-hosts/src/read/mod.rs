//! The servers in a host's file.

mod fields;
mod login;
pub(crate) mod tree;
mod variables;
pub(crate) mod yaml;

use std::{collections::HashMap, path::Path};

use crate::{
    entry::Entry,
    known::{self, Format, Host},
};
use tree::Tree;

/// The servers of a file, and the entries that cannot be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    pub found: Vec<Found>,
    pub problems: Vec<Problem>,
}

/// A server in a host's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The server with the host's name for it, which may be invalid in plugbay.
    pub entry: Entry,
    /// The keys from the root of the file to the entry.
    pub key: Vec<String>,
    /// The folder of the project that the entry is for, if a user's file has entries for projects.
    pub project: Option<String>,
}

/// An entry that plugbay cannot take over. The other entries of the file are not affected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub name: String,
    pub key: Vec<String>,
    pub kind: ProblemKind,
    /// A text that completes "`NAME` …".
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemKind {
    /// The entry is invalid: the host could not use it either, or uses less of it than it says.
    Broken,
    /// The entry belongs to the host: an extension or a built-in server that only the host can run.
    HostOwn,
}

/// The reason why a whole file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("this is not {format}: {message}")]
    Syntax { format: &'static str, message: String },
    #[error("`{0}` is not a table of servers")]
    Shape(String),
    #[error("no server found: a file has its servers under `mcpServers`, `servers`, `mcp` or a similar key")]
    NoServers,
}

/// The servers in a host's file, in the order of the file. A file without any is no error.
pub fn read(host: &Host, text: &str) -> Result<Reading, ReadError> {
    let tree = Tree::parse(host.format, text)?;
    let mut reading = Reading::default();
    read_container(
        &tree,
        Place { host: Some(host), tree: &tree, above: &[], project: None },
        &host.container,
        &mut reading,
    )?;
    let projects = host.projects.as_deref();
    let Some((key, Some(members))) = projects.and_then(|key| Some((key, tree.get(key)?.members()))) else {
        return Ok(reading);
    };
    for (project, settings) in members {
        let above = [key.to_owned(), project.clone()];
        let place = Place { host: Some(host), tree: &tree, above: &above, project: Some(project) };
        read_container(settings, place, &host.container, &mut reading)?;
    }
    Ok(reading)
}

/// The servers of any file, for `import FILE`: read as by its host if the path is known, otherwise according
/// to its shape.
pub fn read_any(path: &Path, text: &str) -> Result<Reading, ReadError> {
    if let Some(host) = known::all().iter().find(|host| host.owns(path)) {
        return read(host, text);
    }
    let (format, tree) = parse_any(path, text)?;
    let mut reading = Reading::default();
    let mut is_known = false;
    // Next to `mcpServers`, `mcp` is a table of settings.
    let is_container = |key: &&str| tree.get(key).is_some() && (*key != "mcp" || tree.get(SHARED).is_none());
    for container in CONTAINERS.into_iter().filter(is_container) {
        is_known = true;
        // Many hosts with different dialects use `mcpServers`.
        let speaks = |host: &&Host| host.container == container && host.format == format;
        let host = known::all().iter().find(speaks).filter(|_| container != SHARED);
        let place = Place { host, tree: &tree, above: &[], project: None };
        read_container(&tree, place, container, &mut reading)?;
    }
    if !is_known {
        read_bare(&tree, path, &mut reading)?;
    }
    Ok(reading)
}

/// Every key under which some host has its servers.
const CONTAINERS: [&str; 7] =
    [SHARED, "servers", "mcp", "mcp_servers", "context_servers", "extensions", "amp.mcpServers"];

/// The key that most hosts use.
const SHARED: &str = "mcpServers";

/// The place of a container.
#[derive(Clone, Copy)]
struct Place<'a> {
    host: Option<&'a Host>,
    /// The whole file.
    tree: &'a Tree,
    /// The keys above the container.
    above: &'a [String],
    project: Option<&'a String>,
}

fn read_container(
    parent: &Tree,
    place: Place<'_>,
    container: &str,
    reading: &mut Reading,
) -> Result<(), ReadError> {
    let Some(servers) = parent.get(container) else { return Ok(()) };
    let members = match servers {
        Tree::Object(members) => members,
        Tree::Leaf(serde_json::Value::Null) => return Ok(()),
        _ => return Err(ReadError::Shape(container.to_owned())),
    };
    let last: HashMap<&str, usize> =
        members.iter().enumerate().map(|(index, (name, _))| (name.as_str(), index)).collect();
    for (index, (name, value)) in members.iter().enumerate() {
        let key: Vec<String> =
            place.above.iter().cloned().chain([container.to_owned(), name.clone()]).collect();
        if last[name.as_str()] != index {
            let reason = "occurs twice; the last one counts".to_owned();
            reading.problems.push(Problem { name: name.clone(), key, kind: ProblemKind::Broken, reason });
            continue;
        }
        read_entry(name, value, key, place, reading);
    }
    Ok(())
}

fn read_entry(name: &str, value: &Tree, key: Vec<String>, place: Place<'_>, reading: &mut Reading) {
    match fields::entry(name, value, place.host, place.tree) {
        Ok(entry) => reading.found.push(Found { entry, key, project: place.project.cloned() }),
        Err((kind, reason)) => reading.problems.push(Problem { name: name.to_owned(), key, kind, reason }),
    }
}

/// Reads a file without a container: one server, or only a table of servers.
fn read_bare(tree: &Tree, path: &Path, reading: &mut Reading) -> Result<(), ReadError> {
    let place = Place { host: None, tree, above: &[], project: None };
    let members = tree.members().ok_or(ReadError::NoServers)?;
    if fields::looks_like_entry(tree) {
        let name = match tree.get("name").map(Tree::to_value) {
            Some(serde_json::Value::String(name)) => name,
            _ => path.file_stem().unwrap_or_default().to_string_lossy().trim_start_matches('.').to_owned(),
        };
        read_entry(&name, tree, Vec::new(), place, reading);
        return Ok(());
    }
    if members.is_empty() || !members.iter().all(|(_, value)| fields::looks_like_entry(value)) {
        return Err(ReadError::NoServers);
    }
    for (name, value) in members {
        read_entry(name, value, vec![name.clone()], place, reading);
    }
    Ok(())
}

/// The format by the file's extension; if that is unknown, the first format that gives a table.
fn parse_any(path: &Path, text: &str) -> Result<(Format, Tree), ReadError> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let formats: &[Format] = match extension.to_ascii_lowercase().as_str() {
        "json" | "jsonc" | "json5" => &[Format::Json],
        "toml" => &[Format::Toml],
        "yaml" | "yml" => &[Format::Yaml],
        _ => &[Format::Json, Format::Toml, Format::Yaml],
    };
    let mut first = None;
    for format in formats {
        match Tree::parse(*format, text) {
            Ok(tree) if tree.members().is_some() || formats.len() == 1 => return Ok((*format, tree)),
            Ok(_) => {}
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or(ReadError::NoServers))
}
