//! Activate mode: servers, or single tools of them, are switched on and off.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::Arc,
};

use super::{Problem, Snapshot, View, found::Found};
use crate::{
    exposure::Mode,
    failure::Failure,
    name::{self, ServerName},
    policy::Patterns,
    server_state::ServerState,
    text::word,
    tokens::estimate_definition,
    wire::elements,
};

/// How many servers are named in reply to a name that is like none of them.
const MOST_TOLD: usize = 20;
/// What to do about problems of the configuration.
const MENDING: &str =
    "`plugbay doctor`, run in a terminal, finds and mends problems. plugbay reads changed files at once.\n";

/// What has been switched on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Active(BTreeMap<ServerName, Extent>);

/// How much of a server is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Extent {
    Whole,
    /// These tools, by the server's names for them.
    Tools(BTreeSet<String>),
}

/// A server, or tools of one, to be switched on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    pub server: ServerName,
    pub extent: Extent,
}

impl Active {
    pub fn has(&self, server: &ServerName, tool: &str) -> bool {
        match self.0.get(server) {
            None => false,
            Some(Extent::Whole) => true,
            Some(Extent::Tools(tools)) => tools.contains(tool),
        }
    }

    pub fn has_server(&self, server: &ServerName) -> bool {
        self.0.contains_key(server)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The state as text, for [`Active::restored`].
    pub fn saved(&self) -> String {
        let tools = |extent: &Extent| match extent {
            Extent::Whole => serde_json::Value::Bool(true),
            Extent::Tools(tools) => tools.iter().cloned().collect(),
        };
        let all = self.0.iter().map(|(server, extent)| (server.to_string(), tools(extent)));
        serde_json::Value::Object(all.collect()).to_string()
    }

    /// The state that another daemon has saved. What cannot be read is left out.
    pub fn restored(text: &str) -> Self {
        let all: BTreeMap<String, serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
        let active = all.into_iter().filter_map(|(server, extent)| {
            let extent = match extent {
                serde_json::Value::Bool(true) => Extent::Whole,
                tools => Extent::Tools(serde_json::from_value(tools).ok()?),
            };
            Some((ServerName::parse(&server).ok()?, extent))
        });
        Self(active.collect())
    }

    /// The servers of which anything is on.
    pub fn servers(&self) -> impl Iterator<Item = &ServerName> {
        self.0.keys()
    }

    pub fn switch_on(&mut self, switch: &Switch) {
        match (self.0.get_mut(&switch.server), &switch.extent) {
            (Some(Extent::Whole), _) => {}
            (Some(Extent::Tools(on)), Extent::Tools(more)) => on.extend(more.iter().cloned()),
            _ => {
                self.0.insert(switch.server.clone(), switch.extent.clone());
            }
        }
    }

    /// `all` are the tools of the server: if it was on as a whole, the other tools stay on.
    pub fn switch_off(&mut self, switch: &Switch, all: impl Iterator<Item = String>) {
        let Extent::Tools(off) = &switch.extent else {
            self.0.remove(&switch.server);
            return;
        };
        let Some(on) = self.0.get_mut(&switch.server) else { return };
        let mut rest = match on {
            Extent::Whole => all.collect(),
            Extent::Tools(tools) => std::mem::take(tools),
        };
        rest.retain(|tool| !off.contains(tool));
        if rest.is_empty() {
            self.0.remove(&switch.server);
        } else {
            *on = Extent::Tools(rest);
        }
    }
}

/// The state of a server, as far as it matters for the use of its tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It has never listed its tools, and is being asked for them.
    Warming,
    Ready,
    Active,
    Failed(Arc<Failure>),
}

impl State {
    pub fn of(server: &ServerName, snapshot: &Snapshot, view: &View) -> Self {
        if let Some(failure) = snapshot.catalog.failure(server) {
            return Self::Failed(Arc::clone(failure));
        }
        let shown = match snapshot.mode_of(server, view) {
            Mode::All => true,
            Mode::Search | Mode::Suite | Mode::Code => false,
            Mode::Activate => view.active.has_server(server),
        };
        match snapshot.catalog.get(server) {
            None => Self::Warming,
            Some(_) if shown => Self::Active,
            Some(_) => Self::Ready,
        }
    }

    pub fn server_state(&self) -> ServerState {
        match self {
            Self::Warming => ServerState::Warming,
            Self::Ready => ServerState::Ready,
            Self::Active => ServerState::Active,
            Self::Failed(failure) => ServerState::of_failure(failure),
        }
    }
}

