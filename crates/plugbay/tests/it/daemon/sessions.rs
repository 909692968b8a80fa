//! The state that a session keeps when its daemon ends, and the socket's answers to other hellos.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
};

use plugbay_testkit::{Framing, Host, Script, Signal, Workspace, wait_until_gone};
use serde_json::{Value, json};

use super::{config, daemon, opened, told, until, window, workspace};
use crate::gateway;

fn kill(workspace: &Workspace) {
    let daemon = daemon(workspace);
    daemon.signal(Signal::KILL);
    wait_until_gone(&[daemon]);
}

#[test]
fn activated_servers_stay_active_when_the_daemon_is_killed_in_both_eras() {
    for open in [|host: &Host| drop(host.initialize()), Host::speak_modern] {
        let workspace = Workspace::new().with_daemon();
        let config = config(&workspace, &Script::friendly(), "shared");
        workspace.write_config(&config.top("mode", json!("activate")));
        let host = workspace.serve(&gateway());
        open(&host);
        host.list_tools();
        workspace.await_log("s", "listed", 1);
        host.call("gateway_activate", r#"{"name":"s.p*"}"#);
        assert!(host.tool_names().contains(&"s__pid".to_owned()));
        kill(&workspace);
        let names = host.tool_names();
        assert!(names.contains(&"s__pid".to_owned()) && !names.contains(&"s__echo".to_owned()), "{names:?}");
        told(&host, "s__pid");
        host.finish();
    }
}

#[test]
fn a_window_with_content_length_framing_goes_on_when_the_daemon_is_killed() {
    let workspace = workspace(&Script::friendly(), "shared");
    let host = Host::spawn(&mut workspace.command(&gateway())).with_framing(Framing::ContentLength);
    let host = opened(host);
    kill(&workspace);
    told(&host, "s__pid");
    assert!(host.messages().iter().all(|message| message.framing == Framing::ContentLength));
    host.finish();
}

#[test]
fn an_elicitation_is_cancelled_when_the_daemon_is_killed() {
    let script = Script::friendly().tool(
        "ask",
        r#"{"ask":[{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}]}"#,
    );
    let workspace = workspace(&script, "session");
    let host = Host::spawn(&mut workspace.command(&gateway()));
    host.declare(r#"{"elicitation":{}}"#);
    let host = opened(host);
    let call = host.start_call("s__ask", "{}");
    let question = host.expect_request("elicitation/create");
    kill(&workspace);
    let cancelled = host.expect_notification("notifications/cancelled");
    assert_eq!(cancelled.params_value()["requestId"].to_string(), question.id().expect("an id"));
    assert!(host.expect_response(call).is_error());
    // The host's late answer reaches nobody, and the next server request has another id.
    host.reply(&question, r#"{"action":"cancel"}"#);
    let call = host.start_call("s__ask", "{}");
    let second = host.expect_request("elicitation/create");
    assert_ne!(second.id(), question.id());
    host.reply(&second, r#"{"action":"accept","content":{}}"#);
    assert!(host.expect_response(call).result().contains("accept"));
    host.finish();
}

#[test]
fn each_window_is_a_session_of_its_own_for_the_audit_log_and_the_rate_limit() {
    let workspace = Workspace::new().with_daemon();
    let audit = workspace.path().join("audit.jsonl");
    let config = config(&workspace, &Script::friendly(), "shared")
        .top("audit", json!({ "file": audit }))
        .top("limits", json!({ "sessionRate": "2/hour" }));
    workspace.write_config(&config);
    let windows = [window(&workspace), window(&workspace)];
    for host in &windows {
        told(host, "s__pid");
        told(host, "s__pid");
        assert!(host.call("s__pid", "{}").is_error(), "the third call of this window");
    }
    let lines = || {
        let text = std::fs::read_to_string(&audit).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")).collect::<Vec<_>>()
    };
    until("six lines", || lines().len() == 6);
    let mut sessions: Vec<String> = lines().iter().map(|line| line["session"].to_string()).collect();
    sessions.dedup();
    assert!(sessions.len() == 2 && !sessions.iter().any(|mark| mark.contains("00000000")), "{sessions:?}");
    for host in windows {
        host.finish();
    }
}

#[test]
fn a_hello_that_the_daemon_does_not_understand_is_refused_with_a_remedy() {
    let workspace = workspace(&Script::friendly(), "shared");
    let host = window(&workspace);
    let ask = |line: &str| {
        let mut stream =
            UnixStream::connect(workspace.path().join("state/plugbay/daemon/daemon.sock")).expect("a daemon");
        stream.write_all(line.as_bytes()).and_then(|()| stream.write_all(b"\n")).expect("a hello");
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).expect("a reply");
        serde_json::from_str::<Value>(&reply).expect("JSON")["refused"]["reason"].as_str().map(str::to_owned)
    };
    let older = ask(r#"{"protocol":99,"build":{"version":"0.0.1","built":1},"request":"what"}"#);
    assert!(older.is_some_and(|reason| reason.contains("plugbay daemon restart")));
    assert!(ask("GET / HTTP/1.1").is_some());
    told(&host, "s__pid");
    host.finish();
}
