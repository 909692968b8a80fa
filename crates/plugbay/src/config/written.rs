//! Entries as written in the files, for people: nothing is expanded, and no secret is kept.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use super::{
    document::Document,
    entry::{is_disabled, tuning},
    masked::masked_words,
    oauth::{CommandLine, Part},
    raw::{Entry, EntryKind, Filter},
    read::At,
};

/// An effective entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrittenEntry {
    pub name: String,
    pub file: PathBuf,
    pub line: usize,
    pub disabled: bool,
    /// The program and its arguments; empty for a server behind a URL.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// A remote gateway.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub remote: bool,
    /// The URL without parts that may be secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Names only.
    pub env: Vec<String>,
    /// Names only.
    pub headers: Vec<String>,
    /// The settings of the login, without secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<Value>,
    /// The program that prints headers, and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers_command: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers_file: Option<String>,
    /// Patterns over tools; `None` allows all tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl WrittenEntry {
    pub(super) fn of(document: &Document, entry: &Entry, denied: Option<&Filter>) -> Self {
        let Entry { key, server, problem, kind } = entry;
        let own = tuning(server);
        let words = server.command.iter().flat_map(|argv| &argv.0).chain(server.args.iter().flatten());
        let patterns = |filter: Option<&Filter>| filter.and_then(|filter| filter.0.clone().ok());
        let denied = [own.deny.as_ref(), denied].into_iter().filter_map(patterns).flatten();
        Self {
            name: key.value.clone(),
            file: document.source.path.clone(),
            line: document.source.line(key.at.start),
            disabled: is_disabled(server),
            command: masked_words(&words.map(|word| word.value.clone()).collect::<Vec<_>>()),
            remote: *kind == EntryKind::Remote,
            url: server.url.as_ref().map(|url| public_url(&url.value)),
            cwd: server.cwd.as_ref().map(|cwd| cwd.value.clone()),
            env: server.env.iter().flat_map(|env| env.keys().cloned()).collect(),
            headers: headers(entry),
            oauth: server.oauth.as_ref().map(|oauth| oauth.value.value(&public)),
            headers_command: server
                .headers_command
                .iter()
                .flat_map(|line| masked_words(&words_of(&line.value)))
                .collect(),
            headers_file: server.headers_file.as_ref().map(|file| file.value.clone()),
            allow: patterns(own.allow.as_ref()),
            deny: denied.collect(),
            problem: problem.clone(),
        }
    }
}

fn headers(entry: &Entry) -> Vec<String> {
    let maps = [&entry.server.headers, &entry.server.env_headers];
    let mut names: Vec<String> = maps.into_iter().flatten().flat_map(|map| map.keys().cloned()).collect();
    if let Some(At { .. }) = &entry.server.bearer_token {
        names.push("Authorization".to_owned());
    }
    names
}

fn words_of(CommandLine(words): &CommandLine) -> Vec<String> {
    words.iter().map(|word| word.value.clone()).collect()
}

/// A text about the login that shows no secret.
fn public(part: Part, text: &str) -> String {
    match part {
        Part::Plain | Part::File => text.to_owned(),
        Part::Address => public_url(text),
        Part::Secret => "…".to_owned(),
    }
}

/// An address without its query, fragment and user, where secrets may be.
pub fn public_url(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (shown, hidden) = url.split_at(end);
    let rest = if hidden.is_empty() { "" } else { "?…" };
    let Some((scheme, place)) = shown.split_once("//") else { return format!("{shown}{rest}") };
    let host_end = place.find('/').unwrap_or(place.len());
    let host = place[..host_end].rsplit('@').next().unwrap_or_default();
    format!("{scheme}//{host}{}{rest}", &place[host_end..])
}

/// The scheme and the host of an address: its path may hold a secret too.
pub fn origin(url: &str) -> String {
    let shown = public_url(url);
    let end = shown.find("//").map_or(0, |slashes| slashes + 2);
    let end = shown[end..].find(['/', '?']).map_or(shown.len(), |length| end + length);
    shown[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_address_has_no_user_and_no_query() {
        let cases = [
            ("https://h.example/mcp", "https://h.example/mcp"),
            ("https://h.example/mcp?key=1#x", "https://h.example/mcp?…"),
            ("https://me:secret@h.example:1/a@b", "https://h.example:1/a@b"),
            ("${URL}", "${URL}"),
        ];
        for (url, shown) in cases {
            assert_eq!(public_url(url), shown);
        }
        assert_eq!(origin("https://me:secret@h.example:1/k3y/mcp?key=1"), "https://h.example:1");
        assert_eq!(origin("https://h.example?key=1"), "https://h.example");
    }
}