/// Why nothing can be switched: there is no such thing, or there are several.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    #[error("there is nothing named {wanted:?}{}", or_none(.near))]
    Unknown { wanted: String, near: Vec<String> },
    #[error("there is nothing named {wanted:?}; there are {}", some_of(.known))]
    Strange { wanted: String, known: Vec<String> },
    #[error("{wanted:?} can be {}: say which", .candidates.join(", "))]
    Ambiguous { wanted: String, candidates: Vec<String> },
    #[error("{server} has no tool {tool:?}{}", or_none(.near))]
    NoTool { server: ServerName, tool: String, near: Vec<String> },
}

fn or_none(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(" or ")) }
}

fn some_of(known: &[String]) -> String {
    if known.is_empty() {
        return "no servers; see gateway_status".to_owned();
    }
    let more = known.len().saturating_sub(MOST_TOLD);
    let told = known[..known.len() - more].join(", ");
    if more == 0 { told } else { format!("{told} and {more} more") }
}

/// The one server that a name stands for, however it is spelt.
pub fn server_meant(wanted: &str, snapshot: &Snapshot) -> Result<ServerName, Unclear> {
    let wanted = wanted.trim();
    match find_servers(wanted, snapshot) {
        Ok(servers) => match &servers[..] {
            [only] => Ok(only.clone()),
            several => {
                let candidates = several.iter().map(ToString::to_string).collect();
                Err(Unclear::Ambiguous { wanted: wanted.to_owned(), candidates })
            }
        },
        Err(ambiguous @ Unclear::Ambiguous { .. }) => Err(ambiguous),
        Err(_) => misspelt(wanted, snapshot),
    }
}

/// What a model means by a name: a server, however it is spelt, or tools of one (`github.get_*`).
pub fn meant(wanted: &str, snapshot: &Snapshot) -> Result<Vec<Switch>, Unclear> {
    let wanted = wanted.trim();
    // The name of a tool alone says whose it is, if only one server has it.
    let is_named = |found: &&Found| found.target.tool == wanted || found.exposed == wanted;
    let named: Vec<&Found> = snapshot.names.iter().filter(is_named).collect();
    let is_server = snapshot.servers().iter().any(|server| server.as_str().eq_ignore_ascii_case(wanted));
    match named[..] {
        [one] if !is_server => return Ok(vec![of_tools(&one.target.server, [one])]),
        [_, _, ..] if !is_server => {
            let name = |found: &&Found| format!("{}.{}", found.target.server, word(&found.target.tool));
            let candidates = named.iter().map(name).collect();
            return Err(Unclear::Ambiguous { wanted: wanted.to_owned(), candidates });
        }
        _ => {}
    }
    match find_servers(wanted, snapshot) {
        Ok(servers) => {
            let whole = |server: ServerName| Switch { server, extent: Extent::Whole };
            return Ok(servers.into_iter().map(whole).collect());
        }
        Err(ambiguous @ Unclear::Ambiguous { .. }) => return Err(ambiguous),
        Err(_) => {}
    }
    if let Some((server, tools)) = parted(wanted) {
        let servers = find_servers(server, snapshot)?;
        let each: Vec<_> = servers.iter().map(|server| tools_of(server, tools, snapshot)).collect();
        // If several servers match, those that have such a tool are meant.
        if each.iter().any(Result::is_ok) {
            return Ok(each.into_iter().flatten().collect());
        }
        return each.into_iter().collect();
    }
    if is_pattern(wanted) {
        return matching(wanted, snapshot);
    }
    misspelt(wanted, snapshot).map(|server| vec![Switch { server, extent: Extent::Whole }])
}

/// The servers that a name is about, as far as one can tell before all have listed their tools.
pub fn concerned(wanted: &str, snapshot: &Snapshot) -> Vec<ServerName> {
    let switches = meant(wanted, snapshot).unwrap_or_default();
    switches.into_iter().map(|switch| switch.server).collect()
}

fn is_pattern(wanted: &str) -> bool {
    wanted.contains(['*', '?', '{', '['])
}

