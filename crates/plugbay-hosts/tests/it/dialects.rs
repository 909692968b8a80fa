//! A pair of entries in the dialect of every host, and malformed files.

use std::{collections::BTreeMap, path::Path};

use plugbay_hosts::{
    Entry, Launch, Remote, RemoteKind,
    edit::{EditError, OwnEntry, unwire, wire},
    jsonc,
    known::{self, Format, Host},
    read::{self, ProblemKind, Reading},
};
use serde_json::json;

const URL: &str = "https://example.org/mcp";

fn process() -> OwnEntry {
    OwnEntry {
        name: "notes".into(),
        command: "uvx".into(),
        args: vec!["notes-server".into(), "--all".into()],
        env: [("KEY".to_owned(), "${NOTES_KEY}".to_owned())].into(),
    }
}

/// A file of the host with a process and a server behind a URL.
fn file(host: &Host) -> String {
    // For a process, the dialect is the one in which plugbay writes its own entry.
    let text = wire(host, "", &process(), &[]).unwrap();
    let (kind, url) = match host.id.as_str() {
        "windsurf" | "antigravity" => ("http", "serverUrl"),
        "opencode" | "kilo" | "fx" => ("remote", "url"),
        "cline" | "cline-vscode" => ("streamableHttp", "url"),
        "goose" => ("streamable_http", "uri"),
        _ => ("http", "url"),
    };
    match host.format {
        Format::Json => {
            let value = json!({ "type": kind, url: URL, "headers": { "X-Key": "${SITE_KEY}" } });
            jsonc::set(&text, &[&host.container, "site"], jsonc::input(&value)).unwrap()
        }
        Format::Toml => {
            format!(
                "{text}\n[{0}.site]\nurl = \"{URL}\"\n[{0}.site.http_headers]\nX-Key = '${{SITE_KEY}}'\n",
                host.container
            )
        }
        Format::Yaml => {
            format!(
                "{text}  site:\n    name: site\n    type: {kind}\n    {url}: {URL}\n    headers:\n      X-Key: ${{SITE_KEY}}\n"
            )
        }
    }
}

fn assert_pair(reading: &Reading, host: &Host) {
    assert_eq!(reading.problems, [], "{}", host.id);
    let [notes, site] = reading.found.as_slice() else { panic!("{}: {reading:?}", host.id) };
    let OwnEntry { name, command, args, env } = process();
    assert_eq!(notes.entry.name, name, "{}", host.id);
    assert_eq!(notes.entry.launch, Launch::Process { command, args, env, cwd: None }, "{}", host.id);
    assert_eq!(notes.key, [host.container.as_str(), "notes"], "{}", host.id);
    let Launch::Remote(Remote { url, headers, .. }) = &site.entry.launch else {
        panic!("{}: {site:?}", host.id)
    };
    assert_eq!((site.entry.name.as_str(), url.as_str()), ("site", URL), "{}", host.id);
    assert_eq!(*headers, BTreeMap::from([("X-Key".to_owned(), "${SITE_KEY}".to_owned())]), "{}", host.id);
    for found in &reading.found {
        let Entry { disabled, include, exclude, start_seconds, call_milliseconds, .. } = &found.entry;
        assert!(!disabled && include.is_empty() && exclude.is_empty(), "{}: {found:?}", host.id);
        assert_eq!((*start_seconds, *call_milliseconds), (None, None), "{}: {found:?}", host.id);
    }
}

#[test]
fn the_file_of_every_host_gives_the_same_two_servers() {
    assert!(known::all().len() >= 23);
    for host in known::all() {
        let text = file(host);
        assert_pair(&read::read(host, &text).unwrap(), host);
        let name = match host.format {
            Format::Json => "some.json",
            Format::Toml => "some.toml",
            Format::Yaml => "some.yaml",
        };
        assert_pair(&read::read_any(Path::new(name), &text).unwrap(), host);
        assert_pair(&read::read_any(Path::new("no-extension"), &text).unwrap(), host);
    }
}

