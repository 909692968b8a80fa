//! Gathers the facts about hosts on this machine: their files, their processes, and their gateways.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use plugbay_hosts::{
    Launch, jsonc,
    known::{self, Host, HostFile},
    read::{Reading, read},
};

use super::examination::{GatewayFacts, HostFacts, HostFileFacts};
use crate::{
    commands::{self, Context},
    daemon::socket::Place,
    files,
    import::leads_to_plugbay,
    settings::{self, Variables},
    status_file::{self, GatewayStatus, Transport},
};

/// The hosts that are installed.
pub fn gather(context: &Context) -> Vec<HostFacts> {
    let Some(places) = settings::host_places(&context.environment.project) else {
        return Vec::new();
    };
    let installed = known::all().iter().filter(|host| host.installed(&places, &|path| path.exists()));
    let processes = processes(&places.home);
    let facts = |host: &'static Host| HostFacts {
        host,
        files: host.files(&places).iter().filter_map(file).collect(),
        processes: processes.iter().filter(|process| process.is(host)).map(|process| process.pid).collect(),
        variables: variables(host),
    };
    installed.map(facts).collect()
}

/// The running gateways.
pub fn gateways(context: &Context) -> Vec<GatewayFacts> {
    let folder = context.source.paths.status_folder();
    let running = folder.map(|folder| status_file::running(&folder)).unwrap_or_default();
    let windows = windows(context);
    let facts = |status: GatewayStatus| GatewayFacts {
        outdated: status.transport != Transport::Daemon && is_outdated(&status),
        parents: match status.transport {
            Transport::Daemon => windows.iter().flat_map(|pid| parents(*pid)).collect(),
            _ => parents(status.pid).collect(),
        },
        status,
    };
    running.into_iter().map(facts).collect()
}

/// The bridges of the daemon, which were started by hosts.
fn windows(context: &Context) -> Vec<u32> {
    let place = Place::found(&context.source.paths);
    let daemon = place.and_then(|place| commands::daemon::status(&place).ok()?);
    daemon.map(|daemon| daemon.windows.iter().map(|window| window.pid).collect()).unwrap_or_default()
}

fn parents(pid: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(parent(pid), |pid| parent(*pid)).take(MOST_PARENTS)
}

/// Limit of parent processes. More would be a cycle that arose while they were being read.
const MOST_PARENTS: usize = 100;

fn file(file: &HostFile) -> Option<HostFileFacts> {
    let text = files::read_text(&file.path).ok()?;
    let reading = read(file.host, &text).map_err(|error| error.to_string());
    let missing_programs = reading.as_ref().map(missing_programs).unwrap_or_default();
    Some(HostFileFacts { path: file.path.clone(), scope: file.scope, reading, missing_programs })
}

/// The programs of plugbay's own entries that are given by a path and do not exist.
fn missing_programs(reading: &Reading) -> Vec<String> {
    let own = reading.found.iter().filter(|found| leads_to_plugbay(&found.entry));
    let programs = own.filter_map(|found| match &found.entry.launch {
        Launch::Process { command, .. } => Some(command.clone()),
        Launch::Remote(_) => None,
    });
    programs.filter(|program| program.starts_with('/') && !Path::new(program).is_file()).collect()
}

/// The variables that a host sets for itself.
fn variables(host: &Host) -> Variables {
    let user = settings::claude_code().1.filter(|_| host.id == "claude-code");
    let text = user.and_then(|folder| files::read_text(&folder.join("settings.json")).ok());
    let env = text.and_then(|text| jsonc::get(&text, &["env"]).ok()??.as_object().cloned());
    let members = env.into_iter().flatten();
    Variables::of(
        members.map(|(name, value)| (name, value.as_str().map_or(value.to_string(), str::to_owned))),
    )
}

/// A process of this user, with the names that identify it.
struct Process {
    pid: u32,
    /// The names of its program, and of the script that it runs.
    names: Vec<String>,
}

impl Process {
    fn is(&self, host: &Host) -> bool {
        let program = match host.id.as_str() {
            "claude-code" => "claude",
            "gemini-cli" => "gemini",
            "copilot-cli" => "copilot",
            "qwen-code" => "qwen",
            id @ ("codex" | "opencode" | "goose") => id,
            _ => return false,
        };
        self.names.iter().any(|name| name == program)
    }
}

/// The processes with this home folder; none on systems without `/proc`.
fn processes(home: &Path) -> Vec<Process> {
    let mark = format!("HOME={}", home.display());
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| process(pid, &mark)).collect()
}

fn process(pid: u32, mark: &str) -> Option<Process> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    if !environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
        return None;
    }
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|byte| *byte == 0).take(2).map(|word| String::from_utf8_lossy(word).into_owned());
    let names = words.filter_map(|word| Some(Path::new(&word).file_name()?.to_string_lossy().into_owned()));
    Some(Process { pid, names: names.collect() })
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program is in parentheses and may contain anything.
    let parent: u32 = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 1).then_some(parent)
}

/// Whether the program of a gateway was replaced after the gateway started.
fn is_outdated(gateway: &GatewayStatus) -> bool {
    let Ok(program) = fs::read_link(format!("/proc/{}/exe", gateway.pid)) else { return false };
    let replaced: Option<PathBuf> =
        program.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    let started = UNIX_EPOCH + Duration::from_secs(gateway.since);
    let written = fs::metadata(&program).and_then(|metadata| metadata.modified());
    replaced.is_some_and(|path| path.is_file()) || written.is_ok_and(|written| written > started + CLOCK_STEP)
}

/// The precision of a process's start time.
const CLOCK_STEP: Duration = Duration::from_secs(1);
