//! `plugbay logs` and `plugbay status --watch` beside a gateway that runs.

use std::{
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    process::{Child, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
};

use plugbay_testkit::{DEADLINE, wait_until};
use serde_json::{Value, json};

use crate::{
    gateway::Gateway,
    harness::{Harness, sample},
};

/// A command that runs until it is killed, and the lines that it prints.
struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn start(harness: &Harness, arguments: &[&str]) -> Self {
        let mut command = harness.command(arguments);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("plugbay starts");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        Self { child, lines }
    }

    /// Reads lines until one matches.
    #[track_caller]
    fn await_line(&self, fits: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self.lines.recv_timeout(DEADLINE).expect("a line that fits");
            if fits(&line) {
                return line;
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn stderr_of_a_server_is_in_its_log_while_and_after_the_gateway_runs() {
    let harness = Harness::with(&json!({ "bad": sample("broken"), "calc": sample("calc") }));
    let gateway = Gateway::start(&harness);
    let texts = |arguments: &[&str]| -> Vec<String> {
        let run = harness.run(arguments);
        let lines: Value = serde_json::from_str(&run.out).unwrap_or_default();
        let lines = lines["lines"].as_array().cloned().unwrap_or_default();
        lines.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    };
    let failed = |line: &String| line.starts_with("WARN exit code 3");
    let log = ["logs", "bad", "--json"];
    wait_until("the log of a server that failed", DEADLINE, || texts(&log).iter().any(failed).then_some(()));
    let lines = texts(&log);
    assert_eq!(lines[0], "broken: reading the settings");
    assert!(lines[1].contains("ECONNREFUSED"), "{lines:?}");
    gateway.end();
    assert_eq!(texts(&log)[..2], lines[..2]);

    let folder = harness.path().join("state/plugbay/logs/servers");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("bad.log"))), (0o700, 0o600));
    assert!(!folder.join("calc.log").exists(), "calc wrote nothing");
}

#[test]
fn followed_logs_show_lines_of_a_server_that_starts_later() {
    let harness = Harness::with(&json!({ "bad": sample("broken") }));
    let logs = Following::start(&harness, &["logs", "bad", "-f", "--json"]);
    let all = Following::start(&harness, &["logs", "-f"]);
    let _gateway = Gateway::start(&harness);
    let line = logs.await_line(|line| line.contains("ECONNREFUSED"));
    assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["server"], "bad");
    let line = all.await_line(|line| line.contains("ECONNREFUSED"));
    assert!(line.contains(" bad: broken: cannot connect"), "{line}");
}

#[test]
fn a_watched_status_shows_gateways_that_come_and_go() {
    let harness = Harness::with(&json!({ "calc": sample("calc") }));
    let status = Following::start(&harness, &["status", "-w", "--json"]);
    let gateways = |line: &str| serde_json::from_str::<Value>(line).unwrap()["gateways"].take();
    status.await_line(|line| gateways(line) == json!([]));
    let gateway = Gateway::start(&harness);
    status.await_line(|line| gateways(line)[0]["servers"][0]["state"] == "ready");
    gateway.end();
    status.await_line(|line| gateways(line) == json!([]));
}
