//! `plugbay setup --undo` and `--show`: undoes changes, and shows them.

use std::{path::PathBuf, process::ExitCode};

use plugbay_hosts::{
    Entry,
    edit::{self, allowed},
    jsonc::{self, EditError},
    known::{self, Format, Host},
    read::{self, Found},
};
use serde::Serialize;

use super::{CommandError, Context, OWN_NAME, SetupArgs, diff::Diff, journal_folder, open_journal, survey};
use crate::{
    clock,
    import::{CONTAINERS, leads_to_plugbay},
    journal::{self, Change, Journal, Outcome, Part, Present, Texts, Undone},
};

/// The changes that plugbay has made and can undo.
#[derive(Debug, Serialize)]
pub struct History {
    pub changes: Vec<Past>,
}

/// One change.
#[derive(Debug, Serialize)]
pub struct Past {
    pub file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub part: Part,
    pub command: String,
    /// How long ago, in seconds.
    pub age: u64,
    pub undo: UndoPreview,
    /// The change as a diff, with secrets masked.
    pub diff: String,
}

/// The effect of undoing a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum UndoPreview {
    /// The file gets its old content, byte for byte.
    Restores,
    /// plugbay created the file, so it is removed.
    Removes,
    /// The file was changed since, so only plugbay's part is removed.
    Merges,
    /// The file is already as it was before.
    Nothing,
}

/// The result of `--undo`.
#[derive(Debug, Serialize)]
pub struct UndoReport {
    pub files: Vec<Undone>,
    /// How the user makes the hosts notice the changes.
    pub restart: Vec<&'static str>,
}

/// Shows the changes that plugbay has made.
pub fn show(context: &Context) -> Result<ExitCode, CommandError> {
    let folder = journal_folder(context)?;
    let changes = journal::read(&folder).map_err(|error| CommandError::failed(error.to_string()))?;
    let history = History { changes: changes.iter().map(|change| past(&folder, change)).collect() };
    context.output.show(&history);
    Ok(ExitCode::SUCCESS)
}

/// Undoes every change, or those of the chosen hosts.
pub fn undo(context: &Context, args: &SetupArgs) -> Result<ExitCode, CommandError> {
    let hosts = survey::named(&args.hosts)?;
    if args.dry_run {
        return show(context);
    }
    let wanted = |change: &Change| {
        hosts.is_empty() || hosts.iter().any(|host| change.host.as_deref() == Some(host.id.as_str()))
    };
    let mut journal = open_journal(context)?;
    let files = undo_changes(&mut journal, wanted)?;
    let failed = files.iter().any(|file| matches!(file.outcome, Outcome::Failed { .. }));
    let restart = restarts(&files);
    context.output.show(&UndoReport { files, restart });
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Undoes the wanted changes, the newest first.
pub fn undo_changes(
    journal: &mut Journal,
    wanted: impl Fn(&Change) -> bool,
) -> Result<Vec<Undone>, CommandError> {
    journal.undo(wanted, &merge).map_err(|error| CommandError::failed(error.to_string()))
}

/// How the user makes the hosts of changed files notice the changes.
pub fn restarts(files: &[Undone]) -> Vec<&'static str> {
    let is_changed = |file: &&Undone| !matches!(file.outcome, Outcome::Unchanged | Outcome::Failed { .. });
    let hosts = files.iter().filter(is_changed).filter_map(|file| known::by_id(file.host.as_deref()?));
    let mut orders: Vec<&str> = Vec::new();
    for order in hosts.map(|host| host.restart.as_str()) {
        if !orders.contains(&order) {
            orders.push(order);
        }
    }
    orders
}

