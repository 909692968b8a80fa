//! `plugbay status`: it reports what is running, and nothing that is not.

use std::{
    fs,
    process::{Command, Output},
};

use plugbay_testkit::{DEADLINE, Host, HttpGateway, MODERN_META, Script, Signal, Workspace, wait_until};
use serde_json::{Value, json};

use crate::gateway;

const STATUS_FILES: &str = "state/plugbay/running";

fn status(workspace: &Workspace, arguments: &[&str]) -> Output {
    let mut command = Command::new(gateway());
    command.arg("status").args(arguments).current_dir(workspace.path());
    command.env_clear().envs(workspace.environment()).output().expect("it runs")
}

fn gateways(workspace: &Workspace) -> Vec<Value> {
    let told: Value = serde_json::from_slice(&status(workspace, &["--json"]).stdout).expect("JSON");
    told["gateways"].as_array().expect("a list").clone()
}

/// Reads the status until it matches.
#[track_caller]
fn await_status(workspace: &Workspace, what: &str, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    wait_until(what, DEADLINE, || Some(gateways(workspace)).filter(|told| fits(told)))
}

fn is_ready(gateway: &Value) -> bool {
    let servers = gateway["servers"].as_array().expect("a list");
    servers.iter().all(|server| server["state"] == "ready")
}

fn introduction(name: &str, version: &str) -> String {
    format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"{name}","version":"{version}"}}}}"#
    )
}

fn open_as(host: &Host, name: &str, version: &str) {
    let id = host.request("initialize", &introduction(name, version));
    host.expect_response(id);
    host.notify("notifications/initialized", "{}");
    host.list_tools();
}

#[test]
fn two_gateways_are_shown_with_their_hosts_and_servers_until_they_end() {
    let workspace = Workspace::new();
    // A server with instances for sessions would not start before it is called.
    let config = workspace.config(&[("a", Script::friendly())]).top("mode", json!("auto"));
    let config = config.options("a", json!({ "scope": "shared", "warm": "always" }));
    workspace.write_config(&config);
    let nothing = status(&workspace, &[]);
    assert!(nothing.status.success());
    assert!(nothing.stdout.starts_with(b"no gateway runs"), "{nothing:?}");
    assert!(workspace.log("a").is_empty(), "nothing is started");

    let host = workspace.serve(&gateway());
    open_as(&host, "claude-code", "2.1");
    let mut shared = HttpGateway::start(&mut workspace.command(&gateway()));
    let open = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}}"#,
        introduction("somebody", "7")
    );
    let sessions = [0; 2].map(|_| shared.post(&[], &open).header("mcp-session-id").expect("one").to_owned());
    let modern =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{{MODERN_META}}}}}}}"#);
    shared.post(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")], &modern);
    let told = await_status(&workspace, "two gateways with hosts in their modes", |told| {
        let [one, two] = told else { return false };
        let hosts = two["hosts"].as_array().expect("a list");
        let counted =
            hosts.len() == 2 && hosts[0]["count"] == 2 && hosts.iter().all(|host| host["mode"] == "all");
        is_ready(one) && is_ready(two) && counted
    });

    assert_eq!(told[0]["pid"], host.pid());
    assert_eq!((&told[0]["transport"], &told[0]["address"]), (&json!("stdio"), &Value::Null));
    assert_eq!(told[0]["config"], workspace.config_path().to_str().unwrap());
    assert_eq!(told[0]["folder"], fs::canonicalize(workspace.path()).unwrap().to_str().unwrap());
    assert!(told[0]["since"].as_u64().is_some_and(|since| since > 1_700_000_000), "{told:#?}");
    let claude = json!({
        "name": "claude-code", "version": "2.1", "profile": "claude-code", "era": "legacy", "mode": "all",
        "why": "the host keeps tools out of context itself", "count": 1,
    });
    assert_eq!(told[0]["hosts"], json!([claude]));
    let server = &told[0]["servers"][0];
    assert_eq!((&server["name"], &server["tools"]), (&json!("a"), &json!(2)));
    assert!(workspace.starts("a").iter().any(|pid| server["pid"] == *pid), "{server}");
    assert_eq!(told[1]["transport"], "http");
    assert_eq!(told[1]["address"], format!("http://{}/mcp", shared.address()));
    assert_eq!(
        (&told[1]["hosts"][1]["name"], &told[1]["hosts"][1]["era"]),
        (&json!("testkit"), &json!("modern"))
    );
    let why = told[1]["hosts"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("the cheapest mode in 5 to 20 turns (search "), "{why}");

    let shown = String::from_utf8(status(&workspace, &[]).stdout).unwrap();
    for line in [
        format!("gateway {}: stdio, for ", host.pid()),
        "claude-code  2.1      claude-code  legacy  all   the host keeps tools out".to_owned(),
        format!(": http://{}/mcp, for ", shared.address()),
        "somebody × 2  7".to_owned(),
        "a       ready      2  ".to_owned(),
    ] {
        assert!(shown.contains(&line), "{line}\n{shown}");
    }

    let mut leaving = shared.connect();
    leaving.request("DELETE", &[("mcp-session-id", &sessions[0])], "");
    leaving.reply();
    await_status(&workspace, "one host less", |told| {
        told.get(1).is_some_and(|gateway| gateway["hosts"][0]["count"] == 1)
    });
    assert_eq!(workspace.starts("a").len(), 2, "looking starts nothing");

    host.finish();
    assert_eq!(gateways(&workspace).len(), 1);
    shared.terminate();
    assert!(shared.ended().success());
    assert_eq!((gateways(&workspace), workspace.files(STATUS_FILES)), (vec![], vec![]));
}

