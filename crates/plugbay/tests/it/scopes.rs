//! Scopes over HTTP: which sessions share a process of a server, and that no data of one session reaches
//! another.

use std::{thread, time::Duration};

use plugbay_testkit::{
    Config, DEADLINE, HttpGateway, HttpHost, MODERN_META, Script, Workspace, wait_until, wait_until_gone,
};
use serde_json::{Value, json};

use crate::{gateway, shared_instances};

const SESSIONS: usize = 200;
const ROUNDS: usize = 100;
const THREADS: usize = 8;

/// A server that reports everything it was ever sent.
fn remembering() -> Script {
    Script::new().tool("keep", r#"{"remember":true}"#).tool("pid", r#"{"pid":true}"#)
}

fn start(workspace: &Workspace, config: &Config) -> HttpGateway {
    workspace.write_config(config);
    let gateway = HttpGateway::start(&mut workspace.command(&gateway()));
    wait_until("the catalog", DEADLINE, || tools(&gateway, &[]).contains("s__").then_some(()));
    gateway
}

fn scoped(workspace: &Workspace, script: Script, options: Value) -> Config {
    workspace.config(&[("s", script)]).options("s", options)
}

fn modern<'a>(method: &'a str, name: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    headers.extend((!name.is_empty()).then_some(("mcp-name", name)));
    headers.extend(more);
    headers
}

fn request(method: &str, members: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{{MODERN_META}}}{members}}}}}"#
    )
}

fn tools(gateway: &HttpGateway, headers: &[(&str, &str)]) -> String {
    gateway.post(&modern("tools/list", "", headers), &request("tools/list", "")).body
}

fn arguments(tool: &str, canary: &str) -> String {
    format!(r#","name":"{tool}","arguments":{{"canary":"{canary}"}}"#)
}

/// A call of the session with this name.
fn call(gateway: &HttpGateway, session: &str, tool: &str, canary: &str) -> String {
    let headers = modern("tools/call", tool, &[("x-session-id", session)]);
    gateway.post(&headers, &request("tools/call", &arguments(tool, canary))).body
}

#[test]
fn two_sessions_never_see_each_others_data_in_scope_session() {
    let workspace = Workspace::new();
    let mut gateway = start(&workspace, &scoped(&workspace, remembering(), json!({ "scope": "session" })));
    for (session, canary, other) in [("a", "pelican", "ibis"), ("b", "ibis", "pelican"), ("a", "x", "ibis")] {
        let told = call(&gateway, session, "s__keep", canary);
        assert!(told.contains(canary) && !told.contains(other), "{told}");
    }
    assert!(call(&gateway, "a", "s__keep", "y").contains("pelican"), "a session keeps its own");
    gateway.terminate();
    assert!(gateway.ended().success());
    wait_until_gone(&workspace.processes());
}

#[test]
fn two_sessions_see_the_same_data_in_scope_shared_and_project() {
    for scope in ["shared", "project"] {
        let workspace = Workspace::new();
        let gateway = start(&workspace, &scoped(&workspace, remembering(), json!({ "scope": scope })));
        call(&gateway, "a", "s__keep", "pelican");
        assert!(call(&gateway, "b", "s__keep", "ibis").contains("pelican"), "{scope}");
        assert_eq!(shared_instances(&workspace, "s"), 1, "{scope}");
    }
}

#[test]
fn a_session_by_mcp_session_id_has_servers_of_its_own() {
    let workspace = Workspace::new();
    let gateway = start(&workspace, &scoped(&workspace, remembering(), json!({})));
    let open = |headers: &[(&str, &str)]| {
        let body = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"testkit","version":"0"}}}"#;
        gateway.post(headers, body).header("mcp-session-id").expect("a session").to_owned()
    };
    let keep = |session: &str, canary: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"s__keep","arguments":{{"canary":"{canary}"}}}}}}"#
        );
        gateway.post(&[("mcp-session-id", session)], &body).body
    };
    let (one, other) = (open(&[]), open(&[]));
    keep(&one, "pelican");
    let told = keep(&other, "ibis");
    assert!(told.contains("ibis") && !told.contains("pelican"), "{told}");
    let named = [("x-session-id", "n")];
    let (first, second) = (open(&named), open(&named));
    keep(&first, "heron");
    assert!(keep(&second, "stork").contains("heron"), "X-Session-ID names one session for both");
    assert!(call(&gateway, "n", "s__keep", "crane").contains("heron"), "also in the modern protocol");
    let pid = keep(&one, "x");
    assert!(!pid.contains("heron"), "{pid}");
    let mut host = gateway.connect();
    host.request("DELETE", &[("mcp-session-id", &one)], "");
    assert_eq!(host.reply().status, 204);
    let ended = || (workspace.count_log("s", "eof") >= 2).then_some(()); // its instance and the lister
    wait_until("the instance of the session to end", DEADLINE, ended);
}

