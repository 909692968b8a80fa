//! What may change things is done with leave alone.

use std::time::Duration;

use plugbay_core::surface::{Effect, Errands};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::world::{LIMITS, World, calls, says, snapshot, snapshot_where_adding};
use crate::{errand::Terms, ranking::Chosen, scripted, stdio::tests::stage::list};

const FORM: &str = r#"{"elicitation":{}}"#;

/// What the model hears of a call that it wants; the call is not made.
async fn refused(world: &mut World, call: (&str, &str)) -> String {
    world.asked().await.answer(calls(&[call]));
    let asked = world.asked().await;
    let told = asked.turns()[2].clone();
    asked.answer(says("ok"));
    let (_, record, _) = world.told().await;
    assert!(
        record.starts_with(&format!("Calls:\n1. {} {}: not made: not allowed: ", call.0, call.1)),
        "{record}"
    );
    world.stage.nothing_forwarded().await;
    told
}

/// The question to the user.
async fn question(world: &mut World) -> Value {
    let question = world.stage.hear().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    question
}

async fn reply(world: &mut World, question: &Value, result: Value) {
    world.stage.say(json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_be_asked_does_not_allow() {
    let mut world = World::new().await;
    for (tool, key) in [("s__add", "allowWrites"), ("s__drop", "allowDestructive")] {
        world.want("x").await;
        let told = refused(&mut world, (tool, "{}")).await;
        assert!(
            told.contains("elicitation.form") && told.contains(&format!("naturalLanguage.{key} would")),
            "{told}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_configuration_allows_what_it_names() {
    for (unasked, tools) in [(Effect::Writes, &["s__add"][..]), (Effect::Destroys, &["s__add", "s__drop"])] {
        let mut world = World::new().await;
        world.agree(LIMITS, unasked);
        for tool in tools {
            world.want("x").await;
            world.asked().await.answer(calls(&[(tool, "{}")]));
            world.stage.forwarded().await.answer(r#"{"content":[]}"#);
            world.asked().await.answer(says("ok"));
            assert!(world.told().await.1.ends_with(": done"));
        }
    }
    let mut world = World::new().await;
    world.agree(LIMITS, Effect::Writes);
    world.want("x").await;
    refused(&mut world, ("s__drop", "{}")).await;
}

#[tokio::test(start_paused = true)]
async fn the_user_is_asked_about_the_very_call() {
    let mut world = World::with(FORM).await;
    world.want("x").await;
    world.asked().await.answer(calls(&[("s__add", r#"{"n":"7"}"#)]));
    let asked = question(&mut world).await;
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("s__add, which may add something.\n\n{\"n\":7}\n\n"), "{message}");
    assert_eq!(asked["params"]["requestedSchema"], json!({ "type": "object", "properties": {} }));
    world.stage.nothing_forwarded().await;
    // The clock stands still meanwhile.
    sleep(LIMITS.time + Duration::from_secs(60)).await;
    reply(&mut world, &asked, json!({ "action": "accept", "content": {} })).await;
    let call = world.stage.forwarded().await;
    assert!(call.text().contains(r#""name":"add","arguments":{"n":7}"#), "{}", call.text());
    call.answer(r#"{"content":[]}"#);
    world.asked().await.answer(says("Added."));
    assert_eq!(world.told().await.1, "Calls:\n1. s__add {\"n\":7}: done");
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_accept_does_not_allow() {
    for (answer, why) in [
        (json!({ "action": "decline" }), "the user declined it"),
        (json!({ "action": "cancel" }), "the user declined it"),
        (json!({}), "the host failed to answer"),
    ] {
        let mut world = World::with(FORM).await;
        world.want("x").await;
        world.asked().await.answer(calls(&[("s__drop", "{}")]));
        let asked = question(&mut world).await;
        reply(&mut world, &asked, answer).await;
        let asked = world.asked().await;
        assert!(asked.turns()[2].contains(why), "{:?}", asked.turns());
        asked.answer(says("ok"));
        world.told().await;
        world.stage.nothing_forwarded().await;
    }
    // Silence does not allow either, and the question is withdrawn.
    let mut world = World::with(FORM).await;
    world.want("x").await;
    world.asked().await.answer(calls(&[("s__drop", "{}")]));
    let asked = question(&mut world).await;
    assert_eq!(world.stage.hear().await["params"]["requestId"], asked["id"]);
    assert!(world.asked().await.turns()[2].contains("did not answer in time"));
    world.stage.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_user_who_declines_is_not_asked_without_end() {
    let mut world = World::with(FORM).await;
    world.want("x").await;
    world.asked().await.answer(calls(&[("s__drop", "{}"); 9]));
    for _ in 0..LIMITS.calls {
        let asked = question(&mut world).await;
        reply(&mut world, &asked, json!({ "action": "decline" })).await;
    }
    let asked = world.asked().await;
    assert_eq!(asked.turns()[2].matches("are used up").count(), 9 - LIMITS.calls, "{:?}", asked.turns());
}

#[tokio::test(start_paused = true)]
async fn leave_is_not_for_what_the_tool_becomes_afterwards() {
    let becomes = |annotations| snapshot_where_adding(Errands::Everybody, annotations);
    for (then, made) in [
        (becomes(json!({ "destructiveHint": true })), false),
        (becomes(json!({ "destructiveHint": false, "title": "Add" })), true),
        (becomes(json!({ "readOnlyHint": true })), true),
        (scripted::snapshot(&["other"], true), false),
    ] {
        let mut world = World::with(FORM).await;
        world.want("x").await;
        world.asked().await.answer(calls(&[("s__add", "{}")]));
        let asked = question(&mut world).await;
        world.stage.snapshots.send_replace(then);
        reply(&mut world, &asked, json!({ "action": "accept" })).await;
        if made {
            world.stage.forwarded().await.answer(r#"{"content":[]}"#);
        }
        world.asked().await.answer(says("ok"));
        let end = if made { "done" } else { "not made: the tool has changed meanwhile, or is gone" };
        assert_eq!(world.told().await.1, format!("Calls:\n1. s__add {{}}: {end}"));
        world.stage.nothing_forwarded().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_changes_things_is_done_one_by_one() {
    let mut world = World::new().await;
    world.agree(LIMITS, Effect::Destroys);
    world.want("x").await;
    world.asked().await.answer(calls(&[("s__add", r#"{"n":1}"#), ("s__read", r#"{"n":2}"#)]));
    let first = world.stage.forwarded().await;
    assert!(first.text().contains("\"add\""), "{}", first.text());
    world.stage.nothing_forwarded().await;
    first.answer(r#"{"content":[]}"#);
    assert!(world.stage.forwarded().await.text().contains("\"read\""));
}

#[tokio::test(start_paused = true)]
async fn the_model_of_a_host_is_offered_where_it_takes_tools() {
    for (capabilities, offered) in
        [("{}", false), (r#"{"sampling":{}}"#, false), (r#"{"sampling":{"tools":{}}}"#, true)]
    {
        let mut world = World::with(capabilities).await;
        world.stage.snapshots.send_replace(snapshot(Errands::Lenders));
        let terms = Terms { model: Chosen::Host, limits: LIMITS, unasked: Effect::Reads, instructions: None };
        world.stage.errands.choose(Some(terms));
        let listed = world.stage.ask(list(1)).await;
        let names: Vec<&str> = listed["result"]["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        assert_eq!(names.contains(&"natural_language"), offered, "{capabilities}: {names:?}");
        world.want("x").await;
        if offered {
            let question = world.stage.hear().await;
            assert_eq!(question["method"], "sampling/createMessage");
            assert_eq!(question["params"]["tools"].as_array().unwrap().len(), 3);
            let content = json!({ "type": "tool_use", "id": "1", "name": "s__read", "input": { "n": 1 } });
            let wants =
                json!({ "role": "assistant", "content": [content], "model": "m", "stopReason": "toolUse" });
            reply(&mut world, &question, wants).await;
            world.stage.forwarded().await.answer(r#"{"content":[{"type":"text","text":"one"}]}"#);
            let question = world.stage.hear().await;
            let result = &question["params"]["messages"][2]["content"][0];
            assert_eq!((&result["toolUseId"], &result["content"][0]["text"]), (&json!("1"), &json!("one")));
            let content = json!({ "type": "text", "text": "It is one." });
            reply(&mut world, &question, json!({ "role": "assistant", "content": content, "model": "m" }))
                .await;
            assert_eq!(world.told().await.0, "It is one.");
        } else {
            let (why, _, failed) = world.told().await;
            assert!(failed && why.contains("sampling.tools"), "{why}");
        }
    }
}
