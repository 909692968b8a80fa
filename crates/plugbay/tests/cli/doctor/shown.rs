//! The text for people, and the exit code.

use serde_json::json;

use super::clinic::{Clinic, shell};
use crate::harness::sample;

#[test]
fn nothing_wrong_is_three_lines() {
    let clinic = Clinic::new(&json!({ "calc": sample("calc"), "clock": sample("clock") }));
    let run = clinic.run(&[]);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!((run.code, lines.len()), (Some(0), 3), "{}", run.out);
    assert_eq!((lines[0], lines[2]), ("All 2 servers work: 13 tools.", "Nothing is wrong."));
    assert!(lines[1].starts_with("jq filters run confined: limits"), "{}", lines[1]);
    assert_eq!(run.err.lines().count(), 2, "one line per server as it starts: {}", run.err);
}

#[test]
fn one_server_is_answered_alone() {
    let clinic = Clinic::new(&json!({ "calc": sample("calc"), "github": shell("echo boom >&2; exit 1") }));
    let run = clinic.run(&["github"]);
    let expected = "\
server github
  error    Exit code 1 before it answered. [server-failed]
  seen     boom
  try      run its command by hand to see more

1 error.
";
    assert_eq!((run.code, run.out.as_str()), (Some(1), expected));
    let healthy = clinic.run(&["calc"]);
    assert_eq!(healthy.code, Some(0));
    assert!(healthy.out.starts_with("calc works: 6 tools, started in "), "{}", healthy.out);
}

#[test]
fn a_server_that_is_not_configured_is_a_mistake_of_the_command_line() {
    let run = Clinic::of(&sample("calc")).run(&["github"]);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""));
    assert!(run.err.contains("there is no server \"github\"") && run.err.contains("it"), "{}", run.err);
}

#[test]
fn an_unknown_server_is_a_mistake_whatever_else_is_wrong_or_named() {
    let unset = json!({ "command": "sh", "env": { "KEY": "${NO_SUCH_KEY}" } });
    let clinic = Clinic::new(&json!({ "calc": sample("calc"), "unset": unset }));
    for names in [&["nope"][..], &["nope", "calc"], &["calc", "nope"]] {
        let run = clinic.run(names);
        assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{names:?}");
        assert!(run.err.contains("there is no server \"nope\""), "{}", run.err);
        assert!(run.err.contains("configured: calc, unset"), "{}", run.err);
    }
    let run = clinic.run(&["clac"]);
    assert!(run.err.contains("did you mean calc?"), "{}", run.err);
}

#[test]
fn a_server_in_a_broken_file_is_answered_with_the_file() {
    let clinic = Clinic::of(&sample("calc"));
    clinic.harness.configure("{ \"mcpServers\": { \"github\": ");
    let run = clinic.run(&["github"]);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("[broken-file]"), "{}", run.out);
}

#[test]
fn no_line_is_wider_than_80_columns() {
    let script = format!("echo '{}' >&2; exit 1", "a long story ".repeat(20));
    let clinic = Clinic::new(&json!({ "a": shell(&script), "b": { "command": "npx -y some-server" } }));
    for line in clinic.run(&[]).out.lines() {
        let is_path = line.trim().starts_with('/');
        assert!(is_path || line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn nothing_is_changed_without_consent() {
    let clinic = Clinic::of(&json!({ "command": "npx -y some-server" })).program("npx", "exit 0");
    let before = clinic.text();
    let run = clinic.run(&["--fix"]);
    assert_eq!(run.code, Some(1));
    assert!(run.out.contains("plugbay would\n  - set mcpServers.it.command to \"npx\""), "{}", run.out);
    assert!(run.err.contains("nothing was changed") && run.err.contains("--yes"), "{}", run.err);
    assert_eq!(clinic.text(), before);
}

#[test]
fn a_fix_says_what_was_done_and_what_remains() {
    let mut misplaced = sample("calc");
    misplaced["deny"] = json!(["evaluate"]);
    let clinic = Clinic::new(&json!({ "calc": misplaced, "sick": shell("echo boom >&2; exit 1") }));
    let run = clinic.run(&["--fix", "--yes"]);
    let file = clinic.harness.user_file();
    let done = format!("moved mcpServers.calc.deny to mcpServers.calc.plugbay.deny in {}", file.display());
    let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with(&format!("plugbay has - {done}")), "{}", run.out);
    assert!(run.out.contains("plugbay setup --show"), "{}", run.out);
    assert!(!run.out.contains("would") && !run.out.contains("misplaced-key"), "{}", run.out);
    assert_eq!(run.out.matches("[server-failed]").count(), 1, "{}", run.out);
}

#[test]
fn json_has_the_findings_the_servers_and_a_summary() {
    let clinic = Clinic::new(&json!({ "calc": sample("calc"), "line": { "command": "npx -y x" } }));
    let report = clinic.run(&["--json"]).json();
    assert_eq!(report["summary"], json!({ "errors": 1, "warnings": 0, "notes": 0, "fixable": 1 }));
    assert_eq!(report["findings"][0]["code"], "command-line");
    assert_eq!(report["findings"][0]["severity"], "error");
    assert_eq!(report["servers"][0]["name"], "calc");
    assert_eq!(report["servers"][0]["works"], true);
    assert_eq!(report["servers"][1]["works"], false);
}

#[test]
fn yes_needs_fix() {
    assert_eq!(Clinic::of(&sample("calc")).run(&["--yes"]).code, Some(2));
}
