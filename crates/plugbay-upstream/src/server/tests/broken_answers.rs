//! Broken and almost broken JSON in answers over stdio: the host gets the exact bytes or an error.

use plugbay_core::era::Era;
use serde_json::json;

use self::corpus::{VALUES, Verdict};
use super::harness::{Harness, Setup};

#[path = "../../../../plugbay-core/src/wire/corpus.rs"]
pub(crate) mod corpus;

#[tokio::test(start_paused = true)]
async fn an_answer_over_stdio_arrives_as_it_was_sent_or_ends_its_call_with_an_error() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    for (verdict, value) in VALUES {
        for result in corpus::results(value) {
            let call = harness.call("a");
            peer.expect_call("a").await;
            peer.say_bytes(&[&corpus::response(call.0, &result)[..], b"\n"].concat()).await;
            let end = harness.calls.end(call).await;
            let shown = String::from_utf8_lossy(&result);
            match verdict {
                Verdict::Whole => assert_eq!(end.as_bytes(), result, "{shown}"),
                Verdict::Broken => {
                    assert!(end.contains("'s' sent an answer that cannot be forwarded: "), "{shown}: {end}");
                }
            }
            assert_eq!(harness.calls.ends_of(call).len(), 1, "{shown}");
        }
    }
    let next = harness.call("b");
    let request = peer.expect_call("b").await;
    peer.answer(&request, json!({})).await;
    assert_eq!(harness.calls.end(next).await, "{}");
}

#[tokio::test(start_paused = true)]
async fn an_error_names_the_byte_at_which_an_answer_is_broken() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    for (value, fault) in [
        (&b"NaN"[..], "not valid JSON: unexpected byte at offset 40"),
        (b"\"\x01\"", "not valid JSON: unexpected byte at offset 41"),
        (b"\"\xff\"", "not valid JSON: the text is not UTF-8, at offset 41"),
        (corpus::DEEP_ARRAY, "not valid JSON: nested deeper than 64 levels at offset 102"),
    ] {
        let call = harness.call("a");
        peer.expect_call("a").await;
        let id = format!("{:3}", call.0); // blanks may stand before a number
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"v":"#);
        let rest = [b",\"t\":\"", &[b'x'; 600][..], b"\"}}\n"].concat();
        peer.say_bytes(&[start.as_bytes(), value, &rest].concat()).await;
        let end = harness.calls.end(call).await;
        assert_eq!(end, format!("server 's' sent an answer that cannot be forwarded: {fault}"));
    }
}

/// A broken notification or request of the server reaches nobody, and ends no call.
#[tokio::test(start_paused = true)]
async fn a_broken_notification_or_server_request_is_dropped() {
    let (harness, mut peer) = Harness::ready(Setup::default(), Era::Legacy).await;
    let call = harness.call("a");
    let request = peer.expect_call("a").await;
    // If there is a method, an envelope hidden in the value forms another complete message.
    let is_broken =
        |(verdict, value): &&(Verdict, &[u8])| *verdict == Verdict::Broken && !value.starts_with(b"1}");
    for (_, value) in VALUES.iter().filter(is_broken) {
        for params in corpus::results(value) {
            for head in ["\"method\":\"notifications/x\"", &format!("\"id\":{},\"method\":\"ping\"", call.0)]
            {
                let head = format!("{{\"jsonrpc\":\"2.0\",{head},\"params\":");
                peer.say_bytes(&[head.as_bytes(), &params, b"}\n"].concat()).await;
            }
        }
    }
    peer.expect_nothing().await;
    assert_eq!(harness.calls.ends_of(call).len(), 0);
    peer.answer(&request, json!({ "a": 1 })).await;
    assert_eq!(harness.calls.end(call).await, r#"{"a":1}"#);
}
