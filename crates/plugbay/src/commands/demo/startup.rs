//! All servers start at once, one of them fails, and what their tools cost in a model's context.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use plugbay_core::{
    failure::Failure,
    name::ServerName,
    surface::Snapshot,
    tokens::{Cost, Ledger},
};
use plugbay_upstream::Condition;
use serde::Serialize;

use super::{CommandError, milliseconds, sandbox::Sandbox};
use crate::{
    app::{App, Environment},
    commands::{
        StartFailure,
        start::start,
        tokens::{Listed, MODES, in_mode},
    },
    settings::Source,
    tokenizer,
};

#[derive(Debug, Serialize)]
pub(super) struct Startup {
    events: Vec<Event>,
    pub(super) failures: Failures,
    pub(super) costs: Costs,
}

/// A server's change of state, and how long after the start it happened.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    #[serde(rename = "after_ms", serialize_with = "milliseconds")]
    pub after: Duration,
    pub server: String,
    pub state: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Failures(pub Vec<Failed>);

#[derive(Debug, Serialize)]
pub struct Failed {
    pub server: String,
    #[serde(flatten)]
    pub trouble: StartFailure,
}

/// The tokens of each server's tools, and the total.
#[derive(Debug, Serialize)]
pub struct Costs {
    pub servers: Vec<ServerCost>,
    pub tools: usize,
    pub tokens: usize,
    /// What a host gets in each mode.
    pub modes: Vec<Listed>,
}

#[derive(Debug, Serialize)]
pub struct ServerCost {
    pub server: String,
    pub tools: usize,
    pub tokens: usize,
}

/// Starts the gateway without a host, to watch the states of its servers.
pub(super) async fn watch(
    sandbox: &Sandbox,
    environment: &Environment,
    mut show: impl FnMut(&Event),
) -> Result<Startup, CommandError> {
    let settings = Source::new(Some(sandbox.config("all")?)).load();
    // Without a cache, so that no server counts as known.
    let app = App::assemble(&settings, Environment { cache_folder: None, ..environment.clone() });
    let started = Instant::now();
    let mut events = Vec::new();
    let failures = start(
        &app,
        |_| true,
        |server, condition| {
            let state = state(condition);
            let event = Event { after: started.elapsed(), server: server.to_string(), state };
            show(&event);
            events.push(event);
        },
    );
    let failures = failures.await;
    let costs = Costs::of(&app.snapshots().borrow());
    app.shut_down().await;
    let failed = |(name, failure): (&ServerName, &Arc<Failure>)| Failed {
        server: name.to_string(),
        trouble: StartFailure::from(&**failure),
    };
    Ok(Startup { events, failures: Failures(failures.iter().map(failed).collect()), costs })
}

impl Costs {
    fn of(snapshot: &Snapshot) -> Self {
        let ledger = Ledger::of(&snapshot.names, tokenizer::count);
        let cost = |(name, Cost { tools, tokens }): (ServerName, Cost)| ServerCost {
            server: name.to_string(),
            tools,
            tokens,
        };
        let Cost { tools, tokens } = ledger.total();
        let servers = ledger.by_server().into_iter().map(cost).collect();
        Self { servers, tools, tokens, modes: MODES.map(|mode| in_mode(snapshot, mode)).into() }
    }
}

fn state(condition: &Condition) -> &'static str {
    match condition {
        Condition::Idle => "idle",
        Condition::Warming | Condition::Slow(_) => "warming",
        Condition::Ready => "ready",
        Condition::Error(_) => "error",
    }
}
