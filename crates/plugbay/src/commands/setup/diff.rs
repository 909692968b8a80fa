//! The difference that a change makes to a file, with secrets masked.

use plugbay_hosts::{Entry, Launch};
use serde::Serialize;
use similar::TextDiff;

/// Stands in the place of a secret.
const MASK: &str = "•••";
/// Lines that are shown around a change.
const AROUND: usize = 2;
/// A value of this length is masked wherever it stands; a shorter one only where it is a whole string.
const TELLING: usize = 8;

/// A unified diff of one file, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    pub file: String,
    pub text: String,
}

impl Diff {
    /// `entries` are the servers of both texts: the values of their variables, headers and addresses are secrets.
    pub fn new(file: impl Into<String>, old: &str, new: &str, entries: &[Entry]) -> Self {
        let secrets = Secrets::of(entries);
        let (old, new) = (secrets.mask(old), secrets.mask(new));
        let diff = TextDiff::from_lines(&old, &new);
        let text = diff.unified_diff().context_radius(AROUND).missing_newline_hint(false).to_string();
        Self { file: file.into(), text }
    }
}

/// Texts that must not be shown, and what is shown instead.
#[derive(Debug)]
struct Secrets(Vec<(String, String)>);

impl Secrets {
    fn of(entries: &[Entry]) -> Self {
        let mut secrets: Vec<(String, String)> = entries.iter().flat_map(of_entry).collect();
        // A secret may contain another one.
        secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets)
    }

    fn mask(&self, text: &str) -> String {
        let text = self.0.iter().fold(text.to_owned(), |text, (secret, shown)| {
            let whole = ['"', '\''].iter().fold(text, |text, quote| {
                text.replace(&format!("{quote}{secret}{quote}"), &format!("{quote}{shown}{quote}"))
            });
            if secret.len() >= TELLING { whole.replace(secret, shown) } else { whole }
        });
        text.split_inclusive('\n').map(mask_line).collect()
    }
}

fn of_entry(entry: &Entry) -> Vec<(String, String)> {
    let masked = |value: &String| (escaped(value), MASK.to_owned());
    let is_secret = |value: &&String| !value.is_empty() && !is_reference(value);
    match &entry.launch {
        Launch::Process { env, .. } => env.values().filter(is_secret).map(masked).collect(),
        Launch::Remote(remote) => {
            let headers = remote.headers.values().filter(is_secret).map(masked);
            headers.chain(mask_url(&remote.url).map(|shown| (escaped(&remote.url), shown))).collect()
        }
    }
}

/// As it stands in JSON and TOML.
fn escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Nothing but variables, such as `${TOKEN}`: their names are no secret.
fn is_reference(value: &str) -> bool {
    value.starts_with("${")
        && value.ends_with('}')
        && value.matches('{').count() == 1
        && !value.contains(":-")
}

/// The address without a user's name, password and query; `None` if it has none of them.
fn mask_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority.to_owned(), |(_, host)| format!("{MASK}@{host}"));
    let shown = path.split_once('?').map_or(path.to_owned(), |(path, _)| format!("{path}?{MASK}"));
    let masked = format!("{scheme}://{host}{shown}");
    (masked != url).then_some(masked)
}

/// Masks the value of a key that sounds like a secret, in JSON, TOML or YAML: a host's file holds more than servers.
fn mask_line(line: &str) -> String {
    let Some((key, value)) = line.split_once([':', '=']) else { return line.to_owned() };
    let name = key.trim().trim_matches(['"', '\'']).to_lowercase();
    let telling = ["token", "secret", "password", "apikey", "api_key", "authorization", "credential"];
    if !telling.iter().any(|word| name.contains(word)) || is_plain(value) {
        return line.to_owned();
    }
    let separator = &line[key.len()..line.len() - value.len()];
    let end = if value.trim_end().ends_with(',') { "," } else { "" };
    let newline = if value.ends_with('\n') { "\n" } else { "" };
    format!("{key}{separator} \"{MASK}\"{end}{newline}")
}

/// An opening bracket, a number, a switch, a variable: nothing to hide.
fn is_plain(value: &str) -> bool {
    let value = value.trim().trim_end_matches(',').trim_matches(['"', '\'']);
    let word = value.trim_start_matches(['{', '[', ' ']);
    word.is_empty()
        || value.parse::<f64>().is_ok()
        || is_reference(value)
        || ["true", "false", "null"].contains(&value)
        || value == MASK
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plugbay_hosts::{Remote, RemoteKind};

    use super::*;

    fn strings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn entries() -> Vec<Entry> {
        let env = strings(&[("A", "s3cr3t-value"), ("B", "${NAME}"), ("C", "ab")]);
        let process = Launch::Process { command: "x".into(), args: vec![], env, cwd: None };
        let url = "https://me:pw@host.example/mcp?key=k1".to_owned();
        let remote = Remote { url, kind: RemoteKind::Http, headers: strings(&[("X", "Bearer abcdef")]) };
        vec![Entry::new("one", process), Entry::new("two", Launch::Remote(remote))]
    }

    #[test]
    fn the_secrets_of_entries_are_masked_wherever_they_stand() {
        let old = "{\n  \"env\": { \"A\": \"s3cr3t-value\", \"B\": \"${NAME}\", \"C\": \"ab\" },\n  \"about\": 1\n}\n";
        let new = "{\n  \"url\": \"https://me:pw@host.example/mcp?key=k1\",\n  \"X\": \"Bearer abcdef\",\n  \"args\": [\"--s3cr3t-value\"]\n}\n";
        let diff = Diff::new("f", old, new, &entries());
        let expected = "@@ -1,4 +1,5 @@\n {\n-  \"env\": { \"A\": \"•••\", \"B\": \"${NAME}\", \"C\": \"•••\" },\n-  \"about\": 1\n\
            +  \"url\": \"https://•••@host.example/mcp?•••\",\n+  \"X\": \"•••\",\n+  \"args\": [\"--•••\"]\n }\n";
        assert_eq!(diff.text, expected);
    }

    #[test]
    fn keys_that_sound_like_secrets_are_masked_in_every_format() {
        for (line, shown) in [
            ("  \"apiKey\": \"k\",\n", "  \"apiKey\": \"•••\",\n"),
            ("GITHUB_TOKEN = 'k'\n", "GITHUB_TOKEN = \"•••\"\n"),
            ("  db_password: hunter2\n", "  db_password: \"•••\"\n"),
            ("  \"tokens\": {\n", "  \"tokens\": {\n"),
            ("  \"maxTokens\": 400,\n", "  \"maxTokens\": 400,\n"),
            ("  \"apiKey\": \"${KEY}\"\n", "  \"apiKey\": \"${KEY}\"\n"),
            ("  \"theme\": \"dark\",\n", "  \"theme\": \"dark\",\n"),
        ] {
            assert_eq!(mask_line(line), shown);
        }
    }
}
