//! Checks of hosts: whether they start plugbay, which plugbay, and how they use its tools.

use std::collections::BTreeSet;

use plugbay_core::{exposure::Mode, profile::Profile};
use plugbay_hosts::{Entry, Launch, known::Format, read::Found};
use plugbay_upstream::spec::Transport;
use serde_json::json;

use super::super::{
    examination::{Examination, GatewayFacts, HostFacts, HostFileFacts, ServerFacts},
    finding::{Code, Finding, Severity, Subject},
    fix::Fix,
};
use crate::import::{self, Relation};

pub fn check(examination: &Examination) -> Vec<Finding> {
    let mut found = Vec::new();
    let wired = |facts: &&HostFacts| facts.own().next().is_some();
    for facts in &examination.hosts {
        found.extend(facts.files.iter().filter_map(|file| broken_file(facts, file)));
    }
    for facts in examination.hosts.iter().filter(wired) {
        found.extend(facts.files.iter().flat_map(|file| missing_programs(facts, file, examination)));
        found.extend(double_entries(facts, examination));
        found.extend(two_gateways(facts));
        found.extend(not_restarted(facts, examination));
        found.extend(deferral(facts, examination));
        found.extend(loads_all(facts, examination));
        found.extend(unseen_variant(facts, examination));
    }
    found.extend(examination.gateways.iter().filter(|gateway| gateway.outdated).map(outdated));
    found.extend(examination.gateways.iter().filter_map(without_daemon));
    found.extend(no_host(examination));
    found
}

fn of(code: Code, facts: &HostFacts, message: impl Into<String>, remedy: impl Into<String>) -> Finding {
    Finding::new(code, Subject::Host(facts.host.name.clone()), message, remedy)
}

/// No host starts plugbay. This is only a note: a user may want to try plugbay without a host.
fn no_host(examination: &Examination) -> Option<Finding> {
    let first = examination.hosts.first()?;
    let connected = examination.gateways.iter().any(|gateway| !gateway.status.hosts.is_empty());
    if connected || examination.hosts.iter().any(|facts| facts.own().next().is_some()) {
        return None;
    }
    let names: Vec<&str> = examination.hosts.iter().map(|facts| facts.host.name.as_str()).collect();
    let message = format!("No host starts plugbay yet. Installed: {}.", names.join(", "));
    Some(of(Code::NoHost, first, message, "run `plugbay setup`, which moves its servers to plugbay"))
}

fn broken_file(facts: &HostFacts, file: &HostFileFacts) -> Option<Finding> {
    let reason = file.reading.as_ref().err()?;
    let message = format!("Its file {} cannot be read, by the host neither.", file.path.display());
    Some(of(Code::HostFileBroken, facts, message, "correct the file").seen([reason.clone()]))
}

/// Entries that start a plugbay which does not exist.
fn missing_programs(facts: &HostFacts, file: &HostFileFacts, examination: &Examination) -> Vec<Finding> {
    let finding = |program: &String| {
        let message = format!("It starts {program}, which does not exist.");
        let remedy = format!("run `plugbay wire {}`", facts.host.id);
        let here = examination.program.to_string_lossy();
        let entry = facts.own().find(|(of, found)| of.path == file.path && command(found) == Some(program));
        let fix = entry.filter(|_| is_editable(facts, file)).map(|(_, found)| {
            let path = found.key.iter().cloned().chain(["command".to_owned()]).collect();
            Fix::Set { file: file.path.clone(), host: Some(facts.host), members: vec![(path, json!(here))] }
        });
        of(Code::HostProgramMissing, facts, message, remedy)
            .seen([file.path.display().to_string()])
            .fixed_by(fix)
    };
    file.missing_programs.iter().map(finding).collect()
}

fn command(found: &Found) -> Option<&String> {
    match &found.entry.launch {
        Launch::Process { command, .. } => Some(command),
        Launch::Remote(_) => None,
    }
}

