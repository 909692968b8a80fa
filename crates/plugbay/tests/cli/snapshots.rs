//! The output of every command, in success and failure, as text in 80 columns and as JSON.

use std::{fs, path::PathBuf};

use plugbay_testkit::{Script, scripted_server_path};
use serde_json::{Value, json};

use crate::{
    gateway::Gateway,
    harness::Harness,
    snapshot::{snapshot, snapshot_with, snapshots},
};

/// A sample, started by a name that is the same on every machine.
fn sample(name: &str) -> Value {
    json!({ "command": "plugbay", "args": ["__sample", name] })
}

fn samples() -> Value {
    json!({ "calc": sample("calc"), "clock": sample("clock"), "notes": sample("notes") })
}

/// One server that works, and four that do not.
fn troubled() -> Value {
    json!({
        "bad": sample("broken"), "calc": sample("calc"), "gone": { "command": "no-such-program" },
        "odd": { "args": [] }, "off": { "command": "x", "disabled": true },
    })
}

/// A harness whose cache has the tools of all samples.
fn cached() -> Harness {
    let harness = Harness::with(&samples());
    assert_eq!(harness.run(&["list"]).code, Some(0));
    harness
}

#[test]
fn help_and_mistakes_in_the_command_line() {
    let harness = Harness::empty();
    snapshot(&harness, "help", &["help"]);
    snapshot(&harness, "help-short", &["-h"]);
    snapshot(&harness, "help-call", &["help", "call"]);
    snapshots(&harness, "unknown-command", &["lst"]);
    snapshots(&harness, "unknown-option", &["list", "--jsn"]);
    snapshots(&harness, "completions-of-an-unknown-shell", &["completions", "tcl"]);
    snapshots(&harness, "man-to-a-folder", &["man", "pages"]);
    assert!(harness.path().join("pages/plugbay-call.1").is_file());
}

#[test]
fn the_configuration_is_missing_or_broken() {
    let harness = Harness::empty();
    snapshots(&harness, "no-configuration", &["list"]);
    harness.configure("{}");
    snapshots(&harness, "empty-configuration", &["list"]);
    harness.configure("{ \"mcpServers\": { nonsense } }\n");
    snapshots(&harness, "broken-configuration", &["list"]);
    harness.configure(&json!({ "mcpServers": troubled(), "mod": "all" }).to_string());
    snapshots(&harness, "tools-with-a-problem-in-the-configuration", &["tools", "evaluate"]);
}

#[test]
fn list() {
    let harness = Harness::with(&samples());
    snapshots(&harness, "list", &["list"]);
    snapshots(&harness, "list-of-two", &["list", "clock", "CALC"]);
    snapshots(&harness, "list-of-one", &["list", "calc"]);
    snapshots(&harness, "list-of-an-unknown-server", &["list", "clac"]);
    let harness = Harness::with(&troubled());
    snapshots(&harness, "list-with-failures", &["list"]);
    snapshots(&harness, "list-of-one-that-fails", &["list", "bad"]);
}

#[test]
fn tools() {
    let harness = cached();
    snapshots(&harness, "tools", &["tools", "--server", "calc"]);
    snapshot(&harness, "tools-by-words", &["tools", "note", "text"]);
    snapshot(&harness, "tools-as-signatures", &["tools", "--server", "clock", "--signature"]);
    snapshots(&harness, "tools-in-search-mode", &["tools", "--mode", "search"]);
    snapshot(&harness, "tools-of-a-host", &["tools", "--host", "cursor"]);
    snapshots(&harness, "tools-of-an-unknown-host", &["tools", "--host", "nobody"]);
    snapshots(&harness, "tools-that-do-not-exist", &["tools", "teleport"]);
    snapshots(&harness, "tools-of-an-unknown-server", &["tools", "--server", "clok"]);
    harness.configure(&json!({ "mcpServers": samples(), "mode": "search" }).to_string());
    snapshot(&harness, "tools-where-hosts-list-others", &["tools", "evaluate"]);
}

#[test]
fn tokens_and_hosts() {
    let harness = cached();
    snapshots(&harness, "tokens", &["tokens"]);
    snapshot(&harness, "tokens-explained", &["tokens", "--explain"]);
    snapshots(&harness, "tokens-of-an-unknown-server", &["tokens", "--server", "clok"]);
    snapshots(&harness, "hosts", &["hosts"]);
}

#[test]
fn search() {
    let harness = Harness::with(&samples());
    snapshots(&harness, "search-without-a-cache", &["search", "add"]);
    let harness = cached();
    snapshots(&harness, "search", &["search", "--limit", "2", "write", "a", "note"]);
    snapshot(&harness, "search-explained", &["search", "--limit", "1", "--explain", "weekday"]);
    snapshots(&harness, "search-in-vain", &["search", "@@@"]);
}

