//! Activate mode: the host's lists before, during and after activation, with this mode's initial tools, in
//! both eras.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Offer, Tool},
    era::{CAPABILITIES_KEY, CLIENT_INFO_KEY, Era, MODERN_VERSION, VERSION_KEY},
    exposure::{Exposure, Mode},
    failure::Failure,
    name::ServerName,
    policy::Patterns,
    surface::{Layout, Snapshot},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::harness::{Harness, INITIALIZED, request};

fn name(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

/// `chrome` and `github` have listed their tools; `linear` is configured but has not listed yet.
fn active_snapshot(mode: Option<Mode>) -> Snapshot {
    let catalog = [("chrome", "navigate"), ("github", "merge")].into_iter();
    let catalog = catalog.fold(Catalog::default(), |catalog, (server, tool)| {
        catalog.apply(Change::Listed(name(server), offer(tool)))
    });
    let exposures = ["chrome", "github", "linear"].map(|server| (name(server), Exposure::default())).into();
    let layout = Layout { mode, exposures, name_limit: 64, ..Layout::default() };
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

fn offer(tool: &str) -> Arc<Offer> {
    let schema =
        json!({ "type": "object", "properties": { "url": { "type": "string" } }, "required": ["url"] });
    let tool = json!({ "name": tool, "description": "Does it.", "inputSchema": schema });
    let tool = Tool::parse(Bytes::from(tool.to_string())).unwrap();
    Arc::new(Offer::new(Era::Legacy, None, None, vec![tool]))
}

/// The snapshot after a change of a server.
fn after(snapshot: &Snapshot, change: Change) -> Snapshot {
    Snapshot::new(Arc::new(snapshot.catalog.apply(change)), Arc::clone(&snapshot.layout), true)
}

struct Host {
    harness: Harness,
    era: Era,
    client: &'static str,
    next: u64,
}

impl Host {
    async fn new(era: Era, client: &'static str, snapshot: Snapshot) -> Self {
        let mut host = Self { harness: Harness::with(snapshot), era, client, next: 0 };
        match era {
            Era::Legacy => {
                let params = json!({ "protocolVersion": "2025-11-25", "clientInfo": { "name": client, "version": "1" } });
                host.harness.ask(request("\"i\"", "initialize", &params.to_string())).await;
                host.harness.say(INITIALIZED).await;
            }
            Era::Modern => {
                host.say("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }))
                    .await;
                assert_eq!(host.harness.hear().await["method"], "notifications/subscriptions/acknowledged");
            }
        }
        host
    }

    async fn say(&mut self, method: &str, mut params: Value) {
        self.next += 1;
        if self.era == Era::Modern {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta[VERSION_KEY] = MODERN_VERSION.into();
            meta[CAPABILITIES_KEY] = json!({});
            meta[CLIENT_INFO_KEY] = json!({ "name": self.client, "version": "1" });
        }
        self.harness.say(request(self.next, method, &params.to_string())).await;
    }

    async fn tools(&mut self) -> String {
        self.say("tools/list", json!({})).await;
        let answer = self.harness.hear().await;
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    async fn call_builtin(&mut self, tool: &str, arguments: Value) {
        self.say("tools/call", json!({ "name": tool, "arguments": arguments })).await;
    }

    async fn told(&mut self) -> (String, bool) {
        let answer = self.harness.hear().await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (text.to_owned(), answer["result"]["isError"] == true)
    }

    async fn is_told_of_a_change(&mut self) {
        assert_eq!(self.harness.hear().await["method"], "notifications/tools/list_changed");
    }

    /// Activates or deactivates, lists again when notified, and returns the answer.
    async fn switch(&mut self, tool: &str, what: &str) -> String {
        self.call_builtin(tool, json!({ "name": what })).await;
        self.is_told_of_a_change().await;
        self.tools().await;
        self.told().await.0
    }
}

const THREE: &str = "gateway_activate gateway_deactivate gateway_status";
const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

#[tokio::test(start_paused = true)]
async fn activation_waits_until_the_host_has_listed_tools_again() {
    for era in ERAS {
        let mut host = Host::new(era, "opencode", active_snapshot(Some(Mode::Activate))).await;
        assert_eq!(host.tools().await, THREE);
        host.call_builtin("gateway_activate", json!({ "name": "chrome" })).await;
        host.is_told_of_a_change().await;
        host.harness.hear_nothing().await;
        assert_eq!(host.tools().await, format!("{THREE} chrome__navigate"));
        let (text, failed) = host.told().await;
        assert!(text.starts_with("chrome: 1 tool, ~") && !failed, "{text}");

        host.say("tools/call", json!({ "name": "chrome__navigate", "arguments": {} })).await;
        let forwarded = host.harness.forwarded().await;
        assert!(forwarded.text().contains(r#""name":"navigate""#), "{}", forwarded.text());
        forwarded.answer(r#"{"content":[]}"#);
        host.harness.hear().await;

        host.call_builtin("gateway_deactivate", json!({ "name": "chrome" })).await;
        host.is_told_of_a_change().await;
        host.harness.hear_nothing().await;
        assert_eq!(host.tools().await, THREE);
        assert_eq!(host.told().await, ("chrome is off".to_owned(), false));
    }
}

#[tokio::test(start_paused = true)]
async fn activation_waits_a_limited_time_for_the_host_to_list_tools() {
    let mut host = Host::new(Era::Legacy, "claude-code", active_snapshot(Some(Mode::Activate))).await;
    host.tools().await;
    let start = Instant::now();
    host.call_builtin("gateway_activate", json!({ "name": "chrome" })).await;
    host.is_told_of_a_change().await;
    host.told().await;
    assert_eq!(start.elapsed(), Duration::from_millis(1500));
}

#[tokio::test(start_paused = true)]
async fn activation_waits_for_the_settling_time_of_the_host() {
    let mut host =
        Host::new(Era::Legacy, "gemini-cli-mcp-client", active_snapshot(Some(Mode::Activate))).await;
    host.tools().await;
    let start = Instant::now();
    host.switch("gateway_activate", "chrome").await;
    assert_eq!(start.elapsed(), Duration::from_millis(250));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_ignores_list_changed_uses_execute_tool() {
    for era in ERAS {
        let mut host = Host::new(era, "codex-mcp-client", active_snapshot(Some(Mode::Activate))).await;
        assert_eq!(host.tools().await, format!("{THREE} execute_tool"));
        let start = Instant::now();
        host.call_builtin("gateway_activate", json!({ "name": "chrome" })).await;
        host.is_told_of_a_change().await;
        let (text, _) = host.told().await;
        assert!(text.contains("execute_tool:\nchrome__navigate(url: string) - Does it."), "{text}");
        assert_eq!(start.elapsed(), Duration::ZERO);
        host.call_builtin("execute_tool", json!({ "name": "chrome__navigate", "arguments": { "url": "x" } }))
            .await;
        host.harness.forwarded().await.answer("{}");
        host.harness.hear().await;
    }
}

#[tokio::test(start_paused = true)]
async fn activation_waits_for_a_warming_server_with_progress() {
    for era in ERAS {
        let cold = active_snapshot(Some(Mode::Activate));
        let mut host = Host::new(era, "claude-code", cold.clone()).await;
        host.tools().await;
        let arguments = json!({ "name": ["linear", "chrome"] });
        let params =
            json!({ "name": "gateway_activate", "arguments": arguments, "_meta": { "progressToken": "p" } });
        host.say("tools/call", params).await;
        let progress = host.harness.hear().await["params"].clone();
        assert_eq!(progress["progressToken"], "p");
        assert_eq!((&progress["progress"], &progress["total"]), (&json!(1), &json!(2)), "{progress}");
        assert_eq!(progress["message"], "waiting for linear");
        host.harness.hear_nothing().await;
        host.harness.snapshots.send_replace(after(&cold, Change::Listed(name("linear"), offer("tickets"))));
        host.is_told_of_a_change().await;
        assert!(host.tools().await.ends_with("chrome__navigate linear__tickets"));
        let (text, failed) = host.told().await;
        assert!(text.contains("chrome: 1 tool,") && text.contains("linear: 1 tool,") && !failed, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn activation_of_single_tools_waits_for_a_warming_server() {
    let cold = active_snapshot(Some(Mode::Activate));
    let mut host = Host::new(Era::Legacy, "claude-code", cold.clone()).await;
    host.tools().await;
    host.call_builtin("gateway_activate", json!({ "name": "linear.{tick*, x}" })).await;
    host.harness.hear_nothing().await;
    host.harness.snapshots.send_replace(after(&cold, Change::Listed(name("linear"), offer("tickets"))));
    host.is_told_of_a_change().await;
    assert!(host.tools().await.ends_with(" linear__tickets"));
    assert!(host.told().await.0.starts_with("linear: 1 tool,"));
}

#[tokio::test(start_paused = true)]
async fn a_ready_server_is_activated_while_others_are_warming() {
    let ready = active_snapshot(Some(Mode::Activate));
    let unsettled = Snapshot::new(Arc::clone(&ready.catalog), Arc::clone(&ready.layout), false);
    let mut host = Host::new(Era::Legacy, "codex-mcp-client", unsettled).await;
    host.call_builtin("gateway_status", json!({})).await;
    assert!(host.told().await.0.contains("linear: warming"));
    host.call_builtin("gateway_activate", json!({ "name": "chrome" })).await;
    assert!(host.told().await.0.starts_with("chrome: 1 tool,"));
    // The next server to list may explain an unknown name.
    host.call_builtin("gateway_activate", json!({ "name": "tickets" })).await;
    host.harness.hear_nothing().await;
    host.harness.snapshots.send_replace(after(&ready, Change::Listed(name("linear"), offer("tickets"))));
    assert!(host.told().await.0.starts_with("linear: 1 tool,"));
}

#[tokio::test(start_paused = true)]
async fn activation_does_not_wait_for_a_host_without_listener() {
    let mut host = Host::new(Era::Modern, "opencode", active_snapshot(Some(Mode::Activate))).await;
    host.harness
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    host.tools().await;
    let start = Instant::now();
    host.call_builtin("gateway_activate", json!({ "name": "chrome" })).await;
    let (text, _) = host.told().await;
    assert!(text.contains("chrome__navigate(url: string)"), "{text}");
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn activation_says_where_tools_of_other_modes_are() {
    for era in ERAS {
        let mixed = active_snapshot(Some(Mode::Activate));
        let mut layout = (*mixed.layout).clone();
        layout.exposures.get_mut(&name("github")).unwrap().mode = Some(Mode::Suite);
        let mixed = Snapshot::new(Arc::clone(&mixed.catalog), Arc::new(layout), true);
        let mut host = Host::new(era, "claude-code", mixed).await;
        host.tools().await;
        host.call_builtin("gateway_activate", json!({ "name": "github" })).await;
        assert_eq!(host.told().await.0, "github: a tool of its own, which tells what it has");
    }
}

#[tokio::test(start_paused = true)]
async fn deactivation_names_the_pinned_tools_that_stay() {
    for era in ERAS {
        let mixed = active_snapshot(Some(Mode::Activate));
        let mut layout = (*mixed.layout).clone();
        layout.exposures.get_mut(&name("github")).unwrap().mode = Some(Mode::All);
        layout.exposures.get_mut(&name("chrome")).unwrap().pin = Patterns::compile(["*"]).unwrap();
        let mixed = Snapshot::new(Arc::clone(&mixed.catalog), Arc::new(layout), true);
        let mut host = Host::new(era, "claude-code", mixed).await;
        for (server, told) in [
            ("github", "github: always in the list"),
            ("chrome", "chrome is off; 1 pinned tools stay in the list"),
            ("linear", "linear is off"),
        ] {
            host.call_builtin("gateway_deactivate", json!({ "name": server })).await;
            assert_eq!(host.told().await.0, told);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn activation_retries_a_failed_server() {
    for era in ERAS {
        let failed = |words: &str| Arc::new(Failure::new("exited with code 1", vec![words.to_owned()]));
        let snapshot = active_snapshot(Some(Mode::Activate));
        let first = after(&snapshot, Change::Failed(name("linear"), failed("no key")));
        let mut host = Host::new(era, "claude-code", first.clone()).await;
        host.tools().await;
        let activate = json!({ "name": "linear" });
        let params =
            json!({ "name": "gateway_activate", "arguments": activate, "_meta": { "progressToken": "p" } });
        host.say("tools/call", params).await;
        assert_eq!(host.harness.hear().await["params"]["message"], "waiting for linear");
        host.harness.hear_nothing().await;
        let second = after(&first, Change::Failed(name("linear"), failed("wrong key")));
        host.harness.snapshots.send_replace(second.clone());
        let (text, is_error) = host.told().await;
        assert!(
            text.starts_with("linear does not work: exited with code 1; stderr: wrong key; try: "),
            "{text}"
        );
        assert!(is_error);
        host.call_builtin("gateway_activate", json!({ "name": "linear" })).await;
        host.harness.hear_nothing().await;
        host.harness.snapshots.send_replace(after(&second, Change::Listed(name("linear"), offer("tickets"))));
        host.is_told_of_a_change().await;
        assert!(host.tools().await.ends_with(" linear__tickets"));
        assert!(host.told().await.0.starts_with("linear: 1 tool,"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_active_server_is_kept_running() {
    for era in ERAS {
        let mut host = Host::new(era, "claude-code", active_snapshot(Some(Mode::Activate))).await;
        host.tools().await;
        host.switch("gateway_activate", "chrome, github").await;
        assert_eq!(host.harness.held(), "chrome github");
        host.switch("gateway_deactivate", "chrome").await;
        assert_eq!(host.harness.held(), "github");
        host.harness.leave().await;
        assert_eq!(host.harness.held(), "", "the host has gone");
    }
}

#[tokio::test(start_paused = true)]
async fn activation_limits_the_number_of_names() {
    let mut host = Host::new(Era::Legacy, "claude-code", active_snapshot(Some(Mode::Activate))).await;
    host.call_builtin("gateway_activate", json!({ "names": vec!["zebra"; 5000] })).await;
    let (text, failed) = host.told().await;
    assert!(text.ends_with("the limit is 100") && failed && text.len() < 100, "{text}");
}

#[tokio::test(start_paused = true)]
async fn activation_explains_a_failed_server() {
    for era in ERAS {
        let cold = active_snapshot(Some(Mode::Activate));
        let mut host = Host::new(era, "claude-code", cold.clone()).await;
        host.call_builtin("gateway_activate", json!({ "name": "linear" })).await;
        host.harness.hear_nothing().await;
        let failure = Arc::new(Failure::new("exited with code 1", vec!["Unauthorized".to_owned()]));
        host.harness.snapshots.send_replace(after(&cold, Change::Failed(name("linear"), failure)));
        let (text, failed) = host.told().await;
        let expected = "linear does not work: exited with code 1; stderr: Unauthorized; try: check the token";
        assert!(text.starts_with(expected) && failed, "{text}");
        for (arguments, expected) in [
            (json!({ "name": "zebra" }), "there is nothing named \"zebra\""),
            (json!({}), "\"name\" is missing: one of chrome, github, linear"),
        ] {
            host.call_builtin("gateway_activate", arguments).await;
            let (text, failed) = host.told().await;
            assert!(text.starts_with(expected) && failed, "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_crash_drops_the_tools_of_an_active_server_and_a_recovery_brings_them_back() {
    for era in ERAS {
        let snapshot = active_snapshot(Some(Mode::Activate));
        let mut host = Host::new(era, "claude-code", snapshot.clone()).await;
        host.tools().await;
        host.switch("gateway_activate", "chrome").await;
        let failure = Arc::new(Failure::new("was killed by SIGKILL", Vec::new()));
        let crashed = after(&snapshot, Change::Failed(name("chrome"), failure));
        host.harness.snapshots.send_replace(crashed.clone());
        host.is_told_of_a_change().await;
        assert_eq!(host.tools().await, THREE);
        host.call_builtin("gateway_status", json!({})).await;
        let (text, _) = host.told().await;
        assert!(
            text.starts_with("chrome: error: was killed by SIGKILL; try: run `plugbay list`")
                && text.contains("\ngithub: ready, 1 tool, ~"),
            "{text}"
        );
        host.harness
            .snapshots
            .send_replace(after(&crashed, Change::Listed(name("chrome"), offer("navigate"))));
        host.is_told_of_a_change().await;
        assert_eq!(host.tools().await, format!("{THREE} chrome__navigate"));
    }
}

#[tokio::test(start_paused = true)]
async fn gateway_status_shows_every_state() {
    for era in ERAS {
        let snapshot = active_snapshot(Some(Mode::Activate));
        let failure = Arc::new(Failure::new("exited", Vec::new()));
        let mut host =
            Host::new(era, "claude-code", after(&snapshot, Change::Failed(name("github"), failure))).await;
        host.tools().await;
        host.switch("gateway_activate", "chrome").await;
        host.call_builtin("gateway_status", json!({})).await;
        let (text, _) = host.told().await;
        let states: Vec<&str> = text.lines().map(|line| line.split([',', ';']).next().unwrap()).collect();
        assert_eq!(states[..3], ["chrome: active", "github: error: exited", "linear: warming"], "{text}");
        assert!(states[3].starts_with("in context: ~") && states[4] == "mode: activate", "{text}");
        assert!(text.ends_with("host: claude-code"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_mode_is_chosen_for_the_host_and_kept() {
    let small = active_snapshot(None);
    let mut host = Host::new(Era::Legacy, "opencode", small.clone()).await;
    assert_eq!(host.tools().await, "gateway_status chrome__navigate github__merge");
    // Even a catalog too large for a full list does not change a conversation that has begun.
    let many = (0..300).map(|number| {
        let tool = json!({ "name": format!("tool_{number}"), "description": "word ".repeat(100) });
        Tool::parse(Bytes::from(tool.to_string())).unwrap()
    });
    let large = Arc::new(Offer::new(Era::Legacy, None, None, many.collect()));
    let large = after(&small, Change::Listed(name("linear"), large));
    host.harness.snapshots.send_replace(large.clone());
    host.is_told_of_a_change().await;
    assert!(host.tools().await.contains("linear__tool_299"));
    let mut next = Host::new(Era::Modern, "opencode", large).await;
    assert_eq!(next.tools().await, "search_tools describe_tool execute_tool");
}

#[tokio::test(start_paused = true)]
async fn slash_commands_are_prompts() {
    for era in ERAS {
        let mut host = Host::new(era, "claude-code", active_snapshot(Some(Mode::Activate))).await;
        host.say("prompts/list", json!({})).await;
        let listed = host.harness.hear().await["result"]["prompts"].clone();
        let names: Vec<&str> =
            listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["activate", "deactivate", "search", "status"]);
        host.say("prompts/get", json!({ "name": "activate", "arguments": { "name": "git" } })).await;
        let text = host.harness.hear().await["result"]["messages"][0]["content"]["text"].clone();
        assert_eq!(text, "Call gateway_activate with the name \"git\", and tell me what came of it.");
        host.say("prompts/get", json!({ "name": "status" })).await;
        let text = host.harness.hear().await["result"]["messages"][0]["content"]["text"].clone();
        assert!(text.as_str().unwrap().contains("chrome: ready, 1 tool,"), "{text}");
        host.say("prompts/get", json!({ "name": "search", "arguments": { "query": "merge" } })).await;
        let text = host.harness.hear().await["result"]["messages"][0]["content"]["text"].clone();
        assert!(text.as_str().unwrap().contains("github__merge - Does it."), "{text}");
        host.say("prompts/get", json!({ "name": "activate" })).await;
        assert_eq!(host.harness.hear().await["error"]["code"], -32602);
        let reference = json!({ "type": "ref/prompt", "name": "activate" });
        let argument = json!({ "name": "name", "value": "G" });
        host.say("completion/complete", json!({ "ref": reference, "argument": argument })).await;
        assert_eq!(host.harness.hear().await["result"]["completion"]["values"], json!(["github"]));
    }
}

#[tokio::test(start_paused = true)]
async fn gateway_status_works_in_every_mode() {
    for era in ERAS {
        for (mode, told) in [
            (None, "mode: all: the host keeps tools out of context itself; host: claude-code"),
            (Some(Mode::All), "mode: all; host: claude-code"),
            (Some(Mode::Suite), "mode: suite; host: claude-code"),
            (Some(Mode::Search), "mode: search; host: claude-code"),
        ] {
            let mut host = Host::new(era, "claude-code", active_snapshot(mode)).await;
            // One server has not listed its tools: only a list of all tools must say why.
            let lists_all = mode.is_none_or(|mode| mode == Mode::All);
            assert_eq!(host.tools().await.contains("gateway_"), lists_all, "{mode:?}");
            host.call_builtin("gateway_status", json!({})).await;
            let (text, failed) = host.told().await;
            assert!(text.starts_with("chrome: ") && text.ends_with(told) && !failed, "{text}");
            host.say("prompts/list", json!({})).await;
            let listed = host.harness.hear().await["result"]["prompts"].clone();
            let plain = mode == Some(Mode::All);
            assert_eq!(listed.as_array().unwrap().len(), if plain { 0 } else { 2 }, "{listed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn activation_does_not_wait_for_a_host_that_never_listed_tools() {
    let mut host = Host::new(Era::Legacy, "opencode", active_snapshot(Some(Mode::Activate))).await;
    let start = Instant::now();
    host.call_builtin("gateway_activate", json!({ "name": "chrome" })).await;
    host.told().await;
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn instructions_omit_a_mode_that_is_not_chosen_yet() {
    let known = active_snapshot(None);
    for (settled, expected) in
        [(false, "Several MCP servers behind one.\n"), (true, "Several MCP servers behind one. A tool")]
    {
        let mut harness = Harness::with(known.with_states_of(Arc::clone(&known.catalog), settled));
        let answer = harness.ask(super::harness::INITIALIZE).await;
        let told = answer["result"]["instructions"].as_str().unwrap();
        assert!(told.starts_with(expected), "{told}");
    }
}
