//! What setup will change: which servers move, and the new text of every file.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use plugbay_hosts::{
    Entry,
    edit::{self, OwnEntry},
    known::{Host, Places},
    permissions,
    read::Found,
};
use serde::Serialize;

use super::{
    CommandError, OWN_NAME,
    survey::{FileProblem, Survey, SurveyedHost, read_text},
    trial::Trial,
};
use crate::{
    config::{self, Listed, Paths},
    error::StartFailure,
    import::{self, Origin, Present, Skip},
    settings,
};

/// The changes of one setup. Nothing is written yet.
#[derive(Debug)]
pub struct Plan {
    pub configuration: Edit,
    pub hosts: Vec<HostPlan>,
    pub servers: Vec<Server>,
    pub problems: Vec<FileProblem>,
}

/// The changes of one host's files.
#[derive(Debug)]
pub struct HostPlan {
    pub host: &'static Host,
    pub servers: Edit,
    /// plugbay's entry, unless the host has it already.
    pub own: Option<OwnEntry>,
    pub moved: Vec<Found>,
    pub permissions: Vec<Edit>,
}

/// A file with its present and its new text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub path: PathBuf,
    /// `None` if there is no such file.
    pub old: Option<String>,
    pub new: String,
}

/// A server of some hosts, and what becomes of it.
#[derive(Debug, Clone, Serialize)]
pub struct Server {
    /// Its name in plugbay.
    pub name: String,
    /// The ids of the hosts that have it.
    pub hosts: Vec<String>,
    #[serde(flatten)]
    pub fate: Fate,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(skip)]
    entries: Vec<(String, Found)>,
}

/// What becomes of a server. Only a server that works through plugbay leaves its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "result")]
pub enum Fate {
    Moves,
    /// It is disabled in its hosts, and in plugbay from now on.
    MovesDisabled,
    Stays {
        #[serde(flatten)]
        reason: StartFailure,
        #[serde(skip_serializing_if = "Option::is_none")]
        needs: Option<Need>,
    },
}

/// What the user must do before a server can work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Need {
    Variable(String),
    Login,
}

/// The servers of a survey, merged with plugbay's configuration. Nothing has been tried yet.
#[derive(Debug)]
pub struct Draft {
    survey: Survey,
    configuration: PathBuf,
    text: Option<String>,
    import: import::Plan,
    servers: Vec<Server>,
    /// The servers that plugbay has already.
    known: Vec<String>,
}

impl Edit {
    pub fn changes(&self) -> bool {
        self.old.as_deref().unwrap_or_default() != self.new
    }
}

impl Fate {
    pub fn moves(&self) -> bool {
        matches!(self, Self::Moves | Self::MovesDisabled)
    }
}

impl Draft {
    pub fn new(survey: Survey, configuration: PathBuf, paths: &Paths) -> Result<Self, CommandError> {
        let text = read_text(&configuration)?;
        let present = present(&configuration, paths);

        let found = survey.hosts.iter().flat_map(|host| host.servers.iter().map(|found| origin(host, found)));
        let import = import::plan(found.collect(), &present);
        let known = present.names.clone();
        let mut draft = Self { survey, configuration, text, import, servers: Vec::new(), known };
        draft.servers = draft.merged(&present);
        Ok(draft)
    }

    /// plugbay's configuration with every server that could move.
    pub fn candidate(&self) -> Result<String, CommandError> {
        self.configured(|_| true)
    }

    /// The plan: what the trial showed to work moves.
    pub fn plan(mut self, trial: &Trial, own: &OwnEntry, places: &Places) -> Result<Plan, CommandError> {
        for server in &mut self.servers {
            if let (Fate::Moves, Some(failure)) = (&server.fate, trial.failures.get(&server.name)) {
                server.fate = failed(&server.entries[0].1.entry, failure.clone());
            }
        }
        let moves = |name: &str| self.servers.iter().any(|server| server.name == name && server.fate.moves());
        let new = self.configured(moves)?;
        let configuration = Edit { path: self.configuration.clone(), old: self.text.clone(), new };
        let mut plan = Plan { configuration, hosts: Vec::new(), servers: Vec::new(), problems: Vec::new() };
        plan.problems.append(&mut self.survey.problems);
        for host in &self.survey.hosts {
            let rules = Rules::of(host.host, &self.servers, &self.known);
            match host_plan(host, &self.servers, own, &rules, places) {
                Ok(host) => plan.hosts.push(host),
                Err(problem) => plan.problems.push(problem),
            }
        }
        plan.servers = self.servers;
        plan.servers.extend(self.survey.hosts.iter().flat_map(staying));
        Ok(plan)
    }

