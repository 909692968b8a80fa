//! Detection of the era and the transport of an unknown server, and how both are remembered.

use plugbay_core::{catalog::Dialect, era::Era};
use serde_json::json;

use super::{
    SECOND,
    harness::{Harness, Setup, capabilities},
    peer::{Request, Server},
    sse,
};
use crate::spec::{HttpFlavour, Timeouts};

type Refusal = (&'static str, fn(Request));

/// Every way in which a legacy server may refuse `server/discover`.
const REFUSALS: &[Refusal] = &[
    ("400", |request| request.status(400)),
    ("404", |request| request.status(404)),
    ("405", |request| request.status(405)),
    ("406", |request| request.status(406)),
    ("422 in JSON that is no message", |request| request.json(422, r#"{"detail":"what?"}"#)),
    ("500", |request| request.reply(500, &[], "boom")),
    ("text", |request| request.reply(400, &[("content-type", "text/plain")], "Missing session ID")),
    ("an error with its id", |request| {
        let error = json!({ "code": -32601, "message": "Method not found" });
        let body = json!({ "jsonrpc": "2.0", "id": request.message["id"], "error": error });
        request.json(200, body);
    }),
    ("400 with its id", |request| {
        let error = json!({ "code": -32600, "message": "not initialized" });
        let body = json!({ "jsonrpc": "2.0", "id": request.message["id"], "error": error });
        request.json(400, body);
    }),
    ("400 without an id", |request| request.json(400, NOBODYS)),
    ("500 without an id", |request| request.json(500, NOBODYS)),
    ("an error without an id", |request| request.json(200, NOBODYS)),
    ("an error in a stream", |request| {
        let stream = request.stream();
        let error = json!({ "code": -32601, "message": "Method not found" });
        stream.event(json!({ "jsonrpc": "2.0", "id": stream.0.message["id"], "error": error }));
        stream.end();
    }),
    ("an answer with nothing in it", |request| request.answer(json!({}))),
    ("other versions", |request| {
        request.answer(json!({ "supportedVersions": ["1999-01-01"], "capabilities": {} }));
    }),
    ("a refusal of the version", |request| {
        let refusal = unsupported(&request, &["2025-11-25"]);
        request.json(400, refusal);
    }),
    ("a closed connection", drop),
];

fn unsupported(request: &Request, supported: &[&str]) -> serde_json::Value {
    let data = json!({ "supported": supported, "requested": "2026-07-28" });
    let error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": data });
    json!({ "jsonrpc": "2.0", "id": request.message["id"], "error": error })
}

const NOBODYS: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Server not initialized"}}"#;

#[tokio::test]
async fn a_refused_server_discover_means_legacy() {
    for (what, refuse) in REFUSALS {
        let mut server = Server::start().await;
        let mut harness = Harness::new(Setup::unknown(), &server.url());
        harness.handle.refresh();
        refuse(server.take("server/discover").await);
        server.open_legacy("one").await;
        server.take("GET").await.status(405);
        server.list(&["a"]).await;
        let offer = harness.offer().await.unwrap_or_else(|failure| panic!("{what}: {failure}"));
        assert_eq!(offer.dialect, Dialect::from(Era::Legacy), "{what}");
        harness.works(&mut server).await;
        assert_eq!(server.untaken(), [""; 0], "{what}");
    }
}

#[tokio::test]
async fn a_modern_server_gets_no_initialize() {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::unknown(), &server.url());
    harness.handle.refresh();
    server.take("server/discover").await.answer(capabilities());
    server.list(&["a"]).await;
    assert_eq!(harness.offer().await.unwrap().dialect, Dialect::from(Era::Modern));
    server.take("subscriptions/listen").await.status(404);
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0]);
}

#[tokio::test]
async fn server_discover_is_repeated_when_its_version_is_listed_as_supported() {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::unknown(), &server.url());
    harness.handle.refresh();
    let first = server.take("server/discover").await;
    let (id, refusal) = (first.message["id"].clone(), unsupported(&first, &["2027-01-01", "2026-07-28"]));
    first.json(400, refusal);
    let second = server.take("server/discover").await;
    assert_ne!(second.message["id"], id);
    assert_eq!(second.header("mcp-protocol-version"), Some("2026-07-28"));
    second.answer(capabilities());
    server.list(&["a"]).await;
    assert_eq!(harness.offer().await.unwrap().dialect, Dialect::from(Era::Modern));
}