#[test]
fn call() {
    let harness = cached();
    snapshots(&harness, "call", &["call", "calc.evaluate", "expression=(17 + 4) * 2"]);
    snapshots(&harness, "call-repaired", &["call", "calc.evaluate", r#"{"Expression": "1+1"}"#]);
    snapshots(&harness, "call-with-a-wrong-argument", &["call", "calc.evaluate", "expresion:=[1]"]);
    snapshots(&harness, "call-that-fails", &["call", "notes.delete", "id=4"]);
    snapshots(&harness, "call-of-an-unknown-tool", &["call", "calc.evalute", "expression=1"]);
    snapshots(&harness, "call-of-an-unknown-server", &["call", "clac.evaluate"]);
    snapshots(&harness, "call-that-is-no-argument", &["call", "calc.evaluate", "word"]);
    let harness = Harness::with(&troubled());
    snapshots(&harness, "call-of-a-server-that-fails", &["call", "bad.x"]);
}

#[test]
fn call_of_a_scripted_server() {
    let harness = Harness::empty();
    let png = r#"{"content":[{"type":"text","text":"done"},{"type":"image","mimeType":"image/png","data":"UE5H"}]}"#;
    let script = Script::new().result("git_log", r#"{"content":[{"type":"text","text":"one commit"}]}"#);
    let file = harness.path().join("script.json");
    fs::write(&file, script.result("shot", png).text()).unwrap();
    let entry = json!({ "command": scripted_server_path(), "args": [format!("@{}", file.display())] });
    harness.configure(&json!({ "mcpServers": { "git": entry } }).to_string());
    snapshots(&harness, "call-by-a-name-without-the-server", &["call", "git.log"]);
    snapshots(&harness, "call-with-an-image", &["call", "git.shot"]);
    snapshots(&harness, "call-with-a-saved-image", &["call", "git.shot", "--save", "shots"]);
    let shots: Vec<PathBuf> =
        fs::read_dir(harness.path().join("shots")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(shots.len(), 2);
    assert!(shots.iter().all(|path| fs::read(path).unwrap() == b"PNG"));
}

#[test]
fn status_and_logs() {
    let harness = Harness::with(&samples());
    snapshots(&harness, "status-of-nothing", &["status"]);
    snapshots(&harness, "logs-of-nothing", &["logs"]);
    snapshots(&harness, "logs-of-an-unknown-server", &["logs", "clok"]);
    let logs = harness.path().join("state/plugbay/logs");
    fs::create_dir_all(logs.join("servers")).unwrap();
    let clock = "2026-03-01T08:30:05.120Z 7 stderr clock: \u{1b}[31mready\n2026-03-01T08:30:07.000Z 7 plugbay WARN it failed\n";
    fs::write(logs.join("servers/clock.log"), clock).unwrap();
    fs::write(logs.join("gateway.log"), "2026-03-01T08:30:06.000Z 7 plugbay INFO a host connected\n")
        .unwrap();
    snapshots(&harness, "logs", &["logs"]);
    snapshots(&harness, "logs-of-a-server", &["logs", "clock", "--lines", "1"]);
    let gateway = Gateway::start(&harness);
    gateway.await_status(|gateway| {
        let servers = gateway["servers"].as_array().expect("servers");
        servers.len() == 3 && servers.iter().all(|server| server["state"] == "ready")
    });
    snapshot_with(&harness, "status", &["status"], without_pids);
    snapshot(&harness, "status-json", &["status", "--json"]);
}

/// Replaces the column of process ids in the table of servers.
fn without_pids(text: &str) -> String {
    let line = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [name, "ready", tools, pid, ref rest @ ..] if pid.parse::<u32>().is_ok() => {
            format!("  {name}  ready  {tools}  [pid]  {}\n", rest.join(" "))
        }
        // As wide as the longest process id.
        ["SERVER", ..] => format!("  {}\n", line.split_whitespace().collect::<Vec<_>>().join("  ")),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[test]
fn approve() {
    let harness = Harness::empty();
    snapshots(&harness, "approve-without-a-file", &["approve"]);
    let servers = json!({ "mcpServers": { "calc": sample("calc") } });
    fs::write(harness.path().join("plugbay.jsonc"), servers.to_string()).unwrap();
    snapshots(&harness, "approve-without-a-terminal", &["approve"]);
    snapshots(&harness, "approve", &["approve", "--yes"]);
}

#[test]
fn claude_code() {
    let harness = cached();
    snapshots(&harness, "permissions", &["permissions"]);
    snapshots(&harness, "skill-installed", &["skill", "--install"]);
    snapshots(&harness, "plugin", &["plugin", "plug"]);
    fs::create_dir(harness.path().join("full")).unwrap();
    fs::write(harness.path().join("full/file"), "").unwrap();
    snapshots(&harness, "plugin-in-a-full-folder", &["plugin", "full"]);
}

#[test]
fn demo() {
    snapshot_with(&Harness::empty(), "demo", &["demo"], |text| {
        // The width of columns depends on the times, and servers start in any order.
        let squeezed = text.lines().map(|line| {
            let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{}{words}", if line.starts_with(' ') { "  " } else { "" })
        });
        let lines: Vec<String> = squeezed.collect();
        let is_event = |line: &str| {
            let state = ["warming", "ready", "error"].iter().any(|state| line.ends_with(state));
            line.starts_with("  [time]") && state
        };
        let mut sorted = Vec::new();
        for group in lines.chunk_by(|one, other| is_event(one) == is_event(other)) {
            let mut group = group.to_vec();
            if is_event(&group[0]) {
                group.sort();
            }
            sorted.extend(group);
        }
        sorted.join("\n") + "\n"
    });
}
