//! The plain API as its clients use it: the examples in the documentation, and a configuration in YAML.

use std::{fs, path::Path, process::Command};

use plugbay_testkit::{DEADLINE, HttpGateway, HttpReply, Script, Workspace, wait_until, wait_until_gone};
use serde_json::{Value, json};

use crate::gateway;

/// Writes a configuration in YAML and starts the gateway on it.
fn start(workspace: &Workspace, yaml: &str) -> HttpGateway {
    let file = workspace.path().join("servers.yaml");
    fs::write(&file, yaml).expect("a file");
    let mut command = Command::new(gateway());
    command.args(["serve", "--config"]).arg(&file);
    command.current_dir(workspace.path()).env_clear().envs(workspace.environment());
    let gateway = HttpGateway::start(&mut command);
    wait_until("the catalog", DEADLINE, || (get(&gateway, "/readyz", &[]).status == 200).then_some(()));
    gateway
}

/// An entry of the file for a scripted server.
fn entry(workspace: &Workspace, name: &str, script: &Script) -> String {
    let config = workspace.config(&[(name, script.clone())]).value();
    let server = &config["mcpServers"][name];
    let env = server.get("env").map(|env| format!("\n    env: {env}")).unwrap_or_default();
    format!("  {name}:\n    command: {}\n    args: {}{env}\n", server["command"], server["args"])
}

/// The sample server of the documentation.
fn sample(name: &str) -> String {
    let program = json!(gateway().to_string_lossy());
    format!("  {name}:\n    command: {program}\n    args: [__sample, {name}]\n")
}

fn get(gateway: &HttpGateway, path: &str, headers: &[(&str, &str)]) -> HttpReply {
    let mut client = gateway.connect();
    client.request_at("GET", path, headers, "");
    client.reply()
}

fn call(gateway: &HttpGateway, session: &str, body: &Value) -> HttpReply {
    let mut client = gateway.connect();
    client.request_at("POST", "/tools/call", &[("x-session-id", session)], &body.to_string());
    client.reply()
}

