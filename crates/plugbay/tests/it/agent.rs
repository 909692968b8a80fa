//! Agent runs: a real gateway, real servers, and endpoints that answer like each provider.

mod consent;
mod keys;

use std::{fs, process::Command};

use plugbay_testkit::{
    Asked, Config, DEADLINE, Endpoint, Host, Play, RawMessage, Script, Tool, Workspace, wait_until,
};
use serde_json::{Value, json};

use crate::{
    dialect::{ANTHROPIC, COST, DIALECTS, Dialect, GEMINI, OPENAI, STREAMED},
    gateway,
};

const SECRET: &str = "hunter2-key";

/// A server whose tools read, add, delete, and take a while.
fn numbers() -> Script {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = |name: &str, annotations: Value| json!({ "name": name, "inputSchema": schema, "annotations": annotations });
    let tools = json!([
        tool("read", json!({ "readOnlyHint": true })),
        tool("dawdle", json!({ "readOnlyHint": true })),
        tool("add", json!({ "destructiveHint": false })),
        tool("drop", json!({})),
        tool("secret", json!({ "readOnlyHint": true })),
    ]);
    let script = Script::new().set("tools", tools).tool("dawdle", r#"{"hang":true}"#);
    script.tool("read", r#"{"echo":true}"#).tool("add", r#"{"echo":true}"#)
}

struct Harness {
    workspace: Workspace,
    endpoint: Endpoint,
    dialect: Dialect,
}

impl Harness {
    fn new(dialect: Dialect, plays: impl IntoIterator<Item = Play>) -> Self {
        Self { workspace: Workspace::new(), endpoint: Endpoint::start(plays), dialect }
    }

    fn config(&self, more: &Value) -> Config {
        let model =
            json!({ "provider": self.dialect.provider(), "model": "m", "baseUrl": self.endpoint.url() });
        let mut settings = json!({ "model": model });
        settings.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
        let config = self.workspace.config(&[("s", numbers())]).top("naturalLanguage", settings);
        config.options("s", json!({ "deny": ["secret"], "instructions": "It holds numbers." }))
    }

    /// A host with these capabilities.
    fn open(&self, more: &Value, capabilities: &str) -> Host {
        self.open_with(&self.config(more), capabilities)
    }

    fn open_with(&self, config: &Config, capabilities: &str) -> Host {
        self.workspace.write_config(config);
        let host = Host::spawn(self.workspace.command(&gateway()).env(self.dialect.key_variable(), SECRET));
        host.declare(capabilities);
        host.initialize();
        host.await_tools(&["natural_language", "s__read"]);
        host
    }

    /// The results that the model got for its calls.
    fn results(&self) -> Vec<String> {
        self.dialect.results(&self.endpoint.asked().body)
    }

    fn asked(&self) -> Asked {
        self.endpoint.asked()
    }

    fn calls_made(&self) -> usize {
        self.workspace.count_log("s", "tools/call")
    }
}

fn want(host: &Host, query: &str) -> RawMessage {
    host.call("natural_language", &json!({ "query": query }).to_string())
}

/// The text, the record, and whether it failed.
fn told(answer: &RawMessage) -> (String, String, bool) {
    let result: Value = serde_json::from_str(answer.result()).unwrap();
    let text = |at: usize| result["content"][at]["text"].as_str().unwrap_or_default().to_owned();
    (text(0), text(1), result["isError"] == true)
}

#[test]
fn each_model_provider_calls_tools_and_reports_the_result() {
    for dialect in DIALECTS {
        let plays = [dialect.calls(&[("s__read", json!({ "n": 7 }))]), dialect.says("It is seven.")];
        let harness = Harness::new(dialect, plays);
        let host = harness.open(&json!({ "instructions": "Be brief." }), "{}");
        let (words, record, failed) = told(&want(&host, "What is seven?"));
        assert_eq!((words.as_str(), failed), ("It is seven.", false), "{dialect:?}");
        assert_eq!(record, "Calls:\n1. s__read {\"n\":7}: done");
        let asked = harness.asked();
        assert!(dialect.wants_stream(&asked), "{dialect:?}: {}", asked.text);
        assert_eq!(
            dialect.tools(&asked.body),
            ["s__add", "s__dawdle", "s__drop", "s__read"],
            "what is denied does not exist"
        );
        for part in ["What is seven?", "Be brief.", "About s: It holds numbers."] {
            assert!(asked.text.contains(part), "{part}: {}", asked.text);
        }
        let results = harness.results();
        assert!(results.len() == 1 && results[0].contains(r#""arguments":{"n":7}"#), "{results:?}");
        let ended = host.finish();
        assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
    }
}

#[test]
fn an_agent_run_makes_calls_at_once_and_in_sequence() {
    for dialect in DIALECTS {
        let both = dialect.calls(&[("s__read", json!({ "n": 1 })), ("s__read", json!({ "n": "2" }))]);
        let wrong = dialect.calls(&[("s__read", json!({ "n": "three" })), ("s__secret", json!({ "n": 1 }))]);
        let harness = Harness::new(dialect, [both, wrong, dialect.says("One and two.")]);
        let host = harness.open(&json!({}), "{}");
        let (words, record, failed) = told(&want(&host, "x"));
        assert_eq!((words.as_str(), failed), ("One and two.", false));
        let lines: Vec<&str> = record.lines().collect();
        assert_eq!(lines[..3], ["Calls:", "1. s__read {\"n\":1}: done", "2. s__read {\"n\":2}: done"]);
        assert!(lines[3].starts_with("3. s__read {\"n\":\"three\"}: not made: "), "{record}");
        assert_eq!(lines[4], "4. s__secret {\"n\":1}: not made: there is no tool \"s__secret\"");
        harness.asked();
        let (made, unmade) = (harness.results(), harness.results());
        assert!(made[0].contains(r#"{"n":1}"#) && made[1].contains(r#"{"n":2}"#), "{made:?}");
        assert!(unmade[0].contains("The call was not made: ") && unmade[0].contains("integer"), "{unmade:?}");
        assert_eq!(harness.calls_made(), 2);
        host.finish();
    }
}

#[test]
fn refusals_and_rate_limits_of_a_model_provider_are_reported() {
    for dialect in DIALECTS {
        let plays = [
            dialect.refuses(),
            dialect.limited(vec![("retry-after", "0")]),
            dialect.says("Now I can."),
            dialect.limited(Vec::new()),
            dialect.says("Now too."),
            dialect.limited(vec![("retry-after", "3600")]),
        ];
        let harness = Harness::new(dialect, plays);
        let host = harness.open(&json!({}), "{}");
        let (words, record, failed) = told(&want(&host, "x"));
        assert!(failed && words.contains("it refuses to answer"), "{dialect:?}: {words}");
        assert_eq!(record, "No tool was called.");
        assert_eq!(told(&want(&host, "x")).0, "Now I can.");
        assert_eq!(told(&want(&host, "x")).0, "Now too.");
        let (words, _, failed) = told(&want(&host, "x"));
        assert!(failed && words.contains("asked too often") && words.contains("Slow down."), "{words}");
        host.finish();
    }
}

#[test]
fn streamed_model_text_becomes_progress_notifications() {
    for dialect in DIALECTS {
        let harness = Harness::new(dialect, [dialect.says("Seven is in it. And no more")]);
        let host = harness.open(&json!({}), "{}");
        let id = host.start_call_with_progress("natural_language", r#"{"query":"x"}"#, "\"p\"");
        for expected in ["\"asking the model\"", "\"Seven is in it.\""] {
            let told = host.expect_notification("notifications/progress");
            assert!(told.text().contains(expected), "{dialect:?}: {}", told.text());
        }
        assert_eq!(told(&host.expect_response(id)).0, "Seven is in it. And no more");
        host.finish();
    }
}

#[test]
fn a_broken_model_stream_is_requested_again_and_a_failed_one_reported() {
    for dialect in STREAMED {
        let plays =
            [dialect.breaks_off("Let me see. "), dialect.says("Seven."), dialect.fails_amid("Let me see. ")];
        let harness = Harness::new(dialect, plays);
        let host = harness.open(&json!({}), "{}");
        assert_eq!(told(&want(&host, "x")).0, "Seven.", "{dialect:?}");
        assert_eq!(harness.asked().body, harness.asked().body, "the same again: {dialect:?}");
        let (words, record, failed) = told(&want(&host, "x"));
        let expected = "Not finished: the model cannot go on: it failed: Out of order..";
        assert_eq!((words.as_str(), record.as_str(), failed), (expected, "No tool was called.", true));
        host.finish();
    }
}

#[test]
fn a_malformed_tool_call_of_a_model_gets_another_try() {
    for dialect in DIALECTS {
        let harness = Harness::new(dialect, [dialect.stammers(), dialect.says("Sorry.")]);
        let host = harness.open(&json!({}), "{}");
        assert_eq!(told(&want(&host, "x")).0, "Sorry.", "{dialect:?}");
        host.finish();
    }
}

#[test]
fn every_limit_ends_an_agent_run_with_a_record() {
    let call = |dialect: Dialect| dialect.calls(&[("s__read", json!({ "n": 1 }))]);
    for dialect in DIALECTS {
        for (limit, plays, expected, made) in [
            (json!({ "calls": 1 }), 3, "the limit of 1 calls is reached", 1),
            (json!({ "turns": 2 }), 2, "the model has been asked 2 times, which is the limit", 2),
            (json!({ "tokens": 2 * COST }), 2, "the limit of 60 tokens is reached", 1),
        ] {
            let harness = Harness::new(dialect, (0..plays).map(|_| call(dialect)));
            let host = harness.open(&limit, "{}");
            let (words, record, failed) = told(&want(&host, "x"));
            assert_eq!((words, failed), (format!("Not finished: {expected}."), true), "{dialect:?}");
            assert_eq!(record.matches(": done").count(), made, "{record}");
            assert_eq!((harness.calls_made(), harness.endpoint.untaken().len()), (made, plays));
            host.finish();
        }
    }
    let harness = Harness::new(GEMINI, [Play::Silence(Vec::new())]);
    let host = harness.open(&json!({ "time": "3s" }), "{}");
    let (words, _, failed) = told(&want(&host, "x"));
    assert_eq!((words.as_str(), failed), ("Not finished: the limit of 3 s is reached.", true));
    harness.endpoint.left();
    host.finish();
}

#[test]
fn tools_that_change_something_are_not_called_without_consent() {
    let dialect = ANTHROPIC;
    let wanted = [("s__add", json!({ "n": 1 })), ("s__drop", json!({ "n": 1 }))];
    let harness = Harness::new(dialect, [dialect.calls(&wanted), dialect.says("I may not.")]);
    let host = harness.open(&json!({ "allowWrites": true }), "{}");
    let (words, record, _) = told(&want(&host, "x"));
    assert_eq!(words, "I may not.");
    assert!(
        record.contains("1. s__add {\"n\":1}: done\n2. s__drop {\"n\":1}: not made: not allowed: "),
        "{record}"
    );
    assert!(record.contains("naturalLanguage.allowDestructive would allow it"), "{record}");
    assert_eq!(harness.calls_made(), 1);
    host.finish();
}

#[test]
fn a_cancelled_agent_run_ends_its_call_and_its_model_request() {
    let dialect = OPENAI;
    let plays = [dialect.calls(&[("s__dawdle", json!({ "n": 1 }))]), Play::Silence(Vec::new())];
    let harness = Harness::new(dialect, plays);
    let host = harness.open(&json!({}), "{}");
    let id = host.start_call_with_progress("natural_language", r#"{"query":"x"}"#, "\"p\"");
    assert!(host.expect_notification("notifications/progress").text().contains("asking the model"));
    assert!(host.expect_notification("notifications/progress").text().contains("calling s__dawdle"));
    harness.workspace.await_log("s", "tools/call", 1);
    host.cancel(id);
    harness.workspace.await_log("s", "notifications/cancelled", 1);
    let next = host.start_call("natural_language", r#"{"query":"y"}"#);
    harness.asked();
    harness.asked();
    host.barrier();
    host.cancel(next);
    harness.endpoint.left();
    host.barrier();
    assert!(host.take_now(RawMessage::is_response).is_none());
    assert!(harness.endpoint.untaken().is_empty());
    host.finish();
}

#[test]
fn an_elicitation_during_an_agent_run_reaches_the_host() {
    let dialect = GEMINI;
    let plays = [dialect.calls(&[("s__read", json!({ "n": 1 }))]), dialect.says("Asked.")];
    for era in ["legacy", "modern"] {
        let harness = Harness::new(dialect, plays.clone());
        let asks = r#"{"ask":[{"method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}}]}"#;
        let tools = json!([{ "name": "read", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } }]);
        let script = Script::new().set("era", format!("\"{era}\"")).set("tools", tools).tool("read", asks);
        let config = harness.config(&json!({})).server(&harness.workspace, "s", &script);
        let host = harness.open_with(&config, r#"{"elicitation":{}}"#);
        let id = host.start_call("natural_language", r#"{"query":"x"}"#);
        let server_request = host.expect_request("elicitation/create");
        assert!(server_request.text().contains("Which?"), "{}", server_request.text());
        host.reply(&server_request, r#"{"action":"accept","content":{"this":"one"}}"#);
        let (words, record, _) = told(&host.expect_response(id));
        assert_eq!(
            (words.as_str(), record.as_str()),
            ("Asked.", "Calls:\n1. s__read {\"n\":1}: done"),
            "{era}"
        );
        harness.asked();
        assert!(harness.results()[0].contains("this"), "{era}");
        host.finish();
    }
}

#[test]
fn a_suite_takes_natural_language_for_its_own_server() {
    let dialect = ANTHROPIC;
    let plays = [dialect.calls(&[("s__read", json!({ "n": 1 }))]), dialect.says("Read.")];
    let harness = Harness::new(dialect, plays.into_iter().chain([(); 3].map(|()| dialect.says("Yes."))));
    let config = harness.config(&json!({})).server(&harness.workspace, "other", &Script::friendly());
    harness.workspace.write_config(&config.top("mode", "suite".into()));
    let host = Host::spawn(harness.workspace.command(&gateway()).env("ANTHROPIC_API_KEY", SECRET));
    host.initialize();
    host.await_tools(&["s_suite", "other_suite", "natural_language"]);
    let inside = host.call("s_suite", r#"{"action":"introspect"}"#).content_text();
    assert!(inside.contains("\nnatural_language(query)"), "{inside}");
    let call = json!({ "action": "call", "subtool": "natural_language", "args": { "query": "Read one." } });
    let (words, record, _) = told(&host.call("s_suite", &call.to_string()));
    assert_eq!((words.as_str(), record.as_str()), ("Read.", "Calls:\n1. s__read {\"n\":1}: done"));
    assert_eq!(dialect.tools(&harness.asked().body), ["s__add", "s__dawdle", "s__drop", "s__read"]);
    harness.asked();
    // In any form that the model may write.
    for (subtool, args) in [
        ("natural_language", json!(r#"{"query":"Read two."}"#)),
        ("natural_language", json!("Read two.")),
        ("Natural_Language", json!({ "query": "Read two." })),
    ] {
        let call = json!({ "action": "call", "subtool": subtool, "args": args });
        assert_eq!(told(&host.call("s_suite", &call.to_string())).0, "Yes.", "{call}");
        assert_eq!(harness.asked().body["messages"][0]["content"][0]["text"], "Read two.", "{call}");
    }
    host.finish();
}

#[test]
fn natural_language_comes_and_goes_with_the_configuration() {
    let dialect = GEMINI;
    let harness = Harness::new(dialect, [dialect.says("Here.")]);
    let host = harness.open(&json!({}), "{}");
    let named = |tools: &[Tool]| tools.iter().any(|tool| tool.name == "natural_language");
    harness.workspace.write_config(&harness.workspace.config(&[("s", numbers())]));
    host.await_list("a list without it", |tools| !named(tools));
    assert!(want(&host, "x").text().contains("Unknown tool"));
    harness.workspace.write_config(&harness.config(&json!({})));
    host.await_list("a list with it", named);
    assert_eq!(told(&want(&host, "x")).0, "Here.");
    let broken = harness.config(&json!({})).entry("b", json!({ "command": "/nowhere/at-all" }));
    harness.workspace.write_config(&broken);
    let of_broken = || told(&host.call("natural_language", r#"{"query":"x","server":"b"}"#)).0;
    let why = wait_until("word of its failure", DEADLINE, || {
        Some(of_broken()).filter(|why| !why.starts_with("there is no"))
    });
    assert!(why.starts_with("b does not work: ") && why.contains("/nowhere/at-all"), "{why}");
    host.finish();
}

#[test]
fn a_host_lends_its_model_if_it_takes_tools() {
    let harness = Harness::new(GEMINI, []);
    let config = harness.config(&json!({ "model": { "provider": "host" } }));
    let host = harness.open_with(&config, r#"{"sampling":{"tools":{}}}"#);
    let id = host.start_call("natural_language", r#"{"query":"What is seven?"}"#);
    let server_request = host.expect_request("sampling/createMessage");
    assert!(
        server_request.text().contains("What is seven?")
            && server_request.text().contains(r#""name":"s__read""#)
    );
    host.reply(
        &server_request,
        r#"{"role":"assistant","model":"m","stopReason":"toolUse","content":[{"type":"tool_use","id":"1","name":"s__read","input":{"n":7}}]}"#,
    );
    let server_request = host.expect_request("sampling/createMessage");
    assert!(
        server_request.text().contains(r#""type":"tool_result","toolUseId":"1""#),
        "{}",
        server_request.text()
    );
    host.reply(
        &server_request,
        r#"{"role":"assistant","model":"m","content":{"type":"text","text":"Seven."}}"#,
    );
    let (words, record, _) = told(&host.expect_response(id));
    assert_eq!((words.as_str(), record.as_str()), ("Seven.", "Calls:\n1. s__read {\"n\":7}: done"));
    host.finish();
    // A host that does not lend its model is not offered the tool, and gets the reason.
    let host = Host::spawn(&mut harness.workspace.command(&gateway()));
    host.declare(r#"{"sampling":{}}"#);
    host.initialize();
    let tools = host.await_tools(&["s__read"]);
    assert!(tools.iter().all(|tool| tool.name != "natural_language"));
    let (why, _, failed) = told(&want(&host, "x"));
    assert!(failed && why.contains("sampling.tools"), "{why}");
    host.finish();
}

#[test]
fn a_server_without_its_wrapper_still_takes_natural_language() {
    let dialect = ANTHROPIC;
    let plays = [dialect.calls(&[("memory__read", json!({ "n": 1 }))]), dialect.says("Read.")];
    let harness = Harness::new(dialect, plays);
    let root = harness.workspace.path();
    let entry = harness.workspace.config(&[("memory", numbers())]).value()["mcpServers"]["memory"].clone();
    let original = json!({ "cmd": entry["command"], "args": entry["args"], "env": entry["env"] });
    let wrapper = json!({ "cmd": "node", "args": ["memory-claude-wrapper.mjs"] });
    let model = json!({ "provider": "anthropic", "model": "m", "baseUrl": harness.endpoint.url() });
    fs::create_dir_all(root.join(".switchboard/mcps/memory/original")).unwrap();
    for (file, content) in [
        ("switchboard.config.json", json!({ "naturalLanguage": { "model": model } })),
        (".switchboard/mcps/memory/.mcp.json", json!({ "name": "memory", "command": wrapper })),
        (".switchboard/mcps/memory/original/.mcp.json", json!({ "name": "memory", "command": original })),
        (".switchboard/mcps/memory/CLAUDE.md", json!("You remember numbers.")),
    ] {
        fs::write(root.join(file), content.to_string()).unwrap();
    }
    let mut command = Command::new(gateway());
    command.args(["serve", "--config", "switchboard.config.json"]).current_dir(root);
    command.env_clear().envs(harness.workspace.environment()).env("ANTHROPIC_API_KEY", SECRET);
    let host = Host::spawn(&mut command);
    host.initialize();
    host.await_tools(&["memory_suite"]);
    let call = json!({ "action": "call", "subtool": "natural_language", "args": { "query": "Read one." } });
    let (words, record, _) = told(&host.call("memory_suite", &call.to_string()));
    assert_eq!((words.as_str(), record.as_str()), ("Read.", "Calls:\n1. memory__read {\"n\":1}: done"));
    assert!(harness.asked().text.contains("You remember numbers."));
    host.finish();
}
