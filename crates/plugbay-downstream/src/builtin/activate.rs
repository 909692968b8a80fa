//! `gateway_activate`, `gateway_deactivate` and `gateway_status`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::Arc,
    time::Duration,
};

use plugbay_core::{
    exchange::Warmed,
    exposure::Mode,
    failure::Failure,
    name::ServerName,
    signature::{LINE, Signature, Steps},
    size_limit::TooLong,
    surface::{
        BuiltinTool, Found, Snapshot,
        activate::{self, Extent, State, Switch},
        words_of,
    },
    text::listed,
    tokens::estimate,
};
use tokio::{
    sync::mpsc,
    task::yield_now,
    time::{sleep, timeout},
};

use super::call_arguments::Arguments;
use crate::{context::RequestContext, respond, session::Session};

/// The keys under which models name what they mean.
const NAMES: [&str; 4] = ["name", "names", "server", "servers"];
/// About how many tokens the signatures of activated tools may cost.
const SIGNATURES: usize = 2000;
/// A server that is already up reports within this time.
const AT_ONCE: Duration = Duration::from_millis(50);

pub(super) fn switch(context: RequestContext<'_>, tool: BuiltinTool) {
    let owned = context.to_owned();
    let switching = async move {
        let context = owned.borrow();
        let arguments = Arguments::of(context.request);
        let names = match requested_names(&arguments) {
            Ok(names) if names.is_empty() => {
                let missing = nothing_requested(context.session);
                let failed = vec![arguments.with_unknown(&missing, tool, &NAMES)];
                return SwitchOutcome { done: Vec::new(), failed };
            }
            Ok(names) => names,
            Err(too_long) => return SwitchOutcome { done: Vec::new(), failed: vec![too_long.to_string()] },
        };
        match tool {
            BuiltinTool::Activate => switch_on(context, &names).await,
            _ => switch_off(context.session, &names).await,
        }
    };
    context.later(switching, |context, outcome: SwitchOutcome| {
        let reply = outcome.text();
        context.text(&if outcome.done.is_empty() { Err(reply) } else { Ok(reply) });
    });
}

pub(super) fn overview(session: &Session) -> String {
    let snapshot = session.snapshot();
    let (view, choice) = session.host_view().view_of(&snapshot);
    let is_idle = |server: &ServerName| session.gateway().servers.is_idle(server);
    let overview = activate::overview(&snapshot, &view, is_idle);
    let why = choice.map_or_else(|| view.mode.to_string(), |choice| choice.to_string());
    format!("{overview}\nmode: {why}; host: {}", session.host_view().host().name)
}

/// The lines of the reply: what was done, and what failed.
#[derive(Default)]
struct SwitchOutcome {
    done: Vec<String>,
    failed: Vec<String>,
}

impl SwitchOutcome {
    fn text(&self) -> String {
        [&self.done[..], &self.failed[..]].concat().join("\n")
    }
}

/// The requested names: one, several, or several in one text.
fn requested_names(arguments: &Arguments<'_>) -> Result<Vec<String>, TooLong> {
    arguments.names(&NAMES, |text| parts(text).collect())
}

/// The error for a call that names nothing.
fn nothing_requested(session: &Session) -> String {
    let servers: Vec<String> = session.snapshot().servers().iter().map(ToString::to_string).collect();
    match &servers[..] {
        [] => "there are no servers; see gateway_status".to_owned(),
        _ => format!("\"name\" is missing: one of {}", listed(servers.iter().map(String::as_str))),
    }
}

/// Splits a text at commas and spaces, but not within the braces of a pattern.
fn parts(text: &str) -> impl Iterator<Item = String> {
    let mut depth = 0_usize;
    let parts = text.split(move |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || c.is_whitespace())
    });
    parts.map(|part| part.split_whitespace().collect::<String>()).filter(|name| !name.is_empty())
}

