//! Masks the secrets in the text of a host's file.

use plugbay_hosts::{Entry, Launch};

/// Stands in the place of a secret.
const MASK: &str = "•••";
/// A value of this length is masked wherever it stands; a shorter one only where it is a whole string.
const TELLING: usize = 8;

/// Texts that must not be shown, and what is shown instead.
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

/// Arguments without secrets: what follows `--token` or stands behind `--token=`, variables and headers.
fn mask_args(args: &[String]) -> Vec<String> {
    let mut before = "";
    let mask = |arg: &String, before: &str| {
        // The command line of a shell.
        if arg.contains(' ') && !is_header_flag(before) {
            let words: Vec<String> = arg.split(' ').map(str::to_owned).collect();
            return if is_secret_flag(before) { MASK.to_owned() } else { mask_args(&words).join(" ") };
        }
        mask_arg(arg, before)
    };
    args.iter().map(|arg| mask(arg, std::mem::replace(&mut before, arg))).collect()
}

fn mask_arg(arg: &str, before: &str) -> String {
    if is_reference(arg) || arg.is_empty() {
        return arg.to_owned();
    }
    if is_secret_flag(before) && !arg.starts_with("--") {
        return MASK.to_owned();
    }
    let (separator, is_pair) = if is_header_flag(before) { (':', true) } else { ('=', is_env_flag(before)) };
    match arg.split_once(separator) {
        Some((name, value)) if (is_pair || sounds_secret(name)) && !is_reference(value) => {
            format!("{name}{separator}{MASK}")
        }
        _ => arg.to_owned(),
    }
}

/// `--api-key`, whose value is the next argument.
fn is_secret_flag(arg: &str) -> bool {
    arg.starts_with('-') && !arg.contains('=') && sounds_secret(arg)
}

fn is_env_flag(arg: &str) -> bool {
    ["-e", "--env"].contains(&arg)
}

fn is_header_flag(arg: &str) -> bool {
    ["-H", "--header"].contains(&arg)
}

/// The name of a key, a variable or a flag whose value is probably a secret.
fn sounds_secret(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let telling = [
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "apikey",
        "accesskey",
        "authorization",
        "credential",
    ];
    telling.iter().any(|word| name.contains(word))
}

/// YAML needs no quotes: a short value is masked where it ends a line, behind its key or as an item.
fn in_yaml(text: &str, secret: &str, shown: &str) -> String {
    let mask = |line: &str| {
        let bare = line.trim_end();
        let start = bare.strip_suffix(secret).filter(|start| start.ends_with(": ") || start.ends_with("- "));
        start.map_or_else(|| line.to_owned(), |start| format!("{start}{shown}{}", &line[bare.len()..]))
    };
    text.split_inclusive('\n').map(mask).collect()
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

/// The line with the users, passwords and queries of its URLs masked.
fn mask_urls(line: &str) -> String {
    let mut parts = line.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_end = |c: char| c.is_whitespace() || "\"'`\\<>".contains(c);
        let (url, rest) = part.split_at(part.find(is_end).unwrap_or(part.len()));
        out.extend(["://", &mask_url(url), rest]);
    }
    out
}

/// What follows `://`, without a user's name, password and query.
fn mask_url(url: &str) -> String {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let end = address.find(['/', '#']).unwrap_or(address.len());
    let (authority, path) = address.split_at(end);
    let shown = match authority.rsplit_once('@') {
        Some((_, host)) => format!("{MASK}@{host}{path}"),
        None => address.to_owned(),
    };
    if query.is_empty() { shown } else { format!("{shown}?{MASK}") }
}

/// Masks the value of a key that sounds like a secret, in JSON, TOML or YAML: a host's file holds more than servers.
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
    fn the_passwords_and_queries_of_urls_are_masked_wherever_they_stand() {
        for (line, shown) in [
            (
                "args = [\"--dsn\", \"postgres://u:hunter2@localhost/db\"]",
                "args = [\"--dsn\", \"postgres://•••@localhost/db\"]",
            ),
            (
                "# see https://a.example/x and http://b.example?key=k",
                "# see https://a.example/x and http://b.example?•••",
            ),
            ("- https://me@h.example/@scope/x", "- https://•••@h.example/@scope/x"),
            ("'amqp://u:p@ss@h:1/x?a=b#c'", "'amqp://•••@h:1/x?•••'"),
            ("https://registry.example/@scope/x", "https://registry.example/@scope/x"),
        ] {
            assert_eq!(mask_urls(line), shown);
        }
    }

    #[test]
    fn the_secrets_in_arguments_are_masked() {
        for (args, shown) in [
            (&["--token", "t1", "-v"][..], &["--token", "•••", "-v"][..]),
            (&["--api-key=k", "--Password", "p"], &["--api-key=•••", "--Password", "•••"]),
            (&["--client-secret", "--verbose"], &["--client-secret", "--verbose"]),
            (&["--token", "${TOKEN}", "--token=${TOKEN}"], &["--token", "${TOKEN}", "--token=${TOKEN}"]),
            (&["run", "-e", "A=b", "GITHUB_TOKEN=t"], &["run", "-e", "A=•••", "GITHUB_TOKEN=•••"]),
            (&["--header", "X-Key: a b"], &["--header", "X-Key:•••"]),
            (&["-c", "serve --token abc --port 1"], &["-c", "serve --token ••• --port 1"]),
            (&["--password", "two words"], &["--password", "•••"]),
            (&["--mode=all", "/tokens"], &["--mode=all", "/tokens"]),
        ] {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(mask_args(&args), shown);
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
