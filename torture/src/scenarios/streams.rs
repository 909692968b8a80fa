//! Excessive streams: floods, endless lines, deep nesting, and peers that do not read.

use std::time::{Duration, Instant};

use plugbay_testkit::{Script, Workspace};
use serde_json::json;

use crate::{
    http,
    measure::{mebibytes, milliseconds, peak, spread, use_of},
    neighbour::{Neighbour, beside},
    scenario::{Outcome, Scenario},
    trial::{self, Trial, mentions},
};

const MEBIBYTE: u64 = 1 << 20;

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "stderr-flood",
        rule: "A server that writes 256 MiB to stderr (short: 16): other callers' longest wait at most 50 ms more",
        run: stderr_flood,
    },
    Scenario {
        name: "deaf-server",
        rule: "A server that reads nothing: its calls end at their deadline, other callers are served",
        run: deaf_server,
    },
    Scenario {
        name: "endless-line",
        rule: "A line without an end from a server: memory grows by at most the limit and 8 MiB, the call ends with a clear error",
        run: endless_line,
    },
    Scenario {
        name: "endless-host-line",
        rule: "A line without an end from a host: memory grows by at most the limit and 8 MiB, the next message is served",
        run: endless_host_line,
    },
    Scenario {
        name: "depth-bomb",
        rule: "Messages nested 100,000 deep, from host and server, end with an error; the next call is served",
        run: depth_bomb,
    },
    Scenario {
        name: "wide-message",
        rule: "A request with 200,000 members: answered, and the next call is served",
        run: wide_message,
    },
];

fn stderr_flood(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let size = trial.times(16, 256);
    let flood = Script::friendly().set("stderr", size);
    let gateway = trial.serve_http(&workspace, &trial::config(&workspace, &[]), &[]);
    let calm = beside(Neighbour::over_http(&gateway), || rest(300)).0;
    let config = trial::config(&workspace, &[("flood", flood)]);
    let (waits, ()) = beside(Neighbour::over_http(&gateway), || {
        workspace.write_config(&config);
        workspace.await_log("flood", "listed", 1);
    });
    let ((_, before), (p99, longest)) = (spread(&calm.times), spread(&waits.times));
    let mut outcome = Outcome::default();
    outcome.check(waits.failed == 0, || format!("{} calls of another caller failed", waits.failed));
    outcome.check_time(trial, longest, Duration::from_millis(50) + before, || {
        format!("the longest wait was {longest:?}, before {before:?}")
    });
    outcome.figure(format!("{size} MiB: p99 {}, longest {}", milliseconds(p99), milliseconds(longest)))
}

