//! The hosts on this machine, and the servers in their files.

use std::{
    io,
    path::{Path, PathBuf},
};

use plugbay_hosts::{
    known::{self, Host, HostFile, Places, Scope},
    read::{self, Found, ProblemKind},
};
use serde::Serialize;

use super::{CommandError, OWN_NAME};
use crate::{commands::alternatives, import::leads_to_plugbay, journal::file};

/// The hosts and files on this machine.
#[derive(Debug, Default)]
pub struct Survey {
    pub hosts: Vec<SurveyedHost>,
    /// Files that cannot be used; their hosts are left alone.
    pub problems: Vec<FileProblem>,
}

/// A host and the servers in the file that gets plugbay's entry.
#[derive(Debug)]
pub struct SurveyedHost {
    pub host: &'static Host,
    /// The user's file, which may not exist yet.
    pub file: PathBuf,
    /// Its text as it was read.
    pub text: Option<String>,
    /// The servers that can move: the user's, and those that the user has only for this project.
    pub servers: Vec<Found>,
    /// plugbay's own entry.
    pub own: Option<Found>,
    pub staying: Vec<Staying>,
}

/// An entry that does not move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Staying {
    pub name: String,
    pub file: PathBuf,
    pub reason: String,
}

/// A file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileProblem {
    pub host: String,
    pub file: PathBuf,
    pub reason: String,
}

/// The hosts that a user named.
pub fn named(ids: &[String]) -> Result<Vec<&'static Host>, CommandError> {
    let find = |id: &String| {
        known::by_id(id.trim()).ok_or_else(|| {
            let ids: Vec<&str> = known::all().iter().map(|host| host.id.as_str()).collect();
            CommandError::usage(format!("plugbay knows no host {id:?}"))
                .hint(format!("a host is {}", alternatives(&ids)))
        })
    };
    ids.iter().map(find).collect()
}

/// Reads the files of these hosts, or of all hosts of this machine.
pub fn survey(places: &Places, start: &Path, chosen: &[&'static Host]) -> Survey {
    let exists = |path: &Path| path.exists();
    let installed = known::all().iter().filter(|host| host.installed(places, &exists));
    let hosts: Vec<&'static Host> = if chosen.is_empty() { installed.collect() } else { chosen.to_vec() };
    let mut survey = Survey::default();
    for host in hosts {
        let Some(HostFile { path, .. }) = host.user_file(places, &exists) else { continue };
        match read_host(host, path, places, start) {
            Ok(found) => survey.hosts.push(found),
            Err(problem) => survey.problems.push(problem),
        }
    }
    survey
}

/// The text of a file; `None` if there is none.
pub fn read_text(path: &Path) -> io::Result<Option<String>> {
    let text = |bytes| String::from_utf8(bytes).map_err(|_| io::Error::other("the file is not UTF-8"));
    file::read(path)?.map(text).transpose()
}

fn read_host(
    host: &'static Host,
    path: PathBuf,
    places: &Places,
    start: &Path,
) -> Result<SurveyedHost, FileProblem> {
    let problem = |reason: String| FileProblem { host: host.id.clone(), file: path.clone(), reason };
    let text = read_text(&path).map_err(|error| problem(error.to_string()))?;
    let reading = read::read(host, text.as_deref().unwrap_or_default());
    let reading = reading.map_err(|error| problem(error.to_string()))?;
    let here = |project: &String| {
        Path::new(project) == start || Some(Path::new(project)) == places.project.as_deref()
    };
    let found = reading.found.into_iter().filter(|found| found.project.as_ref().is_none_or(here));
    let (mut own, servers): (Vec<Found>, Vec<Found>) =
        found.partition(|found| leads_to_plugbay(&found.entry));
    own.sort_by_key(|found| found.entry.name != OWN_NAME);
    let own = own.into_iter().find(|found| found.project.is_none());
    let is_foreign = |found: &Found| found.project.is_none() && found.entry.name == OWN_NAME;
    let is_taken = servers.iter().any(is_foreign) || reading.problems.iter().any(|one| one.name == OWN_NAME);
    if own.is_none() && is_taken {
        let reason = format!("its entry `{OWN_NAME}` does not start plugbay; rename that entry");
        return Err(problem(reason));
    }
    let broken = reading.problems.into_iter().filter(|problem| problem.kind == ProblemKind::Broken);
    let mut staying: Vec<Staying> = broken
        .map(|problem| Staying { name: problem.name, file: path.clone(), reason: problem.reason })
        .collect();
    staying.extend(elsewhere(host, &path, places));
    Ok(SurveyedHost { host, file: path, text, servers, own, staying })
}

/// The servers in the host's other files, which stay: a project's file belongs to everybody who works on the
/// project.
fn elsewhere(host: &'static Host, wired: &Path, places: &Places) -> Vec<Staying> {
    let files = host.files(places).into_iter().filter(|file| file.path != wired);
    let servers = files.flat_map(|file| {
        let text = read_text(&file.path).ok().flatten().unwrap_or_default();
        let found = read::read(host, &text).unwrap_or_default().found;
        let found =
            found.into_iter().filter(|found| !leads_to_plugbay(&found.entry) && found.project.is_none());
        let reason = match file.scope {
            Scope::Project => "it is in the project's file, which others use too",
            Scope::User => "it is in another file of this host",
        };
        let staying = move |found: Found| Staying {
            name: found.entry.name,
            file: file.path.clone(),
            reason: reason.to_owned(),
        };
        found.map(staying).collect::<Vec<_>>()
    });
    servers.collect()
}
