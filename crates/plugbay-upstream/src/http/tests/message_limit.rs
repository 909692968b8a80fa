//! Responses above the message limit: only their own call ends.

use serde_json::json;

use super::harness::{Harness, Setup};

fn small() -> Setup {
    Setup { message_limit: 10_000, ..Setup::default() }
}

#[tokio::test]
async fn a_response_beyond_the_message_limit_ends_its_call_alone() {
    let (harness, mut server) = Harness::legacy(small()).await;
    let other = harness.call("other");
    let other_request = server.take_call("other").await;
    let large = json!({ "large": "x".repeat(20_000) });
    for way in ["length", "chunks", "event", "event in pieces"] {
        let call = harness.call("a");
        let request = server.take_call("a").await;
        let body = request.response(large.clone()).to_string();
        let _kept = match way {
            "length" => {
                request.json(200, body);
                None
            }
            "chunks" => {
                request.raw(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
                );
                for piece in body.as_bytes().chunks(1000) {
                    let piece = String::from_utf8_lossy(piece);
                    request.raw(format!("{:x}\r\n{piece}\r\n", piece.len()));
                }
                Some(request)
            }
            "event" => {
                let stream = request.stream();
                stream.event(body);
                Some(stream.0)
            }
            _ => {
                let stream = request.stream();
                let (start, end) = body.split_at(15_000);
                stream.write(format!("data: {start}"));
                stream.write(format!("{end}\n\n"));
                Some(stream.0)
            }
        };
        let end = harness.calls.end(call).await;
        assert!(end.contains("is larger than 10000 bytes"), "{way}: {end}");
        harness.works(&mut server).await;
    }
    other_request.answer(json!({ "other": 1 }));
    assert_eq!(harness.calls.end(other).await, r#"{"other":1}"#);
}

#[tokio::test]
async fn a_response_of_just_the_message_limit_passes() {
    let (harness, mut server) = Harness::legacy(small()).await;
    for streaming in [false, true] {
        let call = harness.call("a");
        let request = server.take_call("a").await;
        let bare = request.response(json!({ "x": "" })).to_string().len();
        let result = json!({ "x": "y".repeat(10_000 - bare) });
        if streaming {
            request.stream().answer(result.clone());
        } else {
            request.answer(result.clone());
        }
        assert_eq!(harness.calls.end(call).await, result.to_string());
    }
}