#[test]
fn the_file_of_every_host_is_the_same_after_wire_and_unwire() {
    let own = OwnEntry {
        name: "plugbay".into(),
        command: "/opt/plugbay".into(),
        args: vec!["serve".into()],
        env: [].into(),
    };
    for host in known::all() {
        for text in [file(host), file(host).replace('\n', "\r\n"), String::new()] {
            let all = read::read(host, &text).unwrap().found;
            for moved in [&[][..], &all[..all.len().min(1)], &all[..]] {
                let wired = wire(host, &text, &own, moved).unwrap();
                let left = read::read(host, &wired).unwrap().found;
                assert_eq!(left.len(), all.len() + 1 - moved.len(), "{}:\n{wired}", host.id);
                assert!(left.iter().any(|found| found.entry.name == "plugbay"), "{}:\n{wired}", host.id);
                assert_eq!(unwire(host, &wired, "plugbay", Some(&text)).unwrap(), text, "{}", host.id);
            }
            let wired = wire(host, &text, &own, &[]).unwrap();
            assert_eq!(unwire(host, &wired, "plugbay", None).unwrap(), text, "{}", host.id);
            assert_eq!(wire(host, &wired, &own, &[]).unwrap(), wired, "{}: wired twice", host.id);
        }
    }
}

#[test]
fn an_entry_that_plugbay_had_before_comes_back_with_the_original() {
    let own = |command: &str| OwnEntry {
        name: "plugbay".into(),
        command: command.into(),
        args: vec![],
        env: [].into(),
    };
    for host in known::all() {
        let original = wire(host, &file(host), &own("/old/plugbay"), &[]).unwrap();
        let wired = wire(host, &original, &own("/new/plugbay"), &[]).unwrap();
        assert!(wired.contains("/new/") && !wired.contains("/old/"), "{}:\n{wired}", host.id);
        assert_eq!(unwire(host, &wired, "plugbay", Some(&original)).unwrap(), original, "{}", host.id);
        let edited = format!("{wired}\n");
        let back = unwire(host, &edited, "plugbay", Some(&original)).unwrap();
        assert!(back.contains("/old/") && !back.contains("/new/"), "{}:\n{back}", host.id);
    }
}

#[test]
fn entries_of_claude_codes_projects_are_found_and_moved() {
    let host = known::by_id("claude-code").unwrap();
    let text = r#"{ "projects": { "/home/me/a": { "mcpServers": { "x": { "command": "a" } }, "history": [] }, "/home/me/b": {} },
  "mcpServers": { "x": { "type": "sse", "url": "https://b" } } }"#;
    let found = read::read(host, text).unwrap().found;
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].project, None);
    assert_eq!(found[1].project.as_deref(), Some("/home/me/a"));
    assert_eq!(found[1].key, ["projects", "/home/me/a", "mcpServers", "x"]);
    let wired = wire(host, text, &process(), &found).unwrap();
    assert!(wired.contains(r#""/home/me/a": { "mcpServers": {}, "history": [] }"#), "{wired}");
    assert_eq!(unwire(host, &wired, "notes", Some(text)).unwrap(), text);
    let later = wired.replace("\"history\": []", "\"history\": [1]");
    let back = unwire(host, &later, "notes", Some(text)).unwrap();
    assert_eq!(read::read(host, &back).unwrap().found, found, "{back}");
    assert!(back.contains("\"history\": [1]") && !back.contains("uvx"), "{back}");
}

#[test]
fn one_broken_entry_does_not_hide_the_others() {
    let host = known::by_id("cursor").unwrap();
    let text = r#"{ "mcpServers": {
        "number": 7, "null": null, "nothing": {}, "both": { "command": "a", "url": "https://b" },
        "empty": { "command": "" }, "args": { "command": "a", "args": "b" }, "env": { "command": "a", "env": ["K=v"] },
        "nested": { "command": "a", "args": [["b"]] }, "twice": { "command": "first" }, "twice": { "command": "last" },
        "port": { "command": "a", "args": ["-p", 8080, true] }
    } }"#;
    let reading = read::read(host, text).unwrap();
    let names: Vec<_> = reading.found.iter().map(|found| found.entry.name.as_str()).collect();
    assert_eq!(names, ["twice", "port"]);
    let Launch::Process { command, .. } = &reading.found[0].entry.launch else { panic!() };
    assert_eq!(command, "last");
    let Launch::Process { args, .. } = &reading.found[1].entry.launch else { panic!() };
    assert_eq!(args, &["-p", "8080", "true"]);
    assert_eq!(reading.problems.len(), 9);
    assert!(reading.problems.iter().all(|problem| problem.kind == ProblemKind::Broken));
    let both = reading.problems.iter().find(|problem| problem.name == "both").unwrap();
    assert_eq!(both.reason, "has both `command` and `url`; keep one of them");
    let twice = wire(host, text, &process(), &reading.found);
    assert_eq!(twice, Err(EditError::Duplicate("twice".into())));
}

