//! A changed config takes effect while the host stays connected, and affects only what changed.

mod authorization;
mod credentials;
mod general;
mod models;
mod remotes;
mod servers;
mod table;

use std::{
    collections::BTreeSet,
    fs,
    time::{Duration, Instant},
};

use plugbay_testkit::{DEADLINE, Host, Process, Script, Signal, Workspace, wait_until, wait_until_gone};
use serde_json::{Value, json};

use self::table::Harness;
use crate::{LIST_CHANGED, gateway, open_with};

#[track_caller]
fn pid(host: &Host, server: &str) -> String {
    host.call(&format!("{server}__pid"), "{}").content_text()
}

#[test]
fn servers_start_stop_stay_and_restart_with_a_reload() {
    let workspace = Workspace::new();
    let names = ["changed", "gone", "kept"];
    let config = workspace.config(&names.map(|name| (name, Script::friendly())));
    let host = open_with(&workspace, &config, &["changed__pid", "gone__pid", "kept__pid"]);
    let (kept, changed) = (pid(&host, "kept"), pid(&host, "changed"));
    pid(&host, "gone");
    let gone = workspace.server_process("gone");
    host.barrier();
    while host.take_now(|m| m.method().as_deref() == Some(LIST_CHANGED)).is_some() {}

    let mut entry = config.value()["mcpServers"]["changed"].clone();
    entry["env"] = json!({"NEW": "1"});
    let next =
        config.without("gone").entry("changed", entry).server(&workspace, "added", &Script::friendly());
    workspace.write_config(&next);

    host.expect_notification(LIST_CHANGED);
    host.await_list("the new list", |tools| {
        let has = |name: &str| tools.iter().any(|tool| tool.name == name);
        has("added__pid") && !has("gone__pid") && has("kept__pid") && has("changed__pid")
    });
    wait_until_gone(&[gone]);
    host.call("gone__pid", "{}").failure();
    pid(&host, "added");
    assert_eq!(pid(&host, "kept"), kept, "an unchanged server stays");
    assert_ne!(pid(&host, "changed"), changed, "a changed one is started anew");
    assert_eq!(workspace.starts("kept").len(), 1);
    host.finish();
}

#[test]
fn calls_of_an_unchanged_server_survive_a_reload() {
    let workspace = Workspace::new();
    let script = Script::friendly().tool("slow", r#"{"delay_ms":3000,"echo":true}"#);
    let config = workspace.config(&[("s", script)]);
    let host = open_with(&workspace, &config, &["s__slow"]);
    let id = host.start_call("s__slow", r#"{"patient":1}"#);
    workspace.await_log("s", r#""slow""#, 1);
    workspace.write_config(&config.server(&workspace, "added", &Script::friendly()));
    host.await_tools(&["added__echo"]);
    assert!(host.expect_response(id).content_text().contains("patient"));
    host.finish();
}

#[test]
fn a_broken_configuration_leaves_every_server_as_it_was() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly())]);
    let host = open_with(&workspace, &config, &["s__pid"]);
    let before = pid(&host, "s");
    fs::write(workspace.config_path(), "{ this is no config").unwrap();
    // The next valid config proves that the broken one was read or skipped by then.
    assert_eq!(pid(&host, "s"), before);
    workspace.write_config(&config.clone().server(&workspace, "added", &Script::friendly()));
    host.await_tools(&["s__pid", "added__pid"]);
    assert_eq!(pid(&host, "s"), before);
    host.finish();
}

#[test]
fn an_emptied_configuration_leaves_every_server_as_it_was() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly())]);
    let host = open_with(&workspace, &config, &["s__pid"]);
    let before = pid(&host, "s");
    fs::write(workspace.config_path(), " \n").unwrap();
    wait_until("the error", DEADLINE, || host.stderr().contains("the file is empty").then_some(()));
    assert_eq!(pid(&host, "s"), before);
    workspace.write_config(&config.server(&workspace, "added", &Script::friendly()));
    host.await_tools(&["s__pid", "added__pid"]);
    assert_eq!(pid(&host, "s"), before);
    host.finish();
}

