//! Servers that fail: one clear answer, in time, and no effect on others.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use plugbay_testkit::{DEADLINE, Host, RawMessage, Script, Signal, Workspace, patience, wait_until};
use serde_json::json;

use crate::{mentions, open, open_with};

/// Limit for a call to end once its server has ended: half of the call's own timeout.
const PROMPTLY: Duration = Duration::from_secs(60);

fn crashing() -> Script {
    Script::friendly()
        .tool("crash", r#"{"crash":{"code":23,"stderr":["connecting","boom: no database"]}}"#)
        .tool("hang", r#"{"hang":true,"stderr":["last words of the hanging one"]}"#)
        .tool("leave", r#"{"exit_after":0}"#)
}

#[track_caller]
fn expect_failure(host: &Host, id: u64, since: Instant) -> String {
    let answer: RawMessage = host.expect_response(id);
    let took = answer.at.duration_since(since);
    assert!(took <= patience(PROMPTLY), "the failure took {took:?} to be told");
    answer.failure()
}

#[test]
fn a_server_crash_is_reported_once_with_status_and_stderr() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", crashing())], &["s__crash"]);
    for _ in 0..3 {
        host.call("s__echo", "{}");
        let since = Instant::now();
        let id = host.start_call("s__crash", "{}");
        let failure = expect_failure(&host, id, since);
        assert!(failure.contains("23") && failure.contains("boom: no database"), "{failure}");
    }
    assert!(host.call("s__echo", r#"{"again":1}"#).content_text().contains("again"));
    host.finish();
}

#[test]
fn a_killed_server_fails_its_calls_and_comes_back() {
    let workspace = Workspace::new();
    let servers = [("s", crashing()), ("other", Script::friendly())];
    let host = open(&workspace, &servers, &["s__hang", "other__echo"]);
    for round in 1..=5 {
        let calls = [host.start_call("s__hang", "{}"), host.start_call("s__hang", "{}")];
        workspace.await_log("s", "said last words", round * 2);
        let since = Instant::now();
        workspace.server_process("s").signal(Signal::KILL);
        for id in calls {
            let failure = expect_failure(&host, id, since);
            assert!(mentions(&failure, &["signal", "sigkill", "killed"]), "{failure}");
            assert!(failure.contains("last words of the hanging one"), "{failure}");
        }
        host.call("other__echo", "{}");
        assert!(host.call("s__echo", r#"{"again":1}"#).content_text().contains("again"));
    }
    assert_eq!(workspace.starts("other").len(), 1);
    host.finish();
}

#[test]
fn a_server_that_leaves_after_its_answer_is_started_again() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", crashing())], &["s__leave"]);
    for _ in 0..3 {
        assert_eq!(host.call("s__leave", "{}").content_text(), "leave ok");
        // The gateway knows once it is reaped; before that, the next call may still be sent to it.
        wait_until("the server to be reaped", DEADLINE, || {
            let reaped = |pid: &u32| !Path::new(&format!("/proc/{pid}")).exists();
            workspace.starts("s").iter().all(reaped).then_some(())
        });
    }
    host.finish();
}

#[test]
fn calls_that_reached_a_server_are_not_sent_again() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", crashing())], &["s__crash"]);
    host.call("s__crash", "{}").failure();
    host.call("s__echo", "{}");
    assert_eq!(workspace.count_log("s", r#""crash""#), 1, "a side effect would have run twice");
    host.finish();
}

#[test]
fn a_server_that_never_answers_delays_no_other() {
    let workspace = Workspace::new();
    let config = workspace
        .config(&[("mute", Script::friendly().set("mute", true)), ("s", Script::friendly())])
        .options("mute", json!({"start": "1s", "timeout": "2s"}));
    let host = open_with(&workspace, &config, &["s__echo"]);
    host.call("s__echo", "{}");
    let failure = host.call("mute__echo", "{}").failure();
    assert!(!failure.trim().is_empty());
    assert!(!host.tool_names().iter().any(|name| name.starts_with("mute__")));
    host.finish();
}

#[test]
fn a_command_that_cannot_be_found_is_named() {
    let workspace = Workspace::new();
    let config = workspace
        .config(&[("s", Script::friendly())])
        .entry("ghost", json!({"command": "no-such-program-anywhere", "args": []}));
    let host = open_with(&workspace, &config, &["s__echo"]);
    let failure = host.call("ghost__anything", "{}").failure();
    assert!(failure.contains("no-such-program-anywhere"), "{failure}");
    host.call("s__echo", "{}");
    host.finish();
}

#[test]
fn a_server_that_exits_at_the_start_is_reported_with_its_stderr() {
    let workspace = Workspace::new();
    let broken = Script::friendly().set("exit", r#"{"code":9,"stderr":["TOKEN is not set"]}"#);
    let host = open(&workspace, &[("broken", broken), ("s", Script::friendly())], &["s__echo"]);
    let failure = host.call("broken__echo", "{}").failure();
    assert!(failure.contains('9') && failure.contains("TOKEN is not set"), "{failure}");
    host.call("s__echo", "{}");
    host.finish();
}

#[test]
fn stdout_lines_that_are_no_messages_are_ignored() {
    let workspace = Workspace::new();
    let garbage = json!([
        "Server listening\u{2026}",
        "\u{1b}[32mready\u{1b}[0m",
        "",
        "{not json",
        "[1,2",
        "42",
        "\"text\"",
        "null",
        "{}",
        "{\"jsonrpc\":\"2.0\",\"id\":\"nobody\",\"result\":{}}",
    ]);
    let host = open(&workspace, &[("s", Script::friendly().set("garbage", garbage))], &["s__echo"]);
    for n in 0..5 {
        let text = host.call("s__echo", &format!(r#"{{"n":{n}}}"#)).content_text();
        assert!(text.contains(&format!(r#""n":{n}"#)));
    }
    let ended = host.finish();
    assert!(!ended.messages.iter().any(|m| m.text().contains("listening") || m.text().contains("nobody")));
}

#[test]
fn a_server_that_floods_stderr_stalls_no_call() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", Script::friendly().set("stderr", 64))], &["s__echo"]);
    host.call("s__echo", "{}");
    host.finish();
}

#[test]
fn a_call_that_times_out_gets_an_error_and_is_cancelled() {
    let workspace = Workspace::new();
    let script = Script::friendly()
        .tool("hang", r#"{"hang":true}"#)
        .tool("log", r#"{"cancelled_log":true}"#)
        .tool("late", r#"{"delay_ms":1500}"#);
    let config = workspace.config(&[("s", script)]).options("s", json!({"timeout": "500ms"}));
    let host = open_with(&workspace, &config, &["s__hang"]);
    host.call("s__echo", "{}");
    let pid = workspace.server_process("s").pid;
    let failure = host.call("s__hang", "{}").failure();
    assert!(mentions(&failure, &["time", "500", "0.5"]), "{failure}");
    // The late answer to an abandoned call reaches nobody; `finish` checks this.
    host.call("s__late", "{}").failure();
    let log = host.call("s__log", r#"{"wait":2}"#);
    // Waiting for cancellations is itself a call with a limit, so it may fail too; the log file does not.
    drop(log);
    workspace.await_log("s", "notifications/cancelled", 2);
    assert_eq!(workspace.server_process("s").pid, pid, "a slow call is no reason to restart the server");
    host.finish();
}

#[test]
fn progress_restarts_the_timeout() {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("work", r#"{"progress":6,"progress_ms":1000}"#);
    let config = workspace.config(&[("s", script)]).options("s", json!({"timeout": "5s"}));
    let host = open_with(&workspace, &config, &["s__work"]);
    let id = host.start_call_with_progress("s__work", "{}", "1");
    assert_eq!(host.expect_response(id).content_text(), "work ok");
    assert_eq!(host.count_notifications("notifications/progress"), 6);
    host.finish();
}

#[test]
fn unknown_tools_and_servers_are_refused() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", Script::friendly())], &["s__echo"]);
    for name in ["s__nope", "t__echo", "", "s__", "__echo", "S__echo"] {
        let failure = host.call(name, "{}").failure();
        assert!(!failure.trim().is_empty(), "{name}");
    }
    host.finish();
}
