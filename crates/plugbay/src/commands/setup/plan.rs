//! The changes of a setup: the servers that move, and the new text of every file.

use std::path::{Path, PathBuf};

use plugbay_hosts::{
    Entry, Launch,
    edit::{self, OwnEntry, allowed},
    known::{Host, Places},
    read::Found,
};
use serde::Serialize;

use super::{
    CommandError, OWN_NAME,
    rules::{Past, Rules},
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
    /// plugbay's entry, unless the host already has it.
    pub own: Option<OwnEntry>,
    pub moved: Vec<Found>,
    /// plugbay's names of the servers that the host had before an earlier setup.
    pub earlier: Vec<String>,
    pub permissions: Vec<Edit>,
}

/// A file with its current and its new text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub path: PathBuf,
    /// `None` if there is no such file.
    pub old: Option<String>,
    pub new: String,
}

/// A server of one or more hosts, with its fate.
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

impl Server {
    /// The entries that a host has for it.
    pub fn of_host(&self, host: &Host) -> impl Iterator<Item = &Found> {
        self.entries.iter().filter(|(id, _)| *id == host.id).map(|(_, found)| found)
    }
}

/// The fate of a server. Only a server that works through plugbay leaves its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "result")]
pub enum Fate {
    Moves,
    /// It moves disabled, as it is in its hosts.
    MovesDisabled,
    Stays {
        #[serde(flatten)]
        reason: StartFailure,
        #[serde(skip_serializing_if = "Option::is_none")]
        needs: Option<Need>,
    },
}

/// The step that the user must take before a server can work.
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
    /// The servers that plugbay already has.
    present: Present,
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

impl Server {
    /// Notes that the files of some hosts stay unchanged. A server that no other host has does not move.
    pub fn stay_in(&mut self, is_left: impl Fn(&str) -> bool) {
        let (left, wired): (Vec<String>, Vec<String>) =
            self.hosts.iter().cloned().partition(|id| is_left(id));
        if !self.fate.moves() || left.is_empty() {
            return;
        }
        if wired.is_empty() {
            self.fate = stays("its host could not be wired".to_owned());
            return;
        }
        self.notes.push(format!("stays in {}, which could not be wired", left.join(", ")));
        self.entries.retain(|(id, _)| !is_left(id));
        self.hosts = wired;
    }
}

impl Draft {
    pub fn new(survey: Survey, configuration: PathBuf, paths: &Paths) -> Result<Self, CommandError> {
        let text = read_text(&configuration)?;
        let present = present(&configuration, paths);

        let found = survey.hosts.iter().flat_map(|host| host.servers.iter().map(|found| origin(host, found)));
        let import = import::plan(found.collect(), &present);
        let mut draft = Self { survey, configuration, text, import, servers: Vec::new(), present };
        draft.servers = draft.merged();
        Ok(draft)
    }

    /// plugbay's configuration with every server that could move.
    pub fn candidate(&self) -> Result<String, CommandError> {
        self.configured(|_| true)
    }

    /// The plan: servers that worked in the trial move.
    pub fn plan(
        mut self,
        trial: &Trial,
        own: &OwnEntry,
        places: &Places,
        past: &Past,
    ) -> Result<Plan, CommandError> {
        for server in &mut self.servers {
            if let (Fate::Moves, Some(failure)) = (&server.fate, trial.failures.get(&server.name)) {
                server.fate = failed(&server.entries[0].1.entry, failure.clone());
            }
        }
        let mut problems = std::mem::take(&mut self.survey.problems);
        problems.extend(self.leave_alone(own, places, past));
        let moves = |name: &str| self.servers.iter().any(|server| server.name == name && server.fate.moves());
        let nobody = self.survey.hosts.is_empty();
        let new = if nobody { self.text.clone().unwrap_or_default() } else { self.configured(moves)? };
        let configuration = Edit { path: self.configuration.clone(), old: self.text.clone(), new };
        let mut plan = Plan { configuration, hosts: Vec::new(), servers: Vec::new(), problems };
        for host in &self.survey.hosts {
            match self.host_plan(host, own, places, past) {
                Ok(host) => plan.hosts.push(host),
                Err(problem) => plan.problems.push(problem),
            }
        }
        plan.servers = self.servers;
        plan.servers.extend(self.survey.hosts.iter().flat_map(staying));
        Ok(plan)
    }

