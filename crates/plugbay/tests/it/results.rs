//! Large results through the real binary: over stdio, HTTP and the daemon.

mod handles;

use std::{fs, path::Path};

use plugbay_testkit::{Config, DEADLINE, Host, HttpGateway, MODERN_META, Script, Workspace, wait_until};
use serde_json::{Value, json};

use crate::gateway;

/// A server with a tool that returns a long page, one that returns 5 MB, and one that repeats its arguments.
fn script() -> Script {
    let result = json!({ "content": [{ "type": "text", "text": page() }] }).to_string();
    Script::friendly().result("page", &result).tool("big", r#"{"size":5000000}"#)
}

/// 300 KB of text in lines.
fn page() -> String {
    (0..6000).fold(String::new(), |page, n| {
        page + &format!("line {n:05}: \"some\" text of a long page, ünïcode\n")
    })
}

fn config(workspace: &Workspace) -> Config {
    Config::new().server(workspace, "s", &script()).top("mode", json!("search"))
}

fn execute(tool: &str, arguments: &Value) -> String {
    json!({ "name": tool, "arguments": arguments }).to_string()
}

fn text_of(result: &Value) -> String {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// The handle that an outline shows.
#[track_caller]
fn handle(outline: &str) -> String {
    let at = outline.find("r_").unwrap_or_else(|| panic!("no handle: {outline:.2000}"));
    outline[at..at + 24].to_owned()
}

/// A host in search mode that knows the tools of `s`.
#[track_caller]
fn opened(host: Host) -> Host {
    host.initialize();
    wait_until("the catalog", DEADLINE, || told(&host, "s__echo", &json!({})).0.contains("{}").then_some(()));
    host
}

/// The text of a call with `execute_tool`, and whether it is an error.
#[track_caller]
fn told(host: &Host, tool: &str, arguments: &Value) -> (String, bool) {
    let response = host.call("execute_tool", &execute(tool, arguments));
    let result: Value = serde_json::from_str(response.result()).expect("a result");
    (text_of(&result), result["isError"] == true)
}

fn read(handle: &str, key: &str, value: impl Into<Value>) -> Value {
    json!({ "result": handle, key: value.into() })
}

#[test]
fn a_page_goes_from_one_tool_to_the_next_by_its_handle() {
    let workspace = Workspace::new();
    workspace.write_config(&config(&workspace));
    let host = opened(workspace.serve(&gateway()));
    let (outline, _) = told(&host, "s__page", &json!({}));
    assert!(outline.len() < 4_000, "{outline}");
    let handle = handle(&outline);
    let (line, failed) = told(&host, "read_result", &read(&handle, "lines", "4000"));
    assert!(line.contains("line 03999:") && !failed, "{line}");
    let (found, _) = told(&host, "read_result", &read(&handle, "grep", "line 05123"));
    assert!(found.contains("line 05123:"), "{found}");

    let id = host.start_call(
        "execute_tool",
        &execute("s__echo", &json!({ "to": "copy", "text": { "$result": handle } })),
    );
    let answer = host.expect_response(id);
    assert!(answer.text().len() < 6_000, "the echo is large too");
    let log = workspace.log("s");
    let sent = log.iter().find(|line| line.contains("\"copy\"")).expect("the call");
    assert!(sent.contains(&json!(page()).to_string()), "{sent:.300}");

    let (why, failed) = told(&host, "read_result", &read("r_AAECAwQFBgcICQoLDA0ODw", "page", 1));
    assert!(failed && why.contains("there is no result"), "{why}");
}

#[test]
fn jq_takes_values_beside_a_call_of_a_stored_result_and_in_an_argument() {
    let workspace = Workspace::new();
    let rows: Vec<Value> =
        (0..2000).map(|n| json!({ "id": n, "title": format!("row number {n}") })).collect();
    let result = json!({ "content": [], "structuredContent": { "rows": rows } }).to_string();
    let script = script().result("rows", &result);
    let config = Config::new().server(&workspace, "s", &script).top("mode", json!("search"));
    workspace.write_config(&config);
    let host = opened(workspace.serve(&gateway()));
    let beside = |filter: &str| {
        let call = json!({ "name": "s__rows", "arguments": {}, "jq": filter }).to_string();
        let result: Value = serde_json::from_str(host.call("execute_tool", &call).result()).unwrap();
        (text_of(&result).trim().to_owned(), result["isError"] == true)
    };
    assert_eq!(beside(".rows | length"), ("2000".to_owned(), false));
    let (why, failed) = beside(".rows |");
    assert!(failed && why.contains("s__rows was called") && why.contains("rows"), "{why}");
    let (secret, _) = beside("env");
    assert!(!secret.contains("PATH"), "{secret}");
    let handle = handle(&why);
    let (title, _) = told(&host, "read_result", &read(&handle, "jq", ".rows[1999].title"));
    assert_eq!(title.trim(), "\"row number 1999\"");
    let reference = json!({ "$result": handle, "jq": ".rows[7].title" });
    let (echo, _) = told(&host, "s__echo", &json!({ "title": reference }));
    assert!(echo.contains("row number 7"), "{echo}");
    let (why, failed) = told(&host, "s__echo", &json!({ "title": { "$result": handle, "jq": ".rows[]" } }));
    assert!(failed && why.contains("arguments.title: jq must give exactly one value"), "{why}");
}

#[test]
fn results_of_tools_called_by_name_are_whole() {
    let workspace = Workspace::new();
    workspace.write_config(&config(&workspace).top("mode", json!("all")));
    let host = workspace.serve(&gateway());
    host.initialize();
    host.await_tools(&["s__page"]);
    let answer = host.call("s__page", "{}");
    assert!(answer.result().contains(&json!(page()).to_string()));
}

#[test]
fn the_configuration_says_which_results_have_outlines() {
    let workspace = Workspace::new();
    let rules = json!({ "results": { "threshold": "64KB", "tools": { "page": false, "b*": "4MB" }, "listed": true } });
    workspace.write_config(&config(&workspace).options("s", rules).top("mode", json!("all")));
    let host = workspace.serve(&gateway());
    host.initialize();
    host.await_tools(&["read_result", "s__page"]);
    assert!(host.call("s__page", "{}").result().contains("line 05999"));
    let big = host.call("s__big", "{}");
    assert!(big.text().len() < 6_000 && big.text().contains("read_result {"), "{:.3000}", big.text());
}

/// The files below a folder that a process has open and that no longer have a name.
fn nameless(pid: u32, folder: &Path) -> usize {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("Linux").flatten();
    let paths = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    paths.filter(|path| path.starts_with(folder) && path.to_string_lossy().ends_with(" (deleted)")).count()
}

#[test]
fn results_beyond_the_memory_are_in_files_of_which_nothing_is_left() {
    let workspace = Workspace::new();
    workspace.write_config(&config(&workspace));
    let mut host = opened(workspace.serve(&gateway()));
    let handles: Vec<String> = (0..9).map(|_| handle(&told(&host, "s__big", &json!({})).0)).collect();
    let pid = host.pid();
    if cfg!(target_os = "linux") {
        assert_eq!(nameless(pid, workspace.path()), 3, "6 of 5 MB each are in memory");
    }
    for handle in &handles {
        let (part, failed) = told(&host, "read_result", &read(handle, "page", 2));
        assert!(part.contains("xxxxxxxx") && !failed, "{part:.300}");
    }
    let before = all_files(workspace.path());
    host.signal(plugbay_testkit::Signal::KILL);
    host.wait_for_exit();
    assert_eq!(all_files(workspace.path()).len(), before.len());
    assert!(all_files(workspace.path()).iter().all(|(_, length)| *length < 1_000_000));
}

/// All files below a folder, with their lengths.
fn all_files(folder: &Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            files.extend(all_files(&entry.path()));
        } else {
            files.push((entry.path(), about.len()));
        }
    }
    files
}

