//! A server from a host's file, in one form for all hosts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// One server of a host's file. Variables are written `${VAR}` or `${VAR:-default}`, whatever form the host
/// uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    pub launch: Launch,
    pub disabled: bool,
    /// The only tools to use; empty for all.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// Time to start, in seconds.
    pub start_seconds: Option<u64>,
    /// How long a call may be silent, in milliseconds.
    pub call_milliseconds: Option<u64>,
    /// Environment variables that the host passes on by name.
    pub pass_env: Vec<String>,
    /// Notes for the user about the translation, such as a variable that must now be set.
    pub notes: Vec<String>,
}

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    Process { command: String, args: Vec<String>, env: BTreeMap<String, String>, cwd: Option<String> },
    Remote(Remote),
}

/// A server behind a URL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remote {
    pub url: String,
    pub kind: RemoteKind,
    pub headers: BTreeMap<String, String>,
    /// The members `oauth`, `headersCommand` and `headersFile` of plugbay's entry.
    pub login: Map<String, Value>,
}

/// Keys of a login whose values are secrets.
const SECRETS: [&str; 4] = ["clientSecret", "privateKey", "assertion", "idToken"];

impl Remote {
    /// Every text that may contain a variable.
    pub fn texts(&self) -> Vec<&String> {
        let login = self.login.values().flat_map(texts_of).map(|(_, text)| text);
        std::iter::once(&self.url).chain(self.headers.values()).chain(login).collect()
    }

    /// Changes every text that may contain a variable.
    pub fn change_texts(&mut self, change: impl Fn(&mut String)) {
        change(&mut self.url);
        self.headers.values_mut().for_each(&change);
        self.login.values_mut().for_each(|value| change_texts(value, &change));
    }

    /// The values of headers, and the secrets of the login.
    pub fn secrets(&self) -> Vec<&String> {
        let login = self.login.values().flat_map(texts_of);
        let login = login.filter(|(key, _)| SECRETS.contains(key)).map(|(_, text)| text);
        self.headers.values().chain(login).collect()
    }
}

/// The texts in a value, each with its key.
fn texts_of(value: &Value) -> Vec<(&str, &String)> {
    match value {
        Value::String(text) => vec![("", text)],
        Value::Array(items) => items.iter().flat_map(texts_of).collect(),
        Value::Object(members) => {
            let mut texts = Vec::new();
            for (key, value) in members {
                match value {
                    Value::String(text) => texts.push((key.as_str(), text)),
                    other => texts.extend(texts_of(other)),
                }
            }
            texts
        }
        _ => Vec::new(),
    }
}

fn change_texts(value: &mut Value, change: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| change_texts(item, change)),
        Value::Object(members) => members.values_mut().for_each(|member| change_texts(member, change)),
        _ => {}
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RemoteKind {
    /// The file does not say; plugbay detects it.
    #[default]
    Unsaid,
    Http,
    Sse,
}

impl Entry {
    /// An entry with nothing but a name and a launch.
    pub fn new(name: impl Into<String>, launch: Launch) -> Self {
        Self {
            name: name.into(),
            launch,
            disabled: false,
            include: Vec::new(),
            exclude: Vec::new(),
            start_seconds: None,
            call_milliseconds: None,
            pass_env: Vec::new(),
            notes: Vec::new(),
        }
    }
}
