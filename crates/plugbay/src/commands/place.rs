//! The configuration file that a command changes.

use std::path::{Path, PathBuf};

use plugbay_core::name;
use serde::Serialize;

use super::{CommandError, Context, add::Scope, alternatives};
use crate::{
    config::{EditError, Editable, Layer},
    files, status_file,
};

/// A changed configuration file.
#[derive(Debug, Serialize)]
pub struct FileChange {
    #[serde(rename = "change")]
    pub verb: Verb,
    pub servers: Vec<String>,
    pub file: PathBuf,
    /// Running gateways that reload the file.
    pub gateways: usize,
}

/// The change to servers in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    Removed,
    Enabled,
    Disabled,
    AlreadyEnabled,
    AlreadyDisabled,
}

impl Verb {
    /// The verb for servers that were already in that state.
    pub(super) fn already(self) -> Self {
        match self {
            Self::Enabled => Self::AlreadyEnabled,
            Self::Disabled => Self::AlreadyDisabled,
            other => other,
        }
    }
}

/// The file of a scope; `--config FILE` has none.
pub(super) fn open(context: &Context, scope: Option<Scope>) -> Result<Editable, CommandError> {
    let paths = &context.source.paths;
    let opened = match (context.source.explicit(), scope) {
        (Some(_), Some(_)) => {
            return Err(CommandError::usage("--config names the file already; leave --scope out"));
        }
        (Some(file), None) => Editable::explicit(&file, paths),
        (None, Some(Scope::Project)) => Editable::project(paths, &context.environment.project),
        (None, None | Some(Scope::User | Scope::Local)) => Editable::user(paths),
    };
    opened.map_err(|error| failed(context, error))
}

/// The file that holds a server: the file of the scope, or the only one that has the server. The second value
/// is the server's name as written there.
pub(super) fn holding(
    context: &Context,
    name: &str,
    scope: Option<Scope>,
) -> Result<(Editable, String), CommandError> {
    let explicit = context.source.explicit().is_some();
    let scopes: &[Option<Scope>] = match scope {
        None if !explicit => &[Some(Scope::Project), Some(Scope::User)],
        _ => &[scope],
    };
    let mut files = Vec::new();
    for scope in scopes {
        match open(context, *scope) {
            Ok(file) => files.push(file),
            // A file that the user has not asked for may be one that plugbay cannot change.
            Err(_) if scopes.len() > 1 && *scope == Some(Scope::Project) => {}
            Err(error) => return Err(error),
        }
    }
    let mut found: Vec<(Editable, String)> =
        files.iter().filter_map(|file| Some((file.clone(), file.written_name(name)?))).collect();
    match found.len() {
        0 => Err(unknown(context, name, &files)),
        1 => Ok(found.remove(0)),
        _ => Err(CommandError::usage(format!("your file and the project's both have a server {name}"))
            .hint("choose one: --scope user or --scope project")),
    }
}

/// The files that hold these servers, each with its servers. Fails if one of the servers does not exist.
pub(super) fn holding_all(
    context: &Context,
    names: &[String],
    scope: Option<Scope>,
) -> Result<Vec<(Editable, Vec<String>)>, CommandError> {
    let mut files: Vec<(Editable, Vec<String>)> = Vec::new();
    for name in names {
        let (file, written_name) = holding(context, name, scope)?;
        match files.iter_mut().find(|(known, _)| known.file == file.file) {
            Some((_, names)) if names.contains(&written_name) => {}
            Some((_, names)) => names.push(written_name),
            None => files.push((file, vec![written_name])),
        }
    }
    Ok(files)
}

fn unknown(context: &Context, name: &str, files: &[Editable]) -> CommandError {
    let elsewhere = context.source.entries().into_iter().find(|entry| entry.name.eq_ignore_ascii_case(name));
    if let Some(entry) = elsewhere {
        let place = entry.file.display();
        return CommandError::failed(format!("the entry of {name} is in {place}"))
            .hint("plugbay does not change that file with this command; edit it by hand");
    }
    let names: Vec<String> = files.iter().flat_map(Editable::names).collect();
    no_such_server(name, names.iter().map(String::as_str))
}

/// The error for an unknown server name. It suggests the most similar names, and lists all servers.
pub(super) fn no_such_server<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> CommandError {
    let names: Vec<&str> = names.collect();
    let error = CommandError::failed(format!("there is no server {name:?}"));
    if names.is_empty() {
        return error.hint(
            "no server is configured: `plugbay setup` moves those of your hosts here, `plugbay add` adds one",
        );
    }
    let error = match name::nearest(name, names.iter().copied()) {
        near if near.is_empty() => error,
        near => error.hint(format!("did you mean {}?", alternatives(&near))),
    };
    error.hint(format!("configured: {}", names.join(", ")))
}

/// Writes the file. A project's file without approval stays unapproved, which is noted for the user.
pub(super) fn write(context: &Context, file: &Editable) -> Result<(), CommandError> {
    file.write(&context.source.paths).map_err(|error| failed(context, error))?;
    if !file.is_used() {
        let file = file.file.display();
        context.output.note(format!("{file} is not approved; `plugbay approve` lets it start servers"));
    }
    Ok(())
}

pub(super) fn failed(context: &Context, error: EditError) -> CommandError {
    let message = error.to_string();
    match error {
        EditError::Broken { problems, .. } => {
            context.output.diagnostics(&problems);
            CommandError::failed(message).hint("fix the problem above, then try again")
        }
        EditError::Changed(_) => CommandError::failed(message).hint("try again"),
        EditError::Switchboard(_) => {
            CommandError::failed(message).hint("add the server to your own file: --scope user")
        }
        _ => CommandError::failed(message),
    }
}

/// How many running gateways use the file, and so reload it.
pub(super) fn gateways(context: &Context, file: &Editable) -> usize {
    let folder = context.source.paths.status_folder();
    let running = folder.and_then(|folder| status_file::read(&folder).ok()).unwrap_or_default();
    let path = file.file.as_path();
    let reads = |gateway: &status_file::GatewayStatus| match (&gateway.config, file.layer) {
        (Some(config), _) => Path::new(config) == path,
        (None, Layer::User) => true,
        (None, Layer::Project) => Path::new(&gateway.folder).starts_with(files::folder_of(path)),
        (None, Layer::Explicit) => false,
    };
    running.iter().flatten().filter(|gateway| reads(gateway)).count()
}