async fn switch_on(context: RequestContext<'_>, names: &[String]) -> SwitchOutcome {
    let session = context.session;
    let down = wait_for_servers(context, names).await;
    let (switches, failed) = resolve_switches(session, names).await;
    let mut outcome = SwitchOutcome { done: Vec::new(), failed };
    let snapshot = session.snapshot();
    let view = session.host_view().view_of(&snapshot).0;
    let mut working = Vec::new();
    for switch in switches {
        let state = State::of(&switch.server, &snapshot, &view);
        let state = down.get(&switch.server).map_or(state, |failure| State::Failed(Arc::clone(failure)));
        match (state, listed_elsewhere(snapshot.mode_of(&switch.server, &view))) {
            (State::Failed(failure), _) => {
                outcome.failed.push(format!("{} {}", switch.server, failure.of_server()));
            }
            (_, Some(place)) => outcome.done.push(format!("{}: {place}", switch.server)),
            (State::Warming, None) => {
                outcome.failed.push(format!("{} is no longer configured", switch.server));
            }
            (State::Ready | State::Active, None) => working.push(switch),
        }
    }
    if !working.is_empty() {
        change(session, |active| working.iter().for_each(|switch| active.switch_on(switch))).await;
    }
    let snapshot = session.snapshot();
    for (at, switch) in working.iter().enumerate() {
        let_others_run(at).await;
        outcome.done.push(activated(session, &snapshot, switch));
    }
    outcome
}

/// Waits until the servers of these names are ready. If a name is unknown yet, waits until all servers have
/// listed. Returns the servers that failed.
async fn wait_for_servers(context: RequestContext<'_>, names: &[String]) -> Down {
    let session = context.session;
    let snapshot = session.snapshot();
    let view = session.host_view().view_of(&snapshot).0;
    let mut servers = BTreeSet::new();
    for (at, name) in names.iter().enumerate() {
        let_others_run(at).await;
        let concerned = activate::concerned(name, &snapshot).into_iter();
        servers
            .extend(concerned.filter(|server| listed_elsewhere(snapshot.mode_of(server, &view)).is_none()));
    }
    let down = warmed_up(context, &servers).await;
    let snapshot = session.snapshot();
    for (at, name) in names.iter().enumerate() {
        let_others_run(at).await;
        if activate::meant(name, &snapshot).is_err() {
            session.gateway().settled().await;
            break;
        }
    }
    down
}

/// How the tools of a server are reached, if its mode has no activation.
fn listed_elsewhere(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Activate => None,
        Mode::All => Some("always in the list"),
        Mode::Search => Some("found with search_tools"),
        Mode::Code => Some("found with search_tools, and called in run_code"),
        Mode::Suite => Some("a tool of its own, which tells what it has"),
    }
}

async fn switch_off(session: &Arc<Session>, names: &[String]) -> SwitchOutcome {
    let snapshot = session.snapshot();
    let (switches, failed) = resolve_switches(session, names).await;
    change(session, |active| {
        for switch in &switches {
            let tools = snapshot.names.of(&switch.server).map(|found| found.target.tool.clone());
            active.switch_off(switch, tools);
        }
    })
    .await;
    SwitchOutcome { done: switches.iter().map(|switch| deactivated(session, switch)).collect(), failed }
}

/// Says what is off now, and what stays in the list anyway.
fn deactivated(session: &Session, switch: &Switch) -> String {
    let (snapshot, server) = (session.snapshot(), &switch.server);
    let view = session.host_view().view_of(&snapshot).0;
    if let Some(place) = listed_elsewhere(snapshot.mode_of(server, &view)) {
        return format!("{server}: {place}");
    }
    let off = match &switch.extent {
        Extent::Whole => format!("{server} is off"),
        Extent::Tools(tools) => {
            let verb = if tools.len() == 1 { "is" } else { "are" };
            format!("{} of {server} {verb} off", activate::tools_in_words(tools.len()))
        }
    };
    let pinned =
        activate::visible(server, &snapshot, &view).into_iter().filter(|found| view.pins(found)).count();
    if pinned == 0 { off } else { format!("{off}; {pinned} pinned tools stay in the list") }
}

async fn resolve_switches(session: &Session, names: &[String]) -> (Vec<Switch>, Vec<String>) {
    let snapshot = session.snapshot();
    let (mut switches, mut unclear): (Vec<Switch>, Vec<String>) = (Vec::new(), Vec::new());
    for (at, name) in names.iter().enumerate() {
        let_others_run(at).await;
        match activate::meant(name, &snapshot) {
            // Two names may mean the same.
            Ok(resolved) => {
                for switch in resolved {
                    if !switches.contains(&switch) {
                        switches.push(switch);
                    }
                }
            }
            Err(why) => unclear.push(why.to_string()),
        }
    }
    (switches, unclear)
}

/// Lets other tasks run before the next one of several names or servers: in a large catalog, each takes a while.
async fn let_others_run(at: usize) {
    if at > 0 {
        yield_now().await;
    }
}

/// Servers that cannot be started, and why.
pub(super) type Down = BTreeMap<ServerName, Arc<Failure>>;

