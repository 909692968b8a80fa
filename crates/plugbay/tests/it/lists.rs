//! Lists that fit the host: a server's lists depend on the host's capabilities, and calls may change them.

use std::{process::Command, time::Instant};

use plugbay_testkit::{Config, Host, Script, Workspace};
use serde_json::{Value, json};

use crate::{LIST_CHANGED, gateway};

const POOR: &str = "{}";
const RICH: &str = r#"{"sampling":{},"elicitation":{"form":{}},"roots":{"listChanged":true}}"#;
const ROOTS: &str = r#"{"roots":{}}"#;
const ALL: [&str; 5] = ["s__ask_model", "s__ask_user", "s__echo", "s__pid", "s__roots"];

fn choosy(era: &str) -> Script {
    Script::friendly()
        .set("era", json!(era))
        .set("tools_with", r#"{"sampling":["ask_model"],"elicitation":["ask_user"],"roots":["roots"]}"#)
}

/// Opens a host of this name and era with these capabilities.
#[track_caller]
fn opened(host: Host, client: &str, era: &str, capabilities: &str) -> Host {
    host.declare(capabilities);
    if era == "modern" {
        host.discover();
        return host;
    }
    let id = host.request(
        "initialize",
        &format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"clientInfo":{{"name":"{client}","version":"0"}}}}"#
        ),
    );
    host.expect_response(id);
    host.notify("notifications/initialized", "{}");
    host
}

/// The first and the last list of a host without a daemon.
#[track_caller]
fn session(workspace: &Workspace, era: &str, capabilities: &str) -> (Vec<String>, Vec<String>) {
    let host = opened(workspace.serve(&gateway()), "claude-code", era, capabilities);
    let first = host.tool_names();
    let wanted = expected(capabilities);
    host.await_list("the list for its capabilities", |tools| {
        tools.iter().map(|tool| tool.name.as_str()).eq(wanted.iter().copied())
    });
    host.finish();
    (first, wanted.into_iter().map(str::to_owned).collect())
}

fn expected(capabilities: &str) -> Vec<&'static str> {
    let declared: Value = serde_json::from_str(capabilities).expect("JSON");
    let needs = |tool: &str| match tool {
        "s__ask_model" => Some("sampling"),
        "s__ask_user" => Some("elicitation"),
        "s__roots" => Some("roots"),
        _ => None,
    };
    let has = |tool: &&str| needs(tool).is_none_or(|key| declared.get(key).is_some());
    ALL.into_iter().filter(has).collect()
}

#[test]
fn the_first_list_from_the_cache_is_the_one_for_the_capabilities_of_the_host() {
    for (server, host) in
        [("legacy", "legacy"), ("modern", "legacy"), ("legacy", "modern"), ("modern", "modern")]
    {
        let workspace = Workspace::new();
        workspace.write_config(&workspace.config(&[("s", choosy(server))]));
        for capabilities in [POOR, RICH, ROOTS] {
            session(&workspace, host, capabilities);
        }
        let starts = workspace.count_log("s", "start ");
        for capabilities in [POOR, RICH, ROOTS, POOR, RICH] {
            let (first, fitting) = session(&workspace, host, capabilities);
            assert_eq!(first, fitting, "{server} server, {host} host, {capabilities}");
        }
        assert_eq!(workspace.count_log("s", "start "), starts, "a list that is known starts no server");
    }
}

