//! The GET stream, on which a legacy server sends its own messages.

use serde_json::json;

use super::{
    SECOND,
    harness::{Harness, Setup},
    peer::{Server, Stream},
};

async fn listening() -> (Harness, Server, Stream) {
    let mut server = Server::start().await;
    let mut harness = Harness::new(Setup::default(), &server.url());
    harness.handle.refresh();
    server.open_legacy("one").await;
    let get = server.take("GET").await;
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    assert_eq!(get.header("mcp-session-id"), Some("one"));
    assert_eq!(get.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(get.header("last-event-id"), None);
    server.list(&["a"]).await;
    assert_eq!(harness.report().await, "a");
    (harness, server, get.stream())
}

#[tokio::test]
async fn list_changed_on_the_get_stream_leads_to_tools_list() {
    let (mut harness, mut server, stream) = listening().await;
    stream.notify("notifications/tools/list_changed", json!({}));
    server.list(&["a", "b"]).await;
    assert_eq!(harness.report().await, "a b");
    stream.event(json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }));
    let posted = server.take("answer").await;
    assert_eq!(posted.message, json!({ "jsonrpc": "2.0", "id": 7, "result": {} }));
    posted.status(202);
}

#[tokio::test]
async fn a_broken_get_stream_is_resumed_behind_the_last_event() {
    let (mut harness, mut server, stream) = listening().await;
    stream.write("retry: 10\nid: 5\ndata:\n\n");
    drop(stream);
    let again = server.take("GET").await;
    assert_eq!(again.header("last-event-id"), Some("5"));
    let stream = again.stream();
    stream.notify("notifications/tools/list_changed", json!({}));
    server.list(&["c"]).await;
    assert_eq!(harness.report().await, "c");
}

#[tokio::test]
async fn a_server_without_a_get_stream_is_not_asked_again() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await; // with a 405
    tokio::time::sleep(SECOND * 6 / 10).await; // longer than the first pause
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0]);
}

/// A proxy in front of a server that is being replaced.
#[tokio::test]
async fn a_transient_error_of_the_get_stream_is_retried() {
    let (mut harness, mut server, stream) = listening().await;
    stream.write("retry: 10\n\n");
    drop(stream);
    server.take("GET").await.status(503);
    let stream = server.take("GET").await.stream();
    stream.notify("notifications/tools/list_changed", json!({}));
    server.list(&["c"]).await;
    assert_eq!(harness.report().await, "c");
}

/// A notification sent while nobody listened may have announced a change.
#[tokio::test]
async fn a_reopened_get_stream_without_event_ids_leads_to_tools_list() {
    let (mut harness, mut server, stream) = listening().await;
    stream.write("retry: 10\n\n");
    drop(stream);
    let _stream = server.take("GET").await.stream();
    server.list(&["d"]).await;
    assert_eq!(harness.report().await, "d");
}

/// Servers that support only POST say so in different ways.
#[tokio::test]
async fn a_get_answered_with_not_found_keeps_the_session() {
    for code in [404, 400, 500, 501] {
        let mut server = Server::start().await;
        let mut harness = Harness::new(Setup::default(), &server.url());
        harness.handle.refresh();
        server.open_legacy("one").await;
        server.take("GET").await.status(code);
        server.list(&["a"]).await;
        assert_eq!(harness.report().await, "a");
        harness.works(&mut server).await;
        assert_eq!(server.untaken(), [""; 0], "{code}");
    }
}
