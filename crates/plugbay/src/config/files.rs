//! Which files count, and reading them.

use std::path::{Path, PathBuf};

use super::{
    approve::{Approval, approval},
    diagnostic::{Diagnostic, Severity},
    document::{self, Document},
    paths::{Paths, candidates},
};

/// Files in the order in which they are laid over each other.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) used: Vec<(Document, Origin)>,
    pub(super) sources: Vec<PathBuf>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// A file that counts could not be used at all.
    pub(super) unreadable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Written for this machine: servers start where we were started.
    Machine,
    /// Written for a repository: servers start in its folder.
    Project,
}

impl Files {
    pub(super) fn explicit(&mut self, path: &Path) {
        self.sources.push(path.into());
        match self.bytes(path) {
            Some(bytes) => self.parse(path, &bytes, Origin::Machine),
            None if self.diagnostics.is_empty() => {
                self.unreadable = true;
                self.diagnostics.push(Diagnostic::of_file(
                    Severity::Error,
                    path,
                    "there is no such file",
                    "check the path given with `--config`",
                ));
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
            self.parse(path, &bytes, Origin::Machine);
        }
    }

    pub(super) fn project(&mut self, paths: &Paths) {
        for path in candidates(&paths.start) {
            self.sources.push(path.clone());
            if !path.is_file() {
                continue;
            }
            let approvals = paths.approvals();
            self.sources.extend(approvals.clone());
            let Some(bytes) = self.bytes(&path) else {
                return;
            };
            // The same bytes are checked and parsed: nobody can slip others in between.
            let message = match approval(approvals.as_deref(), &path, &bytes) {
                Approval::Given => return self.parse(&path, &bytes, Origin::Project),
                Approval::Outdated => "this project file has changed since it was approved; it is not used",
                Approval::Missing => "this project file is not approved; it is not used",
            };
            let help = "read it, and if you trust it run `plugbay approve`";
            self.diagnostics.push(Diagnostic::of_file(Severity::Warning, path, message, help));
            return;
        }
    }

    fn bytes(&mut self, path: &Path) -> Option<Vec<u8>> {
        document::bytes(path).unwrap_or_else(|problem| {
            self.diagnostics.push(problem);
            self.unreadable = true;
            None
        })
    }

    fn parse(&mut self, path: &Path, bytes: &[u8], origin: Origin) {
        match document::parse(path, bytes) {
            Ok(mut document) => {
                self.diagnostics.append(&mut document.diagnostics);
                self.used.push((document, origin));
            }
            Err(mut problems) => {
                self.diagnostics.append(&mut problems);
                self.unreadable = true;
            }
        }
    }
}