#[test]
fn a_list_that_is_the_same_for_all_capabilities_is_cached_once_and_holds_for_others() {
    let workspace = Workspace::new();
    workspace.write_config(&workspace.config(&[("s", Script::friendly())]));
    for capabilities in [POOR, RICH] {
        let host = opened(workspace.serve(&gateway()), "claude-code", "legacy", capabilities);
        host.await_tools(&["s__pid"]);
        workspace.await_log("s", "listed", if capabilities == POOR { 1 } else { 2 });
        host.finish();
    }
    let folder = workspace.path().join("cache/plugbay/servers");
    let files = std::fs::read_dir(folder).expect("a cache").flatten().map(|entry| entry.path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    let file = std::fs::read(&files[0]).expect("a file");
    // The first line gives the format; the head follows.
    let cached = serde_json::Deserializer::from_slice(&file).into_iter::<Value>().nth(1);
    let cached = cached.expect("a head").expect("JSON");
    let lists = cached["lists"].as_array().expect("lists");
    assert_eq!((files.len(), lists.len()), (1, 1), "{cached:#}");
    assert_eq!(lists[0]["offer"]["declared"].as_array().map(Vec::len), Some(2));
    let starts = workspace.count_log("s", "start ");
    let host = opened(workspace.serve(&gateway()), "codex-mcp-client", "legacy", ROOTS);
    assert_eq!(host.tool_names(), ["s__echo", "s__pid"]);
    host.finish();
    assert_eq!(workspace.count_log("s", "start "), starts, "hosts between poor and rich see what both see");
}

#[test]
fn a_host_that_lists_once_waits_for_the_list_for_its_capabilities() {
    for (first, then) in [(POOR, RICH), (RICH, POOR)] {
        let workspace = Workspace::new();
        workspace.write_config(&workspace.config(&[("s", choosy("legacy"))]));
        session(&workspace, "legacy", first);
        let host = opened(workspace.serve(&gateway()), "codex-mcp-client", "legacy", then);
        assert_eq!(host.tool_names(), expected(then));
        host.finish();
    }
}

#[test]
fn a_host_that_lists_once_does_not_wait_for_a_server_that_fails() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", choosy("legacy"))]);
    workspace.write_config(&config);
    session(&workspace, "legacy", POOR);
    workspace.write_script("s", &Script::new().set("exit", r#"{"code":1}"#));
    let host = opened(workspace.serve(&gateway()), "codex-mcp-client", "legacy", RICH);
    assert_eq!(host.tool_names(), expected(POOR));
    host.finish();
}

/// Two windows of one daemon.
fn windows(workspace: &Workspace, capabilities: [&str; 2]) -> [Host; 2] {
    capabilities.map(|capabilities| {
        opened(Host::spawn(&mut workspace.command(&gateway())), "codex-mcp-client", "legacy", capabilities)
    })
}

#[test]
fn windows_of_different_capabilities_see_their_own_lists_of_one_process() {
    for (era, scope) in [("legacy", "shared"), ("modern", "shared"), ("legacy", "session")] {
        let workspace = Workspace::new().with_daemon();
        let config =
            Config::new().server(&workspace, "s", &choosy(era)).options("s", json!({ "scope": scope }));
        workspace.write_config(&config);
        for _ in 0..2 {
            let [poor, rich] = windows(&workspace, [POOR, RICH]);
            for (host, capabilities) in [(&poor, POOR), (&rich, RICH), (&poor, POOR)] {
                host.await_list("the list for its capabilities", |tools| {
                    tools.iter().map(|tool| tool.name.as_str()).eq(expected(capabilities))
                });
            }
            let pids = [&poor, &rich].map(|host| host.call("s__pid", "{}").result().to_owned());
            assert_eq!(pids[0] == pids[1], scope == "shared");
            poor.call("s__ask_user", "{}").failure();
            poor.finish();
            rich.finish();
        }
        // Now both lists are known, and a window that lists once gets its own list at once.
        let [poor, rich] = windows(&workspace, [POOR, RICH]);
        assert_eq!(poor.tool_names(), expected(POOR), "{era} {scope}");
        assert_eq!(rich.tool_names(), expected(RICH), "{era} {scope}");
    }
}

/// A server that adds a tool in a call, before it answers.
fn growing() -> Script {
    Script::friendly().tool("grow", r#"{"change_tools":["echo","grow","new","pid"]}"#)
}

/// The answer to a call and the notification of its change, in the order in which they came.
fn order(host: &Host, call: u64) -> Vec<String> {
    let of_interest = |message: &plugbay_testkit::RawMessage| {
        let id = call.to_string();
        if message.is_response() && message.id() == Some(&id) {
            return Some("answer".to_owned());
        }
        message.method().filter(|method| method == LIST_CHANGED).map(|_| "notification".to_owned())
    };
    host.messages().iter().filter_map(of_interest).collect()
}

#[test]
fn a_list_change_during_a_call_reaches_a_host_that_lists_again_before_the_answer() {
    for daemon in [false, true] {
        let workspace = if daemon { Workspace::new().with_daemon() } else { Workspace::new() };
        let config =
            Config::new().server(&workspace, "s", &growing()).options("s", json!({"scope": "shared"}));
        workspace.write_config(&config);
        let host = opened(Host::spawn(&mut workspace.command(&gateway())), "opencode", "legacy", POOR);
        host.await_tools(&["s__grow"]);
        host.call("s__pid", "{}");
        let call = host.start_call("s__grow", "{}");
        host.expect_notification(LIST_CHANGED);
        // Its answer waits for the list; another call does not.
        host.call("s__echo", "{}");
        assert_eq!(order(&host, call), ["notification"]);
        assert!(host.tool_names().contains(&"s__new".to_owned()));
        host.expect_response(call);
        assert_eq!(order(&host, call), ["notification", "answer"]);
        host.finish();
    }
}

#[test]
fn the_answer_of_a_call_that_changes_a_list_waits_no_longer_than_the_profile_of_the_host_allows() {
    let workspace = Workspace::new();
    workspace.write_config(&workspace.config(&[("s", growing())]));
    let host = opened(workspace.serve(&gateway()), "gemini-cli-mcp-client", "legacy", POOR);
    host.await_tools(&["s__grow"]);
    let call = host.start_call("s__grow", "{}");
    host.expect_response(call); // though it has not listed again
    assert_eq!(order(&host, call), ["notification", "answer"]);
    host.finish();
}

#[test]
fn a_host_that_lists_once_gets_the_answer_of_a_call_that_changes_a_list_at_once() {
    let workspace = Workspace::new();
    let slow = growing().set("list_delay_ms", 1000);
    workspace.write_config(&workspace.config(&[("s", slow)]));
    let host = opened(workspace.serve(&gateway()), "codex-mcp-client", "legacy", POOR);
    host.await_tools(&["s__grow"]);
    let call = host.start_call("s__grow", "{}");
    host.expect_response(call);
    assert_eq!(order(&host, call), ["answer"], "the server lists slowly");
    host.expect_notification(LIST_CHANGED);
    host.finish();
}

#[test]
fn a_server_that_floods_with_list_changes_does_not_hold_up_answers() {
    let flood = vec![r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#; 1000];
    let workspace = Workspace::new();
    let script = growing().tool("flood", json!({ "send": flood }));
    workspace.write_config(&workspace.config(&[("s", script)]));
    let host = opened(workspace.serve(&gateway()), "opencode", "legacy", POOR);
    host.await_tools(&["s__flood"]);
    let before = workspace.count_log("s", "listed");
    let begun = Instant::now();
    for _ in 0..20 {
        host.call("s__flood", "{}");
    }
    let listings = workspace.count_log("s", "listed") - before;
    let allowed = 6 + usize::try_from(begun.elapsed().as_secs()).expect("seconds");
    assert!(listings <= allowed, "{listings} listings");
    host.finish();
}

#[test]
fn a_cancellation_of_a_modern_host_comes_to_a_legacy_server_without_its_envelope() {
    let workspace = Workspace::new();
    workspace.write_config(&workspace.config(&[("s", Script::friendly().tool("hang", r#"{"hang":true}"#))]));
    let host = workspace.serve(&gateway());
    host.discover();
    host.await_tools(&["s__hang"]);
    let call = host.start_call("s__hang", "{}");
    workspace.await_log("s", r#""tools/call""#, 1);
    let params = host.dress(&format!(r#"{{"_meta":{{"com.example/x":1}},"requestId":{call}}}"#));
    host.notify("notifications/cancelled", &params);
    workspace.await_log("s", "notifications/cancelled", 1);
    let log = workspace.log("s");
    let line = log.iter().find(|line| line.contains("notifications/cancelled")).expect("a cancellation");
    assert!(line.contains(r#""_meta":{"com.example/x":1}"#), "{line}");
    host.finish();
}

#[test]
fn initialize_declares_the_extensions_of_servers_that_were_listed_before() {
    let workspace = Workspace::new();
    let script = Script::friendly().set("capabilities", r#"{"extensions":{"com.example/x":{"n":1}}}"#);
    workspace.write_config(&workspace.config(&[("s", script)]));
    let declares = || {
        let host = workspace.serve(&gateway());
        let opened = host.initialize();
        host.await_tools(&["s__pid"]);
        host.finish();
        opened.result().contains(r#""com.example/x":{"n":1}"#)
    };
    assert!(!declares(), "nothing is known of a new server, and `initialize` does not wait for it");
    assert!(declares());
    std::fs::remove_dir_all(workspace.path().join("cache/plugbay")).expect("a cache");
    let mut list = Command::new(gateway());
    list.arg("--config")
        .arg(workspace.config_path())
        .arg("list")
        .current_dir(workspace.path())
        .env_clear()
        .envs(workspace.environment());
    let output = list.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert!(declares(), "a command has listed it");
}
