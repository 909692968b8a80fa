//! Starts servers from a configuration that is not written yet.

use std::{collections::BTreeMap, fs};

use plugbay_core::surface::Snapshot;

use super::{CommandError, Context};
use crate::{
    app::{App, Environment},
    commands::start::{Failures, start, start_visibly},
    config::Settings,
    error::StartFailure,
    settings::Source,
};

/// The outcome of starting every server of a configuration.
#[derive(Debug)]
pub struct Trial {
    /// The offers of all servers.
    pub snapshot: Snapshot,
    pub failures: BTreeMap<String, StartFailure>,
}

/// Starts every server of this configuration text, prints a line about each, and stops them again. Their
/// tools go to the cache.
pub async fn try_servers(context: &Context, text: &str) -> Result<Trial, CommandError> {
    let (settings, app) = assembled(text, context.environment.clone())?;
    let failures = start_visibly(&app, context.output, |_| true).await;
    Ok(finished(&settings, app, &failures).await)
}

/// The same without the cache and without output: the answers come from the servers themselves.
pub async fn try_quietly(context: &Context, text: &str) -> Result<Trial, CommandError> {
    let environment = Environment { cache_folder: None, ..context.environment.clone() };
    let (settings, app) = assembled(text, environment)?;
    let failures = start(&app, |_| true, |_, _| {}).await;
    Ok(finished(&settings, app, &failures).await)
}

/// The offers of the servers in this configuration text, from the cache. Starts only servers that the cache
/// does not know.
pub async fn known_servers(context: &Context, text: &str) -> Result<Snapshot, CommandError> {
    let (settings, app) = assembled(text, context.environment.clone())?;
    let known = app.snapshots().borrow().clone();
    let failures = start(&app, |name| known.catalog.get(name).is_none(), |_, _| {}).await;
    Ok(finished(&settings, app, &failures).await.snapshot)
}

fn assembled(text: &str, environment: Environment) -> Result<(Settings, App), CommandError> {
    let folder = tempfile::tempdir()?; // only its owner can enter it
    let file = folder.path().join("config.jsonc");
    fs::write(&file, text)?;
    let settings = Source::new(Some(file)).load();
    let app = App::assemble(&settings, environment);
    Ok((settings, app))
}

async fn finished(settings: &Settings, app: App, failures: &Failures) -> Trial {
    let snapshot = app.snapshots().borrow().clone();
    app.shut_down().await;
    let unusable = settings.servers.iter().filter_map(|server| {
        let reason = server.spec.as_ref().err()?.clone();
        Some((server.name.to_string(), StartFailure { reason, ..StartFailure::default() }))
    });
    let failed = failures.iter().map(|(name, failure)| (name.to_string(), StartFailure::from(&**failure)));
    Trial { snapshot, failures: unusable.chain(failed).collect() }
}
