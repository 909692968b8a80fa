//! A modern host is asked through the answer to its request. Its next request continues the same agent run.

use std::time::Duration;

use plugbay_core::{
    era::{CAPABILITIES_KEY, MODERN_VERSION, VERSION_KEY},
    surface::{AgentAccess, Effect},
    suspended::HOST_PATIENCE as PATIENCE,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::harness::{AgentHarness, LIMITS, calls, says, snapshot};
use crate::{
    agent::Terms,
    ranking::Chosen,
    stdio::tests::harness::{cancel, modern, request},
};

fn agent_request(id: u64, members: &str) -> String {
    let meta =
        json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: { "elicitation": {} }, "progressToken": id });
    let params =
        format!(r#"{{"_meta":{meta},"name":"natural_language","arguments":{{"query":"x"}}{members}}}"#);
    request(id, "tools/call", &params)
}

/// The host's next request, with these answers.
fn retry(id: u64, asked: &Value, responses: &Value) -> String {
    let state = &asked["result"]["requestState"];
    agent_request(id, &format!(r#","inputResponses":{responses},"requestState":{state}"#))
}

fn accepted(asked: &Value) -> Value {
    json!({ number(asked): { "action": "accept" } })
}

/// The number of the only server request in the answer.
fn number(asked: &Value) -> String {
    let requests = asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
    assert_eq!((requests.len(), &asked["result"]["resultType"]), (1, &json!("input_required")), "{asked}");
    let (number, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    number.clone()
}

/// The next answer; notifications before it are skipped.
async fn answer(agent: &mut AgentHarness) -> Value {
    loop {
        let heard = agent.harness.hear().await;
        if heard.get("id").is_some() {
            return heard;
        }
    }
}

/// Starts an agent run that wants to add something; returns the answer that asks for permission.
async fn asked(agent: &mut AgentHarness) -> Value {
    agent.harness.say(agent_request(1, "")).await;
    agent.asked().await.answer(calls(&[("s__add", r#"{"n":7}"#)]));
    answer(agent).await
}

fn refusal(answer: &Value) -> &str {
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    answer["error"]["message"].as_str().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_agent_run_resumes_after_its_elicitation() {
    let mut agent = AgentHarness::unopened();
    let asked = asked(&mut agent).await;
    let message = &asked["result"]["inputRequests"][number(&asked)]["params"]["message"];
    assert!(message.as_str().unwrap().contains("s__add, which may add something.\n\n{\"n\":7}"), "{message}");
    agent.harness.nothing_forwarded().await;
    // The clock stands still meanwhile.
    sleep(LIMITS.time + Duration::from_secs(60)).await;
    agent.harness.say(retry(2, &asked, &accepted(&asked))).await;
    let call = agent.harness.forwarded().await;
    assert!(call.text().contains(r#""name":"add","arguments":{"n":7}"#), "{}", call.text());
    let told = agent.harness.hear().await;
    assert_eq!(told["params"], json!({ "progressToken": 2, "progress": 1, "message": "calling s__add" }));
    call.answer(r#"{"content":[]}"#);
    agent.asked().await.answer(says("Added."));
    let done = answer(&mut agent).await;
    assert_eq!((&done["id"], &done["result"]["resultType"]), (&json!(2), &json!("complete")));
    assert_eq!(done["result"]["content"][1]["text"], "Calls:\n1. s__add {\"n\":7}: done");
    // The same answer works only once.
    let again = retry(3, &asked, &accepted(&asked));
    agent.harness.say(again).await;
    assert!(refusal(&answer(&mut agent).await).contains("has ended"));
    agent.harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn an_elicitation_that_is_not_accepted_denies_the_tool_call() {
    for (response, why) in
        [(json!({ "action": "decline" }), "the user declined it"), (json!({}), "the host failed to answer")]
    {
        let mut agent = AgentHarness::unopened();
        let asked = asked(&mut agent).await;
        agent.harness.say(retry(2, &asked, &json!({ number(&asked): response }))).await;
        let heard = agent.asked().await;
        assert!(heard.turns()[2].contains(why), "{:?}", heard.turns());
        heard.answer(says("ok"));
        assert_eq!(answer(&mut agent).await["id"], 2);
        agent.harness.nothing_forwarded().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_elicitation_is_repeated_and_bound_to_its_owner() {
    let mut agent = AgentHarness::unopened();
    let first = asked(&mut agent).await;
    let other = retry(2, &first, &accepted(&first)).replace(r#""query":"x""#, r#""query":"y""#);
    agent.harness.say(other).await;
    assert!(refusal(&answer(&mut agent).await).contains("was not given"));
    agent.harness.say(agent_request(3, r#","requestState":"of another""#)).await;
    assert!(refusal(&answer(&mut agent).await).contains("was not given"));
    agent.harness.say(retry(4, &first, &json!({ "7": {} }))).await;
    let second = answer(&mut agent).await;
    assert_ne!(number(&second), number(&first));
    agent.harness.say(retry(5, &second, &accepted(&second))).await;
    agent.harness.forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_agent_run_expires_if_the_host_does_not_return() {
    let mut agent = AgentHarness::unopened();
    let asked = asked(&mut agent).await;
    sleep(PATIENCE + Duration::from_secs(1)).await;
    agent.harness.say(retry(2, &asked, &accepted(&asked))).await;
    assert!(refusal(&answer(&mut agent).await).contains("expired"));
    assert_eq!(format!("{:?}", agent.harness.suspended), "SuspendedCalls(0)");
    agent.harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn cancellation_ends_a_resumed_agent_run() {
    let mut agent = AgentHarness::unopened();
    let asked = asked(&mut agent).await;
    agent.harness.say(retry(2, &asked, &accepted(&asked))).await;
    let call = agent.harness.forwarded().await;
    agent.harness.say(cancel(2)).await;
    assert_eq!(agent.harness.cancelled().await.0, call.ticket());
}

#[tokio::test(start_paused = true)]
async fn sampling_of_a_modern_host_goes_turn_by_turn() {
    let mut agent = AgentHarness::unopened();
    agent.harness.snapshots.send_replace(snapshot(AgentAccess::Lenders));
    let terms = Terms { model: Chosen::Host, limits: LIMITS, unasked: Effect::Reads, instructions: None };
    agent.harness.agents.choose(Some(terms));
    let of = |id: u64, method: &str, capabilities: &Value, members: &str| {
        let meta = json!({ VERSION_KEY: MODERN_VERSION, CAPABILITIES_KEY: capabilities });
        request(id, method, &format!(r#"{{"_meta":{meta}{members}}}"#))
    };
    let wish = |members: &str| format!(r#","name":"natural_language","arguments":{{"query":"x"}}{members}"#);
    // A host that does not lend its model is not offered the tool, and gets the reason.
    let (able, unable) = (json!({ "sampling": { "tools": {} } }), json!({ "sampling": {} }));
    for (capabilities, offered) in [(&unable, false), (&able, true)] {
        let listed = agent.harness.ask(of(1, "tools/list", capabilities, "")).await;
        assert_eq!(listed.to_string().contains("natural_language"), offered, "{listed}");
    }
    let told = agent.harness.ask(of(2, "tools/call", &unable, &wish(""))).await;
    assert!(told.to_string().contains("sampling.tools"), "{told}");

    let call = json!([{ "type": "tool_use", "id": "1", "name": "s__read", "input": { "n": 1 } }]);
    let wants = json!({ "role": "assistant", "model": "m", "stopReason": "toolUse", "content": call });
    let says = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "One." } });
    let mut asked = agent.harness.ask(of(3, "tools/call", &able, &wish(""))).await;
    for (id, response) in [(4, wants), (5, says)] {
        let result = &asked["result"];
        let (number, server_request) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert_eq!(server_request["method"], "sampling/createMessage", "{asked}");
        let state = &result["requestState"];
        let back = format!(r#","inputResponses":{},"requestState":{state}"#, json!({ number: response }));
        sleep(LIMITS.time).await; // for the agent no time passes while the host is away
        agent.harness.say(of(id, "tools/call", &able, &wish(&back))).await;
        if id == 4 {
            agent.harness.forwarded().await.answer(r#"{"content":[]}"#);
        }
        asked = answer(&mut agent).await;
    }
    let content = &asked["result"]["content"];
    assert_eq!((&asked["id"], &content[0]["text"]), (&json!(5), &json!("One.")), "{asked}");
    assert_eq!(content[1]["text"], "Calls:\n1. s__read {\"n\":1}: done");
}

#[tokio::test(start_paused = true)]
async fn a_modern_host_without_elicitation_only_reads() {
    let mut agent = AgentHarness::unopened();
    let agent_request =
        |id| modern(id, "tools/call", r#","name":"natural_language","arguments":{"query":"x"}"#);
    agent.harness.say(agent_request(7)).await;
    agent.asked().await.answer(calls(&[("s__add", "{}")]));
    let asked = agent.asked().await;
    let told = &asked.turns()[2];
    assert!(
        told.contains("elicitation.form") && told.contains("naturalLanguage.allowWrites would"),
        "{told}"
    );
    asked.answer(calls(&[("s__read", "{}")]));
    let call = agent.harness.forwarded().await;
    assert!(call.ask(99, "elicitation/create", "{}").is_err(), "nor can its servers");
    call.answer(r#"{"content":[]}"#);
    agent.asked().await.answer(says("Read."));
    let done = answer(&mut agent).await;
    assert_eq!((&done["id"], &done["result"]["resultType"]), (&json!(7), &json!("complete")));
    assert_eq!(done["result"]["content"][0]["text"], "Read.");
}
