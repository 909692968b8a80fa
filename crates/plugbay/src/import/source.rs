//! Reads the servers of every source: hosts, other gateways, plugins and files named by the user.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use plugbay_hosts::{
    Entry, Launch, jsonc,
    known::{self, Host, HostFile, Places, Scope},
    read::{self, ProblemKind, ReadError},
};
use serde::Serialize;

use super::{
    Found, Origin,
    gateway::{self, Gateway},
    plugin,
};
use crate::{config::Paths, files};

/// The source that stands for all installed plugins.
pub const PLUGINS: &str = "plugins";

/// The content of the sources.
#[derive(Debug, Default)]
pub struct Reading {
    pub found: Vec<Found>,
    pub problems: Vec<Problem>,
    /// Servers that a host has for other projects.
    pub elsewhere: Vec<Elsewhere>,
    /// Plugins whose servers stay with their host.
    pub plugins: Vec<String>,
    /// The other gateway's settings that have a counterpart in plugbay.
    pub settings: Vec<gateway::Setting>,
    /// The files that were read.
    pub files: Vec<PathBuf>,
}

/// An entry, or a whole file, that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub reason: String,
}

/// A project for which a user's file has separate servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Elsewhere {
    pub host: String,
    pub project: PathBuf,
    pub servers: Vec<String>,
}

/// The reason why a source cannot be read at all.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    #[error("there is no file and no host {0:?}")]
    Unknown(String),
    #[error("{}: {reason}", file.display())]
    Unreadable { file: PathBuf, reason: String },
}

/// The places where sources are searched.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    pub places: &'a Places,
    pub paths: &'a Paths,
}

impl Sources<'_> {
    /// Every host and gateway on this machine. Plugins are only named, because their hosts go on starting
    /// them.
    pub fn all(&self) -> Reading {
        let mut reading = Reading::default();
        for host in known::all() {
            self.host(host, &mut reading);
        }
        for gateway in Gateway::ALL {
            self.gateway(gateway, &mut reading);
        }
        reading.plugins = plugin::installed(self.places).into_iter().map(|plugin| plugin.name).collect();
        reading
    }

    /// One source as a user names it: the id of a host or gateway, `plugins`, a file or a folder.
    pub fn named(&self, name: &str, reading: &mut Reading) -> Result<(), SourceError> {
        if let Some(host) = known::by_id(name) {
            self.host(host, reading);
            return Ok(());
        }
        if let Some(gateway) = Gateway::ALL.into_iter().find(|gateway| gateway.id() == name) {
            self.gateway(gateway, reading);
            return Ok(());
        }
        if name == PLUGINS {
            for plugin in plugin::installed(self.places) {
                plugin.read(reading);
            }
            return Ok(());
        }
        self.path(&self.paths.start.join(name), name, reading)
    }

    /// A file of a host that is not at its usual place.
    pub fn host_file(&self, host: &'static Host, path: &Path, reading: &mut Reading) {
        self.file(&HostFile { host, scope: Scope::User, path: path.to_owned() }, reading);
    }

    /// A file in any known format, or the folder of a plugin.
    fn path(&self, path: &Path, name: &str, reading: &mut Reading) -> Result<(), SourceError> {
        if path.is_dir() {
            let plugin = plugin::at(path, self.places);
            let missing = || SourceError::Unreadable { file: path.into(), reason: NO_PLUGIN.to_owned() };
            plugin.ok_or_else(missing)?.read(reading);
            return Ok(());
        }
        if !path.is_file() {
            return Err(SourceError::Unknown(name.to_owned()));
        }
        let known = known::all().iter().flat_map(|host| host.files(self.places));
        if let Some(file) = known.into_iter().find(|file| is_same_file(&file.path, path)) {
            self.file(&file, reading);
            return Ok(());
        }
        let unreadable = |reason| SourceError::Unreadable { file: path.into(), reason };
        let text = files::read_text(path).map_err(|error| unreadable(error.to_string()))?;
        match Gateway::of(path, &text) {
            Some(gateway) => gateway.read(path, &text, self.paths, reading),
            None => reading.take(&Source::file(path), read::read_any(path, &text)),
        }
        Ok(())
    }

    fn gateway(&self, gateway: Gateway, reading: &mut Reading) {
        let Some(file) = gateway.file(self.places) else { return };
        if let Some(text) = reading.text(&file) {
            gateway.read(&file, &text, self.paths, reading);
        }
    }

    fn host(&self, host: &'static Host, reading: &mut Reading) {
        let files = host.files(self.places);
        for file in &files {
            self.file(file, reading);
        }
        let rejected: BTreeSet<String> = files.iter().flat_map(|file| self.rejected(file)).collect();
        for Found { entry, origin } in &mut reading.found {
            let from_project = origin.host == host.id && origin.project == self.places.project;
            entry.disabled |= from_project && rejected.contains(&entry.name);
        }
    }

    /// The servers in the project's file that the user has rejected, according to the user's file.
    fn rejected(&self, HostFile { host, scope, path }: &HostFile) -> Vec<String> {
        let Some(projects) = host.projects.as_deref().filter(|_| *scope == Scope::User) else {
            return Vec::new();
        };
        let text = files::read_text(path).unwrap_or_default();
        let projects = jsonc::get(&text, &[projects]).ok().flatten().unwrap_or_default();
        let here =
            projects.as_object().into_iter().flatten().filter(|(path, _)| self.is_here(Path::new(path)));
        let names = here.flat_map(|(_, settings)| settings[REJECTED].as_array().into_iter().flatten());
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    fn file(&self, HostFile { host, scope, path }: &HostFile, reading: &mut Reading) {
        let Some(text) = reading.text(path) else { return };
        let project = match scope {
            Scope::User => None,
            Scope::Project => self.places.project.clone(),
        };
        let source = Source { id: &host.id, file: path, project, here: Some(self) };
        reading.take(&source, read::read(host, &text));
    }

    /// Whether plugbay was started in this project.
    fn is_here(&self, project: &Path) -> bool {
        let here = std::iter::once(self.paths.start.as_path()).chain(self.places.project.as_deref());
        here.into_iter().any(|here| is_same_file(here, project))
    }
}

