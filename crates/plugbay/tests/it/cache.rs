//! Answers from the cache: a second start lists at once, whatever the servers do.

use std::{fs, path::PathBuf};

use plugbay_testkit::{Host, Script, Workspace};
use serde_json::json;

use crate::{LIST_CHANGED, gateway, open_with, warm};

fn dead() -> Script {
    Script::new().set("exit", r#"{"code":1,"stderr":["gone for good"]}"#)
}

fn second_start(workspace: &Workspace) -> Host {
    let host = workspace.serve(&gateway());
    host.initialize();
    host
}

#[test]
fn a_second_start_lists_tools_from_the_cache() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly()), ("b", Script::friendly().set("tools", 50))]);
    workspace.write_config(&config);
    let host = workspace.serve(&gateway());
    host.initialize();
    host.await_tools(&["a__echo", "b__tool_49"]);
    let first = host.list_tools();
    host.finish();
    workspace.write_script("a", &dead());
    workspace.write_script("b", &dead());
    let host = second_start(&workspace);
    assert_eq!(host.list_tools(), first);
    let failure = host.call("a__echo", "{}").failure();
    assert!(failure.contains("gone for good"), "{failure}");
    assert_eq!(host.list_tools(), first, "a failing server keeps its cached tools");
    let ended = host.finish();
    assert!(!ended.messages.iter().any(|m| m.method().as_deref() == Some(LIST_CHANGED)));
}

#[test]
fn slow_and_mute_servers_do_not_delay_the_list() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("slow", Script::friendly()), ("mute", Script::friendly())]);
    // Far longer than a test waits, so that a list that waits for a server would not come.
    let config = config.top("listWait", json!("1h")).top("defaults", json!({ "warm": "always" }));
    let config = config.options("mute", json!({"start": "1h"}));
    warm(&workspace, &config, &["slow__echo", "mute__echo"]);
    let go = workspace.path().join("go");
    workspace.write_script("slow", &Script::friendly().set("start_after", json!(go)));
    workspace.write_script("mute", &Script::friendly().set("mute", true));
    let listed = workspace.count_log("slow", "listed");
    let host = second_start(&workspace);
    assert_eq!(host.tool_names(), ["mute__echo", "mute__pid", "slow__echo", "slow__pid"]);
    assert_eq!(workspace.count_log("slow", "listed"), listed, "answered before the slow server did");
    fs::write(go, "").unwrap();
    host.call("slow__echo", "{}").result();
    host.finish();
}

#[test]
fn a_modern_host_is_served_from_the_cache_too() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly())]);
    warm(&workspace, &config, &["a__echo"]);
    workspace.write_script("a", &dead());
    let host = workspace.serve(&gateway());
    host.discover();
    assert_eq!(host.tool_names(), ["a__echo", "a__pid"]);
    host.finish();
}

#[test]
fn a_changed_command_does_not_show_the_tools_of_the_old_one() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly())]);
    warm(&workspace, &config, &["a__echo"]);
    let argument = workspace.write_script("other", &Script::new().set("tools", r#"["fresh"]"#));
    let mut entry = config.value()["mcpServers"]["a"].clone();
    entry["args"] = json!([argument]);
    workspace.write_config(&config.entry("a", entry));
    let host = workspace.serve(&gateway());
    host.initialize();
    let tools = host.await_list("a list", |tools| {
        assert!(!tools.iter().any(|tool| tool.name == "a__echo"), "a stale tool was listed: {tools:?}");
        !tools.is_empty()
    });
    assert_eq!(tools[0].name, "a__fresh");
    host.finish();
}

#[test]
fn a_tool_list_that_differs_from_the_cache_is_announced() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly())]).options("a", json!({ "warm": "always" }));
    warm(&workspace, &config, &["a__echo"]);
    let go = workspace.path().join("go");
    workspace.write_script("a", &Script::friendly().tool("new", "{}").set("start_after", json!(go)));
    let host = second_start(&workspace);
    assert_eq!(host.tool_names(), ["a__echo", "a__pid"]);
    fs::write(go, "").unwrap();
    host.expect_notification(LIST_CHANGED);
    assert_eq!(host.tool_names(), ["a__echo", "a__new", "a__pid"]);
    host.finish();
}

#[test]
fn many_gateways_share_one_cache() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly()), ("b", Script::friendly().set("tools", 20))]);
    workspace.write_config(&config);
    let hosts: Vec<Host> = (0..16).map(|_| workspace.serve(&gateway())).collect();
    for host in &hosts {
        host.initialize();
    }
    for host in &hosts {
        host.await_tools(&["a__echo", "b__tool_19"]);
    }
    for host in hosts {
        host.finish();
    }
    workspace.write_script("a", &dead());
    workspace.write_script("b", &dead());
    let host = second_start(&workspace);
    assert_eq!(host.list_tools().len(), 22);
    host.finish();
}

#[test]
fn a_corrupt_cache_is_moved_aside() {
    const JUNK: &[u8] = b"{\"this is\": no cache\x00\xff";
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly())]);
    warm(&workspace, &config, &["a__echo"]);
    let files = cache_files(&workspace);
    assert!(!files.is_empty(), "the cache is on disk");
    for file in &files {
        fs::write(file, JUNK).unwrap();
    }
    let host = open_with(&workspace, &config, &["a__echo"]);
    host.call("a__echo", "{}");
    host.finish();
    let kept =
        cache_files(&workspace).into_iter().find(|file| fs::read(file).is_ok_and(|bytes| bytes == JUNK));
    let kept = kept.expect("what was there is kept for inspection");
    assert!(!files.contains(&kept), "moved aside, not left in place: {}", kept.display());
    workspace.write_script("a", &dead());
    assert_eq!(second_start(&workspace).tool_names(), ["a__echo", "a__pid"]);
}

/// All files that the gateway keeps between runs, in any folder. Lock files are empty.
fn cache_files(workspace: &Workspace) -> Vec<PathBuf> {
    let folders = ["cache", "state", "data", "home"];
    let files = folders.into_iter().flat_map(|folder| workspace.files(folder));
    files.filter(|file| fs::metadata(file).is_ok_and(|data| data.len() > 0)).collect()
}

#[cfg(unix)]
#[test]
fn a_read_only_home_does_not_stop_the_gateway() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = Workspace::new();
    let folders = ["home", "cache", "state", "data"];
    let set = |mode| {
        for folder in folders {
            fs::set_permissions(workspace.path().join(folder), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o555);
    let host = open_with(&workspace, &workspace.config(&[("a", Script::friendly())]), &["a__echo"]);
    host.call("a__echo", "{}");
    host.finish();
    set(0o755);
}
