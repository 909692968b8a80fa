//! A broken configuration, and a server that does not work: the texts for the host's model and its user.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    thread,
};

use plugbay_testkit::{DEADLINE, Host, Script, Workspace, wait_until};
use serde_json::{Value, json};

use crate::{LIST_CHANGED, gateway};

/// Used in every broken file where secrets stand.
const CANARY: &str = "canary-in-the-environment";

/// One way to break a configuration, the text that is shown about it, and the way to fix it.
struct Breakage {
    /// Whether plugbay is started with `--config`.
    explicit: bool,
    /// The text of the file, if there is one.
    broken: fn(&Workspace) -> Option<String>,
    /// The problem, its place, and the remedy.
    told: [&'static str; 3],
    mend: fn(&Workspace),
}

const BREAKAGES: &[(&str, Breakage)] = &[
    (
        "no configuration at all",
        Breakage {
            explicit: false,
            broken: |_| None,
            told: ["there is no configuration file", "config/plugbay/config.jsonc", "`plugbay setup`"],
            mend: |workspace| {
                write(workspace, &workspace.path().join("config/plugbay/config.jsonc"), &good(workspace));
            },
        },
    ),
    (
        "broken JSON",
        Breakage {
            explicit: true,
            broken: |workspace| Some(good(workspace).replacen("\"args\":", "\"args\"", 1)),
            told: ["expected", "config.json:", "the file is JSON"],
            mend: put_good,
        },
    ),
    (
        "a wrong path after --config",
        Breakage {
            explicit: true,
            broken: |_| None,
            told: ["there is no such file", "config.json", "correct the path after `--config`"],
            mend: put_good,
        },
    ),
    (
        "a misspelt mcpServers",
        Breakage {
            explicit: true,
            broken: |workspace| Some(good(workspace).replacen("mcpServers", "mcpServer", 1)),
            told: ["unknown key `mcpServer`", "config.json:", "did you mean `mcpServers`?"],
            mend: put_good,
        },
    ),
    (
        "an unapproved project file",
        Breakage {
            explicit: false,
            broken: |workspace| {
                write(workspace, &workspace.path().join(".plugbay.jsonc"), &good(workspace));
                None
            },
            told: ["this project file is not approved", ".plugbay.jsonc", "run `plugbay approve`"],
            mend: |workspace| {
                let run = plugbay(workspace, &["approve", "--yes"]);
                assert!(run.status.success(), "{run:?}");
            },
        },
    ),
    (
        "every server disabled",
        Breakage {
            explicit: true,
            broken: |workspace| {
                Some(good(workspace).replacen("\"command\"", "\"disabled\": true, \"command\"", 1))
            },
            told: ["every server is disabled: s", "config.json", "`plugbay enable NAME`"],
            mend: put_good,
        },
    ),
    (
        "a file without servers",
        Breakage {
            explicit: true,
            broken: |_| Some("{}".to_owned()),
            told: ["the configuration names no server", "config.json", "`plugbay add`"],
            mend: put_good,
        },
    ),
    (
        "text that is not UTF-8",
        Breakage {
            explicit: true,
            broken: |workspace| {
                fs::write(workspace.config_path(), b"{ \"mode\": \"\xff\" }").unwrap();
                None
            },
            told: ["this is not UTF-8 text", "config.json:1:12", "save the file as UTF-8"],
            mend: put_good,
        },
    ),
    (
        "an unset variable in the only entry",
        Breakage {
            explicit: true,
            broken: |workspace| Some(good(workspace).replacen(CANARY, "${NOBODY_SET_THIS}", 1)),
            told: [
                "the variable `NOBODY_SET_THIS` is not set",
                "config.json:",
                "set it where plugbay is started",
            ],
            mend: put_good,
        },
    ),
];

/// A configuration that works, with a value that must not be shown.
fn good(workspace: &Workspace) -> String {
    let config = workspace.config(&[("s", Script::friendly())]);
    let mut entry = config.value()["mcpServers"]["s"].clone();
    entry["env"] = json!({ "KEY": CANARY });
    format!("{:#}", config.entry("s", entry).value())
}

fn put_good(workspace: &Workspace) {
    write(workspace, &workspace.config_path(), &good(workspace));
}

/// Replaces a file in one step.
fn write(workspace: &Workspace, file: &Path, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let draft = workspace.path().join("tmp/draft");
    fs::write(&draft, text).unwrap();
    fs::rename(draft, file).unwrap();
}

fn plugbay(workspace: &Workspace, arguments: &[&str]) -> Output {
    let mut command = Command::new(gateway());
    command.args(arguments).current_dir(workspace.path()).env_clear().envs(workspace.environment());
    command.output().expect("plugbay runs")
}

/// The output of `plugbay status` on one line, once it matches.
#[track_caller]
fn await_status(workspace: &Workspace, what: &str, fits: impl Fn(&str, bool) -> bool) -> String {
    wait_until(what, DEADLINE, || {
        let run = plugbay(workspace, &["status"]);
        let text = String::from_utf8(run.stdout).unwrap();
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        fits(&line, run.status.success()).then_some(line)
    })
}

/// Starts the gateway and opens it in one era; returns the instructions.
fn open(workspace: &Workspace, explicit: bool, modern: bool) -> (Host, String) {
    let mut command = workspace.command(&gateway());
    if !explicit {
        command = Command::new(gateway());
        command.arg("serve").current_dir(workspace.path()).env_clear().envs(workspace.environment());
    }
    let host = Host::spawn(&mut command);
    let opened = if modern { host.discover() } else { host.initialize() };
    if modern {
        host.request_as(9000, "subscriptions/listen", r#"{"notifications":{"toolsListChanged":true}}"#);
    }
    let instructions = opened.result_value()["instructions"].as_str().unwrap().to_owned();
    (host, instructions)
}

#[track_caller]
fn has_all(place: &str, text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{place} lacks {part:?}:\n{text}");
    }
    assert!(!text.contains(CANARY), "{place} shows a secret:\n{text}");
}

#[test]
fn every_broken_configuration_is_visible_to_model_and_user_and_can_be_mended() {
    // In parallel, because each waits most of the time.
    thread::scope(|scope| {
        for (name, breakage) in BREAKAGES {
            scope.spawn(move || {
                for modern in [false, true] {
                    check(&format!("{name}, {}", if modern { "modern" } else { "legacy" }), breakage, modern);
                }
            });
        }
    });
}

#[track_caller]
fn check(name: &str, breakage: &Breakage, modern: bool) {
    let workspace = Workspace::new();
    if let Some(text) = (breakage.broken)(&workspace) {
        write(&workspace, &workspace.config_path(), &text);
    }
    let (host, instructions) = open(&workspace, breakage.explicit, modern);
    has_all(&format!("{name}: instructions"), &instructions, &breakage.told);
    let tools = host.list_tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["gateway_status"], "{name}");
    let description = tools[0].value()["description"].as_str().unwrap().to_owned();
    has_all(&format!("{name}: description"), &description, &breakage.told);
    let status = host.call("gateway_status", "{}").content_text();
    has_all(&format!("{name}: gateway_status"), &status, &breakage.told);
    let shown =
        await_status(&workspace, &format!("{name}: status"), |text, _| text.contains(breakage.told[0]));
    has_all(&format!("{name}: plugbay status"), &shown, &breakage.told);
    assert!(!plugbay(&workspace, &["status"]).status.success(), "{name}");
    has_all(&format!("{name}: log"), &host.stderr(), &breakage.told);

