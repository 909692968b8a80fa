//! `plugbay add` and `plugbay add-json`: try servers, then write their entries.

mod addition;
mod diff;
mod flags;
mod line;
mod merge;
mod secrets;
mod snippet;
#[cfg(test)]
mod tests;
mod trial;

use std::{io::Read, path::PathBuf, process::ExitCode};

use plugbay_core::name::ServerName;
use serde::Serialize;
use serde_json::Value;

pub use flags::{AddArgs, Scope, ScopeFlag};
pub use line::canonical;
pub use trial::Offer;
#[cfg(test)]
pub use trial::ToolCost;

use self::{
    addition::{Addition, no_launch},
    flags::WriteFlags,
    trial::{Trials, try_out},
};
use super::{CommandError, Context, StartFailure, place};
use crate::config::{EditError, Editable, Layer, Settings, identity, public_url};

/// Add servers from JSON, as READMEs show it.
#[derive(Debug, clap::Args)]
#[command(override_usage = JSON_USAGE)]
pub struct AddJsonArgs {
    /// The name of the server, and its entry in JSON; or JSON with `mcpServers`, as READMEs show it; `-` reads stdin.
    #[arg(value_name = "NAME or JSON", required = true, num_args = 1..=2)]
    words: Vec<String>,
    #[command(flatten)]
    write: WriteFlags,
    /// Accepted from other programs; has no effect.
    #[arg(long, hide = true)]
    client_secret: bool,
}

const JSON_USAGE: &str =
    "plugbay add-json [OPTIONS] [NAME] JSON\n       plugbay add-json [OPTIONS] [NAME] - < FILE";

