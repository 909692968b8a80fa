//! Notices to models about servers that cannot be used, and about a configuration that cannot.

use std::{borrow::Cow, collections::BTreeSet, fmt::Write};

use super::{BuiltinTool, Problem, Snapshot, View, instructions::shortened};
use crate::{exposure::Mode, failure::Failure, name::ServerName};

/// The longest notice in the list of tools, in bytes.
const LONGEST: usize = 600;
/// The longest part of it for one server or one problem.
const LONGEST_REASON: usize = 300;
/// How many servers are named at most.
const MOST_NAMES: usize = 12;
/// How many reasons are given at most beside the result of a search.
const MOST_REASONS: usize = 5;

/// Where the details are, for models and for people.
pub(super) const DETAILS: &str = "Details: gateway_status, or `plugbay doctor` in a terminal.";

/// A listed `gateway_status` that says in its description why tools are missing; `None` if none are, or if other
/// listed tools say so.
///
/// Beside tools of servers the text depends only on which servers have never listed their tools. So a failure in
/// the middle of a conversation does not change the list.
pub(super) fn notice(snapshot: &Snapshot, view: &View, lists_nothing: bool) -> Option<String> {
    let unlisted = unlisted(snapshot, |server| snapshot.mode_of(server, view) == Mode::All);
    let description = if lists_nothing {
        why_nothing(snapshot)?
    } else if unlisted.is_empty() {
        return None;
    } else {
        format!("All servers: state, tools, tokens. Says why no tools of {} are listed.", names(&unlisted))
    };
    let (name, description) = (BuiltinTool::Overview.name(), serde_json::Value::from(description));
    Some(format!(
        r#"{{"name":"{name}","description":{description},"inputSchema":{{"type":"object"}},"annotations":{{"readOnlyHint":true}},"_meta":{{"anthropic/alwaysLoad":true}}}}"#
    ))
}

/// Whether there is no server at all, because of problems of the configuration.
pub(super) fn is_blank(snapshot: &Snapshot) -> bool {
    snapshot.servers().is_empty() && !snapshot.layout.problems.is_empty()
}

/// Why a list is empty; `None` if every server has listed its tools, and there are none.
fn why_nothing(snapshot: &Snapshot) -> Option<String> {
    let problems = &snapshot.layout.problems;
    let unlisted = unlisted(snapshot, |_| true);
    let failed: Vec<_> = failed(snapshot).collect();
    let reasons: Vec<String> = match (&problems[..], &failed[..]) {
        ([], []) if unlisted.is_empty() => return None,
        ([], []) => vec![format!("{} has not listed its tools yet", names(&unlisted))],
        (problems, failed) => {
            let failed = failed.iter().map(|(server, failure)| reason(server, failure));
            problems.iter().map(Problem::to_string).chain(failed).collect()
        }
    };
    let mut text = "plugbay has no tools to show. Tell the user why:".to_owned();
    let mut told = 0;
    for reason in &reasons {
        let reason = shortened(reason, LONGEST_REASON);
        if told > 0 && text.len() + reason.len() > LONGEST {
            break;
        }
        let _ = write!(text, " {}.", reason.trim_end_matches('.'));
        told += 1;
    }
    if told < reasons.len() {
        let _ = write!(text, " And {} more.", reasons.len() - told);
    }
    text.push_str(" Call this for details.");
    Some(text)
}

/// Problems, failures and missing tools that explain a search: all of them if it found nothing that fits,
/// else only those of servers that the query names. For servers whose tools are `shown`: why calls of them
/// would fail.
pub fn beside_search(
    snapshot: &Snapshot,
    query: &str,
    found_nothing: bool,
    shown: &BTreeSet<&ServerName>,
) -> Vec<String> {
    let words: Vec<String> = words(query).collect();
    let is_named = |server: &ServerName| self::words(server.as_str()).all(|word| words.contains(&word));
    let all: Vec<_> = failed(snapshot).collect();
    let (told, others): (Vec<_>, Vec<_>) =
        all.iter().partition(|(server, _)| is_named(server) || found_nothing && all.len() == 1);
    let failing = shown.iter().filter_map(|server| Some((*server, &**snapshot.catalog.failure(server)?)));
    let reasons = told.into_iter().chain(failing).map(|(server, failure)| reason(server, failure));
    let others: Vec<&ServerName> =
        others.into_iter().filter(|_| found_nothing).map(|(server, _)| server).collect();
    let others = (!others.is_empty())
        .then(|| format!("tools of {} are missing: gateway_status says why", names(&others)));
    let problems = snapshot.layout.problems.iter().filter(|problem| found_nothing && problem.urgent);
    let waiting = unlisted(snapshot, |server| {
        (found_nothing || is_named(server)) && failed_unlisted(snapshot, server).is_none()
    });
    let waiting = (!waiting.is_empty()).then(|| {
        format!("tools of {} are missing: not listed yet, search again in a few seconds", names(&waiting))
    });
    let problems = problems.map(|problem| format!("problem: {problem}"));
    let mut notes: Vec<String> = problems.chain(reasons).chain(others).chain(waiting).collect();
    if let more @ 1.. = notes.len().saturating_sub(MOST_REASONS) {
        notes.truncate(MOST_REASONS);
        notes.push(format!("and {more} more: see gateway_status"));
    }
    notes
}

/// The failure because of which a server has no tools: it failed before it ever listed them.
pub fn failed_unlisted<'a>(snapshot: &'a Snapshot, server: &ServerName) -> Option<&'a Failure> {
    let unlisted = snapshot.catalog.get(server).is_none();
    snapshot.catalog.failure(server).filter(|_| unlisted).map(|failure| &**failure)
}

/// A line on a failure, without the server's stderr, which may differ each time.
pub(super) fn does_not_work(failure: &Failure) -> String {
    let remedy = failure.remedy.as_ref().map(|remedy| format!("; try: {remedy}")).unwrap_or_default();
    let claim = if failure.needs_login() { "" } else { "does not work: " };
    format!("{claim}{}{remedy}", failure.what)
}

fn reason(server: &ServerName, failure: &Failure) -> String {
    format!("{server} {}", does_not_work(failure))
}

fn failed(snapshot: &Snapshot) -> impl Iterator<Item = (&ServerName, &Failure)> {
    let failed = snapshot.catalog.failed();
    failed.filter_map(|server| Some((server, failed_unlisted(snapshot, server)?)))
}

/// The servers that have never listed their tools.
fn unlisted(snapshot: &Snapshot, is_meant: impl Fn(&ServerName) -> bool) -> Vec<&ServerName> {
    let servers = snapshot.layout.exposures.keys();
    servers.filter(|server| snapshot.catalog.get(server).is_none() && is_meant(server)).collect()
}

fn names(servers: &[&ServerName]) -> String {
    let more = servers.len().saturating_sub(MOST_NAMES);
    let named: Vec<&str> = servers[..servers.len() - more].iter().map(|server| server.as_str()).collect();
    let rest = if more == 0 { Cow::Borrowed("") } else { format!(" and {more} more").into() };
    named.join(", ") + &rest
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}
