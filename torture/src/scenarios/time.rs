//! Time: a machine that slept, changing configurations, servers that end slowly or reconnect at once.

use std::time::{Duration, Instant};

use plugbay_testkit::{DEADLINE, Endpoint, Play, Script, Workspace, wait_until};
use serde_json::json;

use super::streams::rest;
use crate::{
    measure::milliseconds,
    scenario::{Outcome, Scenario},
    trial::{self, Trial, mentions},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "slept",
        rule: "The gateway stands still for 12 s, past a deadline, as on a laptop that sleeps: a call whose server answers right after is answered",
        run: slept,
    },
    Scenario {
        name: "emptied-config",
        rule: "An emptied or broken configuration file is an error that keeps what runs",
        run: emptied_config,
    },
    Scenario {
        name: "slow-end",
        rule: "A server that does not end holds up two changes of the configuration by at most 2 s",
        run: slow_end,
    },
    Scenario {
        name: "retry-storm",
        rule: "A server that says `retry: 0` and ends its stream: at most 20 connections in 3 s",
        run: retry_storm,
    },
    Scenario {
        name: "crash-storm",
        rule: "A server that exits at once: at most 10 starts in 5 s, other servers are served",
        run: crash_storm,
    },
];

fn slept(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("slow", r#"{"delay_ms":1500}"#);
    let config = trial::config(&workspace, &[("s", script)]).options("s", json!({ "timeout": "3s" }));
    let host = trial.open(&workspace, &config, &["s__slow"]);
    let mut outcome = Outcome::default();
    for both in [false, true] {
        let call = host.start_call("s__slow", "{}");
        workspace.await_log("s", r#""name":"slow""#, 1 + usize::from(both));
        let (gateway, server) = (host.process(), workspace.server_process("s"));
        gateway.stop();
        if both {
            server.stop();
        }
        rest(12_000);
        gateway.resume();
        server.resume();
        let answer = host.expect_response(call);
        let answered = !answer.is_error() && answer.result_value()["isError"] != true;
        let who = if both { "gateway and server" } else { "gateway" };
        outcome.check(answered, || format!("{who} stood still: {}", answer.text()));
    }
    outcome.figure("12 s of standstill, a deadline of 3 s")
}

fn emptied_config(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let config = trial::config(&workspace, &[("s", Script::friendly())]);
    let host = trial.open(&workspace, &config, &["s__echo", "fast__echo"]);
    let (mut outcome, file) = (Outcome::default(), workspace.config_path());
    for (text, words) in [
        ("", ["empty", "empty"]),
        ("  \n", ["empty", "empty"]),
        ("{ \"mcpServers\": {", ["unterminated", "expected"]),
        ("null", ["object", "expected"]),
    ] {
        let told = host.stderr().len();
        std::fs::write(&file, text).expect("a configuration");
        // When the log reports the change, the servers must still be there.
        wait_until(&format!("an error of {text:?}"), DEADLINE, || {
            mentions(&host.stderr()[told..], &words).then_some(())
        });
        let names = host.tool_names();
        outcome.check(names.iter().any(|name| name == "s__echo"), || {
            format!("{text:?}: the tools are {names:?}")
        });
        let answer = host.call("s__echo", "{}");
        outcome.check(!answer.is_error(), || format!("{text:?}: {}", answer.text()));
    }
    outcome.figure("4 broken files")
}

fn slow_end(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let stubborn = Script::friendly().set("ignore_eof", true).set("ignore_term", true);
    let host =
        trial.open(&workspace, &trial::config(&workspace, &[("s", stubborn)]), &["s__echo", "fast__echo"]);
    host.call("s__echo", "{}").content_text();
    let start = Instant::now();
    // The second change comes while the server that the first one removed is still ending.
    let (t, u) = (("t", Script::friendly()), ("u", Script::friendly()));
    workspace.write_config(&trial::config(&workspace, std::slice::from_ref(&t)));
    host.await_tools(&["t__echo"]);
    workspace.write_config(&trial::config(&workspace, &[t, u]));
    host.await_tools(&["u__echo"]);
    host.call("u__echo", "{}").content_text();
    let (took, mut outcome) = (start.elapsed(), Outcome::default());
    outcome.check_time(trial, took, Duration::from_secs(2), || format!("the changes took {took:?}"));
    outcome.figure(format!("both changes counted after {}", milliseconds(took)))
}

fn retry_storm(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let endpoint = Endpoint::answering(|asked| {
        let id = &asked.body["id"];
        let typed = |body: serde_json::Value| Play::Answer {
            status: 200,
            headers: vec![("content-type", "application/json"), ("mcp-session-id", "1")],
            body: json!({ "jsonrpc": "2.0", "id": id, "result": body }).to_string(),
        };
        match asked.body["method"].as_str() {
            Some("initialize") => typed(
                json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": { "listChanged": true } }, "serverInfo": { "name": "s", "version": "0" } }),
            ),
            Some("tools/list") => {
                typed(json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] }))
            }
            Some(method) if method.starts_with("notifications/") => {
                Play::Answer { status: 202, headers: Vec::new(), body: String::new() }
            }
            Some(_) => typed(json!({ "content": [] })),
            None => Play::Stream(vec!["retry: 0\nid: 1\ndata: \n\n".to_owned()]),
        }
    });
    let entry = json!({ "url": format!("{}/mcp", endpoint.url()) });
    let host = trial.open(&workspace, &trial::config(&workspace, &[]).entry("s", entry), &["s__t"]);
    host.call("s__t", "{}");
    endpoint.untaken();
    let begun = Instant::now();
    rest(3000);
    let tenths = begun.elapsed().as_millis() / 100;
    let streams = endpoint.untaken().iter().filter(|asked| asked.body["method"].is_null()).count();
    let mut outcome = Outcome::default();
    outcome.check(streams >= 1, || "it never connected again".to_owned());
    outcome.check(3 * streams as u128 <= 2 * tenths + 3, || {
        format!("{streams} connections in {tenths} tenths of a second")
    });
    outcome.figure(format!("{streams} connections in 3 s"))
}

fn crash_storm(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let crashing = Script::friendly().set("exit", r#"{"code":1}"#);
    let host = trial.open(&workspace, &trial::config(&workspace, &[("s", crashing)]), &["fast__echo"]);
    let end = Instant::now() + Duration::from_secs(5);
    while Instant::now() < end {
        host.call("s__echo", "{}");
        host.call("fast__echo", "{}").content_text();
        rest(50);
    }
    let (starts, mut outcome) = (workspace.starts("s").len(), Outcome::default());
    outcome.check((2..=10).contains(&starts), || format!("{starts} starts"));
    outcome.figure(format!("{starts} starts in 5 s"))
}
