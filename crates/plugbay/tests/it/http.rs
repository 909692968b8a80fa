//! `plugbay serve --http` as users run it: real sockets, and many hosts, some of which do not read.

use std::process::Command;

use plugbay_testkit::{
    DEADLINE, HttpGateway, HttpHost, MODERN_META, Script, Workspace, wait_until, wait_until_gone,
};

use crate::gateway;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"testkit","version":"0"}}}"#;

/// Starts the gateway with these servers, which all sessions share, and waits until it knows them all.
fn start(workspace: &Workspace, servers: &[(&str, Script)]) -> HttpGateway {
    let shared = serde_json::json!({ "scope": "shared" });
    workspace.write_config(&workspace.config(servers).top("defaults", shared));
    let gateway = HttpGateway::start(&mut workspace.command(&gateway()));
    wait_until("the catalog", DEADLINE, || {
        let list = gateway.post(&modern("tools/list", ""), &stateless(1, "tools/list", ""));
        servers.iter().all(|(name, _)| list.body.contains(&format!("{name}__"))).then_some(())
    });
    gateway
}

fn modern<'a>(method: &'a str, name: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    headers.extend((!name.is_empty()).then_some(("mcp-name", name)));
    headers
}

fn stateless(id: usize, method: &str, members: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"_meta":{{{MODERN_META}}}{members}}}}}"#
    )
}