/// The tools of any server whose own names, or those that hosts see, fit a pattern.
fn matching(wanted: &str, snapshot: &Snapshot) -> Result<Vec<Switch>, Unclear> {
    let Ok(patterns) = Patterns::compile([wanted]) else { return Err(strange(wanted, snapshot)) };
    let mut switches: BTreeMap<&ServerName, Vec<&Found>> = BTreeMap::new();
    for found in snapshot.names.iter() {
        if patterns.matches(&found.target.tool) || patterns.matches(&found.exposed) {
            switches.entry(&found.target.server).or_default().push(found);
        }
    }
    if switches.is_empty() {
        return Err(strange(wanted, snapshot));
    }
    Ok(switches.into_iter().map(|(server, tools)| of_tools(server, tools)).collect())
}

fn strange(wanted: &str, snapshot: &Snapshot) -> Unclear {
    let known = snapshot.servers().iter().map(ToString::to_string).collect();
    Unclear::Strange { wanted: wanted.to_owned(), known }
}

/// Server and tool of `server.tool`, `server/tool` and `server__tool`.
fn parted(wanted: &str) -> Option<(&str, &str)> {
    let joints = [name::JOINT, ".", "/", ":"].into_iter();
    let parts = joints.filter_map(|joint| wanted.split_once(joint)).min_by_key(|(server, _)| server.len());
    parts.filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

/// The servers that a name or a pattern stands for: as it is, in any case, then as a part of a name.
fn find_servers(wanted: &str, snapshot: &Snapshot) -> Result<Vec<ServerName>, Unclear> {
    let servers = snapshot.servers();
    let unknown = || Unclear::Unknown { wanted: wanted.to_owned(), near: Vec::new() };
    if wanted.is_empty() {
        return Err(unknown());
    }
    if is_pattern(wanted) {
        let patterns = Patterns::compile([wanted]).map_err(|_| unknown())?;
        let all: Vec<ServerName> =
            servers.into_iter().filter(|server| patterns.matches(server.as_str())).collect();
        return if all.is_empty() { Err(unknown()) } else { Ok(all) };
    }
    let folded = wanted.to_lowercase();
    let by = |fits: &dyn Fn(&str) -> bool| -> Vec<ServerName> {
        servers.iter().filter(|server| fits(&server.as_str().to_lowercase())).cloned().collect()
    };
    let tries = [
        by(&|server| server == folded),
        by(&|server| server.starts_with(&folded)),
        by(&|server| server.contains(&folded)),
    ];
    match tries.into_iter().find(|found| !found.is_empty()) {
        None => Err(unknown()),
        Some(found) if found.len() == 1 => Ok(found),
        Some(found) => {
            let candidates = found.iter().map(ToString::to_string).collect();
            Err(Unclear::Ambiguous { wanted: wanted.to_owned(), candidates })
        }
    }
}

/// The one server whose name differs by a typing error.
fn misspelt(wanted: &str, snapshot: &Snapshot) -> Result<ServerName, Unclear> {
    let servers = snapshot.servers();
    let near = name::nearest(wanted, servers.iter().map(ServerName::as_str));
    if let [one] = near[..]
        && let Ok(server) = ServerName::parse(one)
    {
        return Ok(server);
    }
    if near.is_empty() {
        return Err(strange(wanted, snapshot));
    }
    let near = near.into_iter().map(str::to_owned).collect();
    Err(Unclear::Unknown { wanted: wanted.to_owned(), near })
}

/// Tools of a server, by its own names for them or by those that hosts see.
fn tools_of(server: &ServerName, wanted: &str, snapshot: &Snapshot) -> Result<Switch, Unclear> {
    // The tools of a server that never listed any are unknown: its state is reported for the whole server.
    if snapshot.catalog.get(server).is_none() {
        return Ok(Switch { server: server.clone(), extent: Extent::Whole });
    }
    let all: Vec<&Found> = snapshot.names.of(server).collect();
    let no_tool = || {
        let near = name::nearest(wanted, all.iter().map(|found| found.target.tool.as_str()));
        let near = near.into_iter().map(|tool| format!("{server}.{}", word(tool))).collect();
        Unclear::NoTool { server: server.clone(), tool: wanted.to_owned(), near }
    };
    let patterns = Patterns::compile([wanted]).map_err(|_| no_tool())?;
    let fits = |found: &&&Found| {
        let visible = name::split(&found.exposed).map_or(&*found.exposed, |(_, tool)| tool);
        found.exposed == wanted || patterns.matches(&found.target.tool) || patterns.matches(visible)
    };
    let fitting: Vec<&Found> = all.iter().filter(fits).copied().collect();
    if fitting.is_empty() { Err(no_tool()) } else { Ok(of_tools(server, fitting)) }
}

fn of_tools<'a>(server: &ServerName, tools: impl IntoIterator<Item = &'a Found>) -> Switch {
    let tools = tools.into_iter().map(|found| found.target.tool.clone()).collect();
    Switch { server: server.clone(), extent: Extent::Tools(tools) }
}

