//! Very many calls at once: every response reaches its caller, whichever stream carries it.

use serde_json::json;

use super::harness::{Harness, Setup};

const CALLS: usize = 200;

#[tokio::test]
async fn concurrent_responses_out_of_order_reach_their_callers() {
    let (harness, mut server) = Harness::legacy(Setup::default()).await;
    let calls: Vec<_> =
        (0..CALLS).map(|number| (number, harness.call(&format!("canary-{number}")))).collect();
    let mut requests = Vec::new();
    for _ in 0..CALLS {
        requests.push(server.take("tools/call").await);
    }
    requests.reverse();
    requests.sort_by_key(|request| request.message["id"].as_u64().unwrap() * 7919 % 211);
    let mut open = Vec::new();
    for (number, request) in requests.into_iter().enumerate() {
        let result =
            json!({ "canary": request.message["params"]["name"], "filling": "x".repeat(number * 50) });
        match number % 3 {
            0 => request.answer(result),
            1 => {
                let stream = request.stream();
                stream.write(": hello\n\n");
                stream.answer(result);
                stream.end();
            }
            _ => {
                let stream = request.stream();
                let progress = json!({ "progressToken": stream.0.message["id"], "progress": 1 });
                stream.notify("notifications/progress", progress);
                stream.answer(result);
                open.push(stream); // never ended
            }
        }
    }
    for (number, call) in calls {
        let end = harness.calls.end(call).await;
        assert!(end.starts_with(&format!(r#"{{"canary":"canary-{number}","#)), "{number}: {end:.60}");
    }
    harness.works(&mut server).await;
    assert_eq!(server.untaken(), [""; 0]);
}
