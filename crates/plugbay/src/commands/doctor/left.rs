//! Finds the servers that hosts start themselves and plugbay does not have, and makes settings to start them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use plugbay_core::name::ServerName;
use plugbay_hosts::{
    Entry,
    known::{self, Scope},
    read::Found,
};

use super::examination::{HostFacts, HostFileFacts, ServerFacts};
use crate::{
    commands::Context,
    config::{self, ServerSettings, Settings},
    import::{self, Added, Origin, Plan, Present, Renamed},
    settings::{self, Source},
};

/// A server that a host starts itself.
#[derive(Debug)]
pub struct LeftServer {
    /// Its name in the host.
    pub name: String,
    /// The names of its hosts.
    pub hosts: Vec<String>,
    pub file: PathBuf,
    pub entry: Entry,
    /// Variables of its entry that are not set.
    pub unset: Vec<String>,
    /// Whether the user has named it.
    pub named: bool,
    /// Absent if it is in a project's file: a server from a repository is not started without approval.
    pub facts: Option<ServerFacts>,
}

/// The servers in hosts' files, before any is started.
#[derive(Debug, Default)]
pub struct Candidates {
    user: Plan,
    project: Plan,
    named: bool,
}

/// The names of all servers that hosts start themselves here, except gateways.
pub fn names<'a>(context: &'a Context, hosts: &'a [HostFacts]) -> impl Iterator<Item = String> + 'a {
    let found = hosts.iter().flat_map(move |host| direct(context, host));
    let is_server = |(file, found): &(&HostFileFacts, &Found)| {
        let origin = Origin { host: String::new(), file: file.path.clone(), project: None };
        let alone = import::Found { entry: found.entry.clone(), origin };
        import::plan(vec![alone], &Present::default()).skipped.is_empty()
    };
    found.filter(is_server).map(|(_, found)| found.entry.name.clone())
}

/// plugbay's names for the wanted servers that hosts have under other names.
pub fn counterparts(
    context: &Context,
    ours: &Settings,
    hosts: &[HostFacts],
    wanted: &[String],
) -> Vec<String> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let Candidates { user, project, .. } = find(context, ours, hosts, wanted);
    user.same.into_iter().chain(project.same).map(|same| same.name).collect()
}

/// The wanted servers of all hosts. If none is named, the servers of hosts that start plugbay.
pub fn find(context: &Context, ours: &Settings, hosts: &[HostFacts], wanted: &[String]) -> Candidates {
    let is_wanted = |host: &HostFacts, found: &Found| match wanted {
        [] => host.own().next().is_some(),
        names => names.iter().any(|name| name.eq_ignore_ascii_case(&found.entry.name)),
    };
    let (mut user, mut project) = (Vec::new(), Vec::new());
    for host in hosts {
        for (file, found) in direct(context, host).filter(|(_, found)| is_wanted(host, found)) {
            let origin = Origin { host: host.host.id.clone(), file: file.path.clone(), project: None };
            let list = if file.scope == Scope::Project { &mut project } else { &mut user };
            list.push(import::Found { entry: found.entry.clone(), origin });
        }
    }
    let mut present = present(context, ours);
    let user = import::plan(user, &present);
    present.servers.extend(user.added.iter().map(|added| added.entry.clone()));
    let project = import::plan(project, &present);
    Candidates { user, project, named: !wanted.is_empty() }
}

/// A host's effective entries in this folder that do not start plugbay.
fn direct<'a>(
    context: &'a Context,
    host: &'a HostFacts,
) -> impl Iterator<Item = (&'a HostFileFacts, &'a Found)> {
    let start = &context.source.paths.start;
    let here = move |project: &String| {
        [start.as_path(), config::project_folder(start)].contains(&Path::new(project))
    };
    let read = host.files.iter().filter_map(|file| Some((file, file.reading.as_ref().ok()?)));
    let found = read.flat_map(|(file, reading)| reading.found.iter().map(move |found| (file, found)));
    found.filter(move |(_, found)| {
        let counts = !found.entry.disabled && found.project.as_ref().is_none_or(here);
        counts && !import::leads_to_plugbay(&found.entry)
    })
}

fn present(context: &Context, ours: &Settings) -> Present {
    let files = ours.contents.iter().map(|content| &content.file);
    let servers = files.flat_map(|file| config::servers_in(file, &context.source.paths).servers).collect();
    let names = ours.servers.iter().map(|server| &server.name).chain(&ours.disabled);
    Present { servers, names: names.map(ToString::to_string).collect(), beneath: Vec::new() }
}

impl Candidates {
    /// The settings of the servers that may be started, as after an import into plugbay.
    pub fn settings(&self) -> Vec<ServerSettings> {
        if self.user.is_empty() {
            return Vec::new();
        }
        let load = || {
            let folder = tempfile::tempdir().ok()?; // only its owner can enter it
            let file = folder.path().join("config.jsonc");
            fs::write(&file, self.user.apply("").ok()?).ok()?;
            Some(Source::new(Some(file)).load().servers)
        };
        load().unwrap_or_default()
    }

    /// The servers with the facts that were gathered about them.
    pub fn examined(self, facts: impl Fn(&ServerName) -> Option<ServerFacts>) -> Vec<LeftServer> {
        let named = self.named;
        let of_user = self.user.added.into_iter().map(|added| {
            let facts = ServerName::parse(&added.entry.name).ok().and_then(|name| facts(&name));
            left(added, named, facts)
        });
        of_user.chain(self.project.added.into_iter().map(|added| left(added, named, None))).collect()
    }
}

fn left(added: Added, named: bool, facts: Option<ServerFacts>) -> LeftServer {
    let Added { entry, renamed, origins, .. } = added;
    let name = match renamed {
        Some(Renamed::Invalid(was) | Renamed::Taken(was)) => was,
        None => entry.name.clone(),
    };
    let host = |origin: &Origin| {
        known::by_id(&origin.host).map_or_else(|| origin.host.clone(), |host| host.name.clone())
    };
    LeftServer {
        hosts: origins.iter().map(host).collect(),
        file: origins.into_iter().next().map(|origin| origin.file).unwrap_or_default(),
        unset: import::needs(&entry, &settings::variable).variables,
        facts: facts.map(|facts| ServerFacts { name: name.clone(), ..facts }),
        name,
        entry,
        named,
    }
}