    fn configured(&self, wanted: impl Fn(&str) -> bool) -> Result<String, CommandError> {
        let mut import = self.import.clone();
        import.added.retain(|added| wanted(&added.entry.name));
        let text = self.text.clone().unwrap_or_default();
        if import.is_empty() && self.text.is_some() {
            return Ok(text);
        }
        import.apply(&text).map_err(|error| unusable(&self.configuration, &error))
    }

    /// Each server once, with every entry that hosts have for it.
    fn merged(&self, present: &Present) -> Vec<Server> {
        let mut servers: Vec<Server> = Vec::new();
        let all =
            self.survey.hosts.iter().flat_map(|host| host.servers.iter().map(move |found| (host, found)));
        for (host, found) in all {
            let (name, fate, notes) = self.counterpart(host, found, present);
            let id = host.host.id.clone();
            let known = servers.iter().position(|server| server.name == name && server.fate == fate);
            let index = known.unwrap_or_else(|| {
                servers.push(Server { name, hosts: Vec::new(), fate, notes, entries: Vec::new() });
                servers.len() - 1
            });
            let server = &mut servers[index];
            if !server.hosts.contains(&id) {
                server.hosts.push(id.clone());
            }
            server.entries.push((id, found.clone()));
        }
        servers
    }

    /// The name of a host's server in plugbay, whether it can move, and what the user should know.
    fn counterpart(
        &self,
        host: &SurveyedHost,
        found: &Found,
        present: &Present,
    ) -> (String, Fate, Vec<String>) {
        let name = found.entry.name.clone();
        let alone = import::plan(vec![origin(host, found)], present);
        if let Some(skipped) = alone.skipped.first() {
            let reason = match skipped.why {
                Skip::Plugbay => "it is plugbay itself".to_owned(),
                Skip::Gateway(id) => {
                    format!("it is another gateway; `plugbay import {id}` takes its servers")
                }
            };
            return (name, stays(reason), Vec::new());
        }
        if let Some(same) = alone.same.first() {
            let fate = if same.differs {
                stays("plugbay has a server of this name with other variables, headers or folder".to_owned())
            } else {
                Fate::Moves
            };
            return (same.name.clone(), fate, Vec::new());
        }
        let same = |added: &&import::Added| import::is_same(&added.entry, &found.entry);
        match self.import.added.iter().find(same) {
            Some(added) => {
                let fate = if added.entry.disabled { Fate::MovesDisabled } else { Fate::Moves };
                (added.entry.name.clone(), fate, [added.entry.notes.clone(), added.notes.clone()].concat())
            }
            None => (name, stays("it cannot be imported".to_owned()), Vec::new()),
        }
    }
}

fn stays(reason: String) -> Fate {
    Fate::Stays {
        reason: StartFailure { reason, stderr: Vec::new(), stdout: Vec::new(), remedy: None },
        needs: None,
    }
}

fn origin(host: &SurveyedHost, found: &Found) -> import::Found {
    let project = found.project.as_ref().map(PathBuf::from);
    let origin = Origin { host: host.host.id.clone(), file: host.file.clone(), project };
    import::Found { entry: found.entry.clone(), origin }
}

