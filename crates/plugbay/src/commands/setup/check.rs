//! Checks a wired host: its file has plugbay's entry, and the entry's program answers as a server.

use std::collections::BTreeMap;

use plugbay_core::profile::Profiles;
use plugbay_hosts::{
    Entry, Launch,
    known::Host,
    own,
    read::{self, Found},
};

use super::{Context, plan::HostPlan, survey::read_text, trial::try_quietly};
use crate::import::leads_to_plugbay;

/// Starts plugbay as in hosts' entries. Hosts with equal entries and no profile share one start.
#[derive(Debug, Default)]
pub struct Checker {
    started: BTreeMap<String, Result<usize, String>>,
}

impl Checker {
    /// The number of tools that the host sees, or why it sees none.
    pub async fn check(&mut self, context: &Context, plan: &HostPlan) -> Result<usize, String> {
        let entry = as_host(own_entry(plan)?, plan.host);
        let text = configuration(&entry).map_err(|error| error.to_string())?;
        if let Some(known) = self.started.get(&text) {
            return known.clone();
        }
        let result = start(context, &entry, &text).await;
        self.started.insert(text, result.clone());
        result
    }
}

/// The entry with the host's profile, so that plugbay lists the tools that this host gets.
fn as_host(mut entry: Entry, host: &Host) -> Entry {
    if let Launch::Process { args, .. } = &mut entry.launch
        && args.iter().any(|arg| arg == "serve")
        && !args.iter().any(|arg| arg.starts_with("--host"))
        && Profiles::built_in(&host.id).is_some()
    {
        args.extend(["--host".to_owned(), host.id.clone()]);
    }
    if let Launch::Process { env, .. } = &mut entry.launch {
        // A check must leave no daemon running.
        env.insert("PLUGBAY_DAEMON".to_owned(), "off".to_owned());
    }
    entry
}

/// plugbay's entry as it is now in the file. Fails if an entry is still there that should have moved.
fn own_entry(plan: &HostPlan) -> Result<Entry, String> {
    let file = plan.servers.path.display();
    let found = servers(plan.host, plan).map_err(|reason| format!("{file}: {reason}"))?;
    let left = plan.moved.iter().find(|moved| found.iter().any(|found| found.key == moved.key));
    if let Some(left) = left {
        return Err(format!("{file} still has {}", left.entry.name));
    }
    let own = found.into_iter().find(|found| leads_to_plugbay(&found.entry));
    own.map(|found| found.entry).ok_or_else(|| format!("{file} has no entry of plugbay"))
}

fn servers(host: &Host, plan: &HostPlan) -> Result<Vec<Found>, String> {
    let text = read_text(&plan.servers.path).map_err(|error| error.to_string())?.unwrap_or_default();
    let reading = read::read(host, &text).map_err(|error| error.to_string())?;
    Ok(reading.found)
}

/// A configuration with plugbay as its only server.
fn configuration(entry: &Entry) -> Result<String, plugbay_hosts::jsonc::EditError> {
    plugbay_hosts::jsonc::set("{}", &["mcpServers", super::OWN_NAME], own::value(entry))
}

/// Sends `initialize` and `tools/list` to the entry's program, started with the small environment that
/// servers get.
async fn start(context: &Context, entry: &Entry, text: &str) -> Result<usize, String> {
    let trial = try_quietly(context, text).await.map_err(|error| error.message)?;
    if let Some(failure) = trial.failures.values().next() {
        let program = match &entry.launch {
            Launch::Process { command, .. } => command.clone(),
            Launch::Remote(remote) => remote.url.clone(),
        };
        return Err(format!("{program} does not answer: {}", failure.reason));
    }
    Ok(trial.snapshot.names.iter().count())
}
