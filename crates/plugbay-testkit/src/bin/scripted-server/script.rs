//! The keys of a script for the server. Unknown keys are refused, so that a typo fails loudly.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a flat script reads better than nested options")]
pub(crate) struct Script {
    /// How messages are delimited when sent and, strictly, when received.
    pub(crate) framing: Framing,
    pub(crate) era: Era,
    /// A dual server that has served one modern request then refuses `initialize`, as an SDK does.
    pub(crate) lock_era: bool,
    /// The legacy version in the answer to `initialize`, whatever the client asked for.
    pub(crate) protocol: Option<String>,
    pub(crate) instructions: Option<String>,
    /// A number of plain tools, or a list of names and raw definitions. Absent: one per behaviour.
    pub(crate) tools: Option<Box<RawValue>>,
    /// Client capability → additional tools for clients that declare it.
    pub(crate) tools_with: BTreeMap<String, Box<RawValue>>,
    /// Raw definitions, which the server does not read. Absent: the server has none of this kind.
    pub(crate) resources: Option<Vec<Box<RawValue>>>,
    pub(crate) templates: Option<Vec<Box<RawValue>>>,
    pub(crate) prompts: Option<Vec<Box<RawValue>>>,
    /// Declares the logging capability.
    pub(crate) logging: bool,
    pub(crate) page_size: Option<usize>,
    /// Tool name → behaviour of its call; `*` is for every other tool.
    pub(crate) behaviour: BTreeMap<String, Behaviour>,
    /// Method → behaviour of its request, like a tool's call. `METHOD URI` and `METHOD CURSOR` take
    /// precedence over `METHOD`.
    pub(crate) methods: BTreeMap<String, Behaviour>,
    /// Further capabilities.
    pub(crate) capabilities: BTreeMap<String, Value>,
    /// Like `behaviour`, for `resources/read` by URI, `prompts/get` by name, and `completion/complete` by
    /// either.
    pub(crate) reads: BTreeMap<String, Behaviour>,
    pub(crate) gets: BTreeMap<String, Behaviour>,
    pub(crate) completes: BTreeMap<String, Behaviour>,
    /// One line per event is appended to this file: `start PID`, `in MESSAGE`, `said LINE` (a call's, on
    /// stderr), `listed`, `eof`.
    pub(crate) log: Option<PathBuf>,

    pub(crate) start_delay_ms: u64,
    /// Starts serving only when this file exists.
    pub(crate) start_after: Option<PathBuf>,
    /// Millions of steps of work before it serves, which take processor time.
    pub(crate) start_work: u64,
    /// Works until this file exists.
    pub(crate) work_until: Option<PathBuf>,
    pub(crate) list_delay_ms: u64,
    /// Reads all messages but answers none.
    pub(crate) mute: bool,
    /// Lines that are not messages, sent on stdout before each message.
    pub(crate) garbage: Vec<String>,
    pub(crate) stderr: Option<Noise>,
    /// Exits at once instead of serving.
    pub(crate) exit: Option<Exit>,
    pub(crate) ignore_eof: bool,
    pub(crate) ignore_term: bool,
    /// What a legacy server does with `server/discover`.
    pub(crate) discover: Discover,
    /// Starts this many grandchildren that keep its pipes and ignore the end of input.
    pub(crate) children: usize,
}

/// The behaviour of one tool's call. Without a key that makes the answer, the answer is a short text.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "a flat script reads better than nested options")]
pub(crate) struct Behaviour {
    // Before the answer, in this order.
    /// Lines on stderr.
    pub(crate) stderr: Vec<String>,
    pub(crate) delay_ms: u64,
    /// How many progress notifications are sent, if the request has a token.
    pub(crate) progress: u32,
    /// The pause before each of them.
    pub(crate) progress_ms: u64,
    /// Raw lines, sent unchanged except for two words: `TOKEN` becomes the request's progress token, and
    /// `SUBSCRIPTION` the id of the latest `subscriptions/listen`.
    pub(crate) send: Vec<String>,
    /// The new list of tools (see `Script::tools`), announced with `list_changed`.
    pub(crate) change_tools: Option<Box<RawValue>>,
    pub(crate) crash: Option<Exit>,
    pub(crate) hang: bool,
    /// Requests to the client, all at once. Unless another answer is set, the client's answers are the text
    /// of the answer.
    pub(crate) ask: Vec<Ask>,

