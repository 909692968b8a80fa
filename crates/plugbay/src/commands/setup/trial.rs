//! Starts servers from a configuration that is not written yet.

use std::collections::BTreeMap;

use plugbay_core::surface::Snapshot;
use plugbay_upstream::Condition;

use super::{CommandError, Context};
use crate::{
    app::{App, Environment},
    commands::start::start,
    error::StartFailure,
    settings::Source,
};

/// How every server of a configuration did.
#[derive(Debug)]
pub struct Trial {
    /// What all servers offer.
    pub snapshot: Snapshot,
    pub failures: BTreeMap<String, StartFailure>,
}

/// Starts every server of this configuration text, and stops them again. The cache learns their tools.
pub async fn try_servers(context: &Context, text: &str) -> Result<Trial, CommandError> {
    run(context, text, context.environment.clone()).await
}

/// The same without the cache: what answers is the server itself.
pub async fn try_uncached(context: &Context, text: &str) -> Result<Trial, CommandError> {
    run(context, text, Environment { cache_folder: None, ..context.environment.clone() }).await
}

async fn run(context: &Context, text: &str, environment: Environment) -> Result<Trial, CommandError> {
    let folder = tempfile::tempdir()?; // only its owner can enter it
    let file = folder.path().join("config.jsonc");
    std::fs::write(&file, text)?;
    let settings = Source::new(Some(file)).load();
    let app = App::assemble(&settings, environment);
    let mut waiting: Vec<String> = app.servers().keys().map(ToString::to_string).collect();
    let started = start(
        &app,
        |_| true,
        |name, condition| {
            if matches!(condition, Condition::Ready | Condition::Error(_)) {
                waiting.retain(|other| other != name.as_str());
            }
            if !waiting.is_empty() {
                context.output.progress(&format!("waiting for {}", waiting.join(", ")));
            }
        },
    );
    let started = started.await;
    context.output.progress_done();
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;
    let unusable = settings.servers.iter().filter_map(|server| {
        let reason = server.spec.as_ref().err()?.clone();
        Some((
            server.name.to_string(),
            StartFailure { reason, stderr: Vec::new(), stdout: Vec::new(), remedy: None },
        ))
    });
    let failed = started.iter().map(|(name, failure)| (name.to_string(), StartFailure::from(&**failure)));
    let failures = unusable.chain(failed).collect();
    Ok(Trial { snapshot, failures })
}
