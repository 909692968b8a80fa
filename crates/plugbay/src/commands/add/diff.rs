//! The difference between two entries, without secrets.

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::config::public_url;

const MAPS: [&str; 8] = ["env", "environment", "envs", "headers", "http_headers", "plugbay", "oauth", "auth"];
/// Members of a login that are not secret.
const PUBLIC: [&str; 10] = [
    "clientId",
    "client_id",
    "CLIENT_ID",
    "scopes",
    "scope",
    "callbackPort",
    "grant",
    "algorithm",
    "keyId",
    "enabled",
];
const ADDRESSES: [&str; 4] = ["url", "serverUrl", "uri", "httpUrl"];
const HIDDEN: &str = "…";
const OTHER: &str = "… (another value)";

/// One line per key, with `-`, `+` or a blank in front. Secrets are hidden, but a changed secret shows as
/// changed.
pub fn lines(before: &Value, after: &Value) -> String {
    let (before, after) = (flat(before, before), flat(after, before));
    let diff = TextDiff::from_lines(&before, &after);
    let lines = diff.iter_all_changes().map(|change| {
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => ' ',
        };
        format!("{sign} {}", change.value())
    });
    lines.collect()
}

/// The keys of an entry with their values, one per line. Variables and headers are listed one by one.
fn flat(entry: &Value, base: &Value) -> String {
    let members = entry.as_object().into_iter().flatten();
    let lines = members.flat_map(|(key, value)| match value {
        Value::Object(inner) if MAPS.contains(&key.as_str()) => {
            let old = base.get(key);
            let line = |(name, value): (&String, &Value)| {
                let old = old.and_then(|old| old.get(name));
                let is_public = key == "plugbay" || key.ends_with("auth") && PUBLIC.contains(&name.as_str());
                let shown = if is_public { value.to_string() } else { hidden(value, old) };
                format!("{key}.{name}: {shown}\n")
            };
            inner.iter().map(line).collect()
        }
        Value::String(url) if ADDRESSES.contains(&key.as_str()) => {
            vec![format!("{key}: {}\n", address(url, base.get(key)))]
        }
        _ => vec![format!("{key}: {value}\n")],
    });
    lines.collect()
}

/// Hides a value, unless it refers to a variable, which is not secret.
fn hidden(value: &Value, old: Option<&Value>) -> String {
    let is_reference = value.as_str().is_some_and(|text| text.starts_with("${") && text.ends_with('}'));
    match old {
        _ if is_reference => value.to_string(),
        Some(old) if old != value => OTHER.to_owned(),
        _ => HIDDEN.to_owned(),
    }
}

fn address(url: &str, old: Option<&Value>) -> String {
    let shown = public_url(url);
    let hides_a_change =
        old.and_then(Value::as_str).is_some_and(|old| old != url && public_url(old) == shown);
    if hides_a_change { format!("\"{shown}\" (another query)") } else { format!("\"{shown}\"") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_between_entries_shows_changed_secrets_without_their_values() {
        let before =
            json!({ "command": "npx", "args": ["a", "b"], "env": { "A": "one", "B": "two", "C": "${C}" } });
        let after =
            json!({ "command": "uvx", "args": ["a", "b"], "env": { "A": "1", "B": "two", "C": "${D}" } });
        let expected = "  \
  args: [\"a\",\"b\"]
- command: \"npx\"
- env.A: …
+ command: \"uvx\"
+ env.A: … (another value)
  env.B: …
- env.C: \"${C}\"
+ env.C: \"${D}\"
";
        assert_eq!(lines(&before, &after), expected);
    }

    #[test]
    fn a_difference_between_logins_shows_no_secret() {
        let login = |id: &str, secret: &str| json!({ "oauth": { "clientId": id, "clientSecret": secret } });
        let expected = "- oauth.clientId: \"a\"\n- oauth.clientSecret: …\n+ oauth.clientId: \"b\"\n\
            + oauth.clientSecret: … (another value)\n";
        assert_eq!(lines(&login("a", "s3cr3t"), &login("b", "s3cr3t-2")), expected);
    }

    #[test]
    fn a_difference_between_addresses_shows_no_query() {
        let (before, after) = (json!({ "url": "https://h/m?k=1" }), json!({ "url": "https://h/m?k=2" }));
        let expected = "- url: \"https://h/m?…\"\n+ url: \"https://h/m?…\" (another query)\n";
        assert_eq!(lines(&before, &after), expected);
    }
}
