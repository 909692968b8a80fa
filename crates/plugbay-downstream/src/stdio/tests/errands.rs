//! Errands: what a model wants called is called, within limits, and never without leave.

mod away;
mod consent;
mod limits;
mod world;

use std::sync::Arc;

use plugbay_core::{
    model::Trouble,
    surface::{Errands, Layout, Snapshot},
};
use serde_json::json;

use self::world::{World, calls, says};
use super::stage::{cancel, list, request};
use crate::scripted::{server, soon};

#[tokio::test(start_paused = true)]
async fn a_sentence_becomes_a_call_and_words() {
    let mut world = World::new().await;
    world.want("What is in it?").await;
    let asked = world.asked().await;
    assert_eq!(asked.turns(), ["user: What is in it?"]);
    let names: Vec<&str> = asked.prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["s__add", "s__drop", "s__read"]);
    assert_eq!(
        asked.prompt.tools[2].schema.get(),
        r#"{"properties":{"n":{"type":"integer"}},"type":"object"}"#
    );
    let role = asked.prompt.system.clone().unwrap();
    assert!(role.contains("\n\nBe kind.") && role.ends_with("\n\nAbout s: Holds numbers."), "{role}");
    asked.answer(calls(&[("s__read", r#"{"n":"7"}"#)]));
    let call = world.stage.forwarded().await;
    assert!(
        call.text().contains(r#""params":{"name":"read","arguments":{"n":7},"_meta""#),
        "{}",
        call.text()
    );
    call.answer(r#"{"content":[{"type":"text","text":"seven"}]}"#);
    let asked = world.asked().await;
    assert_eq!(asked.turns(), ["user: What is in it?", "model: s__read {\"n\":\"7\"}", "result: seven"]);
    asked.answer(says("Seven is."));
    let (words, record, failed) = world.told().await;
    assert_eq!((words.as_str(), failed), ("Seven is.", false));
    assert_eq!(record, "Calls:\n1. s__read {\"n\":7}: done");
}

#[tokio::test(start_paused = true)]
async fn calls_that_only_read_are_made_at_once_and_told_in_their_order() {
    let mut world = World::new().await;
    world.want("both").await;
    world.asked().await.answer(calls(&[("s__read", r#"{"n":1}"#), ("s__read", r#"{"n":2}"#)]));
    let (first, second) = (world.stage.forwarded().await, world.stage.forwarded().await);
    second.answer(r#"{"content":[{"type":"text","text":"two"}]}"#);
    first.answer_with(format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":1,"message":"gone"}}}}"#,
        first.ticket().0
    ));
    let asked = world.asked().await;
    assert_eq!(asked.turns()[2], "result: The call failed: gone!, two");
    asked.answer(says("ok"));
    let (_, record, _) = world.told().await;
    assert_eq!(record, "Calls:\n1. s__read {\"n\":1}: failed: gone\n2. s__read {\"n\":2}: done");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_called_is_told_to_the_model() {
    let mut world = World::new().await;
    world.want("x").await;
    let wanted = [("s__nothing", "{}"), ("natural_language", "{}"), ("s__read", r#"{"n":"seven"}"#)];
    world.asked().await.answer(calls(&wanted));
    let asked = world.asked().await;
    let told = &asked.turns()[2];
    assert!(told.contains(r#"not made: there is no tool "s__nothing"!"#), "{told}");
    assert!(told.contains(r#"not made: there is no tool "natural_language"!"#), "{told}");
    assert!(told.contains("; for example: "), "what would fit: {told}");
    asked.answer(says("ok"));
    world.told().await;
    world.stage.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_for_the_eyes_is_attached_as_it_came() {
    let mut world = World::new().await;
    world.want("x").await;
    world.asked().await.answer(calls(&[("s__read", "{}")]));
    let image = r#"{ "data":"AA==","type":"image","mimeType":"image/png","n":12345678901234567890123}"#;
    world.stage.forwarded().await.answer(format!(r#"{{"content":[{image}]}}"#));
    let asked = world.asked().await;
    assert_eq!(asked.turns()[2], "result: [image, image/png, shown to the user]");
    asked.answer(says("Here."));
    let answer = world.stage.hear_text().await;
    assert!(answer.ends_with(&format!(",{image}]}}}}")), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_ends_the_errand_with_what_was_done() {
    let mut world = World::new().await;
    world.want("x").await;
    world.asked().await.answer(calls(&[("s__read", "{}")]));
    world.stage.forwarded().await.answer(r#"{"content":[]}"#);
    world.asked().await.fail(Trouble::Refused("it must not".to_owned()));
    let (words, record, failed) = world.told().await;
    let expected = "Not finished: the model cannot go on: it refuses to answer: it must not.";
    assert_eq!((words.as_str(), failed), (expected, true));
    assert_eq!(record, "Calls:\n1. s__read {}: done");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_not_understood_is_told_so_twice() {
    let mut world = World::new().await;
    world.want("x").await;
    for _ in 0..2 {
        world.asked().await.fail(Trouble::Malformed("no JSON".to_owned()));
    }
    let asked = world.asked().await;
    let again = "user: Your last answer cannot be read: no JSON. Try again.";
    assert_eq!(asked.turns(), ["user: x", again, again]);
    asked.fail(Trouble::Malformed("no JSON".to_owned()));
    assert!(world.told().await.0.contains("its answer cannot be read: no JSON"));
}

#[tokio::test(start_paused = true)]
async fn one_servers_tools_can_be_meant_and_no_others() {
    let mut world = World::new().await;
    world.call(json!({ "query": "x", "server": "t" })).await;
    let (why, _, failed) = world.told().await;
    assert_eq!((why.as_str(), failed), (r#"there is no server "t", but s"#, true));
    world.call(json!({ "query": " " })).await;
    assert_eq!(world.told().await.0, "\"query\" is missing: say what you want done");
    for name in ["s", "S"] {
        world.call(json!({ "query": "x", "server": name })).await;
        let asked = world.asked().await;
        assert_eq!(asked.prompt.tools.len(), 3);
        asked.answer(says("ok"));
        world.told().await;
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_to_whoever_wants_to_know() {
    let mut world = World::new().await;
    let params = json!({ "name": "natural_language", "arguments": { "query": "x" }, "_meta": { "progressToken": "p" } });
    world.stage.say(request(7, "tools/call", &params.to_string())).await;
    let mut asked = world.asked().await;
    for piece in ["Let me ", "see. There", " may be"] {
        asked.mutter(piece);
    }
    asked.answer(calls(&[("s__read", "{}")]));
    let call = world.stage.forwarded().await;
    call.progress();
    call.answer(r#"{"content":[]}"#);
    world.asked().await.answer(says("ok"));
    let told = ["asking the model", "Let me see.", "calling s__read", "s__read", "asking the model"];
    for (step, message) in (1..).zip(told) {
        let told = world.stage.hear().await;
        let expected = json!({ "progressToken": "p", "progress": step, "message": message });
        assert_eq!(told["params"], expected);
    }
    world.told().await;
}

#[tokio::test(start_paused = true)]
async fn to_take_it_back_ends_the_question_and_the_call() {
    let mut world = World::new().await;
    world.want("x").await;
    let mut asked = world.asked().await;
    world.stage.say(cancel(7)).await;
    soon("the end of the question", asked.gone()).await;
    world.want("y").await;
    world.asked().await.answer(calls(&[("s__read", "{}")]));
    let call = world.stage.forwarded().await;
    world.stage.say(cancel(7)).await;
    let (ticket, text) = world.stage.cancelled().await;
    assert_eq!(ticket, call.ticket());
    assert!(text.contains("notifications/cancelled"), "{text}");
    call.answer(r#"{"content":[]}"#);
    world.stage.hear_nothing().await;
    // So does a host that leaves.
    world.want("z").await;
    let mut asked = world.asked().await;
    world.stage.close();
    soon("the end of the question", asked.gone()).await;
    world.stage.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_server_asks_in_the_middle_reaches_the_host() {
    let mut world = World::with(r#"{"elicitation":{}}"#).await;
    world.want("x").await;
    world.asked().await.answer(calls(&[("s__read", "{}")]));
    let call = world.stage.forwarded().await;
    call.ask(99, "elicitation/create", r#"{"message":"Which?"}"#).unwrap();
    let question = world.stage.hear().await;
    assert_eq!((&question["id"], &question["params"]["message"]), (&json!(99), &json!("Which?")));
    world.stage.say(json!({ "jsonrpc": "2.0", "id": 99, "result": { "action": "decline" } })).await;
    assert_eq!(world.stage.replied().await.0, 99);
    // One that is not answered is withdrawn with the errand.
    call.ask(100, "elicitation/create", r#"{"message":"Which now?"}"#).unwrap();
    assert_eq!(world.stage.hear().await["id"], 100);
    world.stage.say(cancel(7)).await;
    let told = world.stage.hear().await;
    assert_eq!(
        (&told["method"], &told["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(100))
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_meant_for_some_servers_knows_of_no_others() {
    let mut world = World::new().await;
    let known = world::snapshot(Errands::Everybody);
    for (servers, tools) in [(vec![server()], 3), (Vec::new(), 0)] {
        let errand_servers = Some(servers.into_iter().collect());
        let layout = Layout { errand_servers, ..(*known.layout).clone() };
        world.stage.snapshots.send_replace(Snapshot::new(known.catalog.clone(), Arc::new(layout), true));
        let listed = world.stage.ask(list(1)).await;
        assert!(!listed.to_string().contains("natural_language"), "it is not for everybody: {listed}");
        for arguments in [json!({ "query": "x" }), json!({ "query": "x", "server": "s" })] {
            world.call(arguments).await;
            if tools > 0 {
                let asked = world.asked().await;
                assert_eq!(asked.prompt.tools.len(), tools);
                asked.answer(says("ok"));
            }
            assert_eq!(world.told().await.2, tools == 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_model_there_is_no_such_tool() {
    let mut world = World::new().await;
    world.stage.snapshots.send_replace(world::snapshot(Errands::Nobody));
    world.stage.hear_nothing().await;
    world.want("x").await;
    let answer = world.stage.hear().await;
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("Unknown tool"), "{answer}");
    // It may have gone in this very moment.
    world.stage.snapshots.send_replace(world::snapshot(Errands::Everybody));
    world.stage.errands.choose(None);
    world.want("x").await;
    assert!(world.told().await.0.starts_with("no language model is chosen"));
}
