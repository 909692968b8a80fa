//! Finds the effective configuration files, and reads them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    Settings,
    approve::{Approval, Content, approval},
    diagnostic::{Diagnostic, Kind, Severity},
    document::{self, Document},
    paths::{Paths, candidates, is_foreign, is_switchboard},
    raw::{ConfigFile, Plugbay},
    switchboard::Switchboard,
};

/// The files, in the order in which they are laid over each other: a later one has precedence.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) used: Vec<(Document, Origin)>,
    pub(super) sources: Vec<PathBuf>,
    /// Folders whose content may change which files are found.
    pub(super) folders: Vec<PathBuf>,
    /// Everything that was read, used or not.
    pub(super) contents: Vec<Content>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Whether an effective file could not be used at all.
    pub(super) unreadable: bool,
    /// Servers that are started without their natural-language wrapper, with the wrapper's file.
    pub(super) unwrapped: BTreeMap<String, PathBuf>,
    /// A file that is treated as having this content, whatever is on disk.
    draft: Option<(PathBuf, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Written for this machine: servers start in the folder in which plugbay was started.
    Machine,
    /// Written for a repository, or found by a pattern: servers start in its folder.
    Project,
    /// Not approved: it may only restrict.
    Unapproved,
}

/// Whether each file that a file includes needs its own approval.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trust {
    Given,
    Approved,
}

/// The result of reading an included file.
pub(super) enum Opened {
    Content(Vec<u8>),
    Absent,
    NotApproved,
    /// The reason, on one line.
    Unreadable(String),
}

impl Files {
    /// Reads `explicit` alone if given, else the user's file and the project's.
    pub(super) fn read(explicit: Option<&Path>, paths: &Paths) -> Self {
        let mut files = Self::default();
        if let Some(path) = explicit {
            files.explicit(&paths.start.join(path), paths);
        } else {
            files.user(paths);
            files.project(paths);
        }
        files
    }

    /// Nothing is read yet. This file counts as approved and with this content.
    pub(super) fn with_draft(file: &Path, content: Vec<u8>) -> Self {
        Self { draft: Some((file.into(), content)), ..Self::default() }
    }

    pub(super) fn explicit(&mut self, path: &Path, paths: &Paths) {
        self.sources.push(path.into());
        match self.bytes(path) {
            Some(bytes) => self.parse(path, &bytes, Origin::Machine, paths),
            None if self.diagnostics.is_empty() => {
                self.unreadable = true;
                let help =
                    "correct the path after `--config` in the host's entry for plugbay, or create the file";
                let problem = Diagnostic::of_file(Severity::Error, path, "there is no such file", help);
                self.diagnostics.push(problem.of_kind(Kind::Unreadable));
            }
            None => {}
        }
    }

    pub(super) fn user(&mut self, paths: &Paths) {
        let Some(path) = &paths.user_file else {
            return;
        };
        self.sources.push(path.clone());
        if let Some(bytes) = self.bytes(path) {
            self.parse(path, &bytes, Origin::Machine, paths);
        }
    }

    pub(super) fn project(&mut self, paths: &Paths) {
        for path in candidates(&paths.start) {
            self.sources.push(path.clone());
            if self.draft(&path).is_none() && (!path.is_file() || is_foreign(&path)) {
                continue;
            }
            let approvals = paths.approvals();
            self.sources.extend(approvals.clone());
            let Some(bytes) = self.bytes(&path) else {
                return;
            };
            if self.draft(&path).is_some() || self.is_approved(&path, &bytes, "project file", paths) {
                self.parse(&path, &bytes, Origin::Project, paths);
            } else if !is_switchboard(&path) {
                self.restrict(&path, &bytes);
            }
            return;
        }
    }