#[tokio::test]
async fn server_discover_is_repeated_once_only() {
    let mut server = Server::start().await;
    let harness = Harness::new(Setup::unknown(), &server.url());
    harness.handle.refresh();
    for _ in 0..2 {
        let request = server.take("server/discover").await;
        let refusal = unsupported(&request, &["2026-07-28"]);
        request.json(400, refusal);
    }
    server.take("initialize").await;
}

/// Over HTTP a quick error for `initialize` may overtake a slow answer to `server/discover`.
#[tokio::test]
async fn a_late_server_discover_result_means_modern() {
    let refusals: [fn(Request); 2] = [
        |request| {
            let error = json!({ "code": -32601, "message": "Method not found" });
            let body = json!({ "jsonrpc": "2.0", "id": request.message["id"], "error": error });
            request.json(404, body);
        },
        |request| request.status(400),
    ];
    for refuse in refusals {
        let mut server = Server::start().await;
        let mut harness = Harness::new(Setup::unknown(), &server.url());
        harness.handle.refresh();
        let discover = server.take("server/discover").await;
        refuse(server.take("initialize").await); // after two seconds
        tokio::time::sleep(SECOND / 10).await;
        discover.answer(capabilities());
        server.list(&["a"]).await;
        assert_eq!(harness.offer().await.unwrap().dialect, Dialect::from(Era::Modern));
    }
}

#[tokio::test]
async fn a_server_of_both_eras_is_modern_though_initialize_is_faster() {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::unknown(), &server.url());
    harness.handle.refresh();
    let discover = server.take("server/discover").await;
    let initialize = server.take("initialize").await; // after two seconds
    let opened = initialize.response(json!({ "protocolVersion": "2025-11-25", "capabilities": {} }));
    let headers = [("content-type", "application/json"), ("mcp-session-id", "in vain")];
    initialize.reply(200, &headers, opened);
    discover.answer(capabilities());
    let ended = server.take("DELETE").await;
    assert_eq!(ended.header("mcp-session-id"), Some("in vain"));
    ended.status(204);
    let list = server.take("tools/list").await;
    assert_eq!(list.header("mcp-session-id"), None);
    list.answer(json!({ "tools": [{ "name": "a" }] }));
    assert_eq!(harness.offer().await.unwrap().dialect, Dialect::from(Era::Modern));
}

/// The error for `server/discover` need not be about the session that `initialize` has opened.
#[tokio::test]
async fn a_late_server_discover_refusal_means_legacy() {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::unknown(), &server.url());
    harness.handle.refresh();
    let discover = server.take("server/discover").await;
    let initialize = server.take("initialize").await; // after two seconds
    let opened =
        initialize.response(json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } }));
    initialize.reply(200, &[("content-type", "application/json"), ("mcp-session-id", "one")], opened);
    discover.reply(400, &[("content-type", "text/plain")], "Missing session ID");
    server.take("notifications/initialized").await.status(202);
    server.take("GET").await.status(405);
    server.list(&["a"]).await;
    assert_eq!(harness.offer().await.unwrap().dialect, Dialect::from(Era::Legacy));
}

#[tokio::test]
async fn a_legacy_server_gets_server_discover_again() {
    let mut server = Server::start().await;
    let known = Some(Dialect::from(Era::Legacy));
    let mut harness = Harness::new(Setup { known, ..Setup::default() }, &server.url());
    harness.handle.refresh();
    server.take("server/discover").await.answer(capabilities());
    server.list(&["a"]).await;
    assert_eq!(harness.offer().await.unwrap().dialect, Dialect::from(Era::Modern));
}

/// At the last opening it was legacy, and did not survive `server/discover`.
#[tokio::test]
async fn a_legacy_server_that_became_modern_is_recognised() {
    let refusals: [fn(Request); 2] = [|request| request.status(400), |request| request.json(400, NOBODYS)];
    for refuse in refusals {
        let mut server = Server::start().await;
        let mut harness = Harness::new(Setup::default(), &server.url());
        harness.handle.refresh();
        refuse(server.take("initialize").await);
        server.take("server/discover").await.answer(capabilities());
        server.list(&["a"]).await;
        assert_eq!(harness.offer().await.unwrap().dialect, Dialect::from(Era::Modern));
    }
}