/// Whether plugbay may change a file: it is JSON with the program as one string, and its host cannot be
/// writing it now.
fn is_editable(facts: &HostFacts, file: &HostFileFacts) -> bool {
    let rewrites = facts.host.command.is_some() && !facts.processes.is_empty();
    facts.host.format == Format::Json && !rewrites && facts.host.container != "mcp" && file.reading.is_ok()
}

/// Servers that a host starts itself although plugbay serves them, so that their tools are there twice.
fn double_entries(facts: &HostFacts, examination: &Examination) -> Vec<Finding> {
    let direct = facts.entries().filter(|(_, found)| !import::leads_to_plugbay(&found.entry));
    let doubled = direct.filter_map(|(file, found)| Some((file, found, twin(&found.entry, examination)?)));
    let finding = |(file, found, twin): (&HostFileFacts, &Found, Twin<'_>)| {
        let fix = (twin.replaces && is_editable(facts, file)).then(|| Fix::Remove {
            file: file.path.clone(),
            host: Some(facts.host),
            path: found.key.clone(),
        });
        let (message, remedy) = twin.words(&found.entry.name, file);
        of(Code::DoubleEntry, facts, message, remedy).fixed_by(fix)
    };
    doubled.map(finding).collect()
}

/// plugbay's server for the same program or address as an entry of a host.
pub struct Twin<'a> {
    server: &'a ServerFacts,
    /// Whether it works and does exactly the same as the host's entry, in every folder.
    replaces: bool,
}

/// The twin of a host's entry, the best one if there are several.
pub fn twin<'a>(entry: &Entry, examination: &'a Examination) -> Option<Twin<'a>> {
    let written = |server: &ServerFacts| {
        examination.written.iter().find(|written| written.name.eq_ignore_ascii_case(&server.name))
    };
    let relation = |server: &ServerFacts| {
        written(server).map_or(Relation::Different, |written| import::relation(written, entry))
    };
    let equal = |server: &&ServerFacts| {
        let passes = written(server)
            .is_some_and(|written| entry.pass_env.iter().all(|name| written.pass_env.contains(name)));
        relation(server) == Relation::Same && passes
    };
    let similar =
        |server: &&ServerFacts| relation(server) != Relation::Different || is_same(&entry.launch, server);
    let works = |server: &&ServerFacts| server.offered().is_some();
    let servers = || examination.servers.iter();
    if let Some(server) = servers().filter(works).find(equal) {
        return Some(Twin { server, replaces: true });
    }
    let server = servers().find(equal).or_else(|| servers().find(similar))?;
    Some(Twin { server, replaces: false })
}

impl Twin<'_> {
    /// The message and the remedy of the finding.
    fn words(&self, name: &str, file: &HostFileFacts) -> (String, String) {
        let (twin, file) = (&self.server.name, file.path.display());
        let both = format!("It starts {name} itself, and plugbay serves it as {twin}");
        if self.replaces {
            (format!("{both}: its tools are loaded twice."), format!("remove {name} from {file}"))
        } else if self.server.offered().is_some() {
            let message = format!("{both} with other variables, headers or another folder.");
            let remedy = format!(
                "compare {name} in {file} with `plugbay get {twin}`, then remove the one that is wrong"
            );
            (message, remedy)
        } else {
            let message = format!("{both}, but {twin} does not work.");
            let remedy = format!("keep {name} until `plugbay doctor {twin}` finds nothing wrong");
            (message, remedy)
        }
    }
}

/// Whether a host's entry starts the same program, or uses the same address, as our server.
fn is_same(launch: &Launch, server: &ServerFacts) -> bool {
    match (launch, server.spec.as_ref().map(|spec| &spec.transport)) {
        (Launch::Process { command, args, .. }, Ok(Transport::Stdio(ours))) => {
            let name = |command: &str| command.rsplit('/').next().unwrap_or_default().to_owned();
            name(command) == name(&ours.command) && *args == ours.args
        }
        (Launch::Remote(remote), Ok(Transport::Http(ours))) => remote.url == ours.url,
        _ => false,
    }
}

