//! Messages of a server: responses of every shape, and messages that answer nothing.

use plugbay_core::era::Era;
use serde_json::json;

use super::harness::{Harness, Setup};

/// Fills a template, in which `#` stands for the id of the call.
fn filled(template: &str, id: u64) -> String {
    template.replace('#', &id.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_response_of_any_shape_ends_its_call() {
    let forwarded = [
        (r#"{"jsonrpc":"2.0","id":#,"result":{"a":1}}"#, r#"{"a":1}"#),
        (r#"{"id":#,"jsonrpc":"2.0","result":{"a":1}}"#, r#"{"a":1}"#),
        (r#"{"result":{"a":1},"jsonrpc":"2.0","id":#}"#, r#"{"a":1}"#),
        (r#"{"result":{"a":1},"x":[1],"jsonrpc":"2.0","id":#}"#, r#"{"a":1}"#),
        (r#" { "jsonrpc" : "2.0", "id" : # , "result" : { } } "#, "{ }"),
        (r#"{"jsonrpc":"2.0","id":#,"error":{"code":1,"message":"m"}}"#, r#"{"code":1,"message":"m"}"#),
        (r#"{"jsonrpc":"2.0","id":#,"result":[]}"#, "[]"),
    ];
    let unusable = [
        (r#"{"id":#,"result":{"a":1}}"#, r#""jsonrpc" must be "2.0""#),
        (r#"{"jsonrpc":"1.0","id":#,"result":{"a":1}}"#, r#""jsonrpc" must be "2.0""#),
        (r#"{"jsonrpc":"2.0","id":#}"#, "either"),
        (r#"{"jsonrpc":"2.0","id":#,"result":1,"error":2}"#, "either"),
        (r#"{"jsonrpc":"2.0","id":#,"Result":{}}"#, "must be written"),
        (r#"{"jsonrpc":"2.0","result":1,"result":2,"id":#}"#, "twice"),
        (r#"{"jsonrpc":"2.0","id":#,"result":{"a":1}"#, "middle of a value"),
        (r#"{"jsonrpc":"2.0","id":#,"result":{"a":"#, "middle of a value"),
        (r#"{"jsonrpc":"2.0","id":#,"result":{"a":nope},"b":1}"#, "unexpected byte"),
        (r#"{"jsonrpc":"2.0","id":#,"result":{},"id":7}"#, "twice"),
        (r##"{"jsonrpc":"2.0","id":"#","result":{}}"##, "instead of"),
        (r##"{"jsonrpc":"2.0","id":"#","error":{"code":1,"message":"m"}}"##, "instead of"),
        (r#"{"jsonrpc":"2.0","id":#.0,"result":{}}"#, "must be a string or an integer"),
        (r#"{"jsonrpc":"2.0","id":#e0,"result":{}}"#, "must be a string or an integer"),
        (r#"{"jsonrpc":"2.0","result":{},"id":#.00}"#, "must be a string or an integer"),
    ];
    for (template, expected) in forwarded {
        assert_eq!(end_by(template).await, expected, "{template}");
    }
    for (template, expected) in unusable {
        let end = end_by(template).await;
        assert!(end.contains("sent an answer that cannot be forwarded"), "{template}: {end}");
        assert!(end.contains(expected), "{template}: {end}");
    }
}

async fn end_by(template: &str) -> String {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let call = harness.call("a");
    peer.expect_call("a").await;
    peer.say(filled(template, call.0)).await;
    peer.say(filled(r#"{"jsonrpc":"2.0","id":#,"result":{"second":true}}"#, call.0)).await;
    let end = harness.calls.end(call).await;
    let next = harness.call("b");
    let request = peer.expect_call("b").await;
    peer.answer(&request, json!({})).await;
    assert_eq!(harness.calls.end(next).await, "{}");
    assert_eq!(harness.calls.ends_of(call), std::slice::from_ref(&end), "answered once");
    end
}

#[tokio::test(start_paused = true)]
async fn messages_that_answer_no_request_are_ignored() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let call = harness.call("a");
    let request = peer.expect_call("a").await;
    let words = [
        r#"{"jsonrpc":"2.0","id":"0#","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"+#","result":{}}"#,
        r##"{"jsonrpc":"2.0","id":"# ","result":{}}"##,
        r##"{"jsonrpc":"2.0","id":["#"],"result":{}}"##,
        r#"{"jsonrpc":"2.0","id":{"id":#},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":true,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":-#,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":#000,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":#.5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":#,"method":"roots/list","params":[]}"#,
        r#"{"jsonrpc":"2.0","id":#,"Method":"roots/list","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99999999999999999999999,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"[{"jsonrpc":"2.0","id":#,"result":{}}]"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77}}"#,
        r##"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#"}}"##,
        r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{}}"#,
        "Server listening on stdio",
        "{ not JSON",
        "{}",
        "\u{7f}\u{0}\u{1b}[31m",
        "",
    ];
    for word in words {
        peer.say(filled(word, call.0)).await;
    }
    peer.expect_nothing().await;
    assert_eq!((harness.calls.ends_of(call).len(), harness.calls.progress_of(call)), (0, 0));
    peer.progress(&request).await;
    peer.answer(&request, json!({ "a": 1 })).await;
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
    assert_eq!(harness.calls.progress_of(call), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_request_is_answered_before_initialize_too() {
    let mut harness = Harness::new(Setup::default());
    harness.handle.refresh();
    let mut peer = harness.launched().await;
    let request = peer.expect("initialize").await;
    for opened in [false, true] {
        for (method, id, key) in [("ping", json!("p"), "result"), ("roots/list", json!(1), "error")] {
            peer.say(json!({ "jsonrpc": "2.0", "id": id, "method": method })).await;
            let answer = peer.next().await.unwrap();
            assert_eq!(answer["id"], id);
            assert!(answer[key].is_object(), "{answer}");
        }
        if !opened {
            peer.answer(&request, json!({ "capabilities": { "tools": {} } })).await;
            peer.expect("notifications/initialized").await;
            peer.list(&["echo"]).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_over_the_message_limit_ends_its_call() {
    let (harness, mut peer) =
        Harness::ready(Setup { message_limit: 1000, ..Setup::default() }, Era::Legacy).await;
    let (large, small) = (harness.call("large"), harness.call("small"));
    let request = peer.expect_call("large").await;
    // In the order that most servers use: the envelope first.
    let (id, text) = (&request["id"], "x".repeat(5000));
    peer.say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{text}"}}}}"#)).await;
    assert!(harness.calls.end(large).await.contains("is larger than 1000 bytes"));
    let request = peer.expect_call("small").await;
    peer.answer(&request, json!({})).await;
    assert_eq!(harness.calls.end(small).await, "{}");
}