#[tokio::test]
async fn an_sse_server_is_detected_and_remembered() {
    for (code, body) in [(404, ""), (405, ""), (400, ""), (405, NOBODYS), (404, r#"{"detail":"Not Found"}"#)]
    {
        let mut server = Server::start().await;
        let mut harness = Harness::new(Setup::unknown(), &server.url());
        harness.handle.refresh();
        server.take("server/discover").await.json(code, body);
        server.take("initialize").await.json(code, body);
        let stream = sse::open(&mut server, "/messages?s=1").await;
        sse::list(&mut server, &stream, &["a"]).await;
        let offer = harness.offer().await.unwrap();
        assert_eq!(offer.dialect, Dialect { sse: true, ..Era::Legacy.into() });
        harness.handle.stop().await;

        // The next start uses this dialect at once.
        let mut harness =
            Harness::new(Setup { known: Some(offer.dialect), ..Setup::default() }, &server.url());
        harness.handle.refresh();
        let first = server.next().await;
        assert_eq!(first.kind(), "GET", "{:?}", first.message);
        let stream = first.stream();
        sse::open_on(&mut server, &stream, "/messages?s=2").await;
        sse::list(&mut server, &stream, &["a"]).await;
        assert_eq!(harness.report().await, "a");
    }
}

#[tokio::test]
async fn a_server_that_left_the_sse_transport_is_detected() {
    let mut server = Server::start().await;
    let known = Some(Dialect { sse: true, ..Era::Legacy.into() });
    let mut harness = Harness::new(Setup { known, ..Setup::default() }, &server.url());
    let call = harness.call("a");
    server.take("GET").await.status(405);
    server.take("server/discover").await.answer(capabilities());
    server.list(&["a"]).await;
    assert_eq!(harness.offer().await.unwrap().dialect, Dialect::from(Era::Modern));
    server.take_call("a").await.answer(json!({}));
    assert_eq!(harness.calls.end(call).await, "{}");
}

#[tokio::test]
async fn a_server_without_any_transport_is_reported_by_its_first_error() {
    let mut server = Server::start().await;
    let harness = Harness::new(Setup::unknown(), &server.url());
    let call = harness.call("a");
    server.take("server/discover").await.reply(404, &[], "nothing here");
    server.take("initialize").await.reply(404, &[], "nothing here");
    server.take("GET").await.reply(403, &[], "go away");
    let end = harness.calls.end(call).await;
    assert!(end.contains("answered HTTP 404 Not Found: nothing here; try: check the path"), "{end}");
}

#[tokio::test]
async fn a_configured_transport_is_the_only_one_tried() {
    let mut server = Server::start().await;
    let setup = Setup { flavour: HttpFlavour::Streamable, ..Setup::unknown() };
    let harness = Harness::new(setup, &server.url());
    let call = harness.call("a");
    server.take("server/discover").await.status(405);
    server.take("initialize").await.status(405);
    let end = harness.calls.end(call).await;
    assert!(end.contains("answered HTTP 405 Method Not Allowed"), "{end}");
    assert_eq!(server.untaken(), [""; 0]);

    let mut server = Server::start().await;
    let harness = Harness::new(Setup::sse(), &server.url());
    let call = harness.call("a");
    server.take("GET").await.status(405);
    let end = harness.calls.end(call).await;
    assert!(end.contains("answered HTTP 405 Method Not Allowed"), "{end}");
    assert_eq!(server.untaken(), [""; 0]);
}

/// Another request would not help, and may do harm, such as a lock-out or a bill.
#[tokio::test]
async fn final_http_errors_end_the_opening() {
    for code in [401, 403, 407, 429, 502, 503] {
        let mut server = Server::start().await;
        let harness = Harness::new(Setup::unknown(), &server.url());
        let call = harness.call("a");
        server.take("server/discover").await.status(code);
        let end = harness.calls.end(call).await;
        assert!(end.contains(&format!("answered HTTP {code} ")), "{end}");
        assert_eq!(server.untaken(), [""; 0]);
    }
}

#[tokio::test]
async fn a_start_over_http_times_out() {
    let mut server = Server::start().await;
    let timeouts = Timeouts { start: 3 * SECOND, ..Timeouts::default() };
    let harness = Harness::new(Setup { timeouts, ..Setup::unknown() }, &server.url());
    let call = harness.call("a");
    let mut silent = server.take("server/discover").await;
    let end = harness.calls.end(call).await;
    assert!(end.contains("did not answer within 3 s of its start"), "{end}");
    silent.gone().await;
}
