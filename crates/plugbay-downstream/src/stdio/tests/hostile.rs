//! Malformed input of every kind: each is answered, and the connection goes on.

use super::harness::{Harness, INITIALIZE, MESSAGE_LIMIT, request};

/// Sends the bytes; expects one answer of this code with this id, and that the session goes on.
async fn check(harness: &mut Harness, bytes: &[u8], code: i32, id: &str) {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned();
    harness.write(bytes).await;
    harness.write(b"\n").await;
    let answer = harness.hear().await;
    assert_eq!(answer["error"]["code"], code, "{shown} → {answer}");
    assert_eq!(answer["id"].to_string(), id, "{shown} → {answer}");
    assert_eq!(harness.ask(request("\"on\"", "ping", "{}")).await["id"], "on", "{shown}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_not_json_is_refused() {
    let deep = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
    let nested =
        [&br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"#[..], &deep(70), b"}}"].concat();
    let cases: &[&[u8]] = &[
        b"hello",
        b"{",
        b"}",
        b"{]",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x",
        b"{\"jsonrpc\":\"2.0\",\"id\":01,\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",}",
        b"{'jsonrpc':'2.0'}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\0ng\"}",
        b"{\"jsonrpc\":\"2.0\",\0\"id\":1}",
        b"\0",
        b"\0\0\0\0{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}",
        b"\xff\xfe{\0}\0",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
        &deep(100_000 / 2 - 1),
        b"[",
        b"NaN",
        b"POST / HTTP/1.1",
    ];
    let mut harness = Harness::legacy().await;
    for bytes in cases {
        check(&mut harness, bytes, -32700, "null").await;
    }
    // It has an id, and waits for an answer.
    check(&mut harness, &nested, -32700, "1").await;
}

#[tokio::test(start_paused = true)]
async fn json_that_is_not_a_request_is_refused_with_its_id() {
    let cases = [
        ("{}", "null"),
        ("[]", "null"),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, "null"),
        (r#"{"id":1,"method":"ping"}"#, "1"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":"x","method":7}"#, "\"x\""),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"pi\u006eg"}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":1e3,"method":"ping"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, "null"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#, "1"),
        (r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#, "1"),
        (r#"{"jsonrpc":"2.0","ID":1,"method":"ping"}"#, "null"),
    ];
    let mut harness = Harness::legacy().await;
    for (line, id) in cases {
        check(&mut harness, line.as_bytes(), -32600, id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_over_the_limit_is_refused_and_its_rest_skipped() {
    let large = |filler: &[u8]| {
        [&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"x\":\""[..], &filler.repeat(MESSAGE_LIMIT)].concat()
    };
    let mut harness = Harness::legacy().await;
    for filler in [&b"x"[..], b"{\"jsonrpc\":\"2.0\"}", b"\0", b"\r", b"[[[["] {
        check(&mut harness, &large(filler), -32600, "null").await;
    }
    let header = format!("Content-Length: {}\r\n\r\n", 10 * MESSAGE_LIMIT);
    let counted =
        [header.as_bytes(), &b"{}\n".repeat(10 * MESSAGE_LIMIT / 3 + 1)[..10 * MESSAGE_LIMIT]].concat();
    check(&mut harness, &counted, -32600, "null").await;
}

#[tokio::test(start_paused = true)]
async fn notifications_and_responses_get_no_answer() {
    let mut harness = Harness::legacy().await;
    let lines = [
        r#"{"jsonrpc":"2.0","method":"notifications/message"}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"s__echo"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}"#,
        "",
        "   \t ",
        "\r",
    ];
    for line in lines {
        harness.say(line).await;
    }
    harness.hear_nothing().await;
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn malformed_tool_calls_are_refused() {
    let mut harness = Harness::legacy().await;
    for params in ["{}", r#"{"name":7}"#, r#"{"name":null}"#, r#"{"name":""}"#, r#"{"name":"s__"}"#] {
        let line = request(1, "tools/call", params);
        check(&mut harness, line.as_bytes(), -32602, "1").await;
    }
    let lone = request(1, "tools/call", r#"{"name":"\ud800"}"#);
    check(&mut harness, lone.as_bytes(), -32602, "1").await;
}

#[tokio::test(start_paused = true)]
async fn a_message_may_come_in_any_pieces() {
    let mut harness = Harness::new();
    for byte in INITIALIZE.as_bytes() {
        harness.write(&[*byte]).await;
        tokio::task::yield_now().await;
    }
    harness.write(b"\r\n").await;
    assert_eq!(harness.hear().await["id"], "init");
}
