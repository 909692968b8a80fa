//! Masks the secrets in the text of a host's file.

use plugbay_hosts::{Entry, Launch};

use crate::config::masked::{MASK, is_reference, mask_args, mask_urls, sounds_secret};

/// A value of at least this length is masked everywhere, a shorter one only where it is a whole string.
const TELLING: usize = 8;

/// Texts that must not be shown, each with its replacement.
#[derive(Debug)]
pub struct Secrets(Vec<(String, String)>);

impl Secrets {
    pub fn of(entries: &[Entry]) -> Self {
        let mut secrets: Vec<(String, String)> = entries.iter().flat_map(of_entry).collect();
        // A secret may contain another one.
        secrets.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets)
    }

    pub fn mask(&self, text: &str) -> String {
        let text = self.0.iter().fold(text.to_owned(), |text, (secret, shown)| {
            let whole = ['"', '\''].iter().fold(text, |text, quote| {
                text.replace(&format!("{quote}{secret}{quote}"), &format!("{quote}{shown}{quote}"))
            });
            if secret.len() >= TELLING {
                whole.replace(secret, shown)
            } else {
                in_yaml(&whole, secret, shown)
            }
        });
        text.split_inclusive('\n').map(|line| mask_urls(&mask_line(line))).collect()
    }
}

fn of_entry(entry: &Entry) -> Vec<(String, String)> {
    let masked = |value: &String| (escaped(value), MASK.to_owned());
    let is_secret = |value: &&String| !value.is_empty() && !is_reference(value);
    match &entry.launch {
        Launch::Process { args, env, .. } => {
            let shown = args.iter().zip(mask_args(args)).filter(|(arg, shown)| *arg != shown);
            let shown = shown.map(|(arg, shown)| (escaped(arg), escaped(&shown)));
            env.values().filter(is_secret).map(masked).chain(shown).collect()
        }
        Launch::Remote(remote) => remote.secrets().into_iter().filter(is_secret).map(masked).collect(),
    }
}

/// Masks a short value in YAML, which needs no quotes: at the end of a line, after its key or as a list item.
fn in_yaml(text: &str, secret: &str, shown: &str) -> String {
    let mask = |line: &str| {
        let bare = line.trim_end();
        let start = bare.strip_suffix(secret).filter(|start| start.ends_with(": ") || start.ends_with("- "));
        start.map_or_else(|| line.to_owned(), |start| format!("{start}{shown}{}", &line[bare.len()..]))
    };
    text.split_inclusive('\n').map(mask).collect()
}

/// The value with escapes, as in JSON and TOML.
fn escaped(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Masks the value of a key whose name suggests a secret, in JSON, TOML or YAML: a host's file has more than
/// servers.
fn mask_line(line: &str) -> String {
    let Some((key, value)) = line.split_once([':', '=']) else { return line.to_owned() };
    if !sounds_secret(key) || is_plain(value) {
        return line.to_owned();
    }
    let separator = &line[key.len()..line.len() - value.len()];
    let end = if value.trim_end().ends_with(',') { "," } else { "" };
    let newline = if value.ends_with('\n') { "\n" } else { "" };
    format!("{key}{separator} \"{MASK}\"{end}{newline}")
}

/// Whether a value hides nothing: an opening bracket, a number, a boolean or a variable.
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

    use super::{super::diff::Diff, *};

    fn strings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn entries() -> Vec<Entry> {
        let env = strings(&[("A", "s3cr3t-value"), ("B", "${NAME}"), ("C", "ab")]);
        let process = Launch::Process { command: "x".into(), args: vec![], env, cwd: None };
        let url = "https://me:pw@host.example/mcp?key=k1".to_owned();
        let remote = Remote {
            url,
            kind: RemoteKind::Http,
            headers: strings(&[("X", "Bearer abcdef")]),
            ..Remote::default()
        };
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
    fn the_secret_of_a_login_is_masked_on_any_line() {
        let oauth = serde_json::json!({ "clientId": "my-client", "clientSecret": "s3cr3t" });
        let login = serde_json::Map::from_iter([("oauth".to_owned(), oauth)]);
        let remote = Remote { url: "https://h.example".into(), login, ..Remote::default() };
        let secrets = Secrets::of(&[Entry::new("one", Launch::Remote(remote))]);
        let line = "\"oauth\": { \"clientId\": \"my-client\", \"clientSecret\": \"s3cr3t\" }";
        assert_eq!(secrets.mask(line), line.replace("s3cr3t", MASK));
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

    #[test]
    fn a_short_secret_is_masked_in_every_format() {
        let args = ["--token", "ab", "--secret=cd"].map(str::to_owned).to_vec();
        let launch = Launch::Process { command: "x".into(), args, env: strings(&[("K", "ef")]), cwd: None };
        let secrets = Secrets::of(&[Entry::new("one", launch)]);
        for (text, shown) in [
            (
                "\"args\": [\"--token\", \"ab\", \"--secret=cd\"]",
                "\"args\": [\"--token\", \"•••\", \"--secret=•••\"]",
            ),
            (
                "args = ['--token', 'ab']\nenv = { K = 'ef' }",
                "args = ['--token', '•••']\nenv = { K = '•••' }",
            ),
            ("- --token\n- ab\nenv:\n  K: ef\n", "- --token\n- •••\nenv:\n  K: •••\n"),
            ("about: a tab\n", "about: a tab\n"),
        ] {
            assert_eq!(secrets.mask(text), shown);
        }
    }
}
