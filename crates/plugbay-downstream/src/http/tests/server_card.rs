//! The server card: public where the gateway is, and without anything that needs a token.

use std::sync::Arc;

use serde_json::{Value, json};

use super::harness::{Harness, http};
use crate::scripted::snapshot;

const CARD: &str = "/mcp/server-card";

#[tokio::test(start_paused = true)]
async fn a_server_card_needs_no_token_and_names_no_server() {
    let harness = Harness::with(snapshot(&["echo"], true), &["secret"]);
    let headers = [("host", "good.example"), ("accept", "application/mcp-server-card+json")];
    let reply = harness.ask(http("GET", CARD, &headers, "")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    for (name, value) in [
        ("content-type", "application/mcp-server-card+json"),
        ("cache-control", "public, max-age=3600"),
        ("access-control-allow-origin", "*"),
        ("access-control-allow-methods", "GET"),
        ("access-control-allow-headers", "Content-Type, If-None-Match"),
        ("access-control-expose-headers", "ETag"),
    ] {
        assert_eq!(reply.headers[name], value, "{name}");
    }
    let card: Value = serde_json::from_str(&reply.body).unwrap();
    let keys: Vec<&String> = card.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["$schema", "description", "name", "remotes", "title", "version"]);
    assert_eq!(card["$schema"], "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json");
    assert_eq!(card["version"], env!("CARGO_PKG_VERSION"));
    let [namespace, name] = card["name"].as_str().unwrap().split('/').collect::<Vec<_>>()[..] else {
        panic!()
    };
    assert!(namespace.contains('.') && name == "plugbay");
    let [remote] = &card["remotes"].as_array().unwrap()[..] else { panic!("{card}") };
    assert_eq!(
        (&remote["type"], &remote["url"]),
        (&json!("streamable-http"), &json!("http://good.example/mcp"))
    );
    assert_eq!(remote["supportedProtocolVersions"][0], "2026-07-28");
    assert_eq!(remote["headers"][0]["value"], "Bearer {token}");
    assert!(!reply.body.contains("echo") && !reply.body.contains("secret"), "{}", reply.body);

    let tag = reply.headers["etag"].clone();
    let again =
        harness.ask(http("GET", CARD, &[("host", "good.example"), ("if-none-match", &tag)], "")).await;
    assert_eq!((again.status, &again.headers["etag"], again.body.as_str()), (304, &tag, ""));
    assert_eq!(harness.ask(http("POST", CARD, &headers, "")).await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn web_pages_may_read_the_server_card_of_a_public_gateway_alone() {
    let harness = Harness::with(snapshot(&["echo"], true), &["secret"]);
    for (host, origin, status) in [
        ("good.example", "https://anybody.example", 200),
        ("good.example", "null", 200),
        ("evil.example", "https://evil.example", 403),
        ("localhost:80", "https://anybody.example", 403),
        ("127.0.0.1", "null", 403),
        ("localhost:80", "https://good.example", 200),
        ("localhost:80", "", 200),
    ] {
        let reply = harness.ask(http("GET", CARD, &[("host", host), ("origin", origin)], "")).await;
        assert_eq!(reply.status, status, "{host} {origin}");
        let open = reply.headers.get("access-control-allow-origin").is_some_and(|value| value == "*");
        assert_eq!(open, host == "good.example", "{host} {origin}");
    }
    let preflight = [
        ("host", "good.example"),
        ("origin", "https://anybody.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "if-none-match"),
    ];
    let reply = harness.ask(http("OPTIONS", CARD, &preflight, "")).await;
    assert_eq!((reply.status, reply.headers["access-control-allow-origin"].as_str()), (204, "*"));
}

#[tokio::test(start_paused = true)]
async fn a_server_card_has_the_url_by_which_hosts_know_the_gateway() {
    let url = |reply: &super::harness::Reply| {
        let card: Value = serde_json::from_str(&reply.body).unwrap();
        card["remotes"][0].clone()
    };
    let harness = Harness::new();
    for (forwarded, expected) in [
        ("https", "https://good.example/mcp"),
        ("https, http", "https://good.example/mcp"),
        ("gopher", "http://good.example/mcp"),
    ] {
        let headers =
            [("host", "good.example"), ("x-forwarded-proto", forwarded), ("accept", "application/json")];
        let reply = harness.ask(http("GET", CARD, &headers, "")).await;
        let remote = url(&reply);
        assert_eq!((&remote["url"], &remote["headers"]), (&json!(expected), &Value::Null));
        assert_eq!(reply.headers["content-type"], "application/json");
    }
    let authorization = super::authorization::terms(&[]);
    let (_terms, authorizations) = tokio::sync::watch::channel(Some(Arc::clone(&authorization)));
    let harness = Harness::with_authorization(snapshot(&["echo"], true), &[], None, Some(authorizations));
    let reply = harness.ask(http("GET", CARD, &[("host", "good.example")], "")).await;
    let remote = url(&reply);
    assert_eq!((&remote["url"], &remote["headers"]), (&json!("https://gw.example/mcp"), &Value::Null));
}