    // The answer: the first of these keys that is set.
    /// Sent byte for byte as `error`.
    pub(crate) error: Option<Box<RawValue>>,
    /// Sent byte for byte as `result`.
    pub(crate) result: Option<Box<RawValue>>,
    /// A text of this many bytes.
    pub(crate) size: Option<usize>,
    /// A text of this many MiB, on one line.
    pub(crate) big_line: Option<usize>,
    /// The raw `params` as received, as text.
    pub(crate) echo: bool,
    pub(crate) pid: bool,
    /// The raw `params` of all calls of such tools so far, one per line, as text.
    pub(crate) remember: bool,
    /// The environment as a JSON object, as text.
    pub(crate) env: bool,
    /// `{"cancelled": [ids], "calls": [[tool, id]]}` as text; waits for `arguments.wait` cancellations.
    pub(crate) cancelled_log: bool,

    // The envelope of the answer.
    /// Order of `jsonrpc`, `id` and `result` (which stands for `error` too).
    pub(crate) key_order: Vec<String>,
    pub(crate) id_last: bool,
    /// A second `id` of this value at the end of the answer.
    pub(crate) duplicate_id: Option<Box<RawValue>>,

    // After the answer.
    pub(crate) exit_after: Option<i32>,
}

/// The requests that a script can have behaviours for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Call,
    Read,
    Get,
    Complete,
    /// Any other method; see `Script::methods`.
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ask {
    pub(crate) method: String,
    /// Sent byte for byte.
    #[serde(default)]
    pub(crate) params: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Framing {
    #[default]
    Newline,
    ContentLength,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Era {
    #[default]
    Legacy,
    Modern,
    Dual,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Discover {
    #[default]
    Error,
    Silent,
    Exit,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    pub(crate) stderr: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Noise {
    Lines(Vec<String>),
    Mebibytes(usize),
}

impl Script {
    /// Reads the argument: JSON text, or `@file`.
    pub(crate) fn load(argument: &str) -> Result<Self, String> {
        let text = match argument.strip_prefix('@') {
            Some(file) => fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?,
            None => argument.to_owned(),
        };
        serde_json::from_str(&text).map_err(|error| format!("script: {error}"))
    }

    pub(crate) fn initial_tools(&self) -> Vec<String> {
        match &self.tools {
            Some(tools) => definitions(tools),
            None => self.behaviour.keys().filter(|name| *name != "*").map(|name| plain(name)).collect(),
        }
    }

    /// The behaviour of a request of this method for this tool, resource or prompt.
    pub(crate) fn behaviour_of(&self, method: Method, about: &str) -> Option<&Behaviour> {
        let behaviours = match method {
            Method::Call => &self.behaviour,
            Method::Read => &self.reads,
            Method::Get => &self.gets,
            Method::Complete => &self.completes,
            Method::Other => &self.methods,
        };
        behaviours.get(about).or_else(|| behaviours.get("*"))
    }
}

/// The raw definitions from a number, or from a list of names and definitions.
pub(crate) fn definitions(tools: &RawValue) -> Vec<String> {
    if let Ok(count) = serde_json::from_str::<usize>(tools.get()) {
        return (0..count).map(|n| plain(&format!("tool_{n}"))).collect();
    }
    let items: Vec<&RawValue> = serde_json::from_str(tools.get()).expect("tools: a number or a list");
    items.into_iter().map(definition).collect()
}

fn definition(item: &RawValue) -> String {
    match serde_json::from_str::<String>(item.get()) {
        Ok(name) => plain(&name),
        Err(_) => item.get().to_owned(),
    }
}

fn plain(name: &str) -> String {
    let description = serde_json::Value::from(format!("Scripted tool {name}"));
    let name = serde_json::Value::from(name);
    format!(r#"{{"name":{name},"description":{description},"inputSchema":{{"type":"object"}}}}"#)
}