/// The whole gateway: problems of the configuration, each server's state, its tools, and what they cost.
/// Servers that work but are not running are `idle`.
pub fn overview(snapshot: &Snapshot, view: &View, is_idle: impl Fn(&ServerName) -> bool) -> String {
    let mut lines = problems(&snapshot.layout.problems);
    let servers = snapshot.servers();
    if servers.is_empty() {
        lines.push_str("no servers");
        return lines;
    }
    let is_small = snapshot.names.iter().map(length).sum::<usize>() <= READ_TO_COUNT;
    let cost = |tools: Vec<&Found>| if is_small { cost(tools) } else { roughly(tools.into_iter()) };
    let mut all = 0;
    for server in servers {
        let state = State::of(&server, snapshot, view);
        let tools: Vec<&Found> = snapshot.names.of(&server).collect();
        let visible = visible(&server, snapshot, view);
        let (count, tokens) = (tools.len(), cost(tools));
        let (count_on, tokens_on) = (visible.len(), cost(visible));
        all += tokens;
        let idle = matches!(state, State::Ready | State::Active) && is_idle(&server);
        let _ = write!(lines, "{server}: {}", if idle { ServerState::Idle } else { state.server_state() });
        let _ = match &state {
            State::Failed(failure) => writeln!(lines, ": {}", failure.with_advice()),
            State::Warming => writeln!(lines),
            State::Active if count_on < count => {
                writeln!(lines, ", {count_on} of {count} tools, ~{tokens_on} tokens")
            }
            State::Active | State::Ready => {
                writeln!(lines, ", {}, ~{tokens} tokens", tools_in_words(count))
            }
        };
        let entry = snapshot.catalog.get(&server);
        if let Some(left_out) = entry.and_then(|entry| entry.offer.left_out) {
            let _ = writeln!(lines, "{server}: its lists are too large: plugbay leaves out {left_out}");
        }
    }
    let listed = listed(snapshot, view);
    let saved = all.saturating_sub(listed);
    let _ = write!(lines, "in context: ~{listed} tokens; all tools: ~{all}, ~{saved} saved");
    lines
}

/// `1 tool`, `2 tools`.
pub fn tools_in_words(count: usize) -> String {
    format!("{count} tool{}", if count == 1 { "" } else { "s" })
}

fn problems(problems: &[Problem]) -> String {
    let mut lines = String::new();
    for problem in problems {
        let _ = writeln!(lines, "problem: {problem}");
    }
    if !lines.is_empty() {
        lines.push_str(MENDING);
    }
    lines
}

/// The tools of a server that are in the list.
pub fn visible<'a>(server: &'a ServerName, snapshot: &'a Snapshot, view: &View) -> Vec<&'a Found> {
    snapshot.names.of(server).filter(|found| view.shows(found, &snapshot.catalog)).collect()
}

/// Roughly how many tokens a model reads of the list, including our own tools.
fn listed(snapshot: &Snapshot, view: &View) -> usize {
    let tools = &snapshot.seen_by(view).listing.tools;
    if tools.len() > READ_TO_COUNT {
        return tools.len() / BYTES_PER_TOKEN;
    }
    let definitions = elements(tools, &(0..tools.len()));
    definitions.into_iter().map(|span| estimate_definition(&tools[span])).sum()
}

/// Tokens of definitions with more bytes are estimated from the length: the error is small by then.
pub(super) const READ_TO_COUNT: usize = 256 << 10;
/// Bytes of a definition per token, roughly.
pub(super) const BYTES_PER_TOKEN: usize = 5;

/// Roughly what tools cost a model, in tokens.
pub fn cost<'a>(tools: impl IntoIterator<Item = &'a Found>) -> usize {
    let tools: Vec<&Found> = tools.into_iter().collect();
    if tools.iter().map(|found| length(found)).sum::<usize>() > READ_TO_COUNT {
        return roughly(tools.into_iter());
    }
    tools.iter().map(|found| estimate_definition(&found.tool.definition)).sum()
}

fn roughly<'a>(tools: impl Iterator<Item = &'a Found>) -> usize {
    tools.map(length).sum::<usize>() / BYTES_PER_TOKEN
}

fn length(found: &Found) -> usize {
    found.tool.definition.len()
}