    (breakage.mend)(&workspace);
    host.expect_notification(LIST_CHANGED);
    let tools = host.await_tools(&["s__echo"]);
    assert!(tools.iter().all(|tool| tool.name != "gateway_status"), "{name}: {tools:?}");
    let status = host.call("gateway_status", "{}").content_text();
    assert!(!status.contains("problem:") && status.starts_with("s: "), "{name}: {status}");
    await_status(&workspace, &format!("{name}: a status without problems"), |text, well| {
        well && !text.contains(breakage.told[0])
    });
    host.finish();
}

#[test]
fn a_configuration_broken_while_running_is_visible_and_changes_no_list() {
    for modern in [false, true] {
        let workspace = Workspace::new();
        put_good(&workspace);
        let (host, instructions) = open(&workspace, true, modern);
        assert!(instructions.starts_with("One MCP server behind plugbay."), "{instructions}");
        let before = host.await_tools(&["s__echo"]);
        host.barrier();
        while host.take_now(|message| message.method().as_deref() == Some(LIST_CHANGED)).is_some() {}

        write(&workspace, &workspace.config_path(), "{ \"mcpServers\": {\n  oops\n} }");
        let told = ["all servers stay as they were", "config.json:2:3", "the file is JSON"];
        let status = wait_until("a problem in gateway_status", DEADLINE, || {
            let status = host.call("gateway_status", "{}").content_text();
            status.contains("problem:").then_some(status)
        });
        has_all("gateway_status", &status, &told);
        assert!(status.contains("\ns: active"), "the server goes on: {status}");
        let shown = await_status(&workspace, "status", |text, well| text.contains(told[0]) && !well);
        has_all("plugbay status", &shown, &told);
        assert_eq!(host.list_tools(), before);
        host.barrier();
        let notified = host.take_now(|message| message.method().as_deref() == Some(LIST_CHANGED));
        assert!(notified.is_none(), "{notified:?}");
        assert!(host.call("s__echo", r#"{"still":1}"#).content_text().contains("still"));
        // A host that connects now reads it at once.
        let id = if modern {
            host.request("server/discover", "{}")
        } else {
            host.request("initialize", r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}"#)
        };
        let again = host.expect_response(id).result_value()["instructions"].as_str().unwrap().to_owned();
        has_all("instructions", &again, &told);

        put_good(&workspace);
        wait_until("no problem in gateway_status", DEADLINE, || {
            let status = host.call("gateway_status", "{}").content_text();
            (!status.contains("problem:")).then_some(())
        });
        await_status(&workspace, "a status without problems", |text, well| well && !text.contains(told[0]));
        assert_eq!(host.list_tools(), before);
        assert_eq!(workspace.starts("s").len(), 1, "the server was never restarted");
        host.finish();
    }
}

#[test]
fn auto_mode_is_chosen_when_a_mended_configuration_brings_tools() {
    let workspace = Workspace::new();
    let tools: Vec<Value> = (0..200)
        .map(|number| json!({ "name": format!("tool_{number}"), "description": "word ".repeat(60) }))
        .collect();
    let config =
        workspace.config(&[("s", Script::new().set("tools", json!(tools)))]).top("mode", json!("auto"));
    write(&workspace, &workspace.config_path(), "{");
    let host = workspace.serve(&gateway());
    host.initialize();
    assert_eq!(host.tool_names(), ["gateway_status"]);
    workspace.write_config(&config);
    let tools = host.await_list("another list", |tools| tools[0].name != "gateway_status");
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["search_tools", "describe_tool", "execute_tool"], "not 200 tools");
    host.finish();
}

#[test]
fn a_server_that_never_worked_says_so_where_its_tools_would_be() {
    let crash = Script::new().set("exit", r#"{"code":9,"stderr":["connect ECONNREFUSED 127.0.0.1:5433"]}"#);
    let reason = ["exit code 9", "start the service that this server wants to reach"];
    for (mode, listed, tool, arguments) in [
        ("all", "gateway_status", "gateway_status", json!({})),
        ("search", "search_tools", "search_tools", json!({ "query": "rows of the broken table" })),
        ("search", "search_tools", "search_tools", json!({ "server": "broken" })),
        ("search", "search_tools", "describe_tool", json!({ "name": "broken__rows" })),
        ("search", "search_tools", "execute_tool", json!({ "name": "broken__rows", "arguments": {} })),
        ("activate", "gateway_status", "gateway_activate", json!({ "name": "broken" })),
        ("suite", "broken_suite", "broken_suite", json!({ "action": "introspect" })),
        ("suite", "broken_suite", "broken_suite", json!({ "action": "call", "subtool": "rows" })),
    ] {
        let workspace = Workspace::new();
        let config = workspace.config(&[("a", Script::friendly()), ("broken", crash.clone())]);
        workspace.write_config(&config.top("mode", json!(mode)));
        let host = workspace.serve(&gateway());
        host.initialize();
        let before = host.await_tools(&[listed]);
        let answer = host.call(tool, &arguments.to_string());
        has_all(&format!("{mode}: {tool} {arguments}"), answer.text(), &reason);
        assert_eq!(host.list_tools(), before, "{mode}");
        host.finish();
    }
}

#[test]
fn a_failure_of_a_server_with_cached_tools_changes_no_list() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly()), ("b", Script::friendly())]);
    let config = config.options("b", json!({ "warm": "always" }));
    crate::warm(&workspace, &config, &["a__echo", "b__echo"]);
    workspace.write_script("b", &Script::new().set("exit", r#"{"code":9}"#));
    let host = workspace.serve(&gateway());
    host.initialize();
    let before = host.list_tools();
    wait_until("the failure in gateway_status", DEADLINE, || {
        host.call("gateway_status", "{}").content_text().contains("b: error: ").then_some(())
    });
    assert_eq!(host.list_tools(), before);
    assert!(before.iter().all(|tool| tool.name != "gateway_status"), "{before:?}");
    assert_eq!(host.count_notifications(LIST_CHANGED), 0);
    host.finish();
}

#[test]
fn gateway_status_says_which_servers_are_idle() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly())]).options("a", json!({ "idle": "100ms" }));
    workspace.write_config(&config);
    let host = workspace.serve(&gateway());
    host.initialize();
    host.await_tools(&["a__echo"]);
    wait_until("an idle server", DEADLINE, || {
        host.call("gateway_status", "{}").content_text().starts_with("a: idle, 2 tools").then_some(())
    });
    host.finish();
}
