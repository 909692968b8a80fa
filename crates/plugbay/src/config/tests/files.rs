//! The effective files, and malformed files.

use std::{fs, time::Duration};

use super::{Place, check};
use crate::config::{Mode, Settings};

#[test]
fn an_entry_may_name_the_folder_of_the_project() {
    let place = Place::new();
    let entry = r#"{ "command": "x", "args": ["${workspaceFolder}"], "cwd": "${workspaceFolder}/sub" }"#;
    place.write("project/c", format!(r#"{{ "mcpServers": {{ "a": {entry} }} }}"#));
    let project = place.path("project").display().to_string();
    let summary = place.summary(&place.load(Some("c"))).replace(&project, "project");
    assert_eq!(summary, "a: x project in project/sub");
}

#[test]
fn hostile_files_are_survived() {
    let object = "expected an object, found a list; write an object here, or remove the key";
    let syntax = "the file is JSON, with comments and trailing commas allowed";
    check("", "error 1:1: the file is empty; a start: { \"mcpServers\": {} }");
    check("// nothing\n", "error 1:1: the file is empty; a start: { \"mcpServers\": {} }");
    check("[]", &format!("error 1:1: {object}"));
    check("\u{FEFF}{\"mode\": \"all\",}", "");
    check(b"{ \"mode\": \"\xFF\" }", "error 1:12: this is not UTF-8 text; save the file as UTF-8");
    check(b"\xFF\xFE{\0}\0", "error 1:1: this is not UTF-8 text; save the file as UTF-8");
    check(
        "{\r\n\"a\": 1,\r\n \"b\" 2\r\n}",
        &format!("error 3:6: expected colon after the string or word in object property; {syntax}"),
    );
    check("{\"a\": 1 \"b\": 2}", &format!("error 1:8: expected comma; {syntax}"));
    check("{\"mode\": 'all'}", &format!("error 1:10: single-quoted strings are not allowed; {syntax}"));
    check("{} {}", &format!("error 1:4: text cannot contain more than one JSON value; {syntax}"));
    check("{\0}", &format!("error 1:2: unexpected token; {syntax}"));
    check("\0".repeat(1000), &format!("error 1:1: unexpected token; {syntax}"));
    let deep = "nested too deeply; no more than 64 brackets may be open at a time";
    check("[".repeat(10_000), &format!("error 1:65: {deep}"));
    check("{\"a\":".repeat(10_000), &format!("error 1:321: {deep}"));
    check(
        " ".repeat(20_000_000),
        "error: larger than 1 MiB; check the path: a configuration file is smaller",
    );
    check(
        r#"{"mode": "all", "mode": "auto", "mcpServers": {"s": {"command": "a"}, "s": {"command": "b"}}}"#,
        "s: b
warning 1:17: `mode` is given twice; only the last one counts; remove the other
warning 1:71: `s` is given twice; only the last one counts; remove the other",
    );
}

#[test]
fn configuration_problems_are_limited_but_no_server_failure_is_lost() {
    let place = Place::new();
    let entries: Vec<String> = (0..2_000).map(|n| format!(r#""s{n}": {{"x": 1}}"#)).collect();
    place.write("project/c", format!(r#"{{"mcpServers": {{{}}}}}"#, entries.join(",")));
    let settings = place.load(Some("c"));
    assert_eq!(settings.servers.len(), 2_000);
    assert!(settings.servers.iter().all(|server| server.spec.is_err()));
    assert!(settings.diagnostics.len() <= 200);
}

#[test]
fn files_that_cannot_be_read_are_reported() {
    let place = Place::new();
    place.write("project/folder/x", "");
    let summary = place.summary(&place.load(Some("nowhere")));
    assert!(
        summary.starts_with("error: there is no such file; correct the path after `--config`"),
        "{summary}"
    );
    let pipe = std::process::Command::new("mkfifo").arg(place.path("project/pipe")).status();
    assert!(pipe.unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", place.path("project/device")).unwrap();
    for name in ["folder", "pipe", "device"] {
        let summary = place.summary(&place.load(Some(name)));
        assert!(summary.starts_with("error: cannot be read: this is not a regular file"), "{summary}");
    }
}

#[test]
fn an_approved_project_file_is_laid_over_the_users_file() {
    let place = Place::new();
    place.write(
        "home/config.jsonc",
        r#"{
            "mode": "all", "listWait": "1s", "limits": { "nameLength": 60 }, "defaults": { "deny": ["delete_*"] },
            "mcpServers": {
                "a": { "command": "user-a" }, "b": { "command": "user-b", "cwd": "sub", "plugbay": { "deny": ["wipe"] } }, "Case": { "command": "user" },
                "off": { "command": "user-off" }
            }
        }"#,
    );
    let users = "Case: user\na: user-a\nb: user-b in home/sub\noff: user-off";
    assert_eq!(place.summary(&place.load(None)), users);

    let project = r#"{
        "listWait": 2, "limits": { "message": 2048 }, "defaults": { "deny": ["drop"] },
        "servers": { "b": { "command": "project-b" }, "c": { "command": "project-c", "cwd": "sub" },
                     "case": { "command": "project" }, "off": { "disabled": true } }
    }"#;
    place.write("project/plugbay.jsonc", project);
    let help = "read it, and if you trust it, run `plugbay approve`";
    let unapproved = "this project file is not approved; plugbay uses only its restrictions";
    let restricted = place.load(None);
    assert_eq!(place.summary(&restricted), format!("{users}\nwarning: {unapproved}; {help}"));
    let user = restricted.servers.iter().find(|server| server.name.as_str() == "a").unwrap();
    assert!(!user.exposure.policy.may("drop") && !user.exposure.policy.may("delete_all"));

    place.approve("plugbay.jsonc");
    let settings = place.load(None);
    let both = "a: user-a\nb: project-b in project\nc: project-c in project/sub\ncase: project in project\noff disabled";
    assert_eq!(place.summary(&settings), both);
    let replaced = settings.servers.iter().find(|server| server.name.as_str() == "b").unwrap();
    assert!(!replaced.exposure.policy.may("wipe"), "nor by another server of the name");
    let may = |tool| settings.servers[0].exposure.policy.may(tool);
    assert_eq!(
        ["delete_all", "drop", "get"].map(may),
        [false, false, true],
        "a project cannot allow what its user denies"
    );
    assert_eq!((settings.mode, settings.list_wait), (Some(Mode::All), Duration::from_secs(2)));
    assert_eq!((settings.limits.message, settings.limits.name_length), (2048, 60));

    place.write("project/plugbay.jsonc", "{}");
    let changed = "this project file has changed since it was approved; plugbay ignores it";
    assert_eq!(place.summary(&place.load(None)), format!("{users}\nwarning: {changed}; {help}"));
    assert_eq!(place.summary(&place.load(Some("plugbay.jsonc"))), "", "an explicit file is trusted");
}

#[test]
fn a_broken_configuration_file_does_not_affect_the_other() {
    let place = Place::new();
    place.write("home/config.jsonc", "{");
    place.write("project/.plugbay.jsonc", r#"{"mcpServers": {"a": {"command": "a"}}}"#);
    place.approve(".plugbay.jsonc");
    let syntax = "the file is JSON, with comments and trailing commas allowed";
    assert_eq!(
        place.summary(&place.load(None)),
        format!("a: a in project\nerror 1:1: unterminated object; {syntax}")
    );
}

#[test]
fn every_file_that_could_change_the_configuration_is_watched() {
    let place = Place::new();
    let sources = |settings: Settings| -> Vec<String> {
        settings.sources.iter().map(|path| place.plain(&path.display().to_string())).collect()
    };
    let absent = [
        "home/config.jsonc",
        "project/.plugbay.jsonc",
        "project/plugbay.jsonc",
        "project/switchboard.config.json",
        "project/servers-config.json",
    ];
    assert_eq!(sources(place.load(None)), absent);
    place.write("project/.plugbay.jsonc", "{}");
    let present = ["home/config.jsonc", "project/.plugbay.jsonc", "state/approved.json"];
    assert_eq!(sources(place.load(None)), present);
    assert_eq!(sources(place.load(Some("c"))), ["project/c"]);
}

#[test]
fn settings_are_current_until_a_file_changes_comes_or_goes() {
    let place = Place::new();
    let is_current = |settings: &Settings| settings.is_current(&place.paths());
    let nothing = place.load(None);
    assert!(is_current(&nothing));
    place.write("home/config.jsonc", "{}");
    assert!(!is_current(&nothing), "a file has come");
    place.write("project/plugbay.jsonc", "{}");
    place.approve("plugbay.jsonc");
    let both = place.load(None);
    assert!(is_current(&both));
    place.write("project/plugbay.jsonc", "{ }");
    assert!(!is_current(&both), "a file has changed");
    place.write("project/plugbay.jsonc", "{}");
    assert!(is_current(&both));
    fs::remove_file(place.path("home/config.jsonc")).unwrap();
    assert!(!is_current(&both), "a file has gone");
}
