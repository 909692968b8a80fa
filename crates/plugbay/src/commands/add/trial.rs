//! Starts servers before their entries are written, and shows what they offer.

use std::{collections::BTreeMap, time::Duration};

use plugbay_core::{era::Era, name::ServerName, tokens::Ledger};
use serde::Serialize;

use crate::{
    app::App,
    commands::{Context, StartFailure, start::start},
    config::{ServerSettings, Settings},
    tokenizer,
};

/// What a server offers.
#[derive(Debug, Serialize)]
pub struct Offer {
    pub era: Era,
    pub tokens: usize,
    pub tools: Vec<ToolCost>,
}

#[derive(Debug, Serialize)]
pub struct ToolCost {
    /// The name that hosts see.
    pub name: String,
    pub tokens: usize,
    pub description: String,
}

/// Least time for a first start, which may download a package.
const FIRST_START: Duration = Duration::from_secs(120);

pub type Trials = BTreeMap<ServerName, Result<Offer, StartFailure>>;

/// Starts only these servers of the settings, all at once.
pub async fn try_out(context: &Context, mut settings: Settings, wanted: &[ServerName]) -> Trials {
    settings.servers.retain(|server| wanted.contains(&server.name));
    for spec in settings.servers.iter_mut().filter_map(|server| server.spec.as_mut().ok()) {
        spec.timeouts.start = spec.timeouts.start.max(FIRST_START);
    }
    settings.natural_language = None;
    settings.search.model = None;
    tokenizer::prepare();
    let app = App::assemble(&settings, context.environment.clone());
    let names: Vec<String> = settings.servers.iter().map(|server| server.name.to_string()).collect();
    context.output.progress(&format!("starting {}", names.join(", ")));
    let failures = start(&app, |_| true, |_, _| {}).await;
    context.output.progress("counting tokens");
    let snapshot = app.snapshots().borrow().clone();
    let ledger = Ledger::of(&snapshot.names, tokenizer::count);
    let trial = |server: &ServerSettings| match (&server.spec, failures.get(&server.name)) {
        (Err(reason), _) => Err(unusable(&settings, reason)),
        (Ok(_), Some(failure)) => Err(StartFailure::from(&**failure)),
        (Ok(_), None) => {
            let known = snapshot.catalog.get(&server.name);
            Ok(Offer::of(known.map_or(Era::Legacy, |known| known.offer.dialect.era), &ledger, &server.name))
        }
    };
    let trials = settings.servers.iter().map(|server| (server.name.clone(), trial(server))).collect();
    context.output.progress_done();
    app.shut_down().await;
    trials
}

/// The failure of an entry that plugbay cannot use. It names no place, because the entry is not in the file
/// yet.
fn unusable(settings: &Settings, reason: &str) -> StartFailure {
    let problem = settings.diagnostics.iter().find(|problem| problem.one_line() == reason);
    let (reason, remedy) = match problem {
        Some(problem) => (problem.message.clone(), problem.help.clone()),
        None => (reason.to_owned(), None),
    };
    StartFailure { reason, remedy, ..StartFailure::default() }
}

impl Offer {
    fn of(era: Era, ledger: &Ledger, server: &ServerName) -> Self {
        let entries = ledger.entries.iter().filter(|entry| entry.server == *server);
        let tools: Vec<ToolCost> = entries
            .map(|entry| ToolCost {
                name: entry.tool.name.clone(),
                tokens: entry.tokens,
                description: entry.tool.description().unwrap_or_default(),
            })
            .collect();
        Self { era, tokens: tools.iter().map(|tool| tool.tokens).sum(), tools }
    }
}
