//! Problems of the whole configuration, for hosts and for `plugbay status`.

use std::collections::BTreeSet;

use plugbay_core::{name::ServerName, surface::Problem};
use plugbay_upstream::spec::{Origin, Transport};

use super::{Diagnostic, Settings, Severity};

/// The remedy if no server is configured.
const SETUP: &str = "run `plugbay setup` in a terminal, which imports the servers of your hosts, or `plugbay add`, which adds one";

impl Settings {
    /// The problems of all files, the urgent ones first. A problem that makes one server fail is shown with that
    /// server instead.
    pub fn problems(&self) -> Vec<Problem> {
        let reasons: BTreeSet<&String> =
            self.servers.iter().filter_map(|server| server.spec.as_ref().err()).collect();
        let general = self.diagnostics.iter().filter(|diagnostic| !reasons.contains(&diagnostic.one_line()));
        let mut problems: Vec<Problem> = general.map(|diagnostic| self.problem(diagnostic)).collect();
        problems.sort_by_key(|problem| !problem.urgent);
        problems.splice(0..0, self.no_server());
        problems
    }

    fn problem(&self, diagnostic: &Diagnostic) -> Problem {
        Problem {
            what: diagnostic.message.clone(),
            place: Some(diagnostic.place()).filter(|place| !place.is_empty()),
            remedy: diagnostic.help.clone(),
            urgent: leaves_something_out(diagnostic) || self.servers.is_empty(),
        }
    }

    /// The problem that no server is configured, if no file has a problem.
    pub(super) fn no_server(&self) -> Option<Problem> {
        if !self.servers.is_empty() || self.diagnostics.iter().any(leaves_something_out) {
            return None;
        }
        let shown = |file: &std::path::PathBuf| file.to_string_lossy().into_owned();
        let files: Vec<String> = self.contents.iter().map(|content| shown(&content.file)).collect();
        let names: Vec<&str> = self.disabled.iter().map(ServerName::as_str).collect();
        let (what, place, remedy) = if !names.is_empty() {
            let what = format!("every server is disabled: {}", names.join(", "));
            (what, files.join(", "), "run `plugbay enable NAME` in a terminal")
        } else if files.is_empty() {
            let place = self.sources.first().map(shown).unwrap_or_default();
            ("there is no configuration file".to_owned(), place, SETUP)
        } else {
            ("the configuration names no server".to_owned(), files.join(", "), SETUP)
        };
        let place = Some(place).filter(|place| !place.is_empty());
        Some(Problem { what, place, remedy: Some(remedy.to_owned()), urgent: true })
    }

    /// Adds the reason why this process serves without the daemon.
    #[must_use]
    pub fn without_daemon(mut self, reason: &str) -> Self {
        let message = format!("plugbay serves this host without its daemon: {reason}");
        let help = "its servers run for this host alone; run `plugbay doctor` in a terminal, or give `--no-daemon` if this is wanted";
        self.diagnostics.push(Diagnostic::of_file(Severity::Warning, "", message, help));
        self
    }

    /// Gives each server the environment and the folder of the window that it starts for.
    #[must_use]
    pub fn with_origin(mut self, origin: &Origin) -> Self {
        for spec in self.servers.iter_mut().filter_map(|server| server.spec.as_mut().ok()) {
            if let Transport::Stdio(stdio) = &mut spec.transport {
                stdio.origin = origin.clone();
            }
        }
        self
    }

    /// These settings with the problems of `broken`: the settings in the files now, which cannot be used.
    #[must_use]
    pub fn kept_despite(&self, broken: &Self) -> Self {
        let mut diagnostics = broken.diagnostics.clone();
        if !self.servers.is_empty()
            && let Some(first) = diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error)
        {
            let message =
                "the configuration cannot be read since its last change; all servers stay as they were";
            let help = "mend the file; plugbay then reads it at once";
            diagnostics.insert(0, Diagnostic::of_file(Severity::Error, first.file.clone(), message, help));
        }
        Self { diagnostics, ..self.clone() }
    }
}

/// Whether something is not used: an error affects the part it points at; a problem of the whole file, the
/// file.
fn leaves_something_out(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error || diagnostic.position.is_none()
}
