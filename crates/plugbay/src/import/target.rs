//! The configuration files that an import changes: the user's for the user's servers, the project's for the project's.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use plugbay_hosts::jsonc;

use super::{Found, Plan, Present, Setting, plan};
use crate::{
    config::{self, ApproveError, Content, Paths},
    files,
    journal::{ChangeError, Journal, Part, Target},
};

/// The name of a new project file.
const PROJECT_FILE: &str = ".plugbay.jsonc";
const SWITCHBOARD_FILE: &str = "switchboard.config.json";

/// The effect of an import on one file.
#[derive(Debug)]
pub struct Change {
    pub file: PathBuf,
    /// The project that the file belongs to; `None` for the user's file.
    pub project: Option<PathBuf>,
    pub plan: Plan,
    /// The text of the file; `None` if there is no file yet.
    pub before: Option<String>,
    pub after: String,
    /// The settings that a new file gets from another gateway.
    pub settings: Vec<Setting>,
}

/// The reason why a configuration file cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("there is no folder for the configuration; set HOME or XDG_CONFIG_HOME, or give --config FILE")]
    NoUserFile,
    #[error("{}: {source}", file.display())]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}: {reason}", file.display())]
    Broken { file: PathBuf, reason: String },
    /// The project has a Switchboard file, which has no place for entries.
    #[error("{} is written for Switchboard and has no place for servers of other hosts", .0.display())]
    Switchboard(PathBuf),
    #[error(
        "{} leads to {}, which is not in the project; nothing was changed: put a file in the place of the link",
        file.display(), target.display()
    )]
    Outside { file: PathBuf, target: PathBuf },
}

/// The file for the user's servers: `--config`, or the user's own.
pub fn user_change(
    found: Vec<Found>,
    settings: &[Setting],
    explicit: Option<PathBuf>,
    paths: &Paths,
) -> Result<Change, TargetError> {
    let file = explicit.or_else(|| paths.user_file.clone()).ok_or(TargetError::NoUserFile)?;
    change(file, None, found, settings, Vec::new(), paths)
}

/// The change of the file for the servers of the project in which plugbay was started. `user` is the change
/// of the user's file: a server in that file need not also be in the project's.
pub fn project_change(found: Vec<Found>, user: &Change, paths: &Paths) -> Result<Change, TargetError> {
    let project = config::project_folder(&paths.start);
    let file = config::project_file(&paths.start).unwrap_or_else(|| project.join(PROJECT_FILE));
    if file.ends_with(SWITCHBOARD_FILE) {
        return Err(TargetError::Switchboard(file));
    }
    config::within_project(&file, project, paths)
        .map_err(|target| TargetError::Outside { file: file.clone(), target })?;
    let mut beneath = servers_in(&user.file, paths).servers;
    beneath.extend(user.plan.added.iter().map(|added| added.entry.clone()));
    change(file, Some(project.to_owned()), found, &[], beneath, paths)
}

fn change(
    file: PathBuf,
    project: Option<PathBuf>,
    found: Vec<Found>,
    settings: &[Setting],
    beneath: Vec<plugbay_hosts::Entry>,
    paths: &Paths,
) -> Result<Change, TargetError> {
    let before = read(&file)?;
    let listed = servers_in(&file, paths);
    let present = Present { servers: listed.servers, names: listed.names, beneath };
    let plan = plan(found, &present);
    let broken =
        |error: jsonc::EditError| TargetError::Broken { file: file.clone(), reason: error.to_string() };
    let mut after = match &before {
        Some(text) if plan.is_empty() => text.clone(),
        text => plan.apply(text.as_deref().unwrap_or_default()).map_err(broken)?,
    };
    // An existing file already has the settings that its user wants.
    let settings = if before.is_some() { Vec::new() } else { settings.to_vec() };
    for Setting { key, value } in &settings {
        after = jsonc::set(&after, key, jsonc::input(value)).map_err(broken)?;
    }
    Ok(Change { file, project, plan, before, after, settings })
}

impl Change {
    /// Writes the file, and records in the journal how to undo it. Returns whether anything was written.
    pub fn write(&self, command: &'static str, journal: &mut Journal) -> Result<bool, ChangeError> {
        if self.plan.is_empty() {
            return Ok(false);
        }
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let is_new = !folder.exists();
        let target = Target { command, host: None, part: Part::Configuration, path: self.file.clone() };
        let written =
            journal.write(target, self.before.as_deref().map(str::as_bytes), self.after.as_bytes())?;
        if is_new {
            let problem = |source| ChangeError::Write { path: folder.to_owned(), source };
            make_private(folder).map_err(problem)?;
        }
        Ok(written)
    }

    /// Whether every added server comes from the user's own files, not from one in the repository.
    pub fn is_the_users(&self) -> bool {
        let project = self.project.as_deref();
        let origins = self.plan.added.iter().flat_map(|added| &added.origins);
        origins.into_iter().all(|origin| project.is_none_or(|project| !origin.file.starts_with(project)))
    }

    /// Whether the project's file was approved before the change. A new file counts as approved.
    pub fn was_approved(&self, paths: &Paths) -> bool {
        self.before.as_ref().is_none_or(|text| config::is_approved(paths, &self.file, text.as_bytes()))
    }

    /// Approves the project's file as written.
    pub fn approve(&self, paths: &Paths) -> Result<(), ApproveError> {
        config::approve(paths, &[Content::of(&self.file, self.after.as_bytes())])
    }
}

fn servers_in(file: &Path, paths: &Paths) -> config::Listed {
    if file.exists() { config::servers_in(file, paths) } else { config::Listed::default() }
}

fn read(file: &Path) -> Result<Option<String>, TargetError> {
    match files::read_text(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TargetError::Unreadable { file: file.to_owned(), source }),
    }
}

#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_private(_folder: &Path) -> io::Result<()> {
    Ok(())
}
