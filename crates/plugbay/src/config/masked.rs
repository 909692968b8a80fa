//! Texts of an entry for people, in which a mask replaces every probable secret.

use plugbay_core::secret::HIDDEN;

/// The replacement for a secret.
pub const MASK: &str = "•••";

/// A command line without secrets.
pub fn masked_words(words: &[String]) -> Vec<String> {
    mask_args(words).iter().map(|word| mask_urls(word)).collect()
}

/// The secrets in arguments, each with its replacement.
pub(super) fn secret_words(words: &[String]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (word, shown) in words.iter().zip(mask_args(words)) {
        let value = shown.strip_suffix(MASK).and_then(|start| word.strip_prefix(start));
        match value {
            Some(value) if shown != *word => found.push((value.trim().to_owned(), HIDDEN.to_owned())),
            // The command line of a shell.
            _ if word.contains(' ') => {
                let words: Vec<String> = word.split(' ').map(str::to_owned).collect();
                found.extend(secret_words(&words));
            }
            _ => found.extend(secrets_of_url(word).map(|secret| (secret.to_owned(), HIDDEN.to_owned()))),
        }
    }
    found
}

/// The secrets of a URL: the user with the password, the password alone, and the values of the query.
fn secrets_of_url(url: &str) -> impl Iterator<Item = &str> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = &address[..address.find(['/', '#']).unwrap_or(address.len())];
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let password = user.and_then(|user| Some(user.split_once(':')?.1));
    let values = query.split('&').filter_map(|pair| Some(pair.split_once('=')?.1));
    user.into_iter().chain(password).chain(values).filter(|value| !value.is_empty() && !is_reference(value))
}

/// Arguments without secrets: values after `--token` or in `--token=`, of variables and of headers.
pub fn mask_args(args: &[String]) -> Vec<String> {
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

/// Whether the argument is a flag like `--api-key`, whose value is the next argument.
fn is_secret_flag(arg: &str) -> bool {
    arg.starts_with('-') && !arg.contains('=') && sounds_secret(arg)
}

fn is_env_flag(arg: &str) -> bool {
    ["-e", "--env"].contains(&arg)
}

fn is_header_flag(arg: &str) -> bool {
    ["-H", "--header"].contains(&arg)
}

/// Whether the name of a key, a variable or a flag suggests that its value is a secret.
pub fn sounds_secret(name: &str) -> bool {
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

/// Whether a value consists only of variables, such as `${TOKEN}`, whose names are not secret.
pub fn is_reference(value: &str) -> bool {
    value.starts_with("${")
        && value.ends_with('}')
        && value.matches('{').count() == 1
        && !value.contains(":-")
}

/// The line with the users, passwords and queries of its URLs masked.
pub fn mask_urls(line: &str) -> String {
    let mut parts = line.split("://");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_end = |c: char| c.is_whitespace() || "\"'`\\<>".contains(c);
        let (url, rest) = part.split_at(part.find(is_end).unwrap_or(part.len()));
        out.extend(["://", &mask_url(url), rest]);
    }
    out
}

/// The part after `://`, without user name, password and query.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_secrets_in_arguments_are_found() {
        let args = ["--token", "t1", "--api-key=k2", "-H", "X-Key: k3", "plain"].map(str::to_owned);
        let found =
            |args: &[String]| secret_words(args).into_iter().map(|(value, _)| value).collect::<Vec<_>>();
        assert_eq!(found(&args), ["t1", "k2", "k3"]);
        let args = ["-c", "serve --token abc123 --port 1", "--dsn", "postgres://me:hunter2@h/db?key=k4"];
        assert_eq!(found(&args.map(str::to_owned)), ["abc123", "me:hunter2", "hunter2", "k4"]);
        let words = ["x", "--dsn", "postgres://u:p@h/db"].map(str::to_owned);
        assert_eq!(masked_words(&words).join(" "), "x --dsn postgres://•••@h/db");
    }
}