fn call(id: usize, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

fn open(gateway: &HttpGateway) -> String {
    let opened = gateway.post(&[], INITIALIZE);
    assert_eq!(opened.status, 200, "{opened:?}");
    opened.header("mcp-session-id").expect("a session").to_owned()
}

#[test]
fn hosts_of_both_eras_use_one_address() {
    let workspace = Workspace::new();
    let mut gateway = start(&workspace, &[("a", Script::friendly())]);
    let session = open(&gateway);
    let legacy = gateway.post(&[("mcp-session-id", &session)], &call(7, "a__echo", r#"{"canary":"l"}"#));
    assert!(
        legacy.status == 200 && legacy.body.contains("canary") && legacy.body.contains("\"id\":7"),
        "{legacy:?}"
    );
    let body = stateless(8, "tools/call", r#","name":"a__echo","arguments":{"canary":"m"}"#);
    let stateless = gateway.post(&modern("tools/call", "a__echo"), &body);
    assert!(stateless.status == 200 && stateless.body.contains("\"id\":8"), "{stateless:?}");
    gateway.terminate();
    assert!(gateway.ended().success());
    wait_until_gone(&workspace.processes());
}

#[test]
fn a_call_result_arrives_as_its_server_wrote_it() {
    let workspace = Workspace::new();
    let result = r#"{"content":[],"z":1.0,"a":123456789012345678901234567890,"é":"\u00e9"}"#;
    let servers = [("a", Script::new().result("odd", result).tool("big", r#"{"size":5000000}"#))];
    let gateway = start(&workspace, &servers);
    let session = open(&gateway);
    let odd = gateway.post(&[("mcp-session-id", &session)], &call(1, "a__odd", "{}"));
    assert!(odd.body.contains(result), "{odd:?}");
    let big = gateway.post(&[("mcp-session-id", &session)], &call(2, "a__big", "{}"));
    assert!(big.body.contains(&"x".repeat(5_000_000)) && big.body.contains("\"id\":2"), "{}", big.body.len());
}

#[test]
fn a_modern_host_that_disconnects_cancels_its_call() {
    let workspace = Workspace::new();
    let gateway = start(&workspace, &[("a", Script::new().tool("hang", r#"{"hang":true}"#))]);
    let mut host = gateway.connect();
    host.post(&modern("tools/call", "a__hang"), &stateless(1, "tools/call", r#","name":"a__hang""#));
    workspace.await_log("a", "tools/call", 1);
    drop(host);
    workspace.await_log("a", "notifications/cancelled", 1);
}

/// 500 hosts, 200 of which never read their answers, 800 MiB in all. The others call repeatedly, and each
/// gets only its own answers. Waiting data is limited to 512 MiB; the buffers in which it was read are
/// slightly larger.
#[test]
fn slow_hosts_reach_a_limit_and_delay_no_other() {
    const SLOW: usize = 200;
    const QUICK: usize = 300;
    const MEMORY: u64 = 640 << 20;
    let workspace = Workspace::new();
    let big = Script::new().result("big", &format!(r#"{{"content":[],"x":"{}"}}"#, "x".repeat(4 << 20)));
    let mut gateway = start(&workspace, &[("a", Script::friendly()), ("b", big)]);
    let mut slow: Vec<HttpHost> = Vec::new();
    for n in 0..SLOW {
        let mut host = gateway.connect_slow();
        if n % 2 == 0 {
            host.post(&modern("tools/call", "b__big"), &stateless(n, "tools/call", r#","name":"b__big""#));
        } else {
            let session = open(&gateway);
            host.post(&[("mcp-session-id", &session)], &call(n, "b__big", "{}"));
        }
        slow.push(host);
    }
    let sessions: Vec<Option<String>> = (0..QUICK).map(|n| (n % 2 == 0).then(|| open(&gateway))).collect();
    for round in 0..3 {
        // Connected again in each round, because on a busy machine the gateway closes idle connections.
        let mut quick: Vec<HttpHost> = Vec::new();
        for (n, session) in sessions.iter().enumerate() {
            let mut host = gateway.connect();
            let arguments = format!(r#"{{"canary":"c{round}-{n}."}}"#);
            // All of them use the same id.
            if let Some(session) = session {
                host.post(&[("mcp-session-id", session)], &call(1, "a__echo", &arguments));
            } else {
                let members = format!(r#","name":"a__echo","arguments":{arguments}"#);
                host.post(&modern("tools/call", "a__echo"), &stateless(1, "tools/call", &members));
            }
            quick.push(host);
        }
        for (n, host) in quick.iter_mut().enumerate() {
            let reply = host.reply();
            assert_eq!(reply.status, 200, "{reply:?}");
            assert!(reply.body.contains(&format!("c{round}-{n}.")), "{n}: {reply:?}");
        }
    }
    slow.iter_mut().for_each(HttpHost::begins); // all that there will be has come
    let peak = gateway.peak_memory();
    assert!(peak < MEMORY, "{} MiB", peak >> 20);
    drop(slow);
    gateway.terminate();
    assert!(gateway.ended().success());
}

#[test]
fn calls_in_flight_are_answered_before_the_end() {
    let workspace = Workspace::new();
    let script = Script::new().tool("slow", r#"{"delay_ms":1500,"echo":true}"#);
    let mut gateway = start(&workspace, &[("a", script)]);
    let mut hosts: Vec<HttpHost> = (0..20).map(|_| gateway.connect()).collect();
    for (n, host) in hosts.iter_mut().enumerate() {
        let members = format!(r#","name":"a__slow","arguments":{{"canary":"c{n}."}}"#);
        host.post(&modern("tools/call", "a__slow"), &stateless(1, "tools/call", &members));
    }
    workspace.await_log("a", "tools/call", 20);
    gateway.terminate();
    for (n, host) in hosts.iter_mut().enumerate() {
        assert!(host.reply().body.contains(&format!("c{n}.")));
    }
    assert!(gateway.ended().success());
}

#[test]
fn a_public_http_address_needs_a_token() {
    let workspace = Workspace::new();
    workspace.write_config(&workspace.config(&[]));
    let mut command: Command = workspace.command(&gateway());
    let refused = command.args(["--http", "0.0.0.0:0"]).output().expect("it runs");
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(told.contains("PLUGBAY_HTTP_TOKEN") && told.contains("--token-file"), "{told}");

    let mut command = workspace.command(&gateway());
    let guarded = HttpGateway::start(command.env("PLUGBAY_HTTP_TOKEN", "secret"));
    assert_eq!(guarded.post(&[], INITIALIZE).status, 401);
    assert_eq!(guarded.post(&[("authorization", "Bearer secret")], INITIALIZE).status, 200);
}

#[test]
fn tools_used_in_one_conversation_are_listed_in_the_next() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly())]);
    workspace.write_config(&config.top("mode", "search".into()).top("learn", 1.into()));
    let mut gateway = HttpGateway::start(&mut workspace.command(&gateway()));
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let lists = |session: &str| gateway.post(&[("mcp-session-id", session)], list).body.contains("a__pid");
    let first = open(&gateway);
    assert!(!lists(&first));
    let used = call(2, "execute_tool", r#"{"name":"a__pid","arguments":{}}"#);
    gateway.post(&[("mcp-session-id", &first)], &used);
    let second = open(&gateway);
    assert!(lists(&second) && !lists(&first), "not in the middle of a conversation");
    gateway.terminate();
    assert!(gateway.ended().success());
}
