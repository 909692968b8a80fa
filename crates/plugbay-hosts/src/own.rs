//! A server's entry in the form of plugbay's own configuration.

use std::collections::BTreeMap;

use crate::{
    entry::{Entry, Launch, Remote, RemoteKind},
    jsonc::{self, Input},
};

/// The value of the entry's key below `mcpServers`, with its keys in the usual order.
pub fn value(entry: &Entry) -> Input {
    let mut members = match &entry.launch {
        Launch::Process { command, args, env, cwd } => process(command, args, env, cwd.as_deref()),
        Launch::Remote(remote) => self::remote(remote),
    };
    if entry.disabled {
        members.push(member("disabled", Input::Bool(true)));
    }
    let settings = settings(entry);
    if !settings.is_empty() {
        members.push(member("plugbay", Input::Object(settings)));
    }
    Input::Object(members)
}

type Members = Vec<(String, Input)>;

fn process(command: &str, args: &[String], env: &BTreeMap<String, String>, cwd: Option<&str>) -> Members {
    let mut members = vec![member("command", text(command))];
    if !args.is_empty() {
        members.push(member("args", list(args)));
    }
    members.extend(strings("env", env));
    members.extend(cwd.map(|cwd| member("cwd", text(cwd))));
    members
}

fn remote(remote: &Remote) -> Members {
    let kind = match remote.kind {
        RemoteKind::Unsaid => None,
        RemoteKind::Http => Some("http"),
        RemoteKind::Sse => Some("sse"),
    };
    let mut members: Members = kind.map(|kind| member("type", text(kind))).into_iter().collect();
    members.push(member("url", text(&remote.url)));
    members.extend(strings("headers", &remote.headers));
    members.extend(remote.login.iter().map(|(key, value)| member(key, jsonc::input(value))));
    members
}

/// plugbay's own settings, in its nested object.
fn settings(entry: &Entry) -> Members {
    let lists = [("allow", &entry.include), ("deny", &entry.exclude), ("passEnv", &entry.pass_env)];
    let lists = lists.into_iter().filter(|(_, items)| !items.is_empty());
    let mut members: Members = lists.map(|(key, items)| member(key, list(items))).collect();
    members.extend(entry.start_seconds.map(|seconds| member("start", text(&format!("{seconds}s")))));
    members.extend(entry.call_milliseconds.map(|limit| member("timeout", text(&duration(limit)))));
    members
}

fn duration(milliseconds: u64) -> String {
    if milliseconds.is_multiple_of(1000) {
        format!("{}s", milliseconds / 1000)
    } else {
        format!("{milliseconds}ms")
    }
}

fn strings(key: &str, values: &BTreeMap<String, String>) -> Option<(String, Input)> {
    let values: Members = values.iter().map(|(name, value)| member(name, text(value))).collect();
    (!values.is_empty()).then(|| member(key, Input::Object(values)))
}

fn list(items: &[String]) -> Input {
    Input::Array(items.iter().map(|item| text(item)).collect())
}

fn member(key: &str, value: Input) -> (String, Input) {
    (key.to_owned(), value)
}

fn text(text: &str) -> Input {
    Input::String(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_written_in_the_usual_order() {
        let env = BTreeMap::from([("K".to_owned(), "${TOK}".to_owned())]);
        let launch = Launch::Process { command: "npx".into(), args: vec!["-y".into()], env, cwd: None };
        let mut entry = Entry::new("ev", launch);
        entry.disabled = true;
        entry.exclude = vec!["drop_*".into()];
        entry.call_milliseconds = Some(1500);
        let text = jsonc::set("{}", &["mcpServers", "ev"], value(&entry)).unwrap();
        let keys = ["command", "args", "env", "disabled", "plugbay", "deny", "timeout"];
        let places = keys.map(|key| text.find(&format!("\"{key}\"")).unwrap());
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains("\"1500ms\""), "{text}");
    }
}
