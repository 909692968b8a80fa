//! What a server's process inherits: an allow-list and what its entry names, nothing else.

use std::collections::BTreeMap;

use plugbay_testkit::{Host, Script, Workspace};
use serde_json::json;

use crate::gateway;

#[test]
fn only_allowed_and_named_environment_variables_reach_a_server() {
    let workspace = Workspace::new();
    let script = Script::new().tool("env", r#"{"env":true}"#);
    let mut config = workspace.config(&[("s", script)]);
    let mut entry = config.value()["mcpServers"]["s"].clone();
    entry["env"] = json!({"GIVEN": "from ${SECRET_OF_HOST}", "PLAIN": "p"});
    config = config.entry("s", entry);
    workspace.write_config(&config);
    let mut command = workspace.command(&gateway());
    let host =
        Host::spawn(command.env("SECRET_OF_HOST", "s3cret").env("OTHER_SECRET", "x").env("LANG", "C.UTF-8"));
    host.initialize();
    host.await_tools(&["s__env"]);
    let text = host.call("s__env", "{}").content_text();
    let seen: BTreeMap<String, String> = serde_json::from_str(&text).expect("environment");
    assert_eq!(seen.get("GIVEN").map(String::as_str), Some("from s3cret"));
    assert_eq!(seen.get("PLAIN").map(String::as_str), Some("p"));
    assert_eq!(seen.get("LANG").map(String::as_str), Some("C.UTF-8"));
    assert!(seen.contains_key("PATH") && seen.contains_key("HOME"), "{seen:?}");
    assert!(!seen.contains_key("SECRET_OF_HOST") && !seen.contains_key("OTHER_SECRET"), "{seen:?}");
    host.finish();
}

#[test]
fn passed_environment_variables_reach_the_servers_that_name_them() {
    let workspace = Workspace::new();
    let script = Script::new().tool("env", r#"{"env":true}"#);
    let mut config = workspace
        .config(&[("all", script.clone()), ("entry", script.clone()), ("own", script)])
        .top("defaults", json!({ "passEnv": ["CLOUD_*"] }));
    let mut entry = config.value()["mcpServers"]["entry"].clone();
    entry["env_vars"] = json!(["ONE", { "name": "UNSET" }]);
    entry["env"] = json!({ "CLOUD_REGION": "mine" });
    config =
        config.entry("entry", entry).options("own", json!({ "passEnv": ["CLOUD_KEY", "T?O", "PLUGBAY*"] }));
    workspace.write_config(&config);
    let mut command = workspace.command(&gateway());
    command.envs([("CLOUD_KEY", "k"), ("CLOUD_REGION", "r"), ("ONE", "1"), ("TWO", "2"), ("OTHER", "x")]);
    let host = Host::spawn(command.envs([("PLUGBAY_HTTP_TOKEN", "t"), ("DOCKER_HOST", "unix:///d")]));
    host.initialize();
    host.await_tools(&["all__env", "entry__env", "own__env"]);
    for (server, expected) in [
        ("all", vec![("CLOUD_KEY", "k"), ("CLOUD_REGION", "r")]),
        ("entry", vec![("CLOUD_REGION", "mine"), ("ONE", "1")]),
        ("own", vec![("CLOUD_KEY", "k"), ("TWO", "2")]),
    ] {
        let text = host.call(&format!("{server}__env"), "{}").content_text();
        let seen: BTreeMap<String, String> = serde_json::from_str(&text).expect("environment");
        let names = ["CLOUD_KEY", "CLOUD_REGION", "ONE", "TWO", "UNSET", "OTHER", "PLUGBAY_HTTP_TOKEN"];
        let passed: Vec<(&str, &str)> =
            names.iter().filter_map(|name| Some((*name, seen.get(*name)?.as_str()))).collect();
        assert_eq!(passed, expected, "{server}");
        assert_eq!(seen.get("DOCKER_HOST").map(String::as_str), Some("unix:///d"), "as usual");
    }
    host.finish();
}