/// The stubborn server is killed only after twice its grace.
#[test]
fn a_reload_does_not_wait_for_a_removed_server_that_ends_slowly() {
    let workspace = Workspace::new();
    let stubborn = Script::friendly().set("ignore_eof", true).set("ignore_term", true);
    let config = workspace.config(&[("stubborn", stubborn), ("kept", Script::friendly())]);
    let host = open_with(&workspace, &config, &["stubborn__pid", "kept__pid"]);
    pid(&host, "stubborn");
    let process = workspace.server_process("stubborn");
    let without = config.without("stubborn");
    workspace.write_config(&without);
    host.await_list("the list without it", |tools| {
        tools.iter().all(|tool| !tool.name.starts_with("stubborn"))
    });
    workspace.write_config(&without.server(&workspace, "added", &Script::friendly()));
    host.await_tools(&["added__pid"]);
    assert!(process.is_alive(), "the change came before the end of the removed server");
    host.finish();
    wait_until_gone(&[process]);
}

#[test]
fn a_new_deny_pattern_needs_no_restart() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly())]);
    let host = open_with(&workspace, &config, &["s__pid", "s__echo"]);
    let before = pid(&host, "s");
    workspace.write_config(&config.options("s", json!({"deny": ["echo"]})));
    host.await_list("the list without echo", |tools| tools.len() == 1);
    host.call("s__echo", "{}").failure();
    assert_eq!(pid(&host, "s"), before);
    host.finish();
}

// ---- every key of the configuration

#[test]
fn a_reload_of_each_general_key_takes_effect() {
    let harness = Harness::new();
    harness.check(&general::top(&harness));
}

#[test]
fn a_reload_of_each_host_profile_key_takes_effect() {
    let harness = Harness::new();
    harness.check(&general::hosts());
    harness.check(&general::host_kinds());
}

#[test]
fn a_reload_of_each_server_entry_key_takes_effect() {
    let harness = Harness::new();
    harness.check(&servers::entries(&harness));
    harness.check(&servers::remotes(&harness));
}

#[test]
fn a_reload_of_each_remote_key_takes_effect() {
    let harness = Harness::new();
    harness.check(&remotes::rows(&harness));
}

#[test]
fn a_reload_of_each_key_for_credentials_takes_effect() {
    let harness = Harness::new();
    harness.check(&credentials::sources(&harness));
    harness.check(&credentials::logins(&harness));
    harness.check(&credentials::general());
}

#[test]
fn a_reload_of_each_server_option_takes_effect() {
    let harness = Harness::new();
    harness.check(&servers::options(&harness));
    harness.check(&servers::texts(&harness));
    harness.check(&servers::suites());
    harness.check(&servers::results());
}

#[test]
fn a_reload_of_each_language_model_key_takes_effect() {
    let harness = Harness::new();
    harness.check(&models::rankers(&harness));
    harness.check(&models::agents(&harness));
}

#[test]
fn a_reload_of_each_authorization_key_takes_effect() {
    authorization::check();
}

#[test]
fn a_reload_of_list_wait_ends_a_wait_that_is_under_way() {
    let workspace = Workspace::new();
    let silent = Script::new().set("start_delay_ms", 3_600_000);
    let config = workspace.config(&[("a", Script::friendly()), ("silent", silent)]);
    workspace.write_config(&config.clone().top("listWait", json!("1h")));
    let host = workspace.serve(&gateway());
    host.initialize();
    let id = host.request("tools/list", "{}");
    workspace.await_log("a", "listed", 1);
    host.barrier();
    assert!(host.take_now(|message| message.id() == Some(&id.to_string())).is_none());
    workspace.write_config(&config.top("listWait", json!("1ms")));
    assert!(host.expect_response(id).text().contains("a__echo"));
    host.finish();
}

