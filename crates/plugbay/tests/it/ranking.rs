//! Search with a model: a real gateway, and an endpoint that answers like Gemini.

use plugbay_testkit::{Config, Endpoint, Host, Play, Script, Workspace};
use serde_json::{Value, json};

use crate::gateway;

const SECRET: &str = "hunter2-key";

fn says(text: &str) -> Play {
    Play::json(
        200,
        &json!({
            "candidates": [{ "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": "STOP" }],
            "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5 },
        }),
    )
}

/// A configuration with two tools behind search, and Gemini at this endpoint.
fn config(workspace: &Workspace, endpoint: &Endpoint) -> Config {
    let tools = json!([
        { "name": "draw", "description": "Paints a landscape.", "inputSchema": { "type": "object" } },
        { "name": "env", "description": "Tells the environment.", "inputSchema": { "type": "object" } },
    ]);
    let script =
        Script::new().set("tools", tools).tool("env", r#"{"env":true}"#).tool("draw", r#"{"echo":true}"#);
    let model = json!({ "provider": "gemini", "model": "gemini-x", "baseUrl": endpoint.url() });
    workspace.config(&[("s", script)]).top("mode", "search".into()).top("search", json!({ "model": model }))
}

fn open(workspace: &Workspace) -> Host {
    let host = Host::spawn(workspace.command(&gateway()).env("GEMINI_API_KEY", SECRET));
    host.initialize();
    host.await_tools(&["search_tools"]);
    host
}

#[track_caller]
fn first(host: &Host, query: &str) -> String {
    let text = host.call("search_tools", &json!({ "query": query }).to_string()).content_text();
    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

#[test]
fn a_model_ranks_a_search_and_is_asked_once() {
    let (workspace, endpoint) = (Workspace::new(), Endpoint::start([says(r#"["s__env", "s__draw"]"#)]));
    workspace.write_config(&config(&workspace, &endpoint));
    let host = open(&workspace);
    assert_eq!(first(&host, "paint a landscape"), "s__env");
    let asked = endpoint.asked();
    assert_eq!(asked.path, "/v1beta/models/gemini-x:generateContent");
    assert_eq!(asked.header("x-goog-api-key"), Some(SECRET));
    let text = asked.body["contents"][0]["parts"][0]["text"].as_str().unwrap();
    assert!(text.contains("paint a landscape") && text.contains("s__draw() - Paints a landscape."), "{text}");
    assert_eq!(first(&host, " Paint  a landscape"), "s__env");
    assert!(endpoint.untaken().is_empty());
    // Only the model gets the key.
    let environment = host.call("execute_tool", r#"{"name":"s__env"}"#).content_text();
    assert!(environment.contains("PATH") && !environment.contains(SECRET), "{environment}");
    let ended = host.finish();
    assert!(!ended.stderr.contains(SECRET), "{}", ended.stderr);
}

#[test]
fn a_ranking_model_that_fails_changes_no_search_and_is_logged_once() {
    let refused = json!({ "error": { "code": 429, "message": format!("quota of {SECRET}"), "status": "RESOURCE_EXHAUSTED" } });
    let limited =
        Play::Answer { status: 429, headers: vec![("retry-after", "3600")], body: refused.to_string() };
    let (workspace, endpoint) = (Workspace::new(), Endpoint::start([limited]));
    workspace.write_config(&config(&workspace, &endpoint));
    let host = open(&workspace);
    assert_eq!(first(&host, "paint a landscape"), "s__draw");
    assert_eq!(first(&host, "paint a portrait"), "s__draw");
    endpoint.asked();
    assert!(endpoint.untaken().is_empty(), "not before the hour is over");
    let ended = host.finish();
    let told: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("without the model")).collect();
    assert_eq!(told.len(), 1, "{}", ended.stderr);
    assert!(told[0].contains("again in 3600 s") && told[0].contains("quota of …"), "{told:?}");
}

#[test]
fn a_cancelled_search_ends_the_request_to_the_model() {
    let (workspace, endpoint) = (Workspace::new(), Endpoint::start([Play::Silence(Vec::new())]));
    workspace.write_config(&config(&workspace, &endpoint));
    let host = open(&workspace);
    let id = host.start_call("search_tools", r#"{"query":"paint a landscape"}"#);
    endpoint.asked();
    host.barrier();
    host.cancel(id);
    endpoint.left();
    host.barrier();
    assert!(
        host.take_now(|message| message.is_response() && message.id() == Some(&id.to_string())).is_none()
    );
    host.finish();
}

#[test]
fn the_model_of_a_host_ranks_without_a_key() {
    let (workspace, endpoint) = (Workspace::new(), Endpoint::start([]));
    let model = json!({ "model": { "provider": "host" } });
    workspace.write_config(&config(&workspace, &endpoint).top("search", model));
    let host = Host::spawn(&mut workspace.command(&gateway()));
    host.declare(r#"{"sampling":{}}"#);
    host.initialize();
    host.await_tools(&["search_tools"]);
    let id = host.start_call("search_tools", r#"{"query":"paint a landscape"}"#);
    let server_request = host.expect_request("sampling/createMessage");
    let asked: Value = serde_json::from_str(server_request.text()).unwrap();
    assert!(
        asked["params"]["messages"][0]["content"]["text"].as_str().unwrap().contains("s__env"),
        "{asked}"
    );
    host.reply(
        &server_request,
        r#"{"role":"assistant","content":{"type":"text","text":"[\"s__env\"]"},"model":"m"}"#,
    );
    assert!(host.expect_response(id).content_text().starts_with("s__env"));
    host.finish();
}