fn two_gateways(facts: &HostFacts) -> Option<Finding> {
    let own: Vec<(&HostFileFacts, &Found)> = facts.own().collect();
    let [(_, first), (file, second), ..] = own.as_slice() else { return None };
    // A project's entry of the same name replaces the user's.
    if own.iter().all(|(_, found)| found.entry.name == first.entry.name) {
        return None;
    }
    let message = format!(
        "It has two entries for plugbay, {} and {}: every tool is there twice.",
        first.entry.name, second.entry.name
    );
    let remedy = format!("remove one of them from {}", file.path.display());
    let same = first.entry.launch == second.entry.launch && is_editable(facts, file);
    let fix = same.then(|| Fix::Remove {
        file: file.path.clone(),
        host: Some(facts.host),
        path: second.key.clone(),
    });
    Some(of(Code::TwoGateways, facts, message, remedy).fixed_by(fix))
}

/// A host that is running but has not started plugbay.
fn not_restarted(facts: &HostFacts, examination: &Examination) -> Option<Finding> {
    let has_gateway = |pid: &u32| examination.gateways.iter().any(|gateway| gateway.parents.contains(pid));
    if facts.processes.is_empty() || facts.processes.iter().any(has_gateway) {
        return None;
    }
    let pids: Vec<String> = facts.processes.iter().map(ToString::to_string).collect();
    let message = format!(
        "It runs (process {}) and has not started plugbay, though its file names plugbay.",
        pids.join(", ")
    );
    Some(of(Code::HostNotRestarted, facts, message, facts.host.restart.clone()))
}

/// A window whose servers no other window shares.
fn without_daemon(gateway: &GatewayFacts) -> Option<Finding> {
    let reason = gateway.status.without_daemon.as_ref()?;
    let pid = gateway.status.pid;
    let message = format!("Its window (process {pid}) runs its servers without the daemon: {reason}.");
    let remedy = "remove the reason: the window goes back to the daemon, or does so when the host is restarted; with \
                  `--no-daemon` plugbay takes it for wanted";
    Some(Finding::new(Code::WithoutDaemon, Subject::Host(host_of(gateway)), message, remedy))
}

fn host_of(gateway: &GatewayFacts) -> String {
    let name = gateway.status.hosts.first().and_then(|group| group.host.name.clone());
    name.unwrap_or_else(|| "unknown host".to_owned())
}

fn outdated(gateway: &GatewayFacts) -> Finding {
    let status = &gateway.status;
    let host = host_of(gateway);
    let message =
        format!("Its gateway (process {}) runs a plugbay that has been replaced since.", status.pid);
    Finding::new(
        Code::OutdatedGateway,
        Subject::Host(host),
        message,
        "restart the host, which starts the new one",
    )
}

/// A mode chosen by the user that does not fit the host.
fn deferral(facts: &HostFacts, examination: &Examination) -> Option<Finding> {
    let mode = examination.settings.mode?;
    let profile = examination.settings.hosts.iter().find(|profile| profile.name == facts.host.id)?;
    let Profile { defers_from, lists_again, .. } = profile;
    if mode == Mode::Activate && !lists_again {
        let message = "It does not list tools again after an activation, and \"mode\" is \"activate\".";
        let remedy = "write \"mode\": \"auto\", or let the model call new tools with execute_tool";
        return Some(of(Code::IgnoresChanges, facts, message, remedy));
    }
    if mode != Mode::All && defers_from.is_some() {
        let message =
            format!("It hides tools behind a search of its own, and \"mode\": \"{mode}\" adds a second one.");
        return Some(of(Code::DoubleSearch, facts, message, "write \"mode\": \"auto\""));
    }
    None
}

