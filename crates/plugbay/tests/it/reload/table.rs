//! Rows that say how a connected host observes the reload of one configuration key.

use std::{
    cell::Cell,
    fs, iter,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use plugbay_testkit::{
    DEADLINE, Endpoint, Host, Play, Script, Workspace, patience, scripted_server_path, write_program,
};
use serde_json::{Value, json};

use crate::{dialect::ANTHROPIC, gateway};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The pauses that rows set are longer than this, or much shorter.
const LONG: Duration = Duration::from_secs(1);
/// Number of prepared answers: more than any row needs.
const ANSWERS: usize = 1000;
/// A name of 57 characters, which `nameLength` 48 shortens.
pub(super) const LONG_NAME: &str = "a_tool_with_a_name_that_is_much_longer_than_usual_for_it";

/// One key of the configuration: the file before and after, and a text that the observation must then
/// contain.
pub(super) struct Row {
    /// `Definition.key` as in the JSON Schema; keys at the top have no definition.
    pub(super) key: &'static str,
    pub(super) before: Value,
    pub(super) after: Value,
    pub(super) look: fn(&Harness) -> String,
    pub(super) shows: [&'static str; 2],
}

/// A gateway with one scripted server `s`, its host, and the endpoints that rows may name.
pub(super) struct Harness {
    pub(super) workspace: Workspace,
    pub(super) host: Host,
    /// An endpoint that ranks tools like Gemini, with a fixed answer.
    pub(super) ranker: Endpoint,
    /// An endpoint for agents, like Anthropic: it makes the same three calls again and again.
    pub(super) agent: Endpoint,
    /// Never answers.
    pub(super) silent: Endpoint,
    /// A server behind a URL that rejects every request.
    pub(super) remote: Endpoint,
    /// A remote gateway with the plain API: `web__search` and `memory__store`.
    pub(super) plain_api: Endpoint,
    queries: Cell<usize>,
}

impl Harness {
    pub(super) fn new() -> Self {
        let workspace = Workspace::new();
        prepare_files(&workspace);
        workspace.write_config(&workspace.config(&[("s", script())]));
        let tools = workspace.path().join("tools");
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").expect("a PATH"));
        let mut command = workspace.command(&gateway());
        command.env("PATH", path).envs([("KEY_ONE", "one"), ("KEY_TWO", "two")]);
        let host = Host::spawn(command.envs([("ANTHROPIC_API_KEY", "a")]));
        host.initialize();
        let answers = |play: Play| Endpoint::start(iter::repeat_n(play, ANSWERS));
        let ranking = json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "[\"s__pid\"]" }] }, "finishReason": "STOP" }] });
        let calls = ["s__read", "s__add", "s__drop"].map(|tool| (tool, json!({ "n": 1 })));
        Self {
            workspace,
            host,
            ranker: answers(Play::json(200, &ranking)),
            agent: answers(ANTHROPIC.calls(&calls)),
            silent: answers(Play::Silence(Vec::new())),
            remote: answers(Play::json(404, &json!({}))),
            plain_api: crate::remote::plain_api(&["web__search", "memory__store"]),
            queries: Cell::new(0),
        }
    }

    /// Checks every row: each change takes effect without a restart of the gateway.
    pub(super) fn check(&self, rows: &[Row]) {
        let failures: Vec<String> = rows.iter().filter_map(|row| self.check_row(row).err()).collect();
        assert!(failures.is_empty(), "{}\n{}", failures.join("\n"), self.host.stderr());
        assert!(self.host.process().is_alive());
    }

    fn check_row(&self, row: &Row) -> Result<(), String> {
        assert_ne!(row.before, row.after, "{}", row.key);
        let [before, after] = row.shows;
        // A row may begin with what the previous row has left.
        self.observe(row, &row.before, |seen| seen.contains(before) && !seen.contains(after))?;
        self.observe(row, &row.after, |seen| seen.contains(after))
    }

    /// Writes the configuration, and observes until the expected result appears.
    fn observe(&self, row: &Row, change: &Value, is_expected: impl Fn(&str) -> bool) -> Result<(), String> {
        let mut config = self.workspace.config(&[("s", script())]).value();
        merge(&mut config, change);
        let file = self.workspace.config_path();
        fs::write(file.with_extension("new"), config.to_string()).unwrap();
        fs::rename(file.with_extension("new"), file).unwrap();
        let deadline = Instant::now() + patience(DEADLINE);
        loop {
            let seen = (row.look)(self);
            if is_expected(&seen) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!(
                    "{} shows {seen} with {change}, and not one of {:?}",
                    row.key, row.shows
                ));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// An entry that starts a scripted server of this name.
    pub(super) fn entry(&self, name: &str, script: &Script) -> Value {
        json!({ "command": scripted_server_path(), "args": [self.workspace.write_script(name, script)] })
    }

    /// A query that was not used before, so that no remembered answer applies.
    fn query(&self) -> String {
        self.queries.set(self.queries.get() + 1);
        format!("scripted tool {}", self.queries.get())
    }
}

