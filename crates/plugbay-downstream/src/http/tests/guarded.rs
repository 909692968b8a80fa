//! Access control on every route, for every `Host`, every `Origin` and every token.

use super::harness::{Harness, get, http, post, within};
use crate::scripted::{INITIALIZE, list, snapshot, unsettled};

#[tokio::test(start_paused = true)]
async fn every_route_checks_host_and_origin_headers() {
    let harness = Harness::new();
    let routes = [
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("GET", "/else"),
        ("OPTIONS", "/mcp"),
    ];
    let hosts = [
        ("localhost", true),
        ("127.0.0.1:8080", true),
        ("[::1]:80", true),
        ("good.example", true),
        ("evil.example", false),
        ("localhost.evil.example", false),
        ("", false),
        ("localhost\r\nhost: localhost", false),
    ];
    let origins = [
        ("", true),
        ("https://good.example", true),
        ("null", false),
        ("https://evil.example", false),
        ("http://localhost:3000", false),
        ("https://good.example.evil.example", false),
        ("https://good.example\r\norigin: https://good.example", false),
    ];
    for (method, path) in routes {
        for (host, ours) in hosts {
            for (origin, trusted) in origins {
                let reply = harness.ask(http(method, path, &[("host", host), ("origin", origin)], "")).await;
                // hyper itself refuses a request without a readable Host, or with two.
                let denied =
                    matches!(reply.status, 403) || (!ours && reply.status == 400 && reply.body.is_empty());
                assert_eq!(denied, !(ours && trusted), "{method} {path} {host:?} {origin:?}: {reply:?}");
            }
        }
    }
    let own = [("host", "localhost:80"), ("origin", "http://localhost:80")];
    assert_eq!(harness.ask(post(&own, INITIALIZE)).await.status, 200, "a page of our own");
    let absolute = post(&[], INITIALIZE).replace("POST /mcp", "POST http://evil.example/mcp");
    assert_eq!(harness.ask(absolute).await.status, 403);
}

#[tokio::test(start_paused = true)]
async fn every_route_but_the_probes_needs_the_bearer_token() {
    let harness = Harness::with(snapshot(&["echo"], true), &["secret", "other"]);
    let wrong = [
        "",
        "Bearer wrong",
        "Bearer secre",
        "Bearer secrets",
        "Bearer ",
        "secret",
        "Basic secret",
        "Bearer secret\r\nauthorization: Bearer secret",
    ];
    for (method, path, status) in [
        ("POST", "/mcp", 415),
        ("GET", "/mcp", 400),
        ("DELETE", "/mcp", 400),
        ("PUT", "/mcp", 405),
        ("GET", "/else", 404),
    ] {
        for token in wrong {
            let reply = harness.ask(http(method, path, &[("authorization", token)], "")).await;
            assert_eq!(reply.status, 401, "{method} {path} {token:?}");
            assert!(reply.headers["www-authenticate"].starts_with("Bearer"));
            assert!(!reply.body.contains("secret"));
        }
        for token in ["Bearer secret", "bearer  other"] {
            let headers = [("authorization", token), ("content-type", "")];
            assert_eq!(harness.ask(http(method, path, &headers, "")).await.status, status, "{method} {path}");
        }
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(harness.ask(http("GET", path, &[], "")).await.status, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_belongs_to_the_token_that_opened_it() {
    let harness = Harness::with(snapshot(&["echo"], true), &["one", "two"]);
    let bearing = |token: &str, request: String| {
        request.replacen("\r\n", &format!("\r\nauthorization: Bearer {token}\r\n"), 1)
    };
    let opened = harness.ask(bearing("one", post(&[], INITIALIZE))).await;
    let session = &opened.headers["mcp-session-id"];
    let delete = http("DELETE", "/mcp", &[("mcp-session-id", session)], "");
    for (token, statuses) in [("two", [404, 404, 404]), ("wrong", [401, 401, 401]), ("one", [200, 200, 204])]
    {
        for (request, status) in
            [within(session, &list(1)), get(session, None), delete.clone()].into_iter().zip(statuses)
        {
            assert_eq!(harness.ask(bearing(token, request)).await.status, status, "{token}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn readyz_answers_200_once_every_server_has_listed() {
    let harness = Harness::with(unsettled(), &[]);
    let probe = async |path| harness.ask(http("GET", path, &[], "")).await.status;
    assert_eq!((probe("/healthz").await, probe("/readyz").await), (200, 503));
    harness.snapshots.send_replace(snapshot(&["echo"], true));
    assert_eq!((probe("/healthz").await, probe("/readyz").await), (200, 200));
}

#[tokio::test(start_paused = true)]
async fn cors_headers_are_sent_to_trusted_origins_only() {
    let harness = Harness::with(snapshot(&["echo"], true), &["secret"]);
    for (origin, status, asked) in [("https://good.example", 204, 401), ("https://evil.example", 403, 403)] {
        let wanted = "authorization, mcp-param-region";
        let server_request = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", wanted),
        ];
        let preflight = harness.ask(http("OPTIONS", "/mcp", &server_request, "")).await;
        let request = harness.ask(post(&[("origin", origin)], INITIALIZE)).await;
        assert_eq!((preflight.status, request.status), (status, asked), "a preflight has no token");
        let trusted = status == 204;
        for reply in [&preflight, &request] {
            let told = reply.headers.get("access-control-allow-origin").map(String::as_str);
            assert_eq!(told, trusted.then_some(origin), "{reply:?}");
        }
        let allowed = preflight.headers.get("access-control-allow-headers").map(String::as_str);
        assert_eq!(allowed, trusted.then_some(wanted));
    }
}