    /// Applies the restrictions of a file without approval. An approval lapses with each edit, and that must
    /// not offer more tools. This file comes first, so that it loosens nothing that another file says.
    fn restrict(&mut self, path: &Path, bytes: &[u8]) {
        let Ok(document) = document::parse::<ConfigFile>(path, bytes) else { return };
        let deny = document.config.defaults.as_ref().and_then(|defaults| defaults.deny.clone());
        let remote_tools = document.config.remote_tools.clone();
        if deny.is_none() && remote_tools.is_none() {
            return;
        }
        if let Some(problem) = self.diagnostics.last_mut() {
            problem.message =
                problem.message.replace("plugbay ignores it", "plugbay uses only its restrictions");
        }
        let defaults = Some(Plugbay { deny, ..Plugbay::default() });
        let restrictions = |_| ConfigFile { remote_tools, defaults, ..ConfigFile::default() };
        self.used.insert(0, (document.map(restrictions), Origin::Unapproved));
    }

    /// Reads a file that another one includes.
    pub(super) fn open(&mut self, path: &Path, trust: Trust, paths: &Paths) -> Opened {
        self.sources.push(path.into());
        // Anything else, such as a pipe, could block the read.
        if !path.is_file() {
            return Opened::Absent;
        }
        let bytes = match document::bytes(path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Opened::Absent,
            Err(problem) => {
                let reason = problem.one_line();
                self.diagnostics.push(*problem);
                return Opened::Unreadable(reason);
            }
        };
        self.contents.push(Content::of(path, &bytes));
        match trust {
            Trust::Approved if !self.is_approved(path, &bytes, "file", paths) => Opened::NotApproved,
            _ => Opened::Content(bytes),
        }
    }

    /// Checks the very bytes that are then parsed, so that they cannot change in between.
    fn is_approved(&mut self, path: &Path, bytes: &[u8], what: &str, paths: &Paths) -> bool {
        let message = match approval(paths.approvals().as_deref(), path, bytes) {
            Approval::Given => return true,
            Approval::Outdated => {
                format!("this {what} has changed since it was approved; plugbay ignores it")
            }
            Approval::Missing => format!("this {what} is not approved; plugbay ignores it"),
        };
        let help = "read it, and if you trust it, run `plugbay approve`";
        let problem = Diagnostic::of_file(Severity::Warning, path, message, help);
        self.diagnostics.push(problem.of_kind(Kind::Unapproved));
        false
    }

    fn draft(&self, path: &Path) -> Option<&Vec<u8>> {
        self.draft.as_ref().filter(|(file, _)| file == path).map(|(_, content)| content)
    }

    fn bytes(&mut self, path: &Path) -> Option<Vec<u8>> {
        if let Some(content) = self.draft(path) {
            return Some(content.clone());
        }
        let bytes = document::bytes(path).unwrap_or_else(|problem| {
            self.diagnostics.push(*problem);
            self.unreadable = true;
            None
        });
        self.contents.extend(bytes.as_ref().map(|bytes| Content::of(path, bytes)));
        bytes
    }

    fn parse(&mut self, path: &Path, bytes: &[u8], origin: Origin, paths: &Paths) {
        let parsed = if is_switchboard(path) {
            document::parse(path, bytes).map(|document| document.map(Switchboard::into_config))
        } else {
            document::parse(path, bytes).map(|document| document.map(ConfigFile::gathered))
        };
        match parsed {
            Ok(mut document) => {
                self.unreadable |=
                    document.diagnostics.iter().any(|problem| problem.kind == Kind::Unreadable);
                self.diagnostics.append(&mut document.diagnostics);
                let trust = if origin == Origin::Project { Trust::Approved } else { Trust::Given };
                self.discover(&mut document, trust, paths);
                self.used.push((document, origin));
            }
            Err(mut problems) => {
                self.diagnostics.append(&mut problems);
                self.unreadable = true;
            }
        }
    }
}

impl Settings {
    /// Whether every file still has the content that was read, and there is no new one.
    pub fn is_current(&self, paths: &Paths) -> bool {
        let approvals = paths.approvals();
        let was_read = |file: &PathBuf| self.contents.iter().find(|content| content.file == *file);
        let mut files = self.sources.iter().filter(|file| Some(*file) != approvals.as_ref());
        files.all(|file| match document::bytes(file) {
            Ok(bytes) => bytes.map(|bytes| Content::of(file, &bytes)).as_ref() == was_read(file),
            Err(_) => was_read(file).is_none(),
        })
    }
}