/// What each tool of the server `s` does.
fn script() -> Script {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let numbered = |name: &str, annotations: Value| json!({ "name": name, "inputSchema": schema, "annotations": annotations });
    let tools = json!([
        "echo",
        "pid",
        "env",
        "hang",
        "big",
        "busy",
        LONG_NAME,
        numbered("read", json!({ "readOnlyHint": true })),
        numbered("add", json!({ "destructiveHint": false })),
        numbered("drop", json!({})),
    ]);
    Script::new()
        .set("tools", tools)
        .tool("*", r#"{"echo":true}"#)
        .tool("pid", r#"{"pid":true}"#)
        .tool("env", r#"{"env":true}"#)
        .tool("hang", r#"{"hang":true}"#)
        .tool("big", r#"{"size":8000}"#)
        .tool("busy", r#"{"progress":1000,"progress_ms":100}"#)
}

/// Creates folders to start in, a file to discover, and a keychain in which each key's value is its name.
fn prepare_files(workspace: &Workspace) {
    let root = workspace.path();
    for folder in ["one", "two", "found", "tools"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    let found = workspace.config(&[("found", Script::friendly())]).value();
    fs::write(root.join("found/servers.json"), json!({ "mcpServers": found["mcpServers"] }).to_string())
        .unwrap();
    for name in ["secret-tool", "security"] {
        let program = root.join("tools").join(name);
        write_program(&program, "#!/bin/sh\nfor last; do :; done\necho \"$last\"\n");
    }
}

/// These settings, overridden by others.
#[expect(clippy::needless_pass_by_value, reason = "both are written in place")]
pub(super) fn with(mut settings: Value, others: Value) -> Value {
    merge(&mut settings, &others);
    settings
}

/// Lays one JSON value over another, key by key.
fn merge(base: &mut Value, change: &Value) {
    match (base, change) {
        (Value::Object(base), Value::Object(change)) => {
            for (key, value) in change {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, change) => base.clone_from(change),
    }
}

// ---- observations

/// The names of all listed tools, each between spaces, with two spaces at both ends.
pub(super) fn names(harness: &Harness) -> String {
    format!("  {}  ", harness.host.tool_names().join(" "))
}

/// The list of tools as JSON.
pub(super) fn definitions(harness: &Harness) -> String {
    harness.host.list_tools().into_iter().map(|tool| tool.raw).collect()
}

/// The whole answer to a call.
pub(super) fn call(harness: &Harness, tool: &str, arguments: &Value) -> String {
    harness.host.call(tool, &arguments.to_string()).text().to_owned()
}

pub(super) fn status(harness: &Harness) -> String {
    call(harness, "gateway_status", &json!({}))
}

/// The environment of the server `s`, as JSON; nothing while it restarts.
pub(super) fn environment(harness: &Harness) -> String {
    let answer = call(harness, "s__env", &json!({}));
    answer.replace("\\\"", "\"")
}

/// The number of tools that a search shows, between spaces.
pub(super) fn hits(harness: &Harness) -> String {
    let answer = harness.host.call("search_tools", &json!({ "query": harness.query() }).to_string());
    let text = answer.content_text();
    format!(" {} ", text.lines().filter(|line| line.starts_with("s__")).count())
}

/// The requests of a search to the ranking model.
pub(super) fn ranking(harness: &Harness) -> String {
    harness.ranker.untaken();
    call(harness, "search_tools", &json!({ "query": harness.query() }));
    format!("{:?}", harness.ranker.untaken())
}

/// Whether a search waits for the silent model.
pub(super) fn search_time(harness: &Harness) -> String {
    duration(|| drop(call(harness, "search_tools", &json!({ "query": harness.query() }))))
}

/// The text of an agent run, and the requests to its model.
pub(super) fn agent_run(harness: &Harness) -> String {
    harness.agent.untaken();
    let answer = call(harness, "natural_language", &json!({ "query": "x" }));
    format!("{answer} {:?}", harness.agent.untaken())
}

/// The requests to the server behind a URL since the last look.
pub(super) fn remote(harness: &Harness) -> String {
    format!("{:?}", harness.remote.untaken())
}

/// The answer to a call of this many bytes, which may be an error without an id.
pub(super) fn long_call(harness: &Harness) -> String {
    let filler = "x".repeat(6000);
    let id = harness.host.start_call("s__echo", &json!({ "filler": filler }).to_string()).to_string();
    let answer = harness.host.expect("an answer", |message| {
        message.is_response() && [Some(&*id), Some("null")].contains(&message.id())
    });
    if answer.id() == Some("null") { answer.text().to_owned() } else { "accepted".to_owned() }
}

/// `long` or `short`.
pub(super) fn duration(work: impl FnOnce()) -> String {
    let start = Instant::now();
    work();
    if start.elapsed() > LONG { "long".to_owned() } else { "short".to_owned() }
}

/// What `plugbay hosts` prints for this configuration.
pub(super) fn profiles(harness: &Harness) -> String {
    let mut command = Command::new(gateway());
    command.args(["hosts", "--json", "--config"]).arg(harness.workspace.config_path());
    command.current_dir(harness.workspace.path()).env_clear().envs(harness.workspace.environment());
    String::from_utf8(command.output().expect("plugbay runs").stdout).unwrap().split_whitespace().collect()
}

/// What `plugbay status` prints of the running gateway.
pub(super) fn shown_status(harness: &Harness) -> String {
    let mut command = Command::new(gateway());
    command.args(["status", "--json"]).current_dir(harness.workspace.path());
    command.env_clear().envs(harness.workspace.environment());
    String::from_utf8(command.output().expect("plugbay runs").stdout).unwrap().split_whitespace().collect()
}