#[test]
fn a_tool_list_and_calls_work_with_a_configuration_in_yaml() {
    let workspace = Workspace::new();
    let result = r#"{"content":[],"z":1.0,"a":123456789012345678901234567890,"é":"\u00e9"}"#;
    let script = Script::friendly().result("odd", result).tool("big", r#"{"size":5000000}"#);
    let yaml = format!(
        "servers:\n{}  database:\n    url: \"postgresql://db:5432/mcp\"\n",
        entry(&workspace, "web", &script)
    );
    let mut gateway = start(&workspace, &yaml);
    let list = get(&gateway, "/tools", &[("x-session-id", "client-1")]);
    let tools: Value = serde_json::from_str(&list.body).expect("JSON");
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["web__big", "web__echo", "web__odd", "web__pid"]);
    let tag = list.header("etag").expect("a tag").to_owned();
    assert_eq!(get(&gateway, "/tools", &[("if-none-match", &tag)]).status, 304);
    let odd = call(&gateway, "client-1", &json!({ "name": "odd", "arguments": {} }));
    assert_eq!((odd.status, &*odd.body), (200, result), "by its own name, byte for byte");
    let big = call(&gateway, "client-1", &json!({ "name": "web__big" }));
    assert!(big.status == 200 && big.body.contains(&"x".repeat(5_000_000)));
    let broken = call(&gateway, "client-1", &json!({ "name": "database__query" }));
    assert!(broken.status == 502 && broken.body.contains("is for MCP servers"), "{broken:?}");

    let both = yaml.clone() + &entry(&workspace, "more", &Script::new().tool("new", r#"{"echo":true}"#));
    fs::write(workspace.path().join("servers.yaml"), both).expect("a file");
    wait_until("the changed file", DEADLINE, || {
        get(&gateway, "/tools", &[("if-none-match", &tag)]).body.contains("more__new").then_some(())
    });
    gateway.terminate();
    assert!(gateway.ended().success());
    wait_until_gone(&workspace.processes());
}

#[test]
fn a_session_has_at_most_128_calls_in_flight_and_a_client_that_leaves_cancels_its_call() {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("hang", r#"{"hang":true}"#);
    let gateway = start(&workspace, &format!("servers:\n{}", entry(&workspace, "a", &script)));
    let hang = json!({ "name": "a__hang" }).to_string();
    let mut clients = Vec::new();
    for _ in 0..128 {
        let mut client = gateway.connect();
        client.request_at("POST", "/tools/call", &[("x-session-id", "one")], &hang);
        clients.push(client);
    }
    workspace.await_log("a", "tools/call", 128);
    let refused = call(&gateway, "one", &json!({ "name": "a__echo" }));
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")), "{refused:?}");
    assert_eq!(call(&gateway, "other", &json!({ "name": "a__echo" })).status, 200);
    drop(clients);
    workspace.await_log("a", "notifications/cancelled", 128);
    wait_until("room", DEADLINE, || {
        (call(&gateway, "one", &json!({ "name": "a__echo" })).status == 200).then_some(())
    });
}

/// Runs each `curl` block of the page unchanged; the block after it shows the status and the shape of the
/// body.
#[test]
fn the_curl_examples_of_the_plain_api_work_as_the_documentation_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/http.md");
    let page = fs::read_to_string(page).expect("the page");
    let workspace = Workspace::new();
    let gateway = start(&workspace, &format!("servers:\n{}{}", sample("calc"), sample("notes")));
    let examples = examples(&page);
    assert!(examples.len() >= 4, "{examples:?}");
    for (command, expected) in examples {
        let command = command.replace("http://127.0.0.1:8080", &format!("http://{}", gateway.address()));
        let output = Command::new("sh").args(["-c", &command.replacen("curl", "curl -si", 1)]).output();
        let output = output.expect("sh");
        let reply = String::from_utf8(output.stdout).expect("UTF-8").replace("\r\n", "\n");
        let (head, body) = reply.split_once("\n\n").unwrap_or_else(|| panic!("{command}: {reply}"));
        let (wanted_head, wanted_body) = expected.split_once("\n\n").unwrap_or((&expected, ""));
        let mut wanted = wanted_head.lines();
        assert_eq!(head.lines().next(), wanted.next(), "{command}\n{reply}");
        for header in wanted {
            let name = header.split(':').next().unwrap_or_default().to_lowercase();
            assert!(head.to_lowercase().contains(&format!("\n{name}:")), "{command}: no {name}\n{head}");
        }
        if !wanted_body.trim().is_empty() {
            let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"));
            check_shape(&json(wanted_body), &json(body), &command);
        }
    }
}

/// The `curl` blocks of a page, each with the block after it.
fn examples(page: &str) -> Vec<(String, String)> {
    let blocks: Vec<&str> = page.split("\n```").skip(1).step_by(2).collect();
    let text = |block: &str| block.split_once('\n').map_or("", |(_, text)| text).trim().to_owned();
    let pairs = blocks.iter().zip(blocks.iter().skip(1));
    pairs
        .filter(|(command, _)| text(command).starts_with("curl"))
        .map(|(command, reply)| {
            assert!(reply.starts_with("http\n"), "no reply behind {command}");
            (text(command), text(reply))
        })
        .collect()
}

/// Checks that all wanted members exist. A text with `…` matches any text, a list is represented by its first
/// element.
fn check_shape(wanted: &Value, found: &Value, place: &str) {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            for (key, value) in wanted {
                let inner = format!("{place} {key}");
                check_shape(value, found.get(key).unwrap_or_else(|| panic!("{inner} is missing")), &inner);
            }
        }
        (Value::Array(wanted), Value::Array(found)) => {
            let first = wanted.first().zip(found.first());
            assert_eq!(wanted.is_empty(), found.is_empty(), "{place}");
            if let Some((wanted, found)) = first {
                check_shape(wanted, found, &format!("{place}[0]"));
            }
        }
        (Value::String(wanted), Value::String(_)) if wanted.contains('…') => {}
        _ => assert_eq!(wanted, found, "{place}"),
    }
}
