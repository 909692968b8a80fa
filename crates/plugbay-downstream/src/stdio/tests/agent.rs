//! Agent runs: the calls that a model asks for are made, within limits, and never without permission.

mod consent;
mod harness;
mod limits;
mod paused;

use std::sync::Arc;

use plugbay_core::{
    model::ModelError,
    surface::{AgentAccess, Layout, Snapshot},
};
use serde_json::json;

use self::harness::{AgentHarness, calls, says};
use super::harness::{cancel, list, request};
use crate::scripted::{server, soon};

#[tokio::test(start_paused = true)]
async fn an_agent_turns_a_sentence_into_a_tool_call_and_text() {
    let mut agent = AgentHarness::new().await;
    agent.want("What is in it?").await;
    let asked = agent.asked().await;
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
    let call = agent.harness.forwarded().await;
    assert!(
        call.text().contains(r#""params":{"name":"read","arguments":{"n":7},"_meta""#),
        "{}",
        call.text()
    );
    call.answer(r#"{"content":[{"type":"text","text":"seven"}]}"#);
    let asked = agent.asked().await;
    assert_eq!(asked.turns(), ["user: What is in it?", "model: s__read {\"n\":\"7\"}", "result: seven"]);
    asked.answer(says("Seven is."));
    let (words, record, failed) = agent.told().await;
    assert_eq!((words.as_str(), failed), ("Seven is.", false));
    assert_eq!(record, "Calls:\n1. s__read {\"n\":7}: done");
}

#[tokio::test(start_paused = true)]
async fn references_in_calls_of_an_agent_are_replaced_and_then_checked() {
    let mut agent = AgentHarness::new().await;
    let read = json!({ "name": "execute_tool", "arguments": { "name": "s__read", "arguments": {} } });
    agent.harness.say(request(1, "tools/call", &read.to_string())).await;
    let text = json!({ "n": 42, "name": "x".repeat(30_000) }).to_string();
    agent.harness.forwarded().await.answer(json!({ "content": [{ "type": "text", "text": text }] }));
    let outline = agent.harness.hear().await["result"]["content"][0]["text"].to_string();
    let handle = &outline[outline.find("r_").expect("a handle")..][..24];

    agent.want(&format!("read the number of {handle}")).await;
    let number = json!({ "n": { "$result": handle, "jq": ".n" } }).to_string();
    let name = json!({ "n": { "$result": handle, "jq": ".name" } }).to_string();
    let unknown = json!({ "n": { "$result": "r_AAECAwQFBgcICQoLDA0ODw" } }).to_string();
    let wanted = [("s__read", &number[..]), ("s__read", &name), ("s__read", &unknown)];
    agent.asked().await.answer(calls(&wanted));
    let call = agent.harness.forwarded().await;
    assert!(call.text().contains(r#""arguments":{"n":42}"#), "{}", call.text());
    call.answer(r#"{"content":[{"type":"text","text":"seven"}]}"#);
    let asked = agent.asked().await;
    let told = &asked.turns()[2];
    assert!(
        told.starts_with("result: seven, ") && told.contains("`n` does not fit: it is a string"),
        "{told:.500}"
    );
    assert!(told.contains("n: there is no result r_AAE"), "{told:.500}");
    asked.answer(says("ok"));
    let (_, record, _) = agent.told().await;
    assert!(record.contains(handle) && !record.contains("42"), "the record has what was asked: {record}");
}

#[tokio::test(start_paused = true)]
async fn read_only_tool_calls_of_an_agent_run_in_parallel() {
    let mut agent = AgentHarness::new().await;
    agent.want("both").await;
    agent.asked().await.answer(calls(&[("s__read", r#"{"n":1}"#), ("s__read", r#"{"n":2}"#)]));
    let (first, second) = (agent.harness.forwarded().await, agent.harness.forwarded().await);
    second.answer(r#"{"content":[{"type":"text","text":"two"}]}"#);
    first.answer_with(format!(
        r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":1,"message":"gone"}}}}"#,
        first.ticket().0
    ));
    let asked = agent.asked().await;
    assert_eq!(asked.turns()[2], "result: The call failed: gone!, two");
    asked.answer(says("ok"));
    let (_, record, _) = agent.told().await;
    assert_eq!(record, "Calls:\n1. s__read {\"n\":1}: failed: gone\n2. s__read {\"n\":2}: done");
}

#[tokio::test(start_paused = true)]
async fn an_agent_reports_impossible_tool_calls_to_the_model() {
    let mut agent = AgentHarness::new().await;
    agent.want("x").await;
    let wanted = [("s__nothing", "{}"), ("natural_language", "{}"), ("s__read", r#"{"n":"seven"}"#)];
    agent.asked().await.answer(calls(&wanted));
    let asked = agent.asked().await;
    let told = &asked.turns()[2];
    assert!(told.contains(r#"not made: there is no tool "s__nothing"!"#), "{told}");
    assert!(told.contains(r#"not made: there is no tool "natural_language"!"#), "{told}");
    assert!(told.contains("; for example: "), "what would fit: {told}");
    asked.answer(says("ok"));
    agent.told().await;
    agent.harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn content_blocks_of_an_agent_run_are_attached_unchanged() {
    let mut agent = AgentHarness::new().await;
    agent.want("x").await;
    agent.asked().await.answer(calls(&[("s__read", "{}")]));
    let image = r#"{ "data":"AA==","type":"image","mimeType":"image/png","n":12345678901234567890123}"#;
    agent.harness.forwarded().await.answer(format!(r#"{{"content":[{image}]}}"#));
    let asked = agent.asked().await;
    assert_eq!(asked.turns()[2], "result: [image, image/png, shown to the user]");
    asked.answer(says("Here."));
    let answer = agent.harness.hear_text().await;
    assert!(answer.ends_with(&format!(",{image}]}}}}")), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_failing_model_ends_the_agent_run_with_its_report() {
    let mut agent = AgentHarness::new().await;
    agent.want("x").await;
    agent.asked().await.answer(calls(&[("s__read", "{}")]));
    agent.harness.forwarded().await.answer(r#"{"content":[]}"#);
    agent.asked().await.fail(ModelError::Refused("it must not".to_owned()));
    let (words, record, failed) = agent.told().await;
    let expected = "Not finished: the model cannot go on: it refuses to answer: it must not.";
    assert_eq!((words.as_str(), failed), (expected, true));
    assert_eq!(record, "Calls:\n1. s__read {}: done");
}

#[tokio::test(start_paused = true)]
async fn an_agent_asks_again_after_an_unreadable_answer_twice() {
    let mut agent = AgentHarness::new().await;
    agent.want("x").await;
    for _ in 0..2 {
        agent.asked().await.fail(ModelError::Malformed("no JSON".to_owned()));
    }
    let asked = agent.asked().await;
    let again = "user: Your last answer cannot be read: no JSON. Try again.";
    assert_eq!(asked.turns(), ["user: x", again, again]);
    asked.fail(ModelError::Malformed("no JSON".to_owned()));
    assert!(agent.told().await.0.contains("its answer cannot be read: no JSON"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_run_can_be_limited_to_one_server() {
    let mut agent = AgentHarness::new().await;
    agent.call(json!({ "query": "x", "server": "t" })).await;
    let (why, _, failed) = agent.told().await;
    assert_eq!((why.as_str(), failed), (r#"there is no server "t", but s"#, true));
    agent.call(json!({ "query": " " })).await;
    assert_eq!(agent.told().await.0, "\"query\" is missing: say what you want done");
    agent.call(json!({ "request": "x" })).await;
    let (told, ..) = agent.told().await;
    assert!(told.ends_with("done\n`request` is not a parameter; there are query, server"), "{told}");
    for name in ["s", "S"] {
        agent.call(json!({ "query": "x", "server": name })).await;
        let asked = agent.asked().await;
        assert_eq!(asked.prompt.tools.len(), 3);
        asked.answer(says("ok"));
        agent.told().await;
    }
}

#[tokio::test(start_paused = true)]
async fn agent_progress_is_sent_if_the_request_has_a_token() {
    let mut agent = AgentHarness::new().await;
    let params = json!({ "name": "natural_language", "arguments": { "query": "x" }, "_meta": { "progressToken": "p" } });
    agent.harness.say(request(7, "tools/call", &params.to_string())).await;
    let mut asked = agent.asked().await;
    for piece in ["Let me ", "see. There", " may be"] {
        asked.mutter(piece);
    }
    asked.answer(calls(&[("s__read", "{}")]));
    let call = agent.harness.forwarded().await;
    call.progress();
    call.answer(r#"{"content":[]}"#);
    agent.asked().await.answer(says("ok"));
    let told = ["asking the model", "Let me see.", "calling s__read", "s__read", "asking the model"];
    for (step, message) in (1..).zip(told) {
        let told = agent.harness.hear().await;
        let expected = json!({ "progressToken": "p", "progress": step, "message": message });
        assert_eq!(told["params"], expected);
    }
    agent.told().await;
}

#[tokio::test(start_paused = true)]
async fn cancellation_of_an_agent_run_ends_its_model_request_and_tool_call() {
    let mut agent = AgentHarness::new().await;
    agent.want("x").await;
    let mut asked = agent.asked().await;
    agent.harness.say(cancel(7)).await;
    soon("the end of the server request", asked.gone()).await;
    agent.want("y").await;
    agent.asked().await.answer(calls(&[("s__read", "{}")]));
    let call = agent.harness.forwarded().await;
    agent.harness.say(cancel(7)).await;
    let (ticket, text) = agent.harness.cancelled().await;
    assert_eq!(ticket, call.ticket());
    assert!(text.contains("notifications/cancelled"), "{text}");
    call.answer(r#"{"content":[]}"#);
    agent.harness.hear_nothing().await;
    // The same happens when the host disconnects.
    agent.want("z").await;
    let mut asked = agent.asked().await;
    agent.harness.close();
    soon("the end of the server request", asked.gone()).await;
    agent.harness.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_request_during_an_agent_run_reaches_the_host() {
    let mut agent = AgentHarness::with(r#"{"elicitation":{}}"#).await;
    agent.want("x").await;
    agent.asked().await.answer(calls(&[("s__read", "{}")]));
    let call = agent.harness.forwarded().await;
    call.ask(99, "elicitation/create", r#"{"message":"Which?"}"#).unwrap();
    let server_request = agent.harness.hear().await;
    assert_eq!((&server_request["id"], &server_request["params"]["message"]), (&json!(99), &json!("Which?")));
    agent.harness.say(json!({ "jsonrpc": "2.0", "id": 99, "result": { "action": "decline" } })).await;
    assert_eq!(agent.harness.replied().await.0, 99);
    // A request that is not answered is withdrawn when the agent run ends.
    call.ask(100, "elicitation/create", r#"{"message":"Which now?"}"#).unwrap();
    assert_eq!(agent.harness.hear().await["id"], 100);
    agent.harness.say(cancel(7)).await;
    let told = agent.harness.hear().await;
    assert_eq!(
        (&told["method"], &told["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(100))
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_sees_only_the_servers_it_is_allowed() {
    let mut agent = AgentHarness::new().await;
    let known = harness::snapshot(AgentAccess::Everybody);
    for (servers, tools) in [(vec![server()], 3), (Vec::new(), 0)] {
        let agent_servers = Some(servers.into_iter().collect());
        let layout = Layout { agent_servers, ..(*known.layout).clone() };
        agent.harness.snapshots.send_replace(Snapshot::new(known.catalog.clone(), Arc::new(layout), true));
        let listed = agent.harness.ask(list(1)).await;
        assert!(!listed.to_string().contains("natural_language"), "it is not for everybody: {listed}");
        for arguments in [json!({ "query": "x" }), json!({ "query": "x", "server": "s" })] {
            agent.call(arguments).await;
            if tools > 0 {
                let asked = agent.asked().await;
                assert_eq!(asked.prompt.tools.len(), tools);
                asked.answer(says("ok"));
            }
            assert_eq!(agent.told().await.2, tools == 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_model_natural_language_is_not_listed() {
    let mut agent = AgentHarness::new().await;
    agent.harness.snapshots.send_replace(harness::snapshot(AgentAccess::Nobody));
    agent.harness.hear_nothing().await;
    agent.want("x").await;
    let answer = agent.harness.hear().await;
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("Unknown tool"), "{answer}");
    // The model may disappear at this very moment.
    agent.harness.snapshots.send_replace(harness::snapshot(AgentAccess::Everybody));
    agent.harness.agents.choose(None);
    agent.want("x").await;
    assert!(agent.told().await.0.starts_with("no language model is chosen"));
}