fn deaf_server(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let entry = trial::stub(&workspace, "s", &[("deaf", "")]);
    let config = trial::config(&workspace, &[])
        .entry("s", entry)
        .options("s", json!({ "timeout": "2s", "start": "2s" }));
    let host = trial.open(&workspace, &config, &["fast__echo"]);
    let bulk = "x".repeat(1 << 20);
    let start = Instant::now();
    let calls: Vec<u64> =
        (0..8).map(|_| host.start_call("s__raw", &format!(r#"{{"bulk":"{bulk}"}}"#))).collect();
    let asked = Instant::now();
    host.call("fast__echo", "{}").content_text();
    let served = asked.elapsed();
    let mut outcome = Outcome::default();
    for call in calls {
        let ended = host.expect_response(call);
        outcome.check(!http::is_result(ended.text()), || "a call of a deaf server was answered".to_owned());
    }
    let took = start.elapsed();
    outcome.check(served < took, || format!("another server answered only after {served:?}"));
    outcome
        .check_time(trial, served, Duration::from_millis(200), || format!("another server took {served:?}"));
    outcome.check_time(trial, took, Duration::from_secs(15), || format!("the calls ended after {took:?}"));
    outcome.figure(format!(
        "calls ended after {}, another server answered in {}",
        milliseconds(took),
        milliseconds(served)
    ))
}

fn endless_line(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let size = trial.times(40, 256);
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":%ID%,"result":{{"content":[{{"type":"text","text":"{}"#,
        "x".repeat(size << 20)
    );
    let entry = trial::stub(&workspace, "s", &[("raw.answer", &answer)]);
    let host =
        trial.open(&workspace, &trial::config(&workspace, &[]).entry("s", entry), &["s__raw", "fast__echo"]);
    host.call("fast__echo", "{}");
    let before = use_of(host.pid()).memory;
    let call = host.start_call("s__raw", "{}");
    host.call("fast__echo", "{}").content_text();
    let failure = host.expect_response(call);
    grown(host.pid(), before, size, failure.text())
}

fn endless_host_line(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let size = trial.times(40, 256);
    let host = trial.open(&workspace, &trial::config(&workspace, &[]), &["fast__echo"]);
    host.call("fast__echo", "{}");
    let before = use_of(host.pid()).memory;
    host.send_bytes(br#"{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"name":"fast__echo","arguments":{"a":""#);
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..size {
        host.send_bytes(&chunk);
    }
    host.send_raw(r#""}}}"#);
    let refused = host.expect("a refusal", plugbay_testkit::RawMessage::is_error);
    host.call("fast__echo", "{}").content_text();
    grown(host.pid(), before, size, refused.text())
}

fn grown(pid: u32, before: u64, size: usize, error: &str) -> Outcome {
    let grown = peak(pid).saturating_sub(before);
    let mut outcome = Outcome::default();
    outcome.check(grown <= 24 * MEBIBYTE, || {
        format!("the limit is 16 MiB, and memory grew by {}", mebibytes(grown))
    });
    let told = mentions(error, &["limit", "large", "too long", "longer than"]);
    outcome.check(told, || format!("the error is not clear: {}", &error[..error.len().min(200)]));
    outcome.figure(format!("{size} MiB in one line: {} more memory", mebibytes(grown)))
}

fn depth_bomb(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let bomb = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = format!(
        r#"{{"jsonrpc":"2.0","id":%ID%,"result":{{"content":[],"structuredContent":{{"a":{bomb}}}}}}}"#
    );
    let entry = trial::stub(&workspace, "s", &[("raw.answer", &answer)]);
    let host =
        trial.open(&workspace, &trial::config(&workspace, &[]).entry("s", entry), &["s__raw", "fast__echo"]);
    let mut outcome = Outcome::default();
    let call = host.start_call("fast__echo", &format!(r#"{{"a":{bomb}}}"#)).to_string();
    // The answer may have the id `null`, because the id may not have been read.
    let own = |id: Option<&str>| id.is_none_or(|id| id == call || id == "null");
    let from_host = host.expect("an answer", |m| m.is_response() && own(m.id()));
    outcome.check(from_host.is_error(), || "the host's bomb was accepted".to_owned());
    let from_server = host.call("s__raw", "{}");
    outcome.check(!http::is_result(from_server.text()), || "the server's bomb was accepted".to_owned());
    outcome
        .check(!from_server.text().contains("[[[[[[[["), || "the server's bomb reached the host".to_owned());
    host.call("fast__echo", "{}").content_text();
    outcome.figure("100,000 levels from both sides")
}

fn wide_message(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let host = trial.open(&workspace, &trial::config(&workspace, &[]), &["fast__echo"]);
    let members: Vec<String> = (0..200_000).map(|n| format!(r#""k{n}":{n}"#)).collect();
    let start = Instant::now();
    let answer = host.call("fast__echo", &format!("{{{}}}", members.join(",")));
    let took = start.elapsed();
    host.call("fast__echo", "{}").content_text();
    let mut outcome = Outcome::default();
    outcome.check(answer.text().contains("k199999"), || "the server did not get all members".to_owned());
    outcome.check_time(trial, took, Duration::from_secs(2), || format!("it took {took:?}"));
    outcome.figure(format!("answered after {}", milliseconds(took)))
}

/// Waits this long. No event ends it: another caller is measured during this time.
pub(crate) fn rest(milliseconds: u64) {
    let end = Instant::now() + Duration::from_millis(milliseconds);
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
}