#[test]
fn a_reload_of_drain_holds_for_the_calls_in_flight() {
    let workspace = Workspace::new();
    let go = workspace.path().join("go");
    let script = Script::friendly().set("work_until", json!(go));
    let config = workspace.config(&[("s", Script::friendly())]);
    workspace.write_config(&config.top("drain", json!("1h")));
    let mut host = workspace.serve(&gateway());
    host.initialize();
    host.call("s__echo", "{}");
    let config = workspace.config(&[("s", Script::friendly()), ("t", script)]);
    workspace.write_config(&config.top("drain", json!("1ms")).top("listWait", json!("1h")));
    workspace.await_log("t", "start ", 1);
    let id = host.request("tools/call", r#"{"name":"t__echo","arguments":{}}"#);
    host.barrier();
    host.signal(Signal::TERM);
    assert!(host.expect_response(id).text().contains("ended before it answered"));
    host.wait_for_exit();
}

#[test]
fn a_reload_of_starts_lets_a_waiting_server_start() {
    let workspace = Workspace::new();
    let go = workspace.path().join("go");
    let busy = Script::friendly().set("work_until", json!(go));
    let config = workspace.config(&[("busy", busy), ("waits", Script::friendly())]);
    workspace.write_config(&config.clone().top("starts", json!(1)));
    let host = workspace.serve(&gateway());
    host.initialize();
    workspace.await_log("busy", "start ", 1);
    host.barrier();
    assert!(workspace.starts("waits").is_empty());
    workspace.write_config(&config.top("starts", json!(2)));
    host.await_tools(&["waits__echo"]);
    fs::write(go, "").unwrap();
    host.await_tools(&["busy__echo"]);
    assert_eq!(workspace.starts("busy").len(), 1, "it goes on");
    host.finish();
}

#[test]
fn a_reload_of_warm_starts_a_server_that_shall_always_be_warm() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly()), ("other", Script::friendly())]);
    crate::warm(&workspace, &config, &["s__echo", "other__echo"]);
    let host = workspace.serve(&gateway());
    host.initialize();
    host.list_tools();
    host.call("other__echo", "{}").result();
    assert_eq!(workspace.starts("s").len(), 1, "its list is fresh");
    workspace.write_config(&config.options("s", json!({ "warm": "always" })));
    workspace.await_log("s", "start ", 2);
    assert_eq!(workspace.starts("other").len(), 2, "it goes on");
    host.finish();
}

#[test]
fn a_reload_of_shutdown_gives_a_server_more_time_to_end() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly().set("ignore_eof", true))]);
    let patient = |time: &str| config.clone().options("s", json!({ "shutdown": time }));
    let host = open_with(&workspace, &patient("10ms"), &["s__pid"]);
    let first = workspace.server_process("s");
    workspace.write_config(&patient("2s"));
    wait_until_gone(&[first]);
    let second: Process = wait_until("the second process", DEADLINE, || {
        workspace.starts("s").get(1).copied().and_then(Process::of)
    });
    workspace.await_log("s", "listed", 2);
    let begun = Instant::now();
    workspace.write_config(&config.without("s"));
    wait_until_gone(&[second]);
    assert!(
        begun.elapsed() >= Duration::from_secs(2),
        "it was asked to end, and left in peace for two seconds"
    );
    host.finish();
}