/// Claude Code's key for servers of `.mcp.json` that the user has rejected.
const REJECTED: &str = "disabledMcpjsonServers";

const NO_PLUGIN: &str =
    "not the folder of a plugin: it has neither plugin.json and mcp.json nor .claude-plugin/plugin.json";

/// A file to read.
pub(super) struct Source<'a> {
    pub(super) id: &'a str,
    pub(super) file: &'a Path,
    /// The project that the whole file belongs to.
    pub(super) project: Option<PathBuf>,
    /// Set for a file with entries of several projects.
    pub(super) here: Option<&'a Sources<'a>>,
}

impl<'a> Source<'a> {
    /// A file that belongs to no known host.
    fn file(file: &'a Path) -> Self {
        Self { id: "file", file, project: None, here: None }
    }

    pub(super) fn of(id: &'a str, file: &'a Path) -> Self {
        Self { id, ..Self::file(file) }
    }
}

impl Reading {
    /// The text of a file that need not exist.
    pub(super) fn text(&mut self, file: &Path) -> Option<String> {
        match files::read_text(file) {
            Ok(text) => Some(text),
            Err(error) if is_absent(&error) => None,
            Err(error) => {
                self.problem(file, None, format!("cannot be read: {error}"));
                None
            }
        }
    }

    /// Adds the servers of one file.
    pub(super) fn take(&mut self, source: &Source<'_>, read: Result<read::Reading, ReadError>) {
        self.files.push(source.file.to_owned());
        let read::Reading { found, problems } = match read {
            Ok(reading) => reading,
            Err(error) => return self.problem(source.file, None, error.to_string()),
        };
        for read::Found { entry, project, .. } in found {
            self.server(source, entry, project.map(PathBuf::from));
        }
        // The host's internal problems are not reported.
        for problem in problems.into_iter().filter(|problem| problem.kind == ProblemKind::Broken) {
            self.problem(source.file, Some(problem.name), problem.reason);
        }
    }

    pub(super) fn server(&mut self, source: &Source<'_>, entry: Entry, project: Option<PathBuf>) {
        if let Launch::Remote(remote) = &entry.launch
            && !["http://", "https://", "${"].iter().any(|start| remote.url.starts_with(start))
        {
            let reason = "has an address that is not one of an MCP server over HTTP".to_owned();
            return self.problem(source.file, Some(entry.name), reason);
        }
        let elsewhere =
            project.as_ref().filter(|project| source.here.is_some_and(|here| !here.is_here(project)));
        if let Some(project) = elsewhere {
            return self.elsewhere(source.id, project, entry.name);
        }
        let project = project.or_else(|| source.project.clone());
        let origin = Origin { host: source.id.to_owned(), file: source.file.to_owned(), project };
        self.found.push(Found { entry, origin });
    }

    pub(super) fn problem(&mut self, file: &Path, server: Option<String>, reason: String) {
        self.problems.push(Problem { file: file.to_owned(), server, reason });
    }

    /// Records a server of another project.
    pub fn elsewhere(&mut self, host: &str, project: &Path, server: String) {
        let known = self.elsewhere.iter_mut().find(|other| other.project == project && other.host == host);
        if let Some(other) = known {
            return other.servers.push(server);
        }
        let (host, project) = (host.to_owned(), project.to_owned());
        self.elsewhere.push(Elsewhere { host, project, servers: vec![server] });
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