#[test]
fn a_killed_gateway_is_not_shown_and_its_status_file_is_removed() {
    let workspace = Workspace::new();
    // A process that was killed while writing leaves a draft, which is removed once it surely has no owner.
    let pages = || {
        let mut pages = workspace.files(STATUS_FILES);
        pages.retain(|page| page.extension().is_none_or(|extension| extension != "draft"));
        pages
    };
    let killed = || {
        let mut host = workspace.serve_with(&gateway(), &[("a", Script::friendly())]);
        host.initialize();
        wait_until("a page", DEADLINE, || (pages().len() == 1).then_some(()));
        host.signal(Signal::KILL);
        host.wait_for_exit();
        assert_eq!(pages().len(), 1, "left behind");
    };
    killed();
    assert_eq!((gateways(&workspace), pages()), (vec![], vec![]));
    killed();
    let left = pages();
    let host = workspace.serve(&gateway());
    wait_until("another page instead", DEADLINE, || {
        let pages = pages();
        (pages.len() == 1 && pages != left).then_some(())
    });
    host.finish();
}

#[test]
fn a_server_failure_is_shown_with_its_reason_and_no_secret() {
    let workspace = Workspace::new();
    let broken = Script::new().set("exit", r#"{"code":9,"stderr":["connect ECONNREFUSED 127.0.0.1:5433"]}"#);
    let config = workspace
        .config(&[("a", Script::friendly()), ("broken", broken)])
        .entry(
            "ghost",
            json!({"command": "no-such-program", "args": ["--key=canary"], "env": {"KEY": "canary"}}),
        )
        .entry("odd", json!({"args": []}));
    workspace.write_config(&config);
    let host = workspace.serve(&gateway());
    host.initialize();
    let told = await_status(&workspace, "three that failed", |told| {
        let [gateway] = told else { return false };
        let servers = gateway["servers"].as_array().expect("a list");
        servers.iter().filter(|server| server["reason"].is_string()).count() == 3
            && servers[0]["state"] == "ready"
    });
    let servers = &told[0]["servers"];
    assert!(servers[1]["reason"].as_str().unwrap().contains("exit code 9"), "{servers:#}");
    assert_eq!(servers[1]["stderr"], json!(["connect ECONNREFUSED 127.0.0.1:5433"]));
    assert_eq!(servers[1]["remedy"], "start the service that this server wants to reach");
    assert!(servers[2]["reason"].as_str().unwrap().contains("no-such-program"), "{servers:#}");
    assert!(servers[3]["reason"].as_str().unwrap().contains("has no `command`"), "{servers:#}");
    let pages: String =
        workspace.files(STATUS_FILES).iter().map(|page| fs::read_to_string(page).unwrap()).collect();
    assert!(pages.contains("ghost") && !pages.contains("canary"), "{pages}");

    let run = status(&workspace, &[]);
    let shown = String::from_utf8(run.stdout).unwrap();
    assert_eq!(run.status.code(), Some(1), "{shown}");
    let why = "    stderr  connect ECONNREFUSED 127.0.0.1:5433\n    try     start the service";
    assert!(shown.contains(why), "{shown}");
    host.finish();
}

#[test]
fn a_status_shows_changed_modes_and_idle_servers() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("a", Script::friendly())]).options("a", json!({"idle": "100ms"}));
    workspace.write_config(&config);
    let host = workspace.serve(&gateway());
    host.discover();
    let told = await_status(&workspace, "a server at rest", |told| {
        told.first().is_some_and(|gateway| {
            gateway["servers"][0]["state"] == "idle" && gateway["hosts"][0]["mode"] == "all"
        })
    });
    let shown = &told[0]["hosts"][0];
    assert_eq!((&shown["era"], &shown["why"]), (&json!("modern"), &json!("configured")));
    workspace.write_config(&config.server(&workspace, "b", &Script::friendly()).top("mode", json!("search")));
    await_status(&workspace, "the new configuration", |told| {
        told.first().is_some_and(|gateway| {
            gateway["hosts"][0]["mode"] == "search" && gateway["servers"][1]["state"] == "ready"
        })
    });
    host.finish();
}

#[test]
fn without_a_writable_state_folder_everything_else_works() {
    let workspace = Workspace::new();
    fs::write(workspace.path().join("state/plugbay"), "in the way").unwrap();
    let host = workspace.serve_with(&gateway(), &[("a", Script::friendly())]);
    host.initialize();
    host.await_tools(&["a__echo"]);
    wait_until("a word about it", DEADLINE, || host.stderr().contains("plugbay status").then_some(()));
    assert!(host.call("a__echo", r#"{"canary":1}"#).content_text().contains("canary"));
    let run = status(&workspace, &[]);
    let told = String::from_utf8(run.stderr).unwrap();
    assert_eq!((run.status.code(), run.stdout.as_slice()), (Some(1), &b""[..]), "{told}");
    assert!(told.starts_with("error: cannot read the status files in "), "{told}");
    host.finish();
}