#[test]
fn a_reload_of_remember_ends_the_memory_of_searches() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly())]).top("mode", json!("search"));
    workspace.write_config(&config);
    let remembered = || {
        let texts =
            workspace.files("cache").into_iter().filter(|file| file.to_string_lossy().contains("searches"));
        texts.map(|file| fs::read_to_string(file).unwrap()).collect::<String>()
    };
    let search_and_call = |host: &Host, query: &str| {
        let found = host.call("search_tools", &json!({ "query": query }).to_string());
        let found = found.text();
        assert!(found.contains("s__echo"), "{found}");
        host.call("execute_tool", r#"{"name":"s__echo","arguments":{}}"#).result();
    };
    let host = workspace.serve(&gateway());
    host.initialize();
    search_and_call(&host, "echo kookaburra");
    host.finish();
    assert!(remembered().contains("kookaburra"), "{}", remembered());

    let host = workspace.serve(&gateway());
    host.initialize();
    // The mode changes in the same reload: when the tool is listed, nothing is remembered any more.
    workspace.write_config(&config.top("search", json!({ "remember": false })).top("mode", json!("all")));
    host.await_tools(&["s__echo"]);
    host.barrier();
    search_and_call(&host, "echo wallaby");
    host.finish();
    assert!(!remembered().contains("wallaby"), "{}", remembered());
}

/// Keys that contain other keys, and keys with their own test above.
const WITHOUT_ROW: [&str; 18] = [
    "audit",
    "authorization",
    "oauth",
    "OAuth.idp",
    "hosts",
    "limits",
    "search",
    "Search.remember",
    "naturalLanguage",
    "Server.plugbay",
    "Remote.plugbay",
    "Plugbay.suite",
    "Plugbay.results",
    "listWait",
    "drain",
    "starts",
    "Plugbay.warm",
    "Plugbay.shutdown",
];

#[test]
fn every_key_of_the_schema_has_a_reload_test() {
    let harness = Harness::new();
    let tables = [
        general::top(&harness),
        general::hosts(),
        general::host_kinds(),
        servers::entries(&harness),
        servers::remotes(&harness),
        remotes::rows(&harness),
        credentials::sources(&harness),
        credentials::logins(&harness),
        credentials::general(),
        servers::options(&harness),
        servers::texts(&harness),
        servers::suites(),
        servers::results(),
        models::rankers(&harness),
        models::agents(&harness),
    ];
    let authorization = authorization::rows("");
    let authorization = authorization.iter().map(|(key, ..)| *key);
    let rows = tables.iter().flatten().map(|row| row.key);
    let tested: BTreeSet<&str> = rows.chain(authorization).chain(WITHOUT_ROW).collect();
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/plugbay.schema.json")).unwrap();
    let mut keys = keys_of("", &schema);
    for (name, definition) in schema["definitions"].as_object().unwrap() {
        keys.extend(keys_of(&format!("{name}."), definition));
    }
    let untested: Vec<&String> = keys.iter().filter(|key| !tested.contains(key.as_str())).collect();
    assert!(untested.is_empty(), "no reload test for {untested:?}");
    let unknown: Vec<&&str> = tested.iter().filter(|key| !keys.contains(&(**key).to_owned())).collect();
    assert!(unknown.is_empty(), "not in the schema: {unknown:?}");
}

/// The keys of one object in the schema, without other spellings and without keys that have no effect.
fn keys_of(prefix: &str, definition: &Value) -> Vec<String> {
    let Some(properties) = definition["properties"].as_object() else { return Vec::new() };
    let counts = |schema: &Value| {
        let description = schema["description"].as_str().unwrap_or_default();
        !description.starts_with("The same as") && !description.ends_with("has no effect.")
    };
    properties.iter().filter(|(_, schema)| counts(schema)).map(|(key, _)| format!("{prefix}{key}")).collect()
}

#[test]
fn a_change_loads_the_configuration_once() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", Script::friendly())]);
    workspace.write_config(&config);
    let host = Host::spawn(workspace.command(&gateway()).arg("--verbose"));
    host.initialize();
    host.await_tools(&["s__pid"]);
    let loads = || host.stderr().matches("loaded the configuration").count();
    assert_eq!(loads(), 1, "at the start");
    for change in 1..=3 {
        let name = format!("added{change}");
        workspace.write_config(&config.clone().server(&workspace, &name, &Script::friendly()));
        host.await_tools(&[&format!("{name}__pid")]);
        assert_eq!(loads(), 1 + change, "{}", host.stderr());
    }
    host.finish();
}
