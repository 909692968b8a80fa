//! Checks of the configuration files.

use super::super::{
    examination::{Examination, ServerFacts},
    finding::{Code, Finding, Subject},
    fix::Fix,
};
use crate::config::{Diagnostic, Kind, Severity};

pub fn check(examination: &Examination) -> Vec<Finding> {
    let settings = &examination.settings;
    let mut found: Vec<Finding> = no_configuration(examination).into_iter().collect();
    found.extend(settings.diagnostics.iter().map(|problem| diagnostic(problem, examination)));
    found.extend(settings.disabled.iter().map(|name| disabled(name.as_str())));
    found
}

fn no_configuration(examination: &Examination) -> Option<Finding> {
    let settings = &examination.settings;
    let nothing = settings.servers.is_empty() && settings.disabled.is_empty();
    if !nothing || !settings.diagnostics.is_empty() {
        return None;
    }
    let remedy =
        "run `plugbay setup`, which imports the servers of your hosts, or `plugbay add NAME -- COMMAND`";
    let file = settings.sources.first().cloned().unwrap_or_default();
    let message =
        if file.is_file() { "This file contains no servers." } else { "There is no configuration yet." };
    Some(Finding::new(Code::NoConfiguration, Subject::File(file), message, remedy))
}

/// The finding for a problem in a file, about the server whose entry contains it.
fn diagnostic(problem: &Diagnostic, examination: &Examination) -> Finding {
    let server = problem.position.and_then(|at| examination.server_at(&problem.file, at));
    // If this problem is why a server cannot be started, the finding is about that server. The name may be
    // the one suggested for it, and places in YAML are not looked up.
    let line = problem.one_line();
    let is_reason = |facts: &&ServerFacts| facts.spec.as_ref().is_err_and(|reason| *reason == line);
    let failed = examination.servers.iter().find(is_reason).map(|facts| facts.name.as_str());
    let about = match failed.or(server).map(str::to_owned) {
        Some(server) => Subject::Server(server),
        None => Subject::File(problem.file.clone()),
    };
    let remedy = problem.help.clone().unwrap_or_else(|| "correct it".to_owned());
    let message = sentence(&problem.message);
    let mut finding = Finding::new(code(problem), about, message, remedy).fixed_by(fix(problem, examination));
    if problem.severity == Severity::Error {
        finding.severity = super::super::finding::Severity::Error;
    }
    let place = problem.position.map(|at| format!("{}:{}:{}", problem.file.display(), at.line, at.column));
    finding.seen(place)
}

fn code(problem: &Diagnostic) -> Code {
    match (&problem.kind, problem.severity) {
        (Kind::Unreadable, _) => Code::BrokenFile,
        (Kind::UnknownKey { .. }, _) => Code::UnknownKey,
        (Kind::Misplaced { .. }, _) => Code::MisplacedKey,
        (Kind::Unset { .. }, _) => Code::UnsetVariable,
        (Kind::Foreign, _) => Code::ForeignVariable,
        (Kind::Unapproved, _) => Code::UnapprovedFile,
        (Kind::NoRemote, _) | (Kind::Other, Severity::Error) => Code::InvalidValue,
        (Kind::Other, Severity::Warning) => Code::DoubtfulValue,
    }
}

fn fix(problem: &Diagnostic, examination: &Examination) -> Option<Fix> {
    let file = problem.file.clone();
    match &problem.kind {
        Kind::UnknownKey { key, near: Some(near) } => {
            let at = problem.position?;
            Some(Fix::RenameKey { file, at, old: key.clone(), new: near.clone() })
        }
        Kind::Misplaced { key, inner: Some(inner) } => {
            let at = problem.position?;
            let entry = examination.entry(examination.server_at(&problem.file, at)?)?;
            // At another place, or next to a key of the same name, the intention is unclear.
            let free = entry.value.get(inner).is_none_or(|object| object.get(key).is_none());
            let movable = free && entry.value.get(key).is_some() && entry.file == file;
            let to = entry.path.iter().cloned().chain([inner.clone(), key.clone()]).collect();
            movable.then(|| Fix::Move { file, from: entry.key(key), to })
        }
        Kind::Unapproved => examination.unapproved.clone().map(Fix::Approve),
        _ => None,
    }
}

/// A disabled server. There is no fix, because nobody disables one by mistake.
fn disabled(server: &str) -> Finding {
    let message = "It is disabled by its entry, so hosts do not see its tools.";
    Finding::of(Code::Disabled, server, message, format!("run `plugbay enable {server}`"))
}

/// A server without settings that can be started.
pub fn unusable(facts: &ServerFacts) -> Option<Finding> {
    let reason = facts.spec.as_ref().err()?;
    Some(Finding::of(Code::InvalidValue, &facts.name, sentence(reason), "correct its entry"))
}

/// A message of a diagnostic as a sentence.
fn sentence(message: &str) -> String {
    let mut chars = message.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let end = if message.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}