/// Claude Code that does not defer tools: it then pays for all of them in every turn.
fn loads_all(facts: &HostFacts, examination: &Examination) -> Option<Finding> {
    if facts.host.id != "claude-code" || !matches!(examination.settings.mode, None | Some(Mode::All)) {
        return None;
    }
    let set = |name: &str| facts.variables.value(name).or_else(|| examination.variables.value(name));
    let off = |value: &str| matches!(value.to_ascii_lowercase().as_str(), "false" | "0" | "no" | "off");
    let remedy = "unset the variable, or write \"mode\": \"search\" in plugbay's configuration";
    let finding = |message: String| of(Code::LoadsAllTools, facts, message, remedy);
    if let Some(value) = set("ENABLE_TOOL_SEARCH").filter(|value| off(value)) {
        return Some(finding(format!(
            "ENABLE_TOOL_SEARCH={value} makes it load every tool into the context."
        )));
    }
    if set("CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS").is_some_and(|value| !off(value)) {
        let message = "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS makes it load every tool into the context.";
        return Some(finding(message.to_owned()));
    }
    let address = |names: &BTreeSet<String>| names.contains("ANTHROPIC_BASE_URL");
    let forced = set("ENABLE_TOOL_SEARCH").is_some();
    let other = address(&facts.variables.names) || address(&examination.variables.names);
    (other && !forced).then(|| {
        let message = "ANTHROPIC_BASE_URL is set: older versions (2.1.197 for one) then load every tool into the context.";
        let remedy = "update Claude Code, or set ENABLE_TOOL_SEARCH=true for it";
        let finding = of(Code::LoadsAllTools, facts, message, remedy);
        Finding { severity: Severity::Note, ..finding }
    })
}

/// A host that may behave differently from its profile. Only its user can know.
fn unseen_variant(facts: &HostFacts, examination: &Examination) -> Option<Finding> {
    let hosts = &examination.settings.hosts;
    let variants: Vec<String> = hosts
        .unseen_variants(&facts.host.id)
        .map(|variant| {
            format!("{} if {}", variant.name, variant.variant.note.as_deref().unwrap_or("you know it is"))
        })
        .collect();
    let is_told = |(_, found): (&HostFileFacts, &Found)| match &found.entry.launch {
        Launch::Process { args, .. } => args.iter().any(|arg| arg == "--host" || arg.starts_with("--host=")),
        Launch::Remote(_) => false,
    };
    if variants.is_empty() || facts.own().any(is_told) {
        return None;
    }
    let message = format!(
        "plugbay takes it for {}, and cannot see whether it is {}.",
        facts.host.id,
        variants.join(", or ")
    );
    let remedy = "if so, add `--host` and that name to plugbay's arguments in its file";
    Some(of(Code::UnseenVariant, facts, message, remedy))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plugbay_core::name::ServerName;
    use plugbay_upstream::spec::{Framing, ServerSpec, StdioSpec, Timeouts};

    use super::*;

    #[test]
    fn an_entry_is_the_same_server_wherever_its_program_is() {
        let launch = |command: &str| Launch::Process {
            command: command.to_owned(),
            args: vec!["-y".to_owned()],
            env: BTreeMap::new(),
            cwd: None,
        };
        let stdio = StdioSpec {
            command: "npx".to_owned(),
            args: vec!["-y".to_owned()],
            env: BTreeMap::new(),
            pass_env: vec![],
            cwd: None,
            framing: Framing::default(),
            origin: plugbay_upstream::spec::Origin::default(),
            references: plugbay_core::secret::KnownSecrets::default(),
        };
        let spec = ServerSpec {
            name: ServerName::parse("a").unwrap(),
            transport: Transport::Stdio(stdio),
            timeouts: Timeouts::default(),
            message_limit: 1,
            sanitize: true,
        };
        let server = ServerFacts {
            name: "a".to_owned(),
            spec: Ok(spec),
            program: None,
            elsewhere: vec![],
            substitute: None,
            dead_paths: vec![],
            start: None,
        };
        assert!(is_same(&launch("/usr/bin/npx"), &server));
        assert!(!is_same(&launch("uvx"), &server));
    }
}