/// The memory of a process, in MiB.
fn memory(pid: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") / 1024
}

#[test]
#[cfg(target_os = "linux")]
fn a_thousand_handles_take_no_more_memory_than_the_store_has() {
    let workspace = Workspace::new();
    let script = script().tool("mid", r#"{"size":40000}"#);
    let config = Config::new().server(&workspace, "s", &script).top("mode", json!("search"));
    workspace.write_config(&config);
    let host = opened(workspace.serve(&gateway()));
    let before = memory(host.pid());
    let first = handle(&told(&host, "s__mid", &json!({})).0);
    for _ in 1..1000 {
        told(&host, "s__mid", &json!({}));
    }
    let grown = memory(host.pid()) - before;
    assert!((20..64).contains(&grown), "{grown} MiB for 1,000 results of 40 KB");
    let (_, failed) = told(&host, "read_result", &read(&first, "page", 1));
    assert!(failed, "40 MB are more than 32 MiB in memory and 128 files");
    assert!(nameless(host.pid(), workspace.path()) <= 128);
}

#[test]
fn windows_of_a_daemon_do_not_share_handles() {
    let workspace = Workspace::new().with_daemon();
    workspace.write_config(&config(&workspace).options("s", json!({ "scope": "shared" })));
    let window = || opened(Host::spawn(&mut workspace.command(&gateway())));
    let (one, other) = (window(), window());
    let handle = handle(&told(&one, "s__page", &json!({})).0);
    let lines = read(&handle, "lines", "1");
    assert!(told(&one, "read_result", &lines).0.contains("line 00000:"));
    let (why, failed) = told(&other, "read_result", &lines);
    assert!(failed && why.contains("there is no result"), "{why}");
    let stolen = json!({ "text": { "$result": handle } });
    let (why, failed) = told(&other, "s__echo", &stolen);
    assert!(failed && why.contains("arguments.text: there is no result"), "{why}");
    drop(one);
    assert!(told(&window(), "read_result", &lines).1);
}

// --- HTTP

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"testkit","version":"0"}}}"#;

