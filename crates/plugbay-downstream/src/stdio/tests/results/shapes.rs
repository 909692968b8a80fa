//! The shapes of results: learned from calls through plugbay's own tools, and shown to models.

use plugbay_core::exposure::Mode;
use serde_json::json;

use super::{called, in_mode, text_result, told, tool_call};

#[tokio::test(start_paused = true)]
async fn the_shape_of_results_is_learned_and_shown_without_any_value() {
    let rows = |name: &str| {
        text_result(&json!([{ "id": 7, "owner": { (name): "s3cret" }, "tags": ["x"] }]).to_string())
    };
    let shape = "result: {id: int, owner: {[key]: string}, tags: string[]}[]";
    let mut harness = in_mode(Mode::Search).await;
    for name in ["alice@example.org", "bob", "carol"] {
        called(&mut harness, &rows(name)).await;
        harness.workers_idle().await;
    }
    let (described, _) = told(&mut harness, "describe_tool", json!({ "name": "s__read" })).await;
    assert!(described.ends_with(&format!("\n{shape}")), "{described}");
    assert!(!described.contains("bob") && !described.contains("s3cret"), "{described}");
    let (other, _) = told(&mut harness, "describe_tool", json!({ "name": "s__write" })).await;
    assert!(!other.contains("result:"), "{other}");

    let mut harness = in_mode(Mode::Suite).await;
    for name in ["alice@example.org", "bob", "carol"] {
        let call = json!({ "action": "call", "subtool": "read", "args": {} });
        harness.say(tool_call(1, "s_suite", &call)).await;
        harness.forwarded().await.answer(rows(name));
        harness.hear().await;
        harness.workers_idle().await;
    }
    for wanted in [json!({ "action": "introspect", "detail": true }), json!({ "names": ["read"] })] {
        let (told, _) = told(&mut harness, "s_suite", wanted).await;
        assert!(told.contains(shape), "{told}");
    }
    let (brief, _) = told(&mut harness, "s_suite", json!({ "action": "introspect" })).await;
    assert!(!brief.contains("result:"), "{brief}");
}

#[tokio::test(start_paused = true)]
async fn results_of_listed_tools_and_errors_teach_nothing() {
    let rows = text_result(r#"[{"id": 1}]"#);
    let mut harness = in_mode(Mode::All).await;
    for _ in 0..3 {
        harness.say(tool_call(1, "s__read", &json!({}))).await;
        harness.forwarded().await.answer(&rows);
        harness.hear().await;
        let mut error = rows.clone();
        error["isError"] = true.into();
        called(&mut harness, &error).await;
        harness.workers_idle().await;
    }
    let (described, _) = told(&mut harness, "describe_tool", json!({ "name": "s__read" })).await;
    assert!(!described.contains("result:"), "{described}");
}
