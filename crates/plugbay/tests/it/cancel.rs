//! Cancellation and progress: the host's ids and tokens on one side, the server's on the other.

use plugbay_testkit::{Host, Script, Workspace};
use serde_json::Value;

use crate::open;

fn server() -> Script {
    Script::friendly()
        .tool("hang", r#"{"hang":true}"#)
        .tool("slow", r#"{"delay_ms":3000}"#)
        .tool("work", r#"{"progress":3,"progress_ms":20}"#)
        .tool("log", r#"{"cancelled_log":true}"#)
}

/// What the server received: ids of cancellations, and tool and id of each call.
#[track_caller]
fn server_log(host: &Host, wait: usize) -> Value {
    let text = host.call("s__log", &format!(r#"{{"wait":{wait}}}"#)).content_text();
    serde_json::from_str(&text).expect("log")
}

#[test]
fn a_cancellation_reaches_the_server_under_its_own_id() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", server())], &["s__hang"]);
    // Ids that cannot be equal on both sides by chance.
    let ids = [r#""host-id""#, "123456789012345678901234567890", "0"];
    for (n, id) in ids.into_iter().enumerate() {
        host.request_as(id, "tools/call", r#"{"name":"s__hang","arguments":{}}"#);
        workspace.await_log("s", r#""hang""#, n + 1);
        host.cancel(id);
        let log = server_log(&host, n + 1);
        let calls: Vec<&Value> =
            log["calls"].as_array().unwrap().iter().filter(|c| c[0] == "hang").map(|c| &c[1]).collect();
        let cancelled: Vec<&Value> = log["cancelled"].as_array().unwrap().iter().collect();
        assert_eq!(cancelled, calls, "{log}");
    }
    let ended = host.finish();
    for id in ids {
        assert!(!ended.messages.iter().any(|m| m.id() == Some(id)), "a cancelled call was answered: {id}");
    }
}

#[test]
fn the_answer_to_a_cancelled_call_is_dropped() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", server())], &["s__slow"]);
    let cancelled = host.start_call("s__slow", "{}");
    workspace.await_log("s", r#""slow""#, 1);
    host.cancel(cancelled);
    // Sent later and equally slow: when this is answered, the cancelled one would also have been.
    host.call("s__slow", "{}");
    let ended = host.finish();
    assert!(!ended.messages.iter().any(|m| m.id() == Some(&cancelled.to_string())));
}

#[test]
fn meaningless_cancellations_are_ignored() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", server())], &["s__echo"]);
    let done = host.start_call("s__echo", "{}");
    host.expect_response(done);
    host.cancel(done);
    host.cancel(r#""never was""#);
    host.notify("notifications/cancelled", "{}");
    host.send_raw(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
    host.notify("notifications/cancelled", r#"{"requestId":{"a":1}}"#);
    let log = server_log(&host, 0);
    assert_eq!(log["cancelled"], Value::Array(vec![]), "{log}");
    host.finish();
}

#[test]
fn progress_comes_under_the_hosts_token() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", server())], &["s__work"]);
    for token in [r#""text""#, "7", "9007199254740993", r#""\u00e9 \" é""#, "0", r#""""#] {
        let before = host.count_notifications("notifications/progress");
        let id = host.start_call_with_progress("s__work", "{}", token);
        host.expect_response(id);
        assert_eq!(host.count_notifications("notifications/progress"), before + 3, "progress comes first");
        for step in 1..=3 {
            let expected = format!(
                r#"{{"progressToken":{token},"progress":{step},"total":3,"message":"step {step} of 3"}}"#
            );
            assert_eq!(host.expect_notification("notifications/progress").params(), Some(&*expected));
        }
    }
    host.finish();
}

#[test]
fn one_progress_token_on_two_servers_is_two_streams() {
    let workspace = Workspace::new();
    let other = Script::friendly().tool("work", r#"{"progress":5,"progress_ms":20}"#);
    let host = open(&workspace, &[("s", server()), ("t", other)], &["s__work", "t__work"]);
    let calls = [
        host.start_call_with_progress("s__work", "{}", r#""same""#),
        host.start_call_with_progress("t__work", "{}", r#""same""#),
    ];
    for id in calls {
        assert_eq!(host.expect_response(id).content_text(), "work ok");
    }
    for (total, count) in [(3, 3), (5, 5)] {
        for step in 1..=count {
            let expected = format!(
                r#"{{"progressToken":"same","progress":{step},"total":{total},"message":"step {step} of {total}"}}"#
            );
            host.expect(&expected, |m| m.params() == Some(&*expected));
        }
    }
    let ended = host.finish();
    let progress = |m: &&plugbay_testkit::RawMessage| m.method().as_deref() == Some("notifications/progress");
    assert_eq!(ended.messages.iter().filter(progress).count(), 8);
}
