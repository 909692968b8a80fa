//! Operation on a server: named tokens, the audit log, metrics and traces, and no secret in any of them.

mod collector;

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
};

use plugbay_testkit::{DEADLINE, HttpGateway, HttpReply, MODERN_META, Script, Workspace, wait_until};
use serde_json::{Value, json};

use self::collector::Collector;
use crate::gateway;

fn plugbay(workspace: &Workspace, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(gateway());
    command.args(arguments).current_dir(workspace.path()).env_clear().envs(workspace.environment());
    let output = command.output().expect("plugbay runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn create(workspace: &Workspace, arguments: &[&str]) -> String {
    let (code, token, notes) = plugbay(workspace, &[&["token", "create"], arguments].concat());
    assert_eq!(code, Some(0), "{notes}");
    token.trim().to_owned()
}

/// Starts the gateway with these options, and waits until a caller sees the tools.
fn start(workspace: &Workspace, options: &[&str], variables: &[(&str, &str)], token: &str) -> HttpGateway {
    let mut command = workspace.command(&gateway());
    let gateway = HttpGateway::start(command.args(options).envs(variables.iter().copied()));
    wait_until("the catalog", DEADLINE, || {
        ask(&gateway, token, "tools/list", "", "").body.contains("s__echo").then_some(())
    });
    gateway
}

fn ask(gateway: &HttpGateway, token: &str, method: &str, name: &str, members: &str) -> HttpReply {
    let bearer = format!("Bearer {token}");
    let mut headers =
        vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("authorization", &*bearer)];
    headers.extend((!name.is_empty()).then_some(("mcp-name", name)));
    headers.extend([("x-session-id", "CANARY-session"), ("x-other", "CANARY-header")]);
    let meta = format!(r#""_meta":{{{MODERN_META},"traceparent":"{TRACE}"}}"#);
    gateway.post(
        &headers,
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{meta}{members}}}}}"#),
    )
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn call(gateway: &HttpGateway, token: &str, tool: &str, arguments: &Value) -> HttpReply {
    ask(gateway, token, "tools/call", tool, &format!(r#","name":"{tool}","arguments":{arguments}"#))
}

/// The body of a GET.
fn get(address: &str, path: &str, token: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("the request is taken");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, text)
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_token_works_for_its_tools_until_it_is_revoked() {
    let workspace = Workspace::new();
    workspace.write_config(&workspace.config(&[("s", Script::friendly())]));
    let some = create(&workspace, &["some", "--tools", "s__echo"]);
    let all = create(&workspace, &["all", "--expires", "1d"]);
    let gateway = start(&workspace, &[], &[], &all);
    assert!(call(&gateway, &some, "s__echo", &json!({})).body.contains("\"result\""));
    let refused = call(&gateway, &some, "s__pid", &json!({}));
    assert!(refused.body.contains("Unknown tool"), "{refused:?}");
    assert!(!ask(&gateway, &some, "tools/list", "", "").body.contains("s__pid"));
    assert_eq!(ask(&gateway, "wrong", "tools/list", "", "").status, 401);
    let later = create(&workspace, &["later"]);
    wait_until("the new token", DEADLINE, || {
        (ask(&gateway, &later, "tools/list", "", "").status == 200).then_some(())
    });
    assert_eq!(plugbay(&workspace, &["token", "revoke", "some"]).0, Some(0));
    wait_until("the revocation", DEADLINE, || {
        (ask(&gateway, &some, "tools/list", "", "").status == 401).then_some(())
    });
    assert_eq!(ask(&gateway, &all, "tools/list", "", "").status, 200);
}

#[test]
fn metrics_of_calls_are_served_behind_the_token() {
    let workspace = Workspace::new();
    workspace.write_config(&workspace.config(&[("s", Script::friendly())]));
    let all = create(&workspace, &["all"]);
    let some = create(&workspace, &["some", "--tools", "s__echo", "--quota", "1/day"]);
    let gateway = start(&workspace, &["--metrics"], &[], &all);
    call(&gateway, &some, "s__echo", &json!({}));
    let limited = call(&gateway, &some, "s__echo", &json!({}));
    assert!(limited.body.contains("-32029") && limited.body.contains("retryAfter"), "{limited:?}");
    assert_eq!(get(gateway.address(), "/metrics", "").0, 401);
    assert_eq!(get(gateway.address(), "/metrics", &some).0, 403);
    let (status, page) = get(gateway.address(), "/metrics", &all);
    assert_eq!(status, 200);
    for line in [
        r#"plugbay_calls_total{server="s",tool="echo",outcome="ok"} 1"#,
        r#"plugbay_rate_limited_total{caller="some"} 1"#,
        r#"plugbay_server_state{server="s",state="ready"} 1"#,
        r#"plugbay_server_processes_total{server="s"} "#,
        "plugbay_sessions 2",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn no_secret_is_in_a_log_an_audit_line_a_metric_a_trace_a_status_or_an_error() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly().tool("echo", r#"{"echo":true}"#))]);
    let mut config = config.value();
    config["mcpServers"]["s"]["env"]["SECRET"] = json!("CANARY-environment");
    fs::write(workspace.config_path(), config.to_string()).unwrap();
    let token = create(&workspace, &["ci"]);
    let collector = Collector::start();
    let audit = workspace.path().join("audit.jsonl");
    let options = ["-vv", "--metrics", "--audit", audit.to_str().unwrap()];
    let exporter = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100".to_owned()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "200".to_owned()),
    ];
    let exporter: Vec<(&str, &str)> = exporter.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let gateway = start(&workspace, &options, &exporter, &token);
    let answer = call(&gateway, &token, "s__echo", &json!({ "password": "CANARY-argument" }));
    assert!(answer.body.contains("CANARY-argument"), "the result has it: {answer:?}");
    let password = json!({ "password": "CANARY-argument" });
    let plain_call = |token: &str, tool: &str| {
        let authorization = format!("Bearer {token}");
        let headers = [("authorization", &*authorization), ("x-session-id", "CANARY-session")];
        let mut host = gateway.connect();
        host.request_at(
            "POST",
            "/tools/call",
            &headers,
            &json!({ "name": tool, "arguments": password }).to_string(),
        );
        host.reply()
    };
    let errors = [
        call(&gateway, &token, "s__no_such_tool", &password),
        call(&gateway, "CANARY-token", "s__echo", &password),
        ask(&gateway, &token, "no/such/method", "", r#","x":"CANARY-member""#),
        plain_call(&token, "s__no_such_tool"),
        plain_call("CANARY-token", "s__echo"),
    ];
    let spans = collector.spans(2);
    let (_, metrics) = get(gateway.address(), "/metrics", &token);
    let (_, status, _) = plugbay(&workspace, &["status", "--json"]);
    wait_until("an audit line", DEADLINE, || (!lines(&audit).is_empty()).then_some(()));
    collector.await_metric("mcp.server.operation.duration");
    gateway.terminate();
    let mut told = vec![("metrics", metrics), ("status", status), ("OTLP", collector.everything())];
    told.push(("stderr", gateway.into_stderr()));
    told.extend(
        errors.map(|error| ("an error", format!("{} {:?} {}", error.status, error.headers, error.body))),
    );
    for file in workspace.files("state").into_iter().chain([audit.clone()]) {
        let text = fs::read(&file).unwrap_or_default();
        told.push(("a file", format!("{}: {}", file.display(), String::from_utf8_lossy(&text))));
    }
    for (what, text) in told {
        assert!(!text.contains("CANARY") && !text.contains(&token), "{what}: {text}");
    }
    let line = &lines(&audit)[0];
    assert_eq!((&line["caller"], &line["tool"]), (&json!("ci"), &json!("echo")), "{line}");
    assert_eq!(line["arguments"], json!({ "password": "string" }));
    let of_kind =
        |kind: i32| spans.iter().find(|span| span.kind == kind).unwrap_or_else(|| panic!("{spans:?}"));
    let (server, client) = (of_kind(2), of_kind(3));
    assert_eq!((&*server.name, &*client.name), ("tools/call echo", "tools/call echo"));
    assert_eq!(
        (server.trace_id(), server.parent()),
        ("0af7651916cd43dd8448eb211c80319c".into(), "b7ad6b7169203331".into())
    );
    assert_eq!((client.trace_id(), client.parent()), (server.trace_id(), server.id()));
    assert_eq!(server.attribute("mcp.method.name").as_deref(), Some("tools/call"));
    assert_eq!(client.attribute("gen_ai.tool.name").as_deref(), Some("echo"));
    assert_eq!(server.attribute("enduser.id").as_deref(), Some("ci"));
}

#[test]
fn the_table_of_metrics_in_the_docs_is_true() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md")).unwrap();
    for (name, labels, meaning) in plugbay_telemetry::METRICS {
        let labels = labels.split(", ").filter(|label| !label.is_empty()).map(|label| format!("`{label}`"));
        let row = format!("| `{name}` | {} | {meaning} |", labels.collect::<Vec<_>>().join(", "));
        assert!(page.contains(&row), "docs/operations.md lacks: {row}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `plugbay_")).count();
    assert_eq!(rows, plugbay_telemetry::METRICS.len());
}