fn http(workspace: &Workspace) -> HttpGateway {
    workspace.write_config(&config(workspace).options("s", json!({ "scope": "shared" })));
    let gateway = HttpGateway::start(&mut workspace.command(&gateway()));
    wait_until("the catalog", DEADLINE, || {
        modern(&gateway, &[], "execute_tool", &execute("s__echo", &json!({}))).0.contains("{}").then_some(())
    });
    gateway
}

/// The result in a body that is JSON or an event stream.
fn result_in(body: &str) -> (String, bool) {
    let json =
        body.lines().find_map(|line| line.strip_prefix("data: ").filter(|data| data.contains("\"result\"")));
    let answer: Value = serde_json::from_str(json.unwrap_or(body)).unwrap_or_else(|_| panic!("{body:.500}"));
    (text_of(&answer["result"]), answer["result"]["isError"] == true)
}

fn modern(gateway: &HttpGateway, headers: &[(&str, &str)], tool: &str, arguments: &str) -> (String, bool) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{{MODERN_META}}},"name":"{tool}","arguments":{arguments}}}}}"#
    );
    let mut all =
        vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", tool)];
    all.extend_from_slice(headers);
    result_in(&gateway.post(&all, &body).body)
}

fn legacy(gateway: &HttpGateway, session: &str, tool: &str, arguments: &str) -> (String, bool) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    result_in(&gateway.post(&[("mcp-session-id", session)], &body).body)
}

fn session(gateway: &HttpGateway) -> String {
    let opened = gateway.post(&[], INITIALIZE);
    opened.header("mcp-session-id").expect("a session").to_owned()
}

#[test]
fn http_sessions_of_one_caller_do_not_share_handles() {
    let workspace = Workspace::new();
    let gateway = http(&workspace);
    let (one, other) = (session(&gateway), session(&gateway));
    let (outline, _) = legacy(&gateway, &one, "execute_tool", &execute("s__page", &json!({})));
    let lines = read(&handle(&outline), "lines", "1").to_string();
    assert!(legacy(&gateway, &one, "read_result", &lines).0.contains("line 00000:"));
    assert!(legacy(&gateway, &other, "read_result", &lines).1);
    assert!(modern(&gateway, &[], "read_result", &lines).1);

    let (outline, _) = modern(&gateway, &[], "execute_tool", &execute("s__page", &json!({})));
    let lines = read(&handle(&outline), "lines", "1").to_string();
    assert!(modern(&gateway, &[], "read_result", &lines).0.contains("line 00000:"), "requests of one client");
    assert!(modern(&gateway, &[("x-session-id", "mine")], "read_result", &lines).1, "of another session");
    assert!(legacy(&gateway, &one, "read_result", &lines).1);
    let copy = execute("s__echo", &json!({ "text": { "$result": handle(&outline) } }));
    assert!(!modern(&gateway, &[], "execute_tool", &copy).1);
}

#[test]
fn the_plain_api_gives_results_whole() {
    let workspace = Workspace::new();
    let gateway = http(&workspace);
    let mut host = gateway.connect();
    host.request_at(
        "POST",
        "/tools/call",
        &[("x-session-id", "one")],
        r#"{"name":"s__page","arguments":{}}"#,
    );
    let body = host.reply().body;
    assert!(body.contains("line 05999:"), "{body:.500}");
}