/// The result of `add`.
#[derive(Debug, Serialize)]
pub struct Report {
    pub file: PathBuf,
    pub servers: Vec<Row>,
    /// Running gateways that reload the file.
    pub gateways: usize,
    pub notes: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Row {
    pub name: String,
    pub change: Change,
    /// The program and its arguments, or the address without its secret parts.
    pub launch: Vec<String>,
    /// The changes to an existing entry, line by line, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Absent if the server was not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<StartFailure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    Added,
    Updated,
    /// The file already has the same entry.
    Unchanged,
    /// The server does not start, so its entry was not written.
    Failed,
}

pub async fn add(context: &Context, mut args: AddArgs) -> Result<ExitCode, CommandError> {
    let write = std::mem::take(&mut args.write);
    let (addition, notes) = Addition::of(args, &context.source.paths.start)?;
    put(context, vec![addition], &write, notes).await
}

pub async fn add_json(context: &Context, args: AddJsonArgs) -> Result<ExitCode, CommandError> {
    let (name, text) = match args.words.as_slice() {
        [name, text, ..] => (Some(name.as_str()), text.clone()),
        [text] => (None, text.clone()),
        [] => (None, String::new()),
    };
    let text =
        if text == "-" { std::io::read_to_string(std::io::stdin().lock().take(1 << 20))? } else { text };
    put(context, snippet::read(&text, name)?, &args.write, Vec::new()).await
}

/// Tries the servers and writes the entries of those that work.
async fn put(
    context: &Context,
    additions: Vec<Addition>,
    flags: &WriteFlags,
    mut notes: Vec<String>,
) -> Result<ExitCode, CommandError> {
    let file = place::open(context, flags.scope.scope)?;
    if !file.is_used() {
        return Err(CommandError::failed(format!("{} is not approved", file.file.display()))
            .hint("read it, and if you trust it, run `plugbay approve`; then try again"));
    }
    let plans: Vec<Plan> = additions
        .into_iter()
        .map(|addition| Plan::of(context, &file, addition, flags.update))
        .collect::<Result<_, _>>()?;
    let draft = apply(&file, &plans).map_err(|error| place::failed(context, error))?;
    let settings = context.source.preview(&draft);
    show_new_problems(context, &file, &settings);
    notes.extend(remarks(context, flags, &draft, &plans, &settings));
    let wanted: Vec<ServerName> = plans
        .iter()
        .filter(|plan| plan.kind != Kind::Unchanged)
        .map(|plan| plan.addition.name.clone())
        .collect();
    let mut trials = if flags.no_check { Trials::new() } else { try_out(context, settings, &wanted).await };

    // A server that needs a login is not broken. Its entry must exist before the user can log in.
    let works =
        |plan: &&Plan| !matches!(trials.get(&plan.addition.name), Some(Err(failure)) if !failure.needs_login);
    let working: Vec<Plan> = plans.iter().filter(works).cloned().collect();
    for plan in &plans {
        if matches!(trials.get(&plan.addition.name), Some(Err(failure)) if failure.needs_login) {
            let name = &plan.written_name;
            notes.push(format!("{name} needs a login: run `plugbay auth login {name}`"));
        }
        notes.extend(secrets::notes(&plan.written_name, &plan.addition.members, works(&plan)));
    }
    let written = apply(&file, &working).map_err(|error| place::failed(context, error))?;
    if written.text != file.text {
        place::write(context, &written)?;
    }
    let gateways = if written.text == file.text { 0 } else { place::gateways(context, &file) };
    let servers: Vec<Row> = plans.iter().map(|plan| plan.row(&file, &draft, &mut trials)).collect();
    let failed = servers.iter().any(|row| row.change == Change::Failed);
    let report = Report { file: file.file, servers, gateways, notes };
    context.output.show(&report);
    if !context.output.is_json() {
        for note in &report.notes {
            context.output.note(note);
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What will be done for one addition.
#[derive(Debug, Clone)]
struct Plan {
    addition: Addition,
    /// The name as written in the file, now or later.
    written_name: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    Update,
    Unchanged,
}

impl Plan {
    /// The plan for an addition. An existing entry is an error, unless it may be updated or is the same.
    fn of(
        context: &Context,
        file: &Editable,
        addition: Addition,
        update: bool,
    ) -> Result<Self, CommandError> {
        let edit_error = |error| place::failed(context, error);
        let name = addition.name.to_string();
        let Some(written_name) = file.written_name(&name) else {
            if !addition.has_launch() {
                return Err(no_launch(&name));
            }
            return Ok(Self { written_name: name, addition, kind: Kind::Insert });
        };
        let mut plan = Self { written_name, addition, kind: Kind::Update };
        let before = file.entry(&plan.written_name).unwrap_or_default();
        let mut after = file.clone();
        merge::update(&mut after, &plan.written_name, &plan.addition).map_err(edit_error)?;
        let after = after.entry(&plan.written_name).unwrap_or_default();
        if before == after {
            plan.kind = Kind::Unchanged;
        } else if !update {
            return Err(CommandError::failed(format!("{} has a server {name} already", file.file.display()))
                .example(diff::lines(&before, &after))
                .hint("--update makes these changes")
                .hint("or choose another name"));
        }
        Ok(plan)
    }

    fn row(&self, before: &Editable, after: &Editable, trials: &mut Trials) -> Row {
        let entry = after.entry(&self.written_name).unwrap_or_default();
        let (offer, trouble) = match trials.remove(&self.addition.name) {
            Some(Ok(offer)) => (Some(offer), None),
            Some(Err(trouble)) if !trouble.needs_login => (None, Some(trouble)),
            Some(Err(_)) | None => (None, None),
        };
        let change = match self.kind {
            _ if trouble.is_some() => Change::Failed,
            Kind::Insert => Change::Added,
            Kind::Update => Change::Updated,
            Kind::Unchanged => Change::Unchanged,
        };
        let old = before.entry(&self.written_name).filter(|_| self.kind == Kind::Update);
        let diff = old.map(|old| diff::lines(&old, &entry));
        Row { name: self.written_name.clone(), change, launch: launch(&entry), diff, offer, trouble }
    }
}

fn apply(file: &Editable, plans: &[Plan]) -> Result<Editable, EditError> {
    let mut changed = file.clone();
    for plan in plans {
        match plan.kind {
            Kind::Insert => changed.set(&[&plan.written_name], plan.addition.value())?,
            Kind::Update => merge::update(&mut changed, &plan.written_name, &plan.addition)?,
            Kind::Unchanged => {}
        }
    }
    Ok(changed)
}

/// Shows the problems that the changes would add to the file, such as an unknown key in a pasted entry. An
/// unusable entry is shown as its server's failure instead.
fn show_new_problems(context: &Context, file: &Editable, changed: &Settings) {
    let before = context.source.preview(file).diagnostics;
    let is_shown_as_failure = |message: &str| {
        changed
            .servers
            .iter()
            .any(|server| matches!(&server.spec, Err(reason) if reason.starts_with(message)))
    };
    let is_new = |message: &String| before.iter().all(|problem| problem.message != *message);
    let mut problems = changed.diagnostics.clone();
    problems.retain(|problem| is_new(&problem.message) && !is_shown_as_failure(&problem.message));
    context.output.diagnostics(&problems);
}

/// Notes on the scope, and on other servers with the same launch.
fn remarks(
    context: &Context,
    flags: &WriteFlags,
    draft: &Editable,
    plans: &[Plan],
    settings: &Settings,
) -> Vec<String> {
    let mut notes = Vec::new();
    if flags.scope.scope == Some(Scope::Local) {
        notes.push(
            "plugbay has no scope `local`: your own file, which holds in every folder, was meant".to_owned(),
        );
    }
    let others = context.source.entries();
    for Plan { addition, written_name, .. } in plans {
        notes.extend(same_launch(settings, &addition.name).map(|other| {
            format!("{other} starts the same program or has the same address as {written_name}")
        }));
        let shadow = others.iter().find(|entry| {
            draft.layer == Layer::User
                && entry.name.eq_ignore_ascii_case(written_name)
                && entry.file != draft.file
        });
        notes.extend(shadow.map(|entry| {
            format!(
                "in this folder, {} counts instead: it has a server {written_name} too",
                entry.file.display()
            )
        }));
    }
    notes
}

/// Another server with the same launch.
fn same_launch<'s>(settings: &'s Settings, name: &ServerName) -> Option<&'s ServerName> {
    let launch_of = |wanted: &ServerName| {
        let server = settings.servers.iter().find(|server| server.name == *wanted)?;
        server.spec.as_ref().ok().map(identity)
    };
    let own = launch_of(name)?;
    let mut names = settings.servers.iter().map(|server| &server.name);
    names.find(|other| *other != name && launch_of(other).as_ref() == Some(&own))
}

/// The program and its arguments, or the address.
fn launch(entry: &Value) -> Vec<String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |key: &str| {
        let words = entry.get(key).and_then(Value::as_array).into_iter().flatten();
        words.filter_map(|word| word.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    if let Some(url) = ["url", "serverUrl", "uri", "httpUrl"].iter().find_map(|key| text(key)) {
        return vec![public_url(&url)];
    }
    let program = text("command").or_else(|| text("cmd"));
    [program.into_iter().collect(), list("command"), list("cmd"), list("args")].concat()
}