    /// Removes the hosts whose files cannot be edited, so that their servers do not move.
    fn leave_alone(&mut self, own: &OwnEntry, places: &Places, past: &Past) -> Vec<FileProblem> {
        let hosts = self.survey.hosts.iter();
        let problems: Vec<FileProblem> =
            hosts.filter_map(|host| self.host_plan(host, own, places, past).err()).collect();
        let is_left = |id: &str| problems.iter().any(|problem| problem.host == id);
        self.survey.hosts.retain(|host| !is_left(&host.host.id));
        self.servers.iter_mut().for_each(|server| server.stay_in(is_left));
        problems
    }

    fn host_plan(
        &self,
        host: &SurveyedHost,
        own: &OwnEntry,
        places: &Places,
        past: &Past,
    ) -> Result<HostPlan, FileProblem> {
        let earlier = self.earlier(host, past);
        let rules = Rules::of(host, &self.servers, &self.present.names, &earlier);
        let plan = host_plan(host, &self.servers, own, &rules, places)?;
        Ok(HostPlan { earlier: earlier.into_iter().map(|(_, ours)| ours).collect(), ..plan })
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

    /// Each server once, with all its entries in hosts.
    fn merged(&self) -> Vec<Server> {
        let mut servers: Vec<Server> = Vec::new();
        let all =
            self.survey.hosts.iter().flat_map(|host| host.servers.iter().map(move |found| (host, found)));
        for (host, found) in all {
            let (name, fate, notes) = self.counterpart(host, found);
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

    /// The servers that an earlier setup moved out of this host: their names in the host and in plugbay.
    fn earlier(&self, host: &SurveyedHost, past: &Past) -> Vec<(String, String)> {
        let named = |found: Found| {
            let alone = import::plan(vec![origin(host, &found)], &self.present);
            let same = alone.same.into_iter().find(|same| !same.differs)?;
            Some((found.entry.name, same.name))
        };
        past.servers_of(host.host).into_iter().filter_map(named).collect()
    }

    /// A host server's name in plugbay, whether it can move, and notes for the user.
    fn counterpart(&self, host: &SurveyedHost, found: &Found) -> (String, Fate, Vec<String>) {
        let name = found.entry.name.clone();
        let alone = import::plan(vec![origin(host, found)], &self.present);
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
    Fate::Stays { reason: StartFailure { reason, ..StartFailure::default() }, needs: None }
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
    let moving = servers.iter().filter(|server| server.fate.moves());
    let moved: Vec<Found> = moving.flat_map(|server| server.of_host(host).cloned()).collect();
    let problem = |reason: String| FileProblem { host: host.id.clone(), file: file.clone(), reason };
    let old = text.clone().unwrap_or_default();
    // The user may have changed an entry of plugbay that already exists.
    let new = match surveyed.own {
        Some(_) => edit::take_out(host, &old, &moved),
        None => edit::wire(host, &old, own, &moved),
    };
    let new = new.map_err(|error| problem(error.to_string()))?;
    let allowed = allowed::with(host, &new, OWN_NAME).map_err(|error| problem(error.to_string()))?;
    let new = allowed.unwrap_or(new);
    let servers_edit = Edit { path: file.clone(), old: text.clone(), new: rules.applied(file, new)? };
    let own = surveyed.own.is_none().then(|| own.clone());
    let permissions = rules.edits(file, places)?;
    Ok(HostPlan { host, servers: servers_edit, own, moved, earlier: Vec::new(), permissions })
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

/// The reason why a server does not work: a variable that is not set, a login, or something else.
fn failed(entry: &Entry, failure: StartFailure) -> Fate {
    let unset = import::needs(entry, &settings::variable).variables;
    if let Some(name) = unset.into_iter().next() {
        let reason = format!("the variable {name} is not set");
        let remedy = Some(format!("set {name}, then run `plugbay setup` again"));
        let reason = StartFailure { reason, remedy, ..StartFailure::default() };
        return Fate::Stays { reason, needs: Some(Need::Variable(name)) };
    }
    if failure.needs_login {
        let name = &entry.name;
        let url = match &entry.launch {
            Launch::Remote(remote) => remote.url.as_str(),
            Launch::Process { .. } => "URL",
        };
        let remedy = Some(format!(
            "run `plugbay add {name} {url}` and `plugbay auth login {name}`, then `plugbay setup` again"
        ));
        return Fate::Stays { reason: StartFailure { remedy, ..failure }, needs: Some(Need::Login) };
    }
    let refused = ["HTTP 401", "HTTP 403"].iter().any(|code| failure.reason.contains(code));
    Fate::Stays { reason: failure, needs: refused.then_some(Need::Login) }
}
