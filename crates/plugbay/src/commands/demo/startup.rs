//! Servers starting together, one of them in vain, and what those that work cost a host.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use plugbay_core::{
    failure::Failure,
    name::ServerName,
    tokens::{Cost, Ledger},
};
use plugbay_upstream::Condition;
use serde::Serialize;

use super::{milliseconds, stage::Stage};
use crate::{
    app::{App, Environment},
    commands::{
        Trouble,
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

/// A server became something else, so long after the start.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    #[serde(rename = "after_ms", serialize_with = "milliseconds")]
    pub after: Duration,
    pub server: String,
    pub state: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Failures {
    pub failures: Vec<Failed>,
}

#[derive(Debug, Serialize)]
pub struct Failed {
    pub server: String,
    #[serde(flatten)]
    pub trouble: Trouble,
}

/// What each server costs, and all of them.
#[derive(Debug, Serialize)]
pub struct Costs {
    pub servers: Vec<ServerCost>,
    pub tools: usize,
    pub tokens: usize,
    /// And what a host sees of them in each mode.
    pub modes: Vec<Listed>,
}

#[derive(Debug, Serialize)]
pub struct ServerCost {
    pub server: String,
    pub tools: usize,
    pub tokens: usize,
}

/// The gateway of `plugbay serve` without a host, so that its servers can be watched.
pub(super) async fn watch(stage: &Stage, environment: &Environment, mut show: impl FnMut(&Event)) -> Startup {
    let settings = Source::new(Some(stage.config())).load();
    // No cache: everybody starts as if never met.
    let app = App::assemble(&settings, Environment { cache_folder: None, ..environment.clone() });
    let started = Instant::now();
    let mut events = Vec::new();
    let failures = start(
        &app,
        |_| true,
        |server, condition| {
            let shown = match condition {
                Condition::Asleep => "asleep",
                Condition::Warming => "warming",
                Condition::Ready => "ready",
                Condition::Failed(_) => "error",
            };
            let event = Event { after: started.elapsed(), server: server.to_string(), state: shown };
            show(&event);
            events.push(event);
        },
    );
    let failures = failures.await;
    let snapshot = app.snapshots().borrow().clone();
    let ledger = Ledger::of(&snapshot.names, tokenizer::count);
    app.shut_down().await;
    let Cost { tools, tokens } = ledger.total();
    let cost = |(name, cost): (ServerName, Cost)| ServerCost {
        server: name.to_string(),
        tools: cost.tools,
        tokens: cost.tokens,
    };
    let servers = ledger.by_server().into_iter().map(cost).collect();
    let modes = MODES.map(|mode| in_mode(&snapshot, mode)).into();
    let costs = Costs { servers, tools, tokens, modes };
    let failed = |(name, failure): (&ServerName, &Arc<Failure>)| Failed {
        server: name.to_string(),
        trouble: Trouble::from(&**failure),
    };
    let failures = Failures { failures: failures.iter().map(failed).collect() };
    Startup { events, failures, costs }
}