/// The servers of the configuration file.
fn present(path: &Path, paths: &Paths) -> Present {
    let Listed { servers, names, .. } =
        if path.exists() { config::servers_in(path, paths) } else { Listed::default() };
    Present { servers, names, beneath: Vec::new() }
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> CommandError {
    CommandError::failed(format!("{}: {error}", path.display())).hint("fix plugbay's own configuration first")
}

fn host_plan(
    surveyed: &SurveyedHost,
    servers: &[Server],
    own: &OwnEntry,
    rules: &Rules,
    places: &Places,
) -> Result<HostPlan, FileProblem> {
    let SurveyedHost { host, file, text, .. } = surveyed;
    let of_host = |server: &Server| {
        let entries = server.entries.iter().filter(|(id, _)| *id == host.id);
        entries.map(|(_, found)| found.clone()).collect::<Vec<_>>()
    };
    let moved: Vec<Found> = servers.iter().filter(|server| server.fate.moves()).flat_map(of_host).collect();
    let problem = |reason: String| FileProblem { host: host.id.clone(), file: file.clone(), reason };
    let old = text.clone().unwrap_or_default();
    // The user may have settings of their own in an entry that is there already.
    let new = match surveyed.own {
        Some(_) => edit::take_out(host, &old, &moved),
        None => edit::wire(host, &old, own, &moved),
    };
    let new = new.map_err(|error| problem(error.to_string()))?;
    let servers_edit = Edit { path: file.clone(), old: text.clone(), new: rules.applied(file, new)? };
    let own = surveyed.own.is_none().then(|| own.clone());
    let permissions = rules.edits(file, places)?;
    Ok(HostPlan { host, servers: servers_edit, own, moved, permissions })
}

/// The permission rules of one host: a rule that names a tool of a server behind plugbay gets its counterpart.
struct Rules {
    host: &'static Host,
    /// The host's name of each server behind plugbay, and its name there.
    names: BTreeMap<String, String>,
}

impl Rules {
    /// For servers that move now, and for those that moved earlier: another project may have rules for them.
    fn of(host: &'static Host, servers: &[Server], known: &[String]) -> Self {
        let (moving, staying): (Vec<&Server>, Vec<&Server>) =
            servers.iter().partition(|server| server.fate.moves());
        let of = |server: &&Server, found: &Found| (found.entry.name.clone(), server.name.clone());
        let moving =
            moving.iter().flat_map(|server| server.entries.iter().map(move |(_, found)| of(server, found)));
        let stays = |name: &&String| staying.iter().any(|server| server.name == **name);
        let earlier = known.iter().filter(|name| !stays(name)).map(|name| (name.clone(), name.clone()));
        Self { host, names: earlier.chain(moving).collect() }
    }

    /// The text with the counterparts.
    fn applied(&self, file: &Path, text: String) -> Result<String, FileProblem> {
        let added = permissions::counterparts_for(self.host, &text, &self.names, OWN_NAME);
        Ok(added.map_err(|error| self.problem(file, &error))?.unwrap_or(text))
    }

    /// The files that have rules and no servers.
    fn edits(&self, wired: &Path, places: &Places) -> Result<Vec<Edit>, FileProblem> {
        let mut edits = Vec::new();
        for file in self.host.permission_files(places).into_iter().filter(|file| file.path != wired) {
            let Some(old) = read_text(&file.path).map_err(|error| self.problem(&file.path, &error))? else {
                continue;
            };
            let new = self.applied(&file.path, old.clone())?;
            edits.push(Edit { path: file.path, old: Some(old), new });
        }
        edits.retain(Edit::changes);
        Ok(edits)
    }

    fn problem(&self, file: &Path, error: &dyn std::fmt::Display) -> FileProblem {
        FileProblem { host: self.host.id.clone(), file: file.to_owned(), reason: error.to_string() }
    }
}

/// The entries that setup never moves.
fn staying(host: &SurveyedHost) -> Vec<Server> {
    let server = |staying: &super::survey::Staying| Server {
        name: staying.name.clone(),
        hosts: vec![host.host.id.clone()],
        fate: stays(staying.reason.clone()),
        notes: Vec::new(),
        entries: Vec::new(),
    };
    host.staying.iter().map(server).collect()
}

/// Why a server does not work: a variable that is not set, a login, or something else.
fn failed(entry: &Entry, failure: StartFailure) -> Fate {
    let unset = import::needs(entry, &settings::variable).variables;
    if let Some(name) = unset.into_iter().next() {
        let reason = format!("the variable {name} is not set");
        let remedy = Some(format!("set {name}, then run `plugbay setup` again"));
        let reason = StartFailure { reason, remedy, stderr: Vec::new(), stdout: Vec::new() };
        return Fate::Stays { reason, needs: Some(Need::Variable(name)) };
    }
    let refused = ["HTTP 401", "HTTP 403"].iter().any(|code| failure.reason.contains(code));
    Fate::Stays { reason: failure, needs: refused.then_some(Need::Login) }
}