/// Waits until each server is ready and listed, or has failed.
pub(super) async fn warmed_up(context: RequestContext<'_>, servers: &BTreeSet<ServerName>) -> Down {
    let session = context.session;
    let before = session.snapshot().catalog;
    let (sender, mut outcomes) = mpsc::unbounded_channel();
    for server in servers {
        let (sender, name) = (sender.clone(), server.clone());
        let send = move |outcome| drop(sender.send((name, outcome)));
        session.gateway().servers.warm(server, Warmed::new(send));
    }
    drop(sender);
    let (mut cold, mut down) = (servers.clone(), Down::new());
    loop {
        let outcome = if let Ok(outcome) = timeout(AT_ONCE, outcomes.recv()).await {
            outcome
        } else {
            report_waiting(context, servers, &cold);
            outcomes.recv().await
        };
        // Every sender has reported or is dropped.
        let Some((server, outcome)) = outcome else { break };
        cold.remove(&server);
        down.extend(outcome.err().map(|failure| (server, failure)));
    }
    // The catalog changes only after the server has reported.
    let is_known = |server: &ServerName, now: &Snapshot| {
        let stale = match (before.failure(server), now.catalog.failure(server)) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            _ => false,
        };
        (now.catalog.get(server).is_some() || now.catalog.failure(server).is_some()) && !stale
    };
    let is_clear =
        |server, now: &Snapshot| down.contains_key(server) || is_known(server, now) || !now.knows(server);
    let mut snapshots = session.gateway().snapshots.clone();
    let _ = snapshots.wait_for(|now| servers.iter().all(|server| is_clear(server, now))).await;
    down
}

fn report_waiting(context: RequestContext<'_>, all: &BTreeSet<ServerName>, cold: &BTreeSet<ServerName>) {
    let Some(token) = context.request.progress_token() else { return };
    let names: Vec<&str> = cold.iter().map(ServerName::as_str).collect();
    let message = format!("waiting for {}", names.join(", "));
    context.sink.send_if_room(respond::progress(token, all.len() - cold.len(), Some(all.len()), &message));
}

/// Changes the active tools, notifies the host and waits until it has listed them: its next turn must have them.
async fn change(session: &Arc<Session>, change: impl FnOnce(&mut activate::Active)) {
    let host_view = session.host_view();
    let mut listed = std::pin::pin!(host_view.listed.notified());
    listed.as_mut().enable();
    let before = session.snapshot().listing;
    host_view.switch(&session.gateway().servers, change);
    if session.snapshot().listing == before {
        return;
    }
    let notified = session.notify_list_changes();
    session.gateway().host_events.switched.notify_one(); // over HTTP other sessions may share the host view
    if host_view.shows_changes() && (notified || host_view.is_shared()) {
        let host = host_view.host();
        if timeout(host.pause(), listed).await.is_ok() {
            sleep(host.settling()).await;
        }
    }
}

/// Says what can be used now, and how.
fn activated(session: &Session, snapshot: &Snapshot, switch: &Switch) -> String {
    let fits = |found: &&Found| match &switch.extent {
        Extent::Whole => true,
        Extent::Tools(tools) => tools.contains(&found.target.tool),
    };
    let tools: Vec<&Found> = snapshot.names.of(&switch.server).filter(fits).collect();
    let tokens = activate::cost(tools.iter().copied());
    let mut text = format!("{}: {}, ~{tokens} tokens", switch.server, activate::tools_in_words(tools.len()));
    let words = words_of(&switch.server, snapshot).map(|words| format!("\n\n{words}")).unwrap_or_default();
    if session.host_view().shows_changes() {
        return text + &words;
    }
    text.push_str(if session.host_view().lists_again() {
        ". They are in the list when it is fetched again:"
    } else {
        ". Call them with execute_tool:"
    });
    let mut room = SIGNATURES;
    let tools: Vec<&Found> = tools.into_iter().filter(|found| found.is_for_model()).collect();
    let mut steps = Steps::default();
    for (at, found) in tools.iter().enumerate() {
        let line = Signature::for_line(&found.exposed, &found.tool, &mut steps).line(LINE);
        let cost = estimate(&line);
        if cost > room {
            let _ = write!(
                text,
                "\nand {} more; gateway_activate with {}.PATTERN shows some",
                tools.len() - at,
                switch.server
            );
            break;
        }
        room -= cost;
        let _ = write!(text, "\n{line}");
    }
    text + &words
}