#[test]
fn an_idle_instance_gives_way_and_a_busy_one_is_told() {
    let workspace = Workspace::new();
    let script = remembering().tool("slow", r#"{"hang":true}"#);
    let options = json!({ "scope": "session", "instances": 2 });
    let gateway = start(&workspace, &scoped(&workspace, script, options));
    let pids: Vec<String> =
        ["a", "b", "c"].map(|session| call(&gateway, session, "s__pid", "")).into_iter().collect();
    assert!(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2], "{pids:?}");
    assert_eq!(call(&gateway, "c", "s__pid", ""), pids[2]);
    let mut hanging: Vec<HttpHost> = Vec::new();
    for session in ["b", "c"] {
        let mut host = gateway.connect();
        let headers = modern("tools/call", "s__slow", &[("x-session-id", session)]);
        host.post(&headers, &request("tools/call", &arguments("s__slow", "")));
        hanging.push(host);
    }
    workspace.await_log("s", "\"slow\"", 2);
    let told = call(&gateway, "d", "s__pid", "");
    assert!(told.contains("is busy") && told.contains("instances"), "{told}");
    drop(hanging);
    wait_until("an idle instance", DEADLINE, || {
        (!call(&gateway, "d", "s__pid", "").contains("busy")).then_some(())
    });
}

#[test]
fn a_changed_tool_list_of_one_session_is_not_seen_by_another() {
    let workspace = Workspace::new();
    let script = remembering().tool("grow", r#"{"change_tools":["keep","pid","grow","canary_tool"]}"#);
    let gateway =
        start(&workspace, &scoped(&workspace, script, json!({ "scope": "session", "mode": "all" })));
    let list = |session: &str| tools(&gateway, &[("x-session-id", session)]);
    for session in ["a", "b"] {
        call(&gateway, session, "s__pid", "");
    }
    call(&gateway, "a", "s__grow", "");
    wait_until("the new tool", DEADLINE, || list("a").contains("canary_tool").then_some(()));
    assert!(!list("b").contains("canary_tool"), "the other session");
    assert!(!list("new").contains("canary_tool"), "a new session");
    let cached = workspace.files("cache/plugbay/servers");
    for file in cached {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(!text.contains("canary_tool"), "{}", file.display());
    }
}

#[test]
fn log_messages_stay_with_their_session() {
    let workspace = Workspace::new();
    let log = r#"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"pelican\"}}"#;
    let script = remembering().set("logging", true).tool("log", format!(r#"{{"send":["{log}"]}}"#));
    for scope in ["shared", "session"] {
        let workspace_of = &workspace;
        let gateway = start(workspace_of, &scoped(workspace_of, script.clone(), json!({ "scope": scope })));
        let meta = MODERN_META.to_owned() + r#","io.modelcontextprotocol/logLevel":"debug""#;
        let post = |session: &str, tool: &str| {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{{meta}}},"name":"{tool}","arguments":{{}}}}}}"#
            );
            gateway.post(&modern("tools/call", tool, &[("x-session-id", session)]), &body).body
        };
        assert!(post("a", "s__log").contains("pelican"), "{scope}");
        assert!(!post("b", "s__pid").contains("pelican"), "{scope}");
    }
}

#[test]
fn results_of_200_sessions_never_cross() {
    let workspace = Workspace::new();
    let config = workspace
        .config(&[("own", remembering()), ("s", Script::new().tool("echo", r#"{"echo":true}"#))])
        .options("own", json!({ "scope": "session", "instances": SESSIONS }))
        .options("s", json!({ "scope": "shared" }));
    let gateway = start(&workspace, &config);
    wait_until("both", DEADLINE, || tools(&gateway, &[]).contains("own__keep").then_some(()));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let gateway = &gateway;
            scope.spawn(move || rounds(gateway, thread));
        }
    });
    assert_eq!(shared_instances(&workspace, "s"), 1, "one copy of the shared server");
    let own = workspace.starts("own").len();
    // One lists for hosts of every kind, and one for hosts like these.
    assert!((SESSIONS..=SESSIONS + 2).contains(&own), "{own} for {SESSIONS} sessions");
}

/// The calls of some sessions: mostly to the shared server, sometimes to their own, which reports all that it
/// knows.
fn rounds(gateway: &HttpGateway, thread: usize) {
    let mut host = gateway.connect();
    for round in 0..ROUNDS {
        let tool = if round % 50 == 0 { "own__keep" } else { "s__echo" };
        for session in (thread..SESSIONS).step_by(THREADS) {
            let (name, canary) = (format!("session-{session}"), format!("canary-{session}-{round}-"));
            let headers = modern("tools/call", tool, &[("x-session-id", &name)]);
            host.post(&headers, &request("tools/call", &arguments(tool, &canary)));
            let told = host.reply().body;
            assert!(told.contains(&canary), "{told}");
            let own = told.matches(&format!("canary-{session}-")).count();
            assert_eq!(told.matches("canary-").count(), own, "{told}");
        }
    }
}

#[test]
fn status_shows_the_scope_with_its_reason_and_the_instances() {
    let workspace = Workspace::new();
    let gateway = start(&workspace, &scoped(&workspace, remembering(), json!({})));
    for session in ["a", "b"] {
        call(&gateway, session, "s__pid", "");
    }
    let status = || {
        let mut command = std::process::Command::new(crate::gateway());
        command.args(["status", "--json"]).current_dir(workspace.path());
        command.env_clear().envs(workspace.environment());
        String::from_utf8(command.output().expect("a status").stdout).expect("UTF-8")
    };
    let shown = wait_until("two instances", DEADLINE, || {
        thread::sleep(Duration::from_millis(20));
        let status = status();
        status.replace(' ', "").contains(r#""instances":2"#).then_some(status)
    });
    let shown = shown.replace(' ', "");
    assert!(shown.contains(r#""scope":"session""#) && shown.contains("notaknownserver"), "{shown}");
}