#[test]
fn entries_that_only_the_host_can_run_are_no_mistakes() {
    let goose = known::by_id("goose").unwrap();
    let text =
        "extensions:\n  developer:\n    type: builtin\n    name: developer\n  todo:\n    type: platform\n";
    let zed = known::by_id("zed").unwrap();
    let extension = r#"{ "context_servers": { "x": { "source": "extension", "settings": {} } } }"#;
    for (host, text, count) in [(goose, text, 2), (zed, extension, 1)] {
        let reading = read::read(host, text).unwrap();
        assert_eq!((reading.found.len(), reading.problems.len()), (0, count));
        assert!(reading.problems.iter().all(|problem| problem.kind == ProblemKind::HostOwn));
    }
}

#[test]
fn a_file_of_the_wrong_shape_is_an_error_and_never_a_panic() {
    let deep_json = format!("{}{}", "{\"a\":".repeat(20_000), "}".repeat(20_000));
    let deep_toml = format!("a = {}{}", "[".repeat(20_000), "]".repeat(20_000));
    let deep_yaml = format!("a: {}{}", "[".repeat(20_000), "]".repeat(20_000));
    let texts = [
        "{",
        "[]",
        "7",
        "\"x\"",
        "null",
        "\u{0}",
        "{\"mcpServers\":[]}",
        "mcp_servers = 7",
        "mcp_servers = [1]",
        "extensions: [1]",
        "extensions: 7",
        "- a",
        "a: *b",
        "--- a\n--- b\n",
        "[mcp_servers]\n[mcp_servers]",
        "? {a: 1}\n: 2",
        "\t\tx",
        &deep_json,
        &deep_toml,
        &deep_yaml,
    ];
    for host in known::all() {
        for text in texts {
            let read = read::read(host, text);
            let edited = wire(host, text, &process(), &[]);
            if let Ok(edited) = &edited {
                assert!(read.is_ok(), "{}: {text:.40}", host.id);
                let undone = unwire(host, edited, "notes", Some(text)).unwrap();
                assert_eq!(undone, *text, "{}", host.id);
            }
            let _ = unwire(host, text, "notes", Some(text));
            let _ = read::read_any(Path::new("x"), text);
        }
    }
}

#[test]
fn a_large_file_is_read_and_edited() {
    let host = known::by_id("claude-code").unwrap();
    let entries: Vec<String> = (0..3000).map(|n| format!("\"s{n}\": {{ \"command\": \"c{n}\" }}")).collect();
    let text = format!(
        "{{ \"mcpServers\": {{ {} }}, \"history\": \"{}\" }}",
        entries.join(", "),
        "x".repeat(2_000_000)
    );
    let reading = read::read(host, &text).unwrap();
    assert_eq!(reading.found.len(), 3000);
    let wired = wire(host, &text, &process(), &reading.found[..5]).unwrap();
    assert_eq!(unwire(host, &wired, "notes", Some(&text)).unwrap(), text);
}

#[test]
fn a_file_without_a_known_host_is_read_by_its_shape() {
    let read = |name: &str, text: &str| read::read_any(Path::new(name), text).map(|reading| reading.found);
    let one = read("/x/notes.json", r#"{ "command": "uvx", "args": ["notes"] }"#).unwrap();
    assert_eq!(one[0].entry.name, "notes");
    let bare = read("x.json", r#"{ "a": { "command": "x" }, "b": { "url": "https://b" } }"#).unwrap();
    assert_eq!(bare.len(), 2);
    assert!(matches!(&bare[1].entry.launch, Launch::Remote(remote) if remote.kind == RemoteKind::Unsaid));
    for text in ["{}", "{ \"name\": \"package\", \"version\": \"1\" }", "[]"] {
        assert_eq!(read("package.json", text), Err(read::ReadError::NoServers), "{text}");
    }
}
