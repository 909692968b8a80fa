//! Broken and almost broken JSON in answers over HTTP: the host gets the exact bytes or an error.

use super::{
    harness::{Harness, Setup},
    peer::Request,
    sse,
};
use crate::server::tests::broken_answers::corpus::{self, VALUES, Verdict};

fn check(verdict: Verdict, result: &[u8], end: &str) {
    let shown = String::from_utf8_lossy(result);
    match verdict {
        Verdict::Whole => assert_eq!(end.as_bytes(), result, "{shown}"),
        Verdict::Broken => assert!(end.contains("cannot be forwarded"), "{shown}: {end}"),
    }
}

async fn answers_by(send: impl Fn(Request, &[u8])) {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    for (verdict, value) in VALUES {
        for result in corpus::results(value) {
            let call = harness.call("a");
            let request = server.take_call("a").await;
            send(request, &corpus::response(call.0, &result));
            check(*verdict, &result, &harness.calls.end(call).await);
        }
    }
    harness.works(&mut server).await;
}

#[tokio::test]
async fn a_json_body_arrives_as_it_was_sent_or_ends_its_call_with_an_error() {
    answers_by(Request::json_bytes).await;
}

#[tokio::test]
async fn an_event_arrives_as_it_was_sent_or_ends_its_call_with_an_error() {
    answers_by(|request, response| {
        let stream = request.stream();
        stream.event_bytes(response);
        stream.end();
    })
    .await;
}

#[tokio::test]
async fn an_sse_answer_arrives_as_it_was_sent_or_ends_its_call_with_an_error() {
    let (harness, mut server, stream) = sse::ready().await;
    for (verdict, value) in VALUES {
        for result in corpus::results(value) {
            let call = harness.call("a");
            server.take_call("a").await.status(202);
            stream.event_bytes(&corpus::response(call.0, &result));
            check(*verdict, &result, &harness.calls.end(call).await);
        }
    }
}

/// Over HTTP the answer's stream shows the request, but an id of the wrong kind is still an error.
#[tokio::test]
async fn an_id_of_the_wrong_kind_over_http_ends_its_call_at_once() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    for id in ["\"#\"", "#.0"] {
        for streams in [false, true] {
            let call = harness.call("a");
            let request = server.take_call("a").await;
            let id = id.replace('#', &call.0.to_string());
            let response = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
            let _open = if streams {
                let stream = request.stream();
                stream.event_bytes(response.as_bytes());
                Some(stream)
            } else {
                request.json(200, response);
                None
            };
            let end = harness.calls.end(call).await;
            assert!(end.contains("cannot be forwarded"), "{end}");
        }
    }
}
