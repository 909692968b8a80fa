//! Scripts through the real binary: over stdio, HTTP and the daemon, in both eras, and with processes that are killed.

use plugbay_testkit::{
    Config, DEADLINE, Host, HttpGateway, MODERN_META, Script, Signal, Workspace, descendants, wait_until,
};
use serde_json::{Value, json};

use crate::gateway;

fn script() -> Script {
    let rows = json!({ "content": [{ "type": "text", "text": "[{\"n\":1},{\"n\":2}]" }] }).to_string();
    let failed = json!({ "content": [{ "type": "text", "text": "no disk" }], "isError": true }).to_string();
    Script::friendly().result("rows", &rows).result("broken", &failed).tool("slow", r#"{"hang":true}"#)
}

fn config(workspace: &Workspace) -> Config {
    Config::new().server(workspace, "s", &script()).top("mode", json!("code"))
}

fn arguments(code: &str) -> String {
    json!({ "code": code }).to_string()
}

/// The texts of a result, and whether it is an error.
#[track_caller]
fn texts(result: &Value) -> (String, bool) {
    let content = result["content"].as_array().unwrap_or_else(|| panic!("{result}"));
    let texts: Vec<&str> = content.iter().map(|block| block["text"].as_str().unwrap_or_default()).collect();
    (texts.join("\n"), result["isError"] == true)
}

#[track_caller]
fn told(host: &Host, arguments: &str) -> (String, bool) {
    texts(&serde_json::from_str(host.call("run_code", arguments).result()).expect("a result"))
}

#[track_caller]
fn opened(host: Host) -> Host {
    host.initialize();
    wait_until("the catalog", DEADLINE, || {
        told(&host, &arguments("return typeof (await describe('s__echo'))"))
            .0
            .contains("object")
            .then_some(())
    });
    host
}

#[test]
fn a_script_calls_tools_and_handles_their_errors() {
    let workspace = Workspace::new();
    workspace.write_config(&config(&workspace));
    let host = opened(workspace.serve(&gateway()));
    assert_eq!(host.tool_names(), ["search_tools", "run_code"]);
    let code = r#"
        interface Row { n: number }
        const rows: Row[] = await tools.s.rows();
        console.log("rows", rows.length);
        const echoes = await Promise.all(rows.map((row) => tools.s.echo({ n: row.n })));
        let failed;
        try { await tools.s.broken({}) } catch (error) { failed = [error instanceof ToolError, error.message, error.code] }
        return { sum: rows.reduce((sum, row) => sum + row.n, 0), echoes: echoes.length, failed };
    "#;
    let (text, failed) = told(&host, &arguments(code));
    assert!(!failed, "{text}");
    assert_eq!(text, "rows 2\n{\"sum\":3,\"echoes\":2,\"failed\":[true,\"no disk\",\"tool_error\"]}");
    let (text, failed) = told(&host, &arguments("await tools.s.ehco({})"));
    assert!(failed && text.contains("s__echo"), "{text}");
    let input = json!({ "code": "input.a + 1", "input": { "a": 41 } }).to_string();
    assert_eq!(told(&host, &input), ("42".to_owned(), false));
    let dry = json!({ "code": "await tools.s.echo({ n: 1 })", "dry_run": true }).to_string();
    let (text, _) = told(&host, &dry);
    assert!(text.contains("1. s__echo {\"n\":1}: fits its schema"), "{text}");
}

#[test]
fn a_run_is_stopped_and_goes_on() {
    let workspace = Workspace::new();
    let script = script().tool("later", r#"{"delay_ms":700}"#);
    let config = Config::new().server(&workspace, "s", &script);
    workspace.write_config(&config.top("mode", json!("code")).top("code", json!({ "time": "100ms" })));
    let host = opened(workspace.serve(&gateway()));
    let mut answer = told(&host, &arguments("await tools.s.later({ mark: 1 }); return 'done'"));
    while answer.0.contains("resume") {
        let at = answer.0.find("run_AA").or_else(|| answer.0.rfind("run_")).expect("a name");
        let name: String = answer.0[at..].chars().take_while(|c| *c != '"').collect();
        answer = told(&host, &json!({ "resume": name }).to_string());
    }
    assert_eq!(answer, ("done".to_owned(), false));
    assert_eq!(workspace.count_log("s", "\"mark\":1"), 1);
}

/// The processes that run scripts.
fn sandboxes(gateway: u32) -> Vec<plugbay_testkit::Process> {
    descendants(gateway).into_iter().filter(|process| process.command.contains("__sandbox")).collect()
}

#[test]
fn no_call_is_made_twice_when_the_process_of_a_script_is_killed() {
    let workspace = Workspace::new();
    workspace.write_config(&config(&workspace));
    let host = opened(workspace.serve(&gateway()));
    for round in 0..100 {
        let code = format!(
            "const made = []; for (let n = 0; n < 5; n++) {{ made.push((await tools.s.echo({{ mark: 'r{round}.' + n + '.' }})).length > 0) }} \
             return made.length"
        );
        let id = host.start_call("run_code", &arguments(&code));
        let kill_after = round % 5;
        workspace.await_log("s", &format!("r{round}.{kill_after}."), 1);
        for process in sandboxes(host.pid()) {
            process.signal(Signal::KILL);
        }
        let response = host.expect_response(id);
        let result: Value = serde_json::from_str(response.result()).unwrap();
        let (text, failed) = texts(&result);
        assert!(
            text == "5" && !failed || text.contains("cannot be resumed") && failed,
            "round {round}: {text}"
        );
        for n in 0..5 {
            let times = workspace.count_log("s", &format!("r{round}.{n}."));
            assert!(times == 1 || times == 0 && failed, "round {round}, call {n}: {times} times");
        }
    }
}

#[test]
fn a_run_of_a_gateway_that_was_killed_cannot_be_resumed() {
    let workspace = Workspace::new();
    let file = config(&workspace).top("code", json!({ "time": "100ms" }));
    workspace.write_config(&file);
    let mut host = opened(workspace.serve(&gateway()));
    for round in 0..20 {
        let code = format!(
            "await tools.s.echo({{ mark: 'e{round}.' }}); await tools.s.slow({{ mark: 's{round}.' }})"
        );
        let (text, _) = told(&host, &arguments(&code));
        let at = text.rfind("run_").expect("a name");
        let name: String = text[at..].chars().take_while(|c| *c != '"').collect();
        // On a busy machine the run pauses before its second call; the server logs a call when it reads it.
        wait_until("the second call", DEADLINE, || {
            let made = workspace.count_log("s", &format!("s{round}.")) > 0;
            if !made {
                told(&host, &json!({ "resume": name }).to_string());
            }
            made.then_some(())
        });
        host.signal(Signal::KILL);
        host = opened(workspace.serve(&gateway()));
        let (text, failed) = told(&host, &json!({ "resume": name }).to_string());
        assert!(failed && text.contains("cannot be resumed"), "round {round}: {text}");
        let made = ["e", "s"].map(|mark| workspace.count_log("s", &format!("{mark}{round}.")));
        assert_eq!(made, [1, 1], "round {round}");
    }
}

#[test]
fn greedy_scripts_end_and_other_calls_go_on() {
    let workspace = Workspace::new();
    workspace.write_config(&config(&workspace));
    let host = opened(workspace.serve(&gateway()));
    let endless = host.start_call("run_code", &arguments("while (true) {}"));
    let greedy = host.start_call("run_code", &arguments("let s = 'x'; while (true) s += s + s"));
    assert_eq!(told(&host, &arguments("return (await tools.s.rows()).length")), ("2".to_owned(), false));
    for id in [endless, greedy] {
        let response = host.expect_response(id);
        assert!(texts(&serde_json::from_str(response.result()).unwrap()).1, "{response:?}");
    }
}

#[test]
fn windows_of_a_daemon_run_scripts_and_share_no_runs() {
    let workspace = Workspace::new().with_daemon();
    let file = config(&workspace).options("s", json!({ "scope": "shared" }));
    workspace.write_config(&file.top("code", json!({ "time": "100ms" })));
    let window = || opened(Host::spawn(&mut workspace.command(&gateway())));
    let (one, other) = (window(), window());
    let code = arguments("return (await tools.s.rows()).map((row) => row.n)");
    assert_eq!(told(&other, &code), ("[1,2]".to_owned(), false));
    let (text, _) = told(&one, &arguments("await tools.s.slow({})"));
    let at = text.rfind("run_").unwrap_or_else(|| panic!("{text}"));
    let name: String = text[at..].chars().take_while(|c| *c != '"').collect();
    let resume = json!({ "resume": name }).to_string();
    let (text, failed) = told(&other, &resume);
    assert!(failed && text.contains("another session"), "{text}");
    assert!(told(&one, &resume).0.contains("not done"));
}

#[test]
fn scripts_run_over_http_in_both_eras() {
    let workspace = Workspace::new();
    workspace.write_config(&config(&workspace).options("s", json!({ "scope": "shared" })));
    let gateway = HttpGateway::start(&mut workspace.command(&gateway()));
    let arguments = arguments("return (await tools.s.rows()).map((row) => row.n)");
    let params = format!(r#""name":"run_code","arguments":{arguments}"#);
    let modern = || {
        let params = format!(r#"{{"_meta":{{{MODERN_META}}},{params}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let headers =
            [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "run_code")];
        result_in(&gateway.post(&headers, &body).body)
    };
    wait_until("the catalog", DEADLINE, || (modern() == ("[1,2]".to_owned(), false)).then_some(()));
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"testkit","version":"0"}}}"#;
    let session = gateway.post(&[], initialize).header("mcp-session-id").expect("a session").to_owned();
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{{params}}}}}"#);
    let legacy = result_in(&gateway.post(&[("mcp-session-id", &session)], &body).body);
    assert_eq!(legacy, ("[1,2]".to_owned(), false));
}

/// The result in a body that is JSON or an event stream.
fn result_in(body: &str) -> (String, bool) {
    let json =
        body.lines().find_map(|line| line.strip_prefix("data: ").filter(|data| data.contains("\"result\"")));
    let answer: Value = serde_json::from_str(json.unwrap_or(body)).unwrap_or_else(|_| panic!("{body:.500}"));
    texts(&answer["result"])
}
