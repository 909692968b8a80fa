//! The source of the credentials for a server behind a URL, in plugbay's form.

use serde_json::{Map, Value};

use super::variables::Translator;

/// plugbay's keys, each with the hosts' spellings.
const KEYS: [(&str, &[&str]); 8] = [
    ("clientId", &["clientId", "client_id", "CLIENT_ID"]),
    ("clientSecret", &["clientSecret", "client_secret", "CLIENT_SECRET"]),
    ("clientMetadataUrl", &["clientMetadataUrl"]),
    ("issuer", &["issuer"]),
    ("authServerMetadataUrl", &["authServerMetadataUrl"]),
    ("scopes", &["scopes", "scope"]),
    ("callbackPort", &["callbackPort", "callback_port"]),
    ("redirectUri", &["redirectUri", "redirect_uri", "redirectUrl"]),
];

/// The members of plugbay's entry for the keys of a host's entry.
pub(super) fn members(fields: &Map<String, Value>, names: &mut Translator<'_>) -> Map<String, Value> {
    let mut members = Map::new();
    let set = |keys: &[&str]| keys.iter().find_map(|key| fields.get(*key)).filter(|value| !value.is_null());
    let mut oauth = match set(&["oauth", "auth"]) {
        Some(Value::Bool(false)) => Value::Bool(false),
        Some(Value::Object(login)) if login.get("enabled") == Some(&Value::Bool(false)) => Value::Bool(false),
        Some(Value::Object(login)) => Value::Object(self::login(login, names)),
        _ => Value::Object(Map::new()),
    };
    if let (Value::Object(login), Some(scopes)) = (&mut oauth, set(&["scopes", "oauthScopes"])) {
        login.entry("scopes").or_insert_with(|| words(scopes));
    }
    // An empty object sets nothing: plugbay logs in if the server asks for it.
    if oauth != Value::Object(Map::new()) {
        members.insert("oauth".to_owned(), oauth);
    }
    if let Some(Value::String(line)) = fields.get("headersHelper") {
        members.insert("headersCommand".to_owned(), command(line, names));
    }
    members
}

fn login(fields: &Map<String, Value>, names: &mut Translator<'_>) -> Map<String, Value> {
    let mut login = Map::new();
    for (key, value) in fields.iter().filter(|(key, value)| !value.is_null() && *key != "enabled") {
        match (KEYS.iter().find(|(_, spellings)| spellings.contains(&key.as_str())), value) {
            (Some(("scopes", _)), value) => _ = login.insert("scopes".to_owned(), words(value)),
            (Some((key, _)), Value::String(text)) => {
                login.insert((*key).to_owned(), names.translate(text).into());
            }
            (Some((key, _)), value) => _ = login.insert((*key).to_owned(), value.clone()),
            (None, _) => {
                names.note(format!(
                    "`{key}` of the login has no counterpart in plugbay, which finds out itself"
                ));
            }
        }
    }
    login.retain(|_, value| *value != Value::Array(Vec::new()) && *value != Value::String(String::new()));
    login
}

/// Scopes as a list.
fn words(scopes: &Value) -> Value {
    match scopes {
        Value::String(text) => text.split_whitespace().collect(),
        list => list.clone(),
    }
}

/// A command for headers. Claude Code runs the line in a shell; if that makes no difference, plugbay runs the
/// program itself.
fn command(line: &str, names: &mut Translator<'_>) -> Value {
    let line = names.translate(line);
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+, ${}".contains(c);
    let starts_there = line.starts_with('.')
        || line
            .split(' ')
            .next()
            .is_some_and(|program| program.contains('/') && !program.starts_with(['/', '$']));
    if starts_there {
        names.note(format!("`{line}` starts in the folder of plugbay's configuration: write its whole path"));
    }
    if line.chars().all(is_plain) && !bare_variable(&line) {
        return line.split_whitespace().collect();
    }
    ["sh", "-c", &line].into_iter().collect()
}

/// Whether a `$` is used for anything but `${VAR}`.
fn bare_variable(line: &str) -> bool {
    line.split('$').skip(1).any(|rest| !rest.starts_with('{'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Launch, known, read::read};

    fn login(host: &str, entry: &Value) -> (Value, Vec<String>) {
        let host = known::by_id(host).unwrap();
        let text = json!({ (host.container.clone()): { "x": entry } }).to_string();
        let mut reading = read(host, &text).unwrap();
        assert_eq!((reading.found.len(), reading.problems.len()), (1, 0), "{reading:?}");
        let entry = reading.found.remove(0).entry;
        let Launch::Remote(remote) = entry.launch else { panic!() };
        (Value::Object(remote.login), entry.notes)
    }

    #[test]
    fn the_oauth_settings_of_hosts_become_plugbays() {
        let url = "https://x.example/mcp";
        for (host, entry, expected) in [
            (
                "claude-code",
                json!({ "type": "http", "url": url, "oauth": { "clientId": "me", "callbackPort": 8080, "scopes": "a b" } }),
                json!({ "oauth": { "clientId": "me", "callbackPort": 8080, "scopes": ["a", "b"] } }),
            ),
            (
                "gemini-cli",
                json!({ "httpUrl": url, "oauth": { "enabled": true, "clientId": "me", "clientSecret": "$KEY", "scopes": [] } }),
                json!({ "oauth": { "clientId": "me", "clientSecret": "${KEY}" } }),
            ),
            (
                "opencode",
                json!({ "type": "remote", "url": url, "oauth": { "clientId": "{env:ID}", "scope": "a" } }),
                json!({ "oauth": { "clientId": "${ID}", "scopes": ["a"] } }),
            ),
            ("opencode", json!({ "type": "remote", "url": url, "oauth": false }), json!({ "oauth": false })),
            ("opencode", json!({ "type": "remote", "url": url, "oauth": {} }), json!({})),
            (
                "cursor",
                json!({ "url": url, "auth": { "CLIENT_ID": "${env:ID}", "CLIENT_SECRET": "s", "scopes": ["a"] } }),
                json!({ "oauth": { "clientId": "${ID}", "clientSecret": "s", "scopes": ["a"] } }),
            ),
            ("kiro", json!({ "url": url, "oauthScopes": ["a"] }), json!({ "oauth": { "scopes": ["a"] } })),
            (
                "claude-code",
                json!({ "type": "http", "url": url, "headersHelper": "/opt/headers --for ${TEAM}" }),
                json!({ "headersCommand": ["/opt/headers", "--for", "${TEAM}"] }),
            ),
            (
                "claude-code",
                json!({ "type": "http", "url": url, "headersHelper": "echo \"{}\" | tee $LOG" }),
                json!({ "headersCommand": ["sh", "-c", "echo \"{}\" | tee $LOG"] }),
            ),
        ] {
            assert_eq!(login(host, &entry).0, expected, "{host}");
        }
    }

    #[test]
    fn parts_of_a_login_without_counterpart_are_noted() {
        let url = "https://x.example/mcp";
        let entry =
            json!({ "httpUrl": url, "oauth": { "clientId": "me", "tokenUrl": "https://as.example/t" } });
        let (_, notes) = login("gemini-cli", &entry);
        assert!(notes.iter().any(|note| note.contains("`tokenUrl`")), "{notes:?}");
        let entry = json!({ "type": "http", "url": url, "headersHelper": "./headers.sh" });
        let (_, notes) = login("claude-code", &entry);
        assert!(notes.iter().any(|note| note.contains("whole path")), "{notes:?}");
    }
}
