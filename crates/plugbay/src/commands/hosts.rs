//! `plugbay hosts`: the profiles of hosts, and the mode that each of them gets.

use std::process::ExitCode;

use plugbay_core::{
    auto::{self, Sizes},
    exposure::Mode,
    profile::Profile,
    surface::{AgentAccess, Snapshot, View},
};
use serde::Serialize;

use super::{CommandError, Context};
use crate::app::App;

/// Show what is known of each host, and which mode it gets and why.
#[derive(Debug, clap::Args)]
pub struct HostsArgs {}

#[derive(Debug, Serialize)]
pub struct Hosts {
    pub hosts: Vec<Row>,
    /// The mode in the configuration, unless it is `auto`.
    pub configured: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub profile: Profile,
    pub mode: String,
    pub why: String,
}

pub async fn hosts(context: &Context) -> Result<ExitCode, CommandError> {
    let settings = context.settings_in_passing()?;
    let app = App::assemble(&settings, context.environment.clone());
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;
    let configured = settings.mode.map(|mode| mode.to_string());
    context.output.show(&Hosts { hosts: rows(&snapshot), configured });
    if !snapshot.settled {
        context.output.note(
            "some servers have never connected, so the modes may change; `plugbay list` connects to all",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// One row per profile; hosts without a profile come last.
pub fn rows(snapshot: &Snapshot) -> Vec<Row> {
    let (hosts, unknown) = (&snapshot.layout.hosts, snapshot.layout.hosts.unknown());
    let known = hosts.iter().filter(|profile| profile.name != unknown.name);
    known.chain([unknown]).map(|profile| row(profile, snapshot)).collect()
}

fn row(profile: &Profile, snapshot: &Snapshot) -> Row {
    let (mode, why) = chosen(profile, snapshot);
    Row { profile: profile.clone(), mode: mode.to_string(), why }
}

/// How a host with this profile sees the catalog in a mode.
pub fn view(profile: &Profile, snapshot: &Snapshot, mode: Mode) -> View {
    View { agents: snapshot.layout.agents == AgentAccess::Everybody, ..View::of(profile, mode) }
}

/// The mode that a host with this profile gets, and why.
pub fn chosen(profile: &Profile, snapshot: &Snapshot) -> (Mode, String) {
    let choice = auto::choose(profile, Sizes::of(snapshot));
    match snapshot.layout.mode {
        Some(mode) => (mode, "configured".to_owned()),
        None => (choice.mode, choice.why()),
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fmt::Write, fs, path::Path};

    use plugbay_core::profile::Profiles;

    use super::*;

    /// The mean of 78 real servers, in o200k.
    const TOKENS_PER_TOOL: usize = 348;
    const TOOLS_PER_SERVER: usize = 10;

    /// Set `UPDATE_DOCS=1` to rewrite the table.
    #[test]
    fn the_table_in_the_docs_is_true() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/auto.md");
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&file, table()).unwrap();
        }
        let published = fs::read_to_string(&file).unwrap_or_default();
        assert!(published == table(), "run the tests with UPDATE_DOCS=1 and commit the result");
    }

    fn table() -> String {
        let mut text = format!(
            "# What `auto` chooses\n\n\
             For {TOKENS_PER_TOOL} tokens a tool and {TOOLS_PER_SERVER} tools a server. `plugbay hosts` shows the same for your servers,\n\
             `plugbay tokens --explain` how it is computed. A test writes this file.\n\n\
             | host | 3 tools | 30 tools | 300 tools |\n|---|---|---|---|\n"
        );
        for profile in Profiles::default().iter().chain([&Profile::unknown()]) {
            let modes = [3, 30, 300].map(|tools: usize| {
                let servers = tools.div_ceil(TOOLS_PER_SERVER);
                let sizes = Sizes { servers, tools, tokens: tools * TOKENS_PER_TOOL, words: 0 };
                auto::choose(profile, sizes).mode.to_string()
            });
            let _ = writeln!(text, "| {} | {} |", profile.name, modes.join(" | "));
        }
        text
    }
}
