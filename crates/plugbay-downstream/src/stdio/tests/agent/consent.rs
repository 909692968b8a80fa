//! Calls that may change something are made only with permission.

use std::time::Duration;

use plugbay_core::surface::{AgentAccess, Effect};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::harness::{AgentHarness, LIMITS, calls, says, snapshot, snapshot_where_adding};
use crate::{agent::Terms, ranking::Chosen, scripted, stdio::tests::harness::list};

const FORM: &str = r#"{"elicitation":{}}"#;

/// The model's result for a call that is refused and not made.
async fn refused(agent: &mut AgentHarness, call: (&str, &str)) -> String {
    agent.asked().await.answer(calls(&[call]));
    let asked = agent.asked().await;
    let told = asked.turns()[2].clone();
    asked.answer(says("ok"));
    let (_, record, _) = agent.told().await;
    assert!(
        record.starts_with(&format!("Calls:\n1. {} {}: not made: not allowed: ", call.0, call.1)),
        "{record}"
    );
    agent.harness.nothing_forwarded().await;
    told
}

/// The server request that asks the user.
async fn server_request(agent: &mut AgentHarness) -> Value {
    let server_request = agent.harness.hear().await;
    assert_eq!(server_request["method"], "elicitation/create", "{server_request}");
    server_request
}