/// The current text of a file without plugbay's part.
fn merge(change: &Change, texts: Texts<'_>) -> Result<String, String> {
    let host = change.host.as_deref().and_then(known::by_id);
    let reverse =
        |now: &str| journal::reverse(texts.before, texts.after, now).map_err(|error| error.to_string());
    let (Part::Servers, Some(host)) = (change.part, host) else {
        let whole = with_whole_entries(texts).map_err(|error| error.to_string())?;
        let merged = reverse(&whole)?;
        let is_ours = merged == reverse(texts.after)?;
        // Without the change, the file contains only what it contained before.
        return Ok(if is_ours { texts.before.to_owned() } else { merged });
    };
    if let Some(name) = taken(host, texts) {
        return Err(format!(
            "it has another {name} since; rename or remove that one, then run `plugbay setup --undo` again"
        ));
    }
    let unwired = edit::unwire(host, texts.now, OWN_NAME, Some(texts.before));
    let unwired = unwired.map_err(|error| error.to_string())?;
    let listed = allowed::without(host, &unwired, OWN_NAME, Some(texts.before));
    let unwired = listed.map_err(|error| error.to_string())?.unwrap_or(unwired);
    // Some hosts keep their permission rules in the same file.
    let has_rules = host.rules.is_some() && host.format == Format::Json && !texts.after.is_empty();
    if has_rules { reverse(&unwired) } else { Ok(unwired) }
}

/// The current text with each added entry as the change wrote it. An entry is removed as a whole, even if
/// somebody has added to it since.
fn with_whole_entries(texts: Texts<'_>) -> Result<String, EditError> {
    let value = |text: &str| Ok::<_, EditError>(jsonc::get(text, &[])?.unwrap_or_default());
    let (before, after, now) = (value(texts.before)?, value(texts.after)?, value(texts.now)?);
    let mut text = texts.now.to_owned();
    for container in CONTAINERS {
        for (name, entry) in after[container].as_object().into_iter().flatten() {
            let present = now[container].get(name);
            let is_changed = present.is_some_and(|present| present != entry);
            if before[container].get(name).is_none() && is_changed {
                text = jsonc::set(&text, &[container, name], jsonc::input(entry))?;
            }
        }
    }
    Ok(text)
}

/// A server that moved, and whose name the user has since given to another server.
fn taken(host: &Host, texts: Texts<'_>) -> Option<String> {
    // A program of the host was interrupted, so it is unknown which servers it had moved.
    if texts.after.is_empty() {
        return None;
    }
    let servers = |text: &str| read::read(host, text).unwrap_or_default().found;
    let (after, now) = (servers(texts.after), servers(texts.now));
    let has = |all: &[Found], one: &Found| all.iter().any(|found| found.key == one.key);
    let mut moved = servers(texts.before).into_iter().filter(|found| !has(&after, found));
    let differs = |moved: &Found| now.iter().any(|now| now.key == moved.key && now.entry != moved.entry);
    moved.find(|moved| !leads_to_plugbay(&moved.entry) && differs(moved)).map(|moved| moved.entry.name)
}

fn past(folder: &std::path::Path, change: &Change) -> Past {
    let (before, after) = journal::copies(folder, change);
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap_or_default()).unwrap_or_default();
    let (before, after) = (text(before), text(after));
    let entries = [entries(change, &before), entries(change, &after)].concat();
    let diff = Diff::new(change.path.display().to_string(), &before, &after, &entries).text;
    Past {
        file: change.path.clone(),
        host: change.host.clone(),
        part: change.part,
        command: change.command.clone(),
        age: clock::now().saturating_sub(change.at),
        undo: preview(change),
        diff,
    }
}

fn preview(change: &Change) -> UndoPreview {
    match change.present() {
        Present::Before => UndoPreview::Nothing,
        Present::After if change.before == journal::State::Absent => UndoPreview::Removes,
        Present::After => UndoPreview::Restores,
        Present::Other | Present::Unreadable => UndoPreview::Merges,
    }
}

/// The servers in a recorded text, whose values are secrets.
fn entries(change: &Change, text: &str) -> Vec<Entry> {
    let host = change.host.as_deref().and_then(known::by_id);
    let reading = match (change.part, host) {
        (Part::Servers, Some(host)) => read::read(host, text),
        (Part::Configuration, _) => read::read_any(&change.path, text),
        _ => return Vec::new(),
    };
    reading.unwrap_or_default().found.into_iter().map(|found| found.entry).collect()
}
