//! Removes servers from plugbay's configuration again, if their hosts could not be wired.

use plugbay_hosts::{jsonc, read};

use super::{CommandError, HostReport, Report, apply::Writer, plan::Edit, undo::undo_changes};
use crate::{
    import::CONTAINERS,
    journal::{Change, Part},
};

/// Corrects the report and the configuration after some hosts have failed: a server that stays in its host
/// must not be in plugbay's configuration. The changes of this setup begin at the number `first`.
pub fn withdraw(
    writer: &mut Writer<'_>,
    configuration: &Edit,
    report: &mut Report,
    first: u64,
) -> Result<(), CommandError> {
    if !report.hosts.iter().any(HostReport::failed) {
        return Ok(());
    }
    let Report { servers, hosts, .. } = report;
    let is_failed = |id: &str| hosts.iter().any(|host| host.id == id && host.failed());
    for server in servers.iter_mut() {
        server.stay_in(is_failed);
    }
    if hosts.iter().all(HostReport::failed) {
        let own = |change: &Change| change.number >= first && change.part == Part::Configuration;
        return undo_changes(writer.journal, own).map(drop);
    }
    let moved = |name: &String| servers.iter().any(|server| server.name == *name && server.fate.moves());
    let new = added(configuration).iter().filter(|name| !moved(name)).try_fold(
        configuration.new.clone(),
        |text, name| {
            let container = |text: String, key: &str| -> Result<String, jsonc::EditError> {
                Ok(jsonc::remove(&text, &[key, name])?.unwrap_or(text))
            };
            CONTAINERS.into_iter().try_fold(text, container)
        },
    );
    let new = new.map_err(|error| CommandError::failed(error.to_string()))?;
    let edit = Edit { path: configuration.path.clone(), old: Some(configuration.new.clone()), new };
    writer.configuration(&edit).map_err(|error| CommandError::failed(error.to_string()))
}

/// The servers that this setup has added to the configuration.
fn added(configuration: &Edit) -> Vec<String> {
    let names = |text: &str| {
        let found = read::read_any(&configuration.path, text).unwrap_or_default().found;
        found.into_iter().map(|found| found.entry.name).collect::<Vec<String>>()
    };
    let old = names(configuration.old.as_deref().unwrap_or_default());
    names(&configuration.new).into_iter().filter(|name| !old.contains(name)).collect()
}