async fn reply(agent: &mut AgentHarness, server_request: &Value, result: Value) {
    agent.harness.say(json!({ "jsonrpc": "2.0", "id": server_request["id"], "result": result })).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_without_elicitation_denies_writing_tool_calls() {
    let mut agent = AgentHarness::new().await;
    for (tool, key) in [("s__add", "allowWrites"), ("s__drop", "allowDestructive")] {
        agent.want("x").await;
        let told = refused(&mut agent, (tool, "{}")).await;
        assert!(
            told.contains("elicitation.form") && told.contains(&format!("naturalLanguage.{key} would")),
            "{told}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_configuration_allows_tool_calls_without_elicitation() {
    for (unasked, tools) in [(Effect::Writes, &["s__add"][..]), (Effect::Destroys, &["s__add", "s__drop"])] {
        let mut agent = AgentHarness::new().await;
        agent.agree(LIMITS, unasked);
        for tool in tools {
            agent.want("x").await;
            agent.asked().await.answer(calls(&[(tool, "{}")]));
            agent.harness.forwarded().await.answer(r#"{"content":[]}"#);
            agent.asked().await.answer(says("ok"));
            assert!(agent.told().await.1.ends_with(": done"));
        }
    }
    let mut agent = AgentHarness::new().await;
    agent.agree(LIMITS, Effect::Writes);
    agent.want("x").await;
    refused(&mut agent, ("s__drop", "{}")).await;
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_shows_the_very_tool_call() {
    let mut agent = AgentHarness::with(FORM).await;
    agent.want("x").await;
    agent.asked().await.answer(calls(&[("s__add", r#"{"n":"7"}"#)]));
    let asked = server_request(&mut agent).await;
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("s__add, which may add something.\n\n{\"n\":7}\n\n"), "{message}");
    assert_eq!(asked["params"]["requestedSchema"], json!({ "type": "object", "properties": {} }));
    agent.harness.nothing_forwarded().await;
    // The clock stands still meanwhile.
    sleep(LIMITS.time + Duration::from_secs(60)).await;
    reply(&mut agent, &asked, json!({ "action": "accept", "content": {} })).await;
    let call = agent.harness.forwarded().await;
    assert!(call.text().contains(r#""name":"add","arguments":{"n":7}"#), "{}", call.text());
    call.answer(r#"{"content":[]}"#);
    agent.asked().await.answer(says("Added."));
    assert_eq!(agent.told().await.1, "Calls:\n1. s__add {\"n\":7}: done");
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_that_is_not_accepted_denies_the_tool_call() {
    for (answer, why) in [
        (json!({ "action": "decline" }), "the user declined it"),
        (json!({ "action": "cancel" }), "the user declined it"),
        (json!({}), "the host failed to answer"),
    ] {
        let mut agent = AgentHarness::with(FORM).await;
        agent.want("x").await;
        agent.asked().await.answer(calls(&[("s__drop", "{}")]));
        let asked = server_request(&mut agent).await;
        reply(&mut agent, &asked, answer).await;
        let asked = agent.asked().await;
        assert!(asked.turns()[2].contains(why), "{:?}", asked.turns());
        asked.answer(says("ok"));
        agent.told().await;
        agent.harness.nothing_forwarded().await;
    }
    // No answer is no permission either, and the server request is withdrawn.
    let mut agent = AgentHarness::with(FORM).await;
    agent.want("x").await;
    agent.asked().await.answer(calls(&[("s__drop", "{}")]));
    let asked = server_request(&mut agent).await;
    assert_eq!(agent.harness.hear().await["params"]["requestId"], asked["id"]);
    assert!(agent.asked().await.turns()[2].contains("did not answer in time"));
    agent.harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn declined_elicitations_count_as_tool_calls() {
    let mut agent = AgentHarness::with(FORM).await;
    agent.want("x").await;
    agent.asked().await.answer(calls(&[("s__drop", "{}"); 9]));
    for _ in 0..LIMITS.calls {
        let asked = server_request(&mut agent).await;
        reply(&mut agent, &asked, json!({ "action": "decline" })).await;
    }
    let asked = agent.asked().await;
    assert_eq!(asked.turns()[2].matches("are used up").count(), 9 - LIMITS.calls, "{:?}", asked.turns());
}

#[tokio::test(start_paused = true)]
async fn an_accepted_elicitation_does_not_cover_a_changed_tool() {
    let becomes = |annotations| snapshot_where_adding(AgentAccess::Everybody, annotations);
    for (then, made) in [
        (becomes(json!({ "destructiveHint": true })), false),
        (becomes(json!({ "destructiveHint": false, "title": "Add" })), true),
        (becomes(json!({ "readOnlyHint": true })), true),
        (scripted::snapshot(&["other"], true), false),
    ] {
        let mut agent = AgentHarness::with(FORM).await;
        agent.want("x").await;
        agent.asked().await.answer(calls(&[("s__add", "{}")]));
        let asked = server_request(&mut agent).await;
        agent.harness.snapshots.send_replace(then);
        reply(&mut agent, &asked, json!({ "action": "accept" })).await;
        if made {
            agent.harness.forwarded().await.answer(r#"{"content":[]}"#);
        }
        agent.asked().await.answer(says("ok"));
        let end = if made { "done" } else { "not made: the tool has changed meanwhile, or is gone" };
        assert_eq!(agent.told().await.1, format!("Calls:\n1. s__add {{}}: {end}"));
        agent.harness.nothing_forwarded().await;
    }
}

#[tokio::test(start_paused = true)]
async fn writing_tool_calls_are_made_one_by_one() {
    let mut agent = AgentHarness::new().await;
    agent.agree(LIMITS, Effect::Destroys);
    agent.want("x").await;
    agent.asked().await.answer(calls(&[("s__add", r#"{"n":1}"#), ("s__read", r#"{"n":2}"#)]));
    let first = agent.harness.forwarded().await;
    assert!(first.text().contains("\"add\""), "{}", first.text());
    agent.harness.nothing_forwarded().await;
    first.answer(r#"{"content":[]}"#);
    assert!(agent.harness.forwarded().await.text().contains("\"read\""));
}

#[tokio::test(start_paused = true)]
async fn natural_language_is_listed_if_the_host_has_sampling_tools() {
    for (capabilities, offered) in
        [("{}", false), (r#"{"sampling":{}}"#, false), (r#"{"sampling":{"tools":{}}}"#, true)]
    {
        let mut agent = AgentHarness::with(capabilities).await;
        agent.harness.snapshots.send_replace(snapshot(AgentAccess::Lenders));
        let terms = Terms { model: Chosen::Host, limits: LIMITS, unasked: Effect::Reads, instructions: None };
        agent.harness.agents.choose(Some(terms));
        let listed = agent.harness.ask(list(1)).await;
        let names: Vec<&str> = listed["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert_eq!(names.contains(&"natural_language"), offered, "{capabilities}: {names:?}");
        agent.want("x").await;
        if offered {
            let server_request = agent.harness.hear().await;
            assert_eq!(server_request["method"], "sampling/createMessage");
            assert_eq!(server_request["params"]["tools"].as_array().unwrap().len(), 3);
            let content = json!({ "type": "tool_use", "id": "1", "name": "s__read", "input": { "n": 1 } });
            let wants =
                json!({ "role": "assistant", "content": [content], "model": "m", "stopReason": "toolUse" });
            reply(&mut agent, &server_request, wants).await;
            agent.harness.forwarded().await.answer(r#"{"content":[{"type":"text","text":"one"}]}"#);
            let server_request = agent.harness.hear().await;
            let result = &server_request["params"]["messages"][2]["content"][0];
            assert_eq!((&result["toolUseId"], &result["content"][0]["text"]), (&json!("1"), &json!("one")));
            let content = json!({ "type": "text", "text": "It is one." });
            reply(
                &mut agent,
                &server_request,
                json!({ "role": "assistant", "content": content, "model": "m" }),
            )
            .await;
            assert_eq!(agent.told().await.0, "It is one.");
        } else {
            let (why, _, failed) = agent.told().await;
            assert!(failed && why.contains("sampling.tools"), "{why}");
        }
    }
}
