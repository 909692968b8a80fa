//! Changes an existing entry by an addition.

use plugbay_hosts::jsonc::Input;
use serde_json::Value;

use super::addition::Addition;
use crate::config::{EditError, Editable};

/// The objects whose members are merged.
const MERGED: [&[&str]; 4] =
    [&["env", "environment", "envs"], &["headers", "http_headers"], &["oauth", "auth"], &["plugbay"]];
const PROGRAM: [&str; 8] =
    ["command", "cmd", "args", "env", "environment", "envs", "cwd", "workingDirectory"];
const REMOTE: [&str; 15] = [
    "url",
    "serverUrl",
    "uri",
    "httpUrl",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "oauth",
    "auth",
    "scopes",
    "oauthScopes",
    "headersCommand",
    "headersHelper",
    "headersFile",
];
const KIND: [&str; 2] = ["type", "transport"];

/// Changes the entry of this name: given members replace its own, variables and headers are merged. If a
/// program replaces an address, or the reverse, the members of the old one are removed.
pub fn update(file: &mut Editable, written_name: &str, addition: &Addition) -> Result<(), EditError> {
    let given = |key: &str| addition.members.iter().any(|(member, _)| member == key);
    let has = |keys: &[&str]| keys.iter().any(|key| given(key));
    if has(&PROGRAM[..2]) {
        remove(file, written_name, REMOTE.iter().chain(&KIND).chain(&["args"]), &given)?;
    }
    if has(&REMOTE[..4]) {
        remove(file, written_name, PROGRAM.iter().chain(&KIND), &given)?;
    }
    for (key, value) in &addition.members {
        set(file, written_name, key, value)?;
    }
    Ok(())
}

fn remove<'k>(
    file: &mut Editable,
    name: &str,
    keys: impl Iterator<Item = &'k &'k str>,
    given: &dyn Fn(&str) -> bool,
) -> Result<(), EditError> {
    for key in keys.filter(|key| !given(key)) {
        file.remove(&[name, key])?;
    }
    Ok(())
}

fn set(file: &mut Editable, name: &str, key: &str, value: &Input) -> Result<(), EditError> {
    let present = |key: &str| file.entry(name).is_some_and(|entry| entry.get(key).is_some());
    let family = [&["command", "cmd"], &REMOTE[..4], &KIND[..]].into_iter().chain(MERGED);
    let spellings = family.into_iter().find(|keys| keys.contains(&key));
    // The spelling that the entry already uses: two spellings would contradict each other.
    let key = spellings.into_iter().flatten().copied().find(|key| present(key)).unwrap_or(key);
    let has_members = file.entry(name).is_some_and(|entry| entry.get(key).is_some_and(Value::is_object));
    match value {
        Input::Object(members) if MERGED.iter().any(|keys| keys.contains(&key)) && has_members => {
            members.iter().try_for_each(|(member, value)| file.set(&[name, key, member], value.clone()))
        }
        _ => file.set(&[name, key], value.clone()),
    }
}
