//! Starts servers before their entries are written, and shows what they offer.

use std::collections::BTreeMap;

use plugbay_core::{era::Era, name::ServerName, tokens::Ledger};
use serde::Serialize;

use crate::{
    app::App,
    commands::{Context, StartFailure, start::start},
    config::Settings,
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
    /// As hosts see it.
    pub name: String,
    pub tokens: usize,
    pub description: String,
}

pub type Trials = BTreeMap<ServerName, Result<Offer, StartFailure>>;

/// Starts these servers of the settings, all at once, and no others.
pub async fn try_out(context: &Context, mut settings: Settings, wanted: &[ServerName]) -> Trials {
    settings.servers.retain(|server| wanted.contains(&server.name));
    settings.natural_language = None;
    settings.search.model = None;
    tokenizer::prepare();
    let app = App::assemble(&settings, context.environment.clone());
    let names: Vec<String> = settings.servers.iter().map(|server| server.name.to_string()).collect();
    context.output.progress(&format!("starting {}", names.join(", ")));
    let mut failures = start(&app, |_| true, |_, _| {}).await;
    context.output.progress("counting tokens");
    let snapshot = app.snapshots().borrow().clone();
    let ledger = Ledger::of(&snapshot.names, tokenizer::count);
    let trial = |server: &crate::config::ServerSettings| {
        if let Err(reason) = &server.spec {
            return Err(StartFailure { reason: reason.clone(), ..StartFailure::default() });
        }
        if let Some(failure) = failures.remove(&server.name) {
            return Err(StartFailure::from(&*failure));
        }
        let entries = ledger.entries.iter().filter(|entry| entry.server == server.name);
        let tools: Vec<ToolCost> = entries
            .map(|entry| ToolCost {
                name: entry.tool.name.clone(),
                tokens: entry.tokens,
                description: entry.tool.description().unwrap_or_default(),
            })
            .collect();
        let era = snapshot.catalog.get(&server.name).map_or(Era::Legacy, |known| known.offer.dialect.era);
        Ok(Offer { era, tokens: tools.iter().map(|tool| tool.tokens).sum(), tools })
    };
    let mut trial = trial;
    let trials = settings.servers.iter().map(|server| (server.name.clone(), trial(server))).collect();
    context.output.progress_done();
    app.shut_down().await;
    trials
}
