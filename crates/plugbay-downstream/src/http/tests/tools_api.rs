//! The plain API: all tools as one list, calls that return the server's result, and errors with code words.

use std::{sync::Arc, time::Duration};

use plugbay_core::{
    era::Era,
    exposure::{Exposure, Mode},
    failure::{CallError, Failure, Limit},
    surface::{Layout, Snapshot},
};
use serde_json::{Value, json};

use super::harness::{Harness, Host, Reply, http};
use crate::scripted::{
    Forwarded, SECOND, server, snapshot, snapshot_in, snapshot_of, snapshot_with_tasks, unsettled,
};

fn get(path: &str, headers: &[(&str, &str)]) -> String {
    http("GET", path, headers, "")
}

fn calling(body: &str) -> String {
    http("POST", "/tools/call", &[], body)
}

/// A client whose call has reached its server.
async fn called(harness: &mut Harness, body: &str) -> (Host, Forwarded) {
    let mut client = harness.connect();
    client.say(calling(body)).await;
    let forwarded = harness.servers.forwarded().await;
    (client, forwarded)
}

fn error(reply: &Reply) -> (u16, String) {
    let word = reply.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
    assert!(reply.json()["error"]["message"].is_string(), "{reply:?}");
    (reply.status, word)
}

#[tokio::test(start_paused = true)]
async fn the_tool_list_has_definitions_as_their_servers_wrote_them() {
    let definition = json!({ "name": "echo", "inputSchema": { "type": "object" }, "x-odd": 1 });
    let harness = Harness::with(snapshot_of(&[definition], true), &[]);
    let reply = harness.ask(get("/tools", &[("x-session-id", "client-1")])).await;
    assert_eq!((reply.status, &*reply.headers["content-type"]), (200, "application/json"));
    assert_eq!(reply.headers["cache-control"], "no-cache");
    let expected = json!({ "tools": [{ "name": "s__echo", "inputSchema": { "type": "object" }, "x-odd": 1,
        "_meta": { "plugbay/source": { "server": "s", "tool": "echo" } } }] });
    assert_eq!(reply.json(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_tool_list_is_the_same_in_every_mode() {
    let all = Harness::new().ask(get("/tools", &[])).await;
    for mode in [None, Some(Mode::Search), Some(Mode::Suite)] {
        let first = snapshot(&["echo"], true);
        let layout = Layout { mode, ..Layout::clone(&first.layout) };
        let harness = Harness::with(Snapshot::new(first.catalog, Arc::new(layout), true), &[]);
        let reply = harness.ask(get("/tools", &[])).await;
        assert_eq!((&reply.body, &reply.headers["etag"]), (&all.body, &all.headers["etag"]), "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_tag_of_the_tool_list_is_answered_with_304() {
    let harness = Harness::new();
    let first = harness.ask(get("/tools", &[])).await;
    let tag = &*first.headers["etag"];
    for known in [tag, "*", &format!("\"x\", W/{tag}")] {
        let reply = harness.ask(get("/tools", &[("if-none-match", known)])).await;
        assert_eq!((reply.status, &*reply.body, &*reply.headers["etag"]), (304, "", tag), "{known}");
    }
    harness.snapshots.send_replace(snapshot(&["echo", "other"], true));
    let changed = harness.ask(get("/tools", &[("if-none-match", tag)])).await;
    assert_eq!(changed.status, 200);
    assert_ne!(changed.headers["etag"], tag);
    let mut client = harness.connect();
    client.say(http("HEAD", "/tools", &[("connection", "close")], "")).await;
    let length = changed.body.len().to_string();
    let head = client.head().await;
    assert_eq!((head.status, &head.headers["content-length"]), (200, &length));
    assert_eq!(client.read_to_end().await, 0, "HEAD has no body");
}

#[tokio::test(start_paused = true)]
async fn the_tool_list_waits_for_servers_that_have_not_listed_their_tools() {
    let harness = Harness::with(unsettled(), &[]);
    let mut client = harness.connect();
    client.say(get("/tools", &[])).await;
    client.silent().await;
    harness.snapshots.send_replace(snapshot(&["echo"], true));
    assert!(client.reply().await.body.contains("s__echo"));
}

#[tokio::test(start_paused = true)]
async fn a_call_brings_back_the_result_as_its_server_wrote_it() {
    let mut harness = Harness::new();
    let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__echo","arguments":{"n":1.0}}"#).await;
    let sent: Value = serde_json::from_str(&forwarded.text()).unwrap();
    assert_eq!(sent["method"], "tools/call");
    assert!(forwarded.text().contains(r#""name":"echo","arguments":{"n":1.0}"#), "{}", forwarded.text());
    let result = r#"{"content":[ ],"z":1.0,"isError":true,"a":123456789012345678901234567890}"#;
    forwarded.answer(result);
    let reply = client.reply().await;
    assert_eq!((reply.status, &*reply.body), (200, result), "an error of the tool is a result");
    assert_eq!(reply.headers["content-type"], "application/json");

    let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__echo"}"#).await;
    let large = format!(r#"{{"content":[],"x":"{}"}}"#, "y".repeat(50_000));
    forwarded.answer(&large);
    assert!(client.reply().await.body == large, "a large result too");
}

#[tokio::test(start_paused = true)]
async fn a_call_reaches_a_modern_server_and_its_result_stays_as_it_is() {
    let mut harness = Harness::with(snapshot_in(Era::Modern, &["echo"]), &[]);
    let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__echo"}"#).await;
    let result = r#"{"resultType":"complete","content":[]}"#;
    forwarded.answer_modern(result);
    assert_eq!(client.reply().await.body, result);
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_be_called_by_its_own_name_if_only_one_server_has_it() {
    let mut harness = Harness::new();
    let (mut client, forwarded) = called(&mut harness, r#"{"name":"echo"}"#).await;
    assert_eq!(forwarded.server(), "s");
    forwarded.answer("{}");
    assert_eq!(client.reply().await.status, 200);

    let twice = snapshot_with_tasks(Era::Legacy, &["a", "b"], Mode::All);
    let harness = Harness::with(twice, &[]);
    let reply = harness.ask(calling(r#"{"name":"echo"}"#)).await;
    assert_eq!(error(&reply), (409, "ambiguous_tool".to_owned()));
    assert_eq!(reply.json()["error"]["candidates"], json!(["a__echo", "b__echo"]));
}

#[tokio::test(start_paused = true)]
async fn a_call_by_own_name_waits_until_the_tools_of_all_servers_are_known() {
    let mut harness = Harness::with(snapshot(&["echo"], false), &[]);
    let mut client = harness.connect();
    client.say(calling(r#"{"name":"echo"}"#)).await;
    harness.servers.nothing_forwarded().await;
    harness.snapshots.send_replace(snapshot(&["echo"], true));
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(client.reply().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_404_with_near_names() {
    let harness = Harness::new();
    let reply = harness.ask(calling(r#"{"name":"s__ecko"}"#)).await;
    assert_eq!(error(&reply), (404, "unknown_tool".to_owned()));
    assert_eq!(reply.json()["error"]["nearest"], json!(["s__echo"]));
    for built_in in ["search_tools", "gateway_status"] {
        let reply = harness.ask(calling(&json!({ "name": built_in }).to_string())).await;
        assert_eq!(error(&reply), (404, "unknown_tool".to_owned()), "{built_in} is no tool of a server");
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_of_a_plain_call_are_repaired_or_rejected() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tools = [json!({ "name": "add", "inputSchema": schema })];
    let mut harness = Harness::with(snapshot_of(&tools, true), &[]);
    let reply = harness.ask(calling(r#"{"name":"s__add"}"#)).await;
    assert_eq!(error(&reply), (422, "invalid_arguments".to_owned()));
    assert!(reply.json()["error"]["problems"][0]["message"].as_str().unwrap().contains('n'), "{reply:?}");
    let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__add","arguments":{"n":"7"}}"#).await;
    assert!(forwarded.text().contains(r#""arguments":{"n":7}"#), "{}", forwarded.text());
    forwarded.answer(r#"{"content":[]}"#);
    assert_eq!(client.reply().await.json()["_meta"]["plugbay/repairs"][0]["was"], "number-in-string");
}

#[tokio::test(start_paused = true)]
async fn an_error_of_the_server_is_passed_inside_the_api_error() {
    let mut harness = Harness::new();
    for (code, expected) in [(-32602, (422, "rejected_arguments")), (-32000, (502, "server_error"))] {
        let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__echo"}"#).await;
        let rpc = format!(r#"{{"code":{code},"message":"no","data":{{"x":1.0}}}}"#);
        let id = forwarded.ticket().0;
        forwarded.answer_with(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{rpc}}}"#));
        let reply = client.reply().await;
        assert_eq!(error(&reply), (expected.0, expected.1.to_owned()));
        assert!(reply.body.contains(&format!(r#""rpc":{rpc}"#)), "{reply:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_has_the_status_of_its_failure() {
    let failure = Arc::new(Failure::new("exited with code 1", Vec::new()).with_remedy("install it"));
    let down = CallError::Down { server: server(), failure: Arc::clone(&failure) };
    let resting = CallError::Resting { server: server(), failure, retry_in: Duration::from_secs(7) };
    let late = CallError::TimedOut { server: server(), after: SECOND, limit: Limit::Settings };
    let large = CallError::TooLarge { server: server(), limit: 7 };
    let mut harness = Harness::new();
    for (failed, status, word, retry) in [
        (down, 502, "server_failed", None),
        (resting, 503, "server_resting", Some("7")),
        (late, 504, "timeout", None),
        (large, 502, "bad_answer", None),
    ] {
        let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__echo"}"#).await;
        forwarded.fail(failed);
        let reply = client.reply().await;
        assert_eq!(error(&reply), (status, word.to_owned()));
        assert_eq!(reply.headers.get("retry-after").map(String::as_str), retry, "{word}");
        if word == "server_failed" {
            assert_eq!(reply.json()["error"]["remedy"], "install it");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_tools_is_named_beside_an_unknown_tool() {
    let failure = Arc::new(Failure::new("exited", Vec::new()));
    let exposures = [(server(), Exposure::default())].into();
    let change = plugbay_core::catalog::Change::Failed(server(), failure);
    let catalog = plugbay_core::catalog::Catalog::default().apply(change);
    let layout = Layout { exposures, ..Layout::clone(&unsettled().layout) };
    let harness = Harness::with(Snapshot::new(Arc::new(catalog), Arc::new(layout), true), &[]);
    let reply = harness.ask(calling(r#"{"name":"web_search"}"#)).await;
    assert_eq!(error(&reply), (404, "unknown_tool".to_owned()));
    assert_eq!(reply.json()["error"]["failedServers"], json!(["s"]));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_disconnects_cancels_its_call() {
    let mut harness = Harness::new();
    let (client, forwarded) = called(&mut harness, r#"{"name":"s__echo"}"#).await;
    drop(client);
    let (ticket, text) = harness.servers.cancelled().await;
    assert!(ticket == forwarded.ticket() && text.contains("notifications/cancelled"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn elicitation_during_a_plain_call_is_told_that_nobody_can_be_asked() {
    let mut harness = Harness::new();
    let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__echo"}"#).await;
    for method in ["elicitation/create", "sampling/createMessage", "roots/list"] {
        assert!(forwarded.ask(9, method, r#"{"message":"?"}"#).is_err(), "{method}");
    }
    forwarded.answer(r#"{"content":[]}"#);
    assert_eq!(client.reply().await.status, 200);

    let mut harness = Harness::with(snapshot_in(Era::Modern, &["echo"]), &[]);
    let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__echo"}"#).await;
    assert_eq!(forwarded.client_capabilities(), "{}");
    let asks = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}}"#;
    forwarded.answer_modern(asks);
    assert_eq!(error(&client.reply().await), (422, "input_required".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_a_tool_requires_is_polled_for_a_plain_call() {
    let mut harness = Harness::with(snapshot_with_tasks(Era::Legacy, &["s"], Mode::All), &[]);
    let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__slow"}"#).await;
    let task = json!({ "taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttl": 60_000,
        "pollInterval": 100 });
    forwarded.answer(json!({ "task": task }));
    let fetched = harness.servers.forwarded().await;
    assert!(fetched.text().contains("tasks/result"), "{}", fetched.text());
    fetched.answer(r#"{"content":[{"type":"text","text":"done"}]}"#);
    assert!(client.reply().await.body.contains("done"));
}

#[tokio::test(start_paused = true)]
async fn wrong_requests_to_the_plain_api_get_their_status_and_code_word() {
    let harness = Harness::with(snapshot(&["echo"], true), &["secret"]);
    let good = ("authorization", "Bearer secret");
    let post = |headers: &[(&str, &str)], body: &str| {
        http("POST", "/tools/call", &[&[good], headers].concat(), body)
    };
    let call = r#"{"name":"s__echo"}"#;
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(200_000));
    let bad_session = "x".repeat(129);
    for (request, status, word) in [
        (http("POST", "/tools/call", &[], call), 401, "unauthorized"),
        (get("/tools", &[]), 401, "unauthorized"),
        (get("/openapi.json", &[]), 401, "unauthorized"),
        (post(&[("host", "evil.example")], call), 403, "forbidden"),
        (post(&[("origin", "https://evil.example")], call), 403, "forbidden"),
        (post(&[("content-type", "text/plain")], call), 415, "unsupported_media_type"),
        (post(&[("accept", "text/html")], call), 406, "not_acceptable"),
        (post(&[("x-session-id", &bad_session)], call), 400, "invalid_request"),
        (post(&[], "{"), 400, "invalid_json"),
        (post(&[], "\"a\nb\""), 400, "invalid_json"),
        (post(&[], r#"{"tool":"s__echo"}"#), 400, "invalid_request"),
        (post(&[], &long), 413, "too_large"),
        (get("/tools/call", &[good]), 405, "method_not_allowed"),
        (http("POST", "/tools", &[good], "{}"), 405, "method_not_allowed"),
        (http("DELETE", "/openapi.json", &[good], ""), 405, "method_not_allowed"),
        (get("/tools/other", &[good]), 404, "not_found"),
        (get("/tools", &[good, ("x-session-id", "a b")]), 400, "invalid_request"),
    ] {
        let reply = harness.ask(&request).await;
        assert_eq!(error(&reply), (status, word.to_owned()), "{}", &request[..request.len().min(300)]);
        assert_eq!(reply.headers.contains_key("allow"), status == 405);
        assert_eq!(reply.headers.contains_key("www-authenticate"), status == 401);
    }
    let allowed = harness.ask(get("/tools/call", &[good])).await;
    assert_eq!(allowed.headers["allow"], "POST");
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_session_at_a_time_each_get_their_own_answer() {
    let mut harness = Harness::new();
    let session =
        |name: &str| http("POST", "/tools/call", &[("x-session-id", name)], r#"{"name":"s__echo"}"#);
    let mut clients = Vec::new();
    for n in 0..40 {
        let mut client = harness.connect();
        client.say(session("one")).await;
        clients.push((client, harness.servers.forwarded().await, n));
    }
    let mut other = harness.connect();
    other.say(session("other")).await;
    harness.servers.forwarded().await.answer("{}");
    assert_eq!(other.reply().await.status, 200);
    for (mut client, forwarded, n) in clients {
        forwarded.answer(format!(r#"{{"n":{n}}}"#));
        assert_eq!(client.reply().await.json()["n"], n, "each call has its own answer");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_at_the_end_get_their_answers() {
    let mut harness = Harness::new();
    let (mut client, forwarded) = called(&mut harness, r#"{"name":"s__echo"}"#).await;
    let (mut late, _unanswered) = called(&mut harness, r#"{"name":"s__echo"}"#).await;
    harness.stop();
    forwarded.answer(r#"{"content":[]}"#);
    assert_eq!(client.reply().await.status, 200);
    assert_eq!(error(&late.reply().await), (503, "shutting_down".to_owned()));
    harness.ended().await;
}

#[tokio::test(start_paused = true)]
async fn the_openapi_document_lists_the_error_codes_and_their_statuses() {
    let harness = Harness::new();
    let reply = harness.ask(get("/openapi.json", &[])).await;
    let document = reply.json();
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let mut words: Vec<&str> = crate::http::tools_api::error::TABLE.iter().map(|row| row.1).collect();
    words.sort_unstable();
    let listed =
        &document["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"];
    assert_eq!(listed, &json!(words));
    let known = &document["paths"]["/tools/call"]["post"]["responses"];
    for (_, word, status, _) in crate::http::tools_api::error::TABLE {
        assert!(word == "not_found" || !known[status.to_string()].is_null(), "{word} has no response");
    }
    let again = harness.ask(get("/openapi.json", &[("if-none-match", &reply.headers["etag"])])).await;
    assert_eq!(again.status, 304);
}
