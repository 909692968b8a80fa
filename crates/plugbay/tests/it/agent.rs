//! A sentence becomes calls: a real gateway, real servers, and endpoints that speak like each provider.

use std::{env, fs, path::Path, process::Command};

use plugbay_testkit::{
    Asked, Config, DEADLINE, Endpoint, Host, HttpGateway, MODERN_META, Play, RawMessage, Script, Tool,
    Workspace, wait_until, write_program,
};
use serde_json::{Value, json};

use crate::{
    dialect::{ANTHROPIC, COST, DIALECTS, Dialect, GEMINI, OPENAI, STREAMED},
    gateway,
};

const SECRET: &str = "hunter2-key";

/// Reads, adds, deletes and dawdles.
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

    /// With a host that declares this.
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

    /// What the model was told of the calls that it wanted.
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

/// The words, the record, and whether it failed.
fn told(answer: &RawMessage) -> (String, String, bool) {
    let result: Value = serde_json::from_str(answer.result()).unwrap();
    let text = |at: usize| result["content"][at]["text"].as_str().unwrap_or_default().to_owned();
    (text(0), text(1), result["isError"] == true)
}

#[test]
fn each_provider_calls_and_says_what_came_of_it() {
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
fn several_calls_at_once_and_one_after_the_other() {
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
fn refusals_and_limits_of_a_provider_are_told() {
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
fn what_the_model_says_is_told_while_it_says_it() {
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
fn a_stream_that_breaks_off_is_asked_for_again_and_one_that_fails_is_told() {
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
fn a_call_that_is_none_can_be_mended() {
    for dialect in DIALECTS {
        let harness = Harness::new(dialect, [dialect.stammers(), dialect.says("Sorry.")]);
        let host = harness.open(&json!({}), "{}");
        assert_eq!(told(&want(&host, "x")).0, "Sorry.", "{dialect:?}");
        host.finish();
    }
}

#[test]
fn every_limit_ends_it_with_a_record() {
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
fn what_may_change_things_is_not_done_without_leave() {
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

const MODERN_HEADERS: [(&str, &str); 3] =
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "natural_language")];

/// What a modern host sends, with these members besides.
fn wish(members: &str) -> String {
    format!(r#"{{"name":"natural_language","arguments":{{"query":"x"}}{members}}}"#)
}

/// The same as a body, from a host whose user can be asked.
fn modern(members: &str) -> String {
    let meta = MODERN_META.replace("clientCapabilities\":{}", "clientCapabilities\":{\"elicitation\":{}}");
    let params = wish(&format!(r#"{members},"_meta":{{{meta}}}"#));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

/// The server request in an answer that asks for input, and the members that accept it.
fn asked_by(answer: &Value) -> (String, String) {
    let (result, requests) = (&answer["result"], answer["result"]["inputRequests"].as_object());
    let (number, request) = requests.and_then(|all| all.iter().next()).unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(
        (&result["resultType"], &request["method"]),
        (&json!("input_required"), &json!("elicitation/create"))
    );
    let responses = json!({ number: { "action": "accept", "content": {} } });
    let retry = format!(r#","inputResponses":{responses},"requestState":{}"#, result["requestState"]);
    (request["params"]["message"].to_string(), retry)
}

#[test]
fn a_modern_host_allows_by_coming_back() {
    for dialect in DIALECTS {
        let wanted = [("s__add", json!({ "n": 1 })), ("s__drop", json!({ "n": 2 }))];
        let harness = Harness::new(dialect, [dialect.calls(&wanted), dialect.says("All of it.")]);
        harness.workspace.write_config(&harness.config(&json!({})));
        let host = Host::spawn(harness.workspace.command(&gateway()).env(dialect.key_variable(), SECRET));
        host.declare(r#"{"elicitation":{"form":{}}}"#);
        host.discover();
        host.await_tools(&["natural_language", "s__read"]);
        let mut request = wish("");
        for part in ["s__add", "s__drop"] {
            let answer = host.expect_response(host.request("tools/call", &request)).value();
            let (server_request, retry) = asked_by(&answer);
            assert!(server_request.contains(part), "{server_request}");
            assert_eq!(harness.calls_made(), 0, "first everything is asked");
            request = wish(&retry);
        }
        let (words, record, failed) = told(&host.expect_response(host.request("tools/call", &request)));
        assert_eq!((words.as_str(), failed), ("All of it.", false), "{dialect:?}");
        assert_eq!(record, "Calls:\n1. s__add {\"n\":1}: done\n2. s__drop {\"n\":2}: done");
        let again = host.expect_response(host.request("tools/call", &request));
        assert!(again.text().contains("has ended"), "{}", again.text());
        assert_eq!(harness.calls_made(), 2, "nothing is done twice");
        host.finish();
    }
}

#[test]
fn over_http_a_modern_host_comes_back_by_another_connection() {
    let dialect = STREAMED[0];
    let harness =
        Harness::new(dialect, [dialect.calls(&[("s__add", json!({ "n": 1 }))]), dialect.says("Added.")]);
    harness.workspace.write_config(&harness.config(&json!({})));
    let gateway = HttpGateway::start(harness.workspace.command(&gateway()).env("ANTHROPIC_API_KEY", SECRET));
    let ask = |members: &str| -> Value {
        let reply = gateway.post(&MODERN_HEADERS, &modern(members));
        // What takes long comes as a stream.
        let answer = reply.body.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
        serde_json::from_str(answer.unwrap_or(&reply.body)).unwrap_or_else(|_| panic!("{}", reply.body))
    };
    let (_, retry) = asked_by(&ask(""));
    assert_eq!(harness.calls_made(), 0);
    let answer = ask(&retry);
    assert_eq!(answer["result"]["content"][0]["text"], "Added.", "{answer}");
    assert_eq!(harness.calls_made(), 1);
}

#[test]
fn the_user_allows_one_call_and_declines_another() {
    for dialect in DIALECTS {
        let wanted = [("s__add", json!({ "n": 1 })), ("s__drop", json!({ "n": 2 }))];
        let harness = Harness::new(dialect, [dialect.calls(&wanted), dialect.says("Half of it.")]);
        let host = harness.open(&json!({}), r#"{"elicitation":{}}"#);
        let id = host.start_call("natural_language", r#"{"query":"x"}"#);
        for (part, answer) in
            [("s__add", r#"{"action":"accept","content":{}}"#), ("s__drop", r#"{"action":"decline"}"#)]
        {
            let server_request = host.expect_request("elicitation/create");
            assert!(server_request.text().contains(part), "{}", server_request.text());
            assert_eq!(harness.calls_made(), 0, "first everything is asked");
            host.reply(&server_request, answer);
        }
        let (words, record, failed) = told(&host.expect_response(id));
        assert_eq!((words.as_str(), failed), ("Half of it.", false));
        assert_eq!(
            record,
            "Calls:\n1. s__add {\"n\":1}: done\n2. s__drop {\"n\":2}: not made: not allowed: the user declined it"
        );
        assert_eq!(harness.calls_made(), 1);
        host.finish();
    }
}

#[test]
fn to_take_it_back_ends_the_call_and_the_question() {
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
fn a_modern_host_over_http_that_leaves_takes_the_call_back() {
    let dialect = ANTHROPIC;
    let harness = Harness::new(dialect, [dialect.calls(&[("s__dawdle", json!({ "n": 1 }))])]);
    harness.workspace.write_config(&harness.config(&json!({})));
    let gateway = HttpGateway::start(harness.workspace.command(&gateway()).env("ANTHROPIC_API_KEY", SECRET));
    let mut host = gateway.connect();
    host.post(&MODERN_HEADERS, &modern(""));
    harness.workspace.await_log("s", "tools/call", 1);
    drop(host);
    harness.workspace.await_log("s", "notifications/cancelled", 1);
    assert_eq!(harness.calls_made(), 1);
}

#[test]
fn what_a_server_asks_meanwhile_reaches_the_host() {
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
fn a_suite_takes_sentences_for_its_own_server() {
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
    // However the model writes it.
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
fn it_comes_and_goes_with_the_configuration() {
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
    // One that does not is not offered it, and is told why.
    let host = Host::spawn(&mut harness.workspace.command(&gateway()));
    host.declare(r#"{"sampling":{}}"#);
    host.initialize();
    let tools = host.await_tools(&["s__read"]);
    assert!(tools.iter().all(|tool| tool.name != "natural_language"));
    let (why, _, failed) = told(&want(&host, "x"));
    assert!(failed && why.contains("sampling.tools"), "{why}");
    host.finish();
}

/// A program that tells the key, unless it is locked, and logs what it is asked.
fn teller(folder: &Path, name: &str) {
    let program = folder.join(name);
    let folder = folder.display();
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {folder}/log\n\
         if [ -e {folder}/locked ]; then echo 'it is locked' >&2; exit 1; fi\necho {SECRET}\n"
    );
    write_program(&program, &script);
}

#[test]
fn a_key_comes_from_the_keychain() {
    let dialect = OPENAI;
    let harness = Harness::new(dialect, [dialect.says("Hello."), dialect.says("Again.")]);
    let tools = harness.workspace.path().join("tools");
    fs::create_dir(&tools).unwrap();
    fs::write(tools.join("locked"), "").unwrap();
    for name in ["secret-tool", "security"] {
        teller(&tools, name);
    }
    let (url, keychain) = (harness.endpoint.url(), "my-key");
    let model = json!({ "provider": "openai", "model": "m", "baseUrl": url, "keychain": keychain });
    harness.workspace.write_config(&harness.config(&json!({ "model": model })));
    let path = format!("{}:{}", tools.display(), env::var("PATH").unwrap());
    let host = Host::spawn(harness.workspace.command(&gateway()).env("PATH", path));
    host.initialize();
    host.await_tools(&["natural_language", "s__read"]);
    assert!(!tools.join("log").exists(), "nobody has needed it yet");
    let (why, _, failed) = told(&want(&host, "x"));
    assert!(failed && why.contains("there is no key for it: `sec") && why.contains("it is locked"), "{why}");
    fs::remove_file(tools.join("locked")).unwrap();
    for expected in ["Hello.", "Again."] {
        assert_eq!(told(&want(&host, "x")).0, expected);
        assert_eq!(harness.asked().header("authorization"), Some(&*format!("Bearer {SECRET}")));
    }
    let asked = fs::read_to_string(tools.join("log")).unwrap();
    assert_eq!(asked.lines().filter(|line| line.ends_with(" my-key")).count(), 2, "{asked}");
    let ended = host.finish();
    assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
}

#[test]
fn a_server_whose_wrapper_is_left_out_still_takes_sentences() {
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
