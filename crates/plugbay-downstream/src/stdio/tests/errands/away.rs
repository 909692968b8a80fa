//! A modern host is asked by the answer to its request, and its next one goes on with the same errand.

use std::time::Duration;

use plugbay_core::{
    era::{CAPABILITIES_KEY, MODERN_VERSION, VERSION_KEY},
    surface::{Effect, Errands},
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::world::{LIMITS, World, calls, says, snapshot};
use crate::{
    errand::Terms,
    parked::PATIENCE,
    ranking::Chosen,
    stdio::tests::stage::{cancel, modern, request},
};

fn errand(id: u64, members: &str) -> String {
    let meta =
        json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: { "elicitation": {} }, "progressToken": id });
    let params =
        format!(r#"{{"_meta":{meta},"name":"natural_language","arguments":{{"query":"x"}}{members}}}"#);
    request(id, "tools/call", &params)
}

/// The host comes back with these answers.
fn retry(id: u64, asked: &Value, responses: &Value) -> String {
    let state = &asked["result"]["requestState"];
    errand(id, &format!(r#","inputResponses":{responses},"requestState":{state}"#))
}

fn accepted(asked: &Value) -> Value {
    json!({ number(asked): { "action": "accept" } })
}

/// The number of the one question that is asked.
fn number(asked: &Value) -> String {
    let requests = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
    assert_eq!((requests.len(), &asked["result"]["resultType"]), (1, &json!("input_required")), "{asked}");
    let (number, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    number.clone()
}

/// The next answer; what is told meanwhile is passed over.
async fn answer(world: &mut World) -> Value {
    loop {
        let heard = world.stage.hear().await;
        if heard.get("id").is_some() {
            return heard;
        }
    }
}

/// An errand that wants to add something, and the answer that asks whether it may.
async fn asked(world: &mut World) -> Value {
    world.stage.say(errand(1, "")).await;
    world.asked().await.answer(calls(&[("s__add", r#"{"n":7}"#)]));
    answer(world).await
}

fn refusal(answer: &Value) -> &str {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    answer["error"]["message"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_errand_goes_on_where_it_was() {
    let mut world = World::unopened();
    let asked = asked(&mut world).await;
    let message = &asked["result"]["inputRequests"][number(&asked)]["params"]["message"];
    assert!(message.as_str().unwrap().contains("s__add, which may add something.\n\n{\"n\":7}"), "{message}");
    world.stage.nothing_forwarded().await;
    // The clock stands still meanwhile.
    sleep(LIMITS.time + Duration::from_secs(60)).await;
    world.stage.say(retry(2, &asked, &accepted(&asked))).await;
    let call = world.stage.forwarded().await;
    assert!(call.text().contains(r#""name":"add","arguments":{"n":7}"#), "{}", call.text());
    let told = world.stage.hear().await;
    assert_eq!(told["params"], json!({ "progressToken": 2, "progress": 1, "message": "calling s__add" }));
    call.answer(r#"{"content":[]}"#);
    world.asked().await.answer(says("Added."));
    let done = answer(&mut world).await;
    assert_eq!((&done["id"], &done["result"]["resultType"]), (&json!(2), &json!("complete")));
    assert_eq!(done["result"]["content"][1]["text"], "Calls:\n1. s__add {\"n\":7}: done");
    // Once is enough.
    let again = retry(3, &asked, &accepted(&asked));
    world.stage.say(again).await;
    assert!(refusal(&answer(&mut world).await).contains("has ended"));
    world.stage.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_accept_does_not_allow() {
    for (response, why) in
        [(json!({ "action": "decline" }), "the user declined it"), (json!({}), "the host failed to answer")]
    {
        let mut world = World::unopened();
        let asked = asked(&mut world).await;
        world.stage.say(retry(2, &asked, &json!({ number(&asked): response }))).await;
        let heard = world.asked().await;
        assert!(heard.turns()[2].contains(why), "{:?}", heard.turns());
        heard.answer(says("ok"));
        assert_eq!(answer(&mut world).await["id"], 2);
        world.stage.nothing_forwarded().await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_brings_no_answer_is_asked_again_and_nobody_else_can_bring_one() {
    let mut world = World::unopened();
    let first = asked(&mut world).await;
    let other = retry(2, &first, &accepted(&first)).replace(r#""query":"x""#, r#""query":"y""#);
    world.stage.say(other).await;
    assert!(refusal(&answer(&mut world).await).contains("was not given"));
    world.stage.say(errand(3, r#","requestState":"of another""#)).await;
    assert!(refusal(&answer(&mut world).await).contains("was not given"));
    world.stage.say(retry(4, &first, &json!({ "7": {} }))).await;
    let second = answer(&mut world).await;
    assert_ne!(number(&second), number(&first));
    world.stage.say(retry(5, &second, &accepted(&second))).await;
    world.stage.forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_come_back_is_not_waited_for() {
    let mut world = World::unopened();
    let asked = asked(&mut world).await;
    sleep(PATIENCE + Duration::from_secs(1)).await;
    world.stage.say(retry(2, &asked, &accepted(&asked))).await;
    assert!(refusal(&answer(&mut world).await).contains("expired"));
    assert!(format!("{:?}", world.stage.errands).contains("Away(0)"));
    world.stage.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_back_can_take_it_back() {
    let mut world = World::unopened();
    let asked = asked(&mut world).await;
    world.stage.say(retry(2, &asked, &accepted(&asked))).await;
    let call = world.stage.forwarded().await;
    world.stage.say(cancel(2)).await;
    assert_eq!(world.stage.cancelled().await.0, call.ticket());
}

#[tokio::test(start_paused = true)]
async fn the_model_of_a_modern_host_is_asked_turn_by_turn() {
    let mut world = World::unopened();
    world.stage.snapshots.send_replace(snapshot(Errands::Lenders));
    let terms = Terms { model: Chosen::Host, limits: LIMITS, unasked: Effect::Reads, instructions: None };
    world.stage.errands.choose(Some(terms));
    let of = |id: u64, method: &str, capabilities: &Value, members: &str| {
        let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities });
        request(id, method, &format!(r#"{{"_meta":{meta}{members}}}"#))
    };
    let wish = |members: &str| format!(r#","name":"natural_language","arguments":{{"query":"x"}}{members}"#);
    // One that does not lend it is not offered the tool, and is told why.
    let (able, unable) = (json!({ "sampling": { "tools": {} } }), json!({ "sampling": {} }));
    for (capabilities, offered) in [(&unable, false), (&able, true)] {
        let listed = world.stage.ask(of(1, "tools/list", capabilities, "")).await;
        assert_eq!(listed.to_string().contains("natural_language"), offered, "{listed}");
    }
    let told = world.stage.ask(of(2, "tools/call", &unable, &wish(""))).await;
    assert!(told.to_string().contains("sampling.tools"), "{told}");

    let call = json!([{ "type": "tool_use", "id": "1", "name": "s__read", "input": { "n": 1 } }]);
    let wants = json!({ "role": "assistant", "model": "m", "stopReason": "toolUse", "content": call });
    let says = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "One." } });
    let mut asked = world.stage.ask(of(3, "tools/call", &able, &wish(""))).await;
    for (id, response) in [(4, wants), (5, says)] {
        let result = &asked["result"];
        let (number, question) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(question["method"], "sampling/createMessage", "{asked}");
        let state = &result["requestState"];
        let back = format!(r#","inputResponses":{},"requestState":{state}"#, json!({ number: response }));
        sleep(LIMITS.time).await; // for the errand no time passes while the host is away
        world.stage.say(of(id, "tools/call", &able, &wish(&back))).await;
        if id == 4 {
            world.stage.forwarded().await.answer(r#"{"content":[]}"#);
        }
        asked = answer(&mut world).await;
    }
    let content = &asked["result"]["content"];
    assert_eq!((&asked["id"], &content[0]["text"]), (&json!(5), &json!("One.")), "{asked}");
    assert_eq!(content[1]["text"], "Calls:\n1. s__read {\"n\":1}: done");
}

#[tokio::test(start_paused = true)]
async fn a_modern_host_whose_user_cannot_be_asked_reads() {
    let mut world = World::unopened();
    let errand = |id| modern(id, "tools/call", r#","name":"natural_language","arguments":{"query":"x"}"#);
    world.stage.say(errand(7)).await;
    world.asked().await.answer(calls(&[("s__add", "{}")]));
    let asked = world.asked().await;
    let told = &asked.turns()[2];
    assert!(
        told.contains("elicitation.form") && told.contains("naturalLanguage.allowWrites would"),
        "{told}"
    );
    asked.answer(calls(&[("s__read", "{}")]));
    let call = world.stage.forwarded().await;
    assert!(call.ask(99, "elicitation/create", "{}").is_err(), "nor can its servers");
    call.answer(r#"{"content":[]}"#);
    world.asked().await.answer(says("Read."));
    let done = answer(&mut world).await;
    assert_eq!((&done["id"], &done["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert_eq!(done["result"]["content"][0]["text"], "Read.");
}
