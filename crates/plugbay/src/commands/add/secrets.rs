//! Values that look like secrets, or like placeholders that a README left for its reader.

use plugbay_hosts::jsonc::Input;

/// Words that show that a variable or header holds a secret.
const NAMES: [&str; 8] =
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTHORIZATION", "COOKIE"];
/// The prefixes of the tokens of well-known services.
const BEGINNINGS: [&str; 12] = [
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_live_",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "eyJ",
    "ntn_",
];
const SHORTEST: usize = 8;

/// Notes on the given `env`, `headers` and `oauth` of an entry. Secrets are noted only if the file will hold
/// the entry.
pub fn notes(server: &str, members: &[(String, Input)], is_written: bool) -> Vec<String> {
    let values = members.iter().flat_map(|(key, value)| {
        let kind = match key.as_str() {
            "env" | "environment" | "envs" => "env",
            "headers" | "http_headers" => "header",
            "oauth" | "auth" => "oauth",
            _ => return Vec::new(),
        };
        let Input::Object(values) = value else { return Vec::new() };
        values.iter().map(|(name, value)| (kind, name, value)).collect()
    });
    values
        .filter_map(|(kind, name, value)| match value {
            Input::String(value) => note(server, kind, name, value, is_written),
            _ => None,
        })
        .collect()
}

fn note(server: &str, kind: &str, name: &str, value: &str, is_written: bool) -> Option<String> {
    if value.contains("$(") {
        return Some(format!("{kind} {name} of {server} contains `$(…)`, which no shell will run"));
    }
    if value.contains("${") {
        return None;
    }
    let secret = value.trim_start_matches("Bearer ").trim_start_matches("Basic ");
    let is_named = {
        let name = name.to_uppercase();
        NAMES.iter().any(|word| name.contains(word))
    };
    if is_named && is_placeholder(secret) {
        return Some(format!("{kind} {name} of {server} looks like a placeholder: give your own value"));
    }
    let is_token = BEGINNINGS.iter().any(|beginning| secret.starts_with(beginning));
    if !is_written || secret.len() < SHORTEST || !(is_named || is_token) || secret.contains(' ') {
        return None;
    }
    let variable: String =
        name.to_uppercase().chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    let prefix = server.to_uppercase().replace('-', "_");
    let variable = match kind {
        "env" => variable,
        "header" => format!("{prefix}_TOKEN"),
        _ => format!("{prefix}_CLIENT_SECRET"),
    };
    Some(format!(
        "{kind} {name} of {server} looks like a secret, and the file holds it as it is; \
         '${{{variable}}}' in its place is read from the environment"
    ))
}

/// Whether the value is a placeholder: `YOUR_API_KEY`, `<token>`, `xxx`, `...`
fn is_placeholder(value: &str) -> bool {
    let upper = value.to_uppercase();
    let is_filler = |filler: &[char]| !value.is_empty() && value.chars().all(|char| filler.contains(&char));
    upper.starts_with("YOUR")
        || upper.starts_with("MY_")
        || upper.starts_with("REPLACE")
        || upper.contains("API_KEY_HERE")
        || value.starts_with('<')
        || is_filler(&['x', 'X', '.', '*', '…'])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notes(server: &str, entry: &serde_json::Value) -> Vec<String> {
        let Input::Object(members) = plugbay_hosts::jsonc::input(entry) else { unreachable!() };
        super::notes(server, &members, true)
    }

    #[test]
    fn values_that_look_like_secrets_are_noted_and_never_shown() {
        let entry = json!({
            "env": { "API_KEY": "s3cr3t-value", "PORT": "8080-8090", "TOKEN": "${TOKEN}", "X": "ghp_0123456789" },
            "headers": { "Authorization": "Bearer abcdefghijkl" },
        });
        let notes = notes("my-api", &entry);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].contains("env API_KEY of my-api") && notes[0].contains("'${API_KEY}'"), "{notes:?}");
        assert!(
            notes[2].contains("header Authorization") && notes[2].contains("'${MY_API_TOKEN}'"),
            "{notes:?}"
        );
        let values = ["s3cr3t", "ghp_0", "abcdef"];
        assert!(values.iter().all(|value| !notes.concat().contains(value)), "{notes:?}");
    }

    #[test]
    fn a_secret_in_an_entry_that_was_not_written_is_not_noted() {
        let members = |value: &str| {
            let env = vec![("API_KEY".to_owned(), Input::String(value.to_owned()))];
            vec![("env".to_owned(), Input::Object(env))]
        };
        assert_eq!(super::notes("s", &members("s3cr3t-value"), true).len(), 1);
        assert!(super::notes("s", &members("s3cr3t-value"), false).is_empty());
        assert_eq!(super::notes("s", &members("YOUR_API_KEY"), false).len(), 1, "a placeholder is the cause");
    }

    #[test]
    fn a_command_in_a_value_is_noted() {
        let notes = notes("s", &json!({ "env": { "GITHUB_TOKEN": "$(gh auth token)" } }));
        assert!(notes[0].contains("no shell will run"), "{notes:?}");
    }

    #[test]
    fn placeholders_of_readmes_are_noted() {
        for value in ["YOUR_API_KEY", "<your token>", "xxx", "...", "your-key-here"] {
            let notes = notes("s", &json!({ "env": { "API_KEY": value } }));
            assert!(notes[0].contains("placeholder"), "{value}: {notes:?}");
        }
    }
}
