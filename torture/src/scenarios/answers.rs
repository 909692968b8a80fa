//! Answers that are not JSON, do not match the request, or come more than once.

use std::time::{Duration, Instant};

use plugbay_testkit::{Endpoint, Host, Play, Workspace};
use serde_json::{Value, json};

use crate::{
    measure::milliseconds,
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "broken-answers",
        rule: "Answers that are no JSON, over stdio: the host gets one JSON value per line, the call ends with an error",
        run: broken_answers,
    },
    Scenario {
        name: "broken-answers-http",
        rule: "The same of a server over HTTP, as a body and as events",
        run: broken_answers_http,
    },
    Scenario {
        name: "sound-answers",
        rule: "Odd answers that are JSON reach the host byte for byte",
        run: sound_answers,
    },
    Scenario {
        name: "wrong-id-kind",
        rule: "An answer whose id is text instead of a number ends its call within 1 s",
        run: wrong_id_kind,
    },
    Scenario {
        name: "long-id",
        rule: "A request whose id has 5,000 digits is answered with that id, or rejected; valid JSON either way",
        run: long_id,
    },
];

/// Answers that no strict parser accepts. `PAD` makes them longer than 512 bytes.
const BROKEN: [&str; 24] = [
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":NaN,"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":Infinity,"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":01,"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":.5,"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":1.,"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":+1,"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":0x1F,"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":'x',"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":[1,],"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":[1 2],"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":{"b":1,},"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":{b:1},"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":"\q","p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":"\u12G4","p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":tru,"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"a":nul,"p":"PAD"}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"p":"PAD"}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"p":"PAD"}}}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"p":"PAD"]}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[],"p":"PAD"}} {"jsonrpc":"2.0","method":"notifications/forged"}"#,
    r#"{"jsonrpc":"2.0","id":%ID%,"result":{"content":[] /* c */,"p":"PAD"}}"#,
    "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"result\":{\"content\":[],\"a\":\"\u{1}\",\"p\":\"PAD\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":%ID%,\"result\":{\"content\":[],\"a\":\"\t\",\"p\":\"PAD\"}}",
    r#"{"jsonrpc":"2.0","result":{"content":[],"p":"PAD","a":[},"id":%ID%}"#,
];

const SOUND: [&str; 6] = [
    r#"{"content":[],"a":123456789012345678901234567890,"p":"PAD"}"#,
    r#"{"content":[],"a":1e400,"b":-0.0,"c":1.10,"p":"PAD"}"#,
    r#"{"content":[],"a":"\ud800","b":"\u0000","p":"PAD"}"#,
    r#"{"content":[] , "a" : { } ,"p":"PAD"}"#,
    r#"{"content":[],"a":1,"a":2,"p":"PAD"}"#,
    r#"{"content":[],"":{"":[[[[]]]]},"p":"PAD"}"#,
];

fn broken_answers(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let folder = workspace.path().join("s");
    let entry = trial::stub(&workspace, "s", &[]);
    let config = trial::config(&workspace, &[]).entry("s", entry).options("s", json!({ "timeout": "3s" }));
    let host = trial.open(&workspace, &config, &["s__raw", "fast__echo"]);
    let mut outcome = Outcome::default();
    for (number, broken) in BROKEN.iter().enumerate() {
        let text = broken.replace("PAD", &"x".repeat(600));
        std::fs::write(folder.join("raw.answer"), text).expect("an answer");
        note(&mut outcome, number, &call(&host, "s__raw"));
    }
    // A message that the host cannot parse has no id, so the check above would miss it.
    for message in host.messages() {
        let sound = serde_json::from_str::<Value>(message.text()).is_ok();
        outcome.check(sound, || format!("a line that is no JSON reached the host: {message:?}"));
        outcome.check(!message.text().contains("forged"), || "a forged message reached the host".to_owned());
    }
    outcome.faults.truncate(6);
    outcome.figure(format!("{} broken answers", BROKEN.len()))
}

/// Calls a tool. Returns its answer, or a line that cannot be parsed.
fn call(host: &Host, tool: &str) -> String {
    let id = host.start_call(tool, "{}").to_string();
    let unread = |text: &str| serde_json::from_str::<Value>(text).is_err();
    let answer = host.expect("an answer", |m| m.is_response() && m.id() == Some(&id) || unread(m.text()));
    answer.text().to_owned()
}

fn note(outcome: &mut Outcome, number: usize, text: &str) {
    let value: Result<Value, _> = serde_json::from_str(text);
    let refused =
        value.as_ref().is_ok_and(|value| !value["error"].is_null() || value["result"]["isError"] == true);
    outcome.check(value.is_ok(), || format!("answer {number} is no JSON"));
    outcome.check(refused, || format!("answer {number} is no error"));
}

fn broken_answers_http(trial: &Trial) -> Outcome {
    let mut outcome = Outcome::default();
    for streamed in [false, true] {
        let workspace = Workspace::new();
        let endpoint = Endpoint::answering(move |asked| server(&asked.body, streamed));
        let entry = json!({ "url": format!("{}/mcp", endpoint.url()), "plugbay": { "timeout": "3s" } });
        let host = trial.open(
            &workspace,
            &trial::config(&workspace, &[]).entry("s", entry),
            &["s__t0", "fast__echo"],
        );
        for number in 0..BROKEN.len() {
            note(&mut outcome, number, &call(&host, &format!("s__t{number}")));
        }
        let unread = host.messages().into_iter().find(|m| serde_json::from_str::<Value>(m.text()).is_err());
        outcome.check(unread.is_none(), || format!("a line that is no JSON reached the host: {unread:?}"));
    }
    outcome.faults.truncate(6);
    outcome.figure(format!("{} broken answers, as bodies and as events", BROKEN.len()))
}

/// A server over HTTP whose tool `tN` gives broken answer N.
fn server(request: &Value, streamed: bool) -> Play {
    let id = request["id"].to_string();
    let result =
        |result: Value| Play::json(200, &json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    match request["method"].as_str() {
        Some("initialize") => with_type(result(
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "0" } }),
        )),
        Some("tools/list") => {
            let tools: Vec<Value> = (0..BROKEN.len())
                .map(|n| json!({ "name": format!("t{n}"), "inputSchema": { "type": "object" } }))
                .collect();
            with_type(result(json!({ "tools": tools })))
        }
        Some("tools/call") => {
            let name = request["params"]["name"].as_str().unwrap_or_default();
            let number: usize = name.trim_start_matches('t').parse().unwrap_or(0);
            let text = BROKEN[number].replace("PAD", &"x".repeat(600)).replace("%ID%", &id);
            if streamed {
                Play::Stream(vec![format!("event: message\ndata: {text}\n\n")])
            } else {
                with_type(Play::Answer { status: 200, headers: Vec::new(), body: text })
            }
        }
        Some(method) if method.starts_with("notifications/") => {
            Play::Answer { status: 202, headers: Vec::new(), body: String::new() }
        }
        _ => Play::Answer { status: 405, headers: Vec::new(), body: String::new() },
    }
}

fn with_type(play: Play) -> Play {
    match play {
        Play::Answer { status, body, .. } => {
            Play::Answer { status, headers: vec![("content-type", "application/json")], body }
        }
        other => other,
    }
}

fn sound_answers(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let folder = workspace.path().join("s");
    let entry = trial::stub(&workspace, "s", &[]);
    let host = trial.open(&workspace, &trial::config(&workspace, &[]).entry("s", entry), &["s__raw"]);
    let mut outcome = Outcome::default();
    for sound in SOUND {
        for padding in [0, 600, 100_000] {
            let result = sound.replace("PAD", &"x".repeat(padding));
            let text = format!(r#"{{"jsonrpc":"2.0","id":%ID%,"result":{result}}}"#);
            std::fs::write(folder.join("raw.answer"), text).expect("an answer");
            let answer = host.call("s__raw", "{}");
            outcome.check(answer.text().contains(&result), || format!("changed: {sound} of {padding} bytes"));
        }
    }
    outcome.figure(format!("{} answers of three lengths", SOUND.len()))
}

fn wrong_id_kind(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let answer = r#"{"jsonrpc":"2.0","id":"%ID%","result":{"content":[]}}"#;
    let entry = trial::stub(&workspace, "s", &[("raw.answer", answer)]);
    let config = trial::config(&workspace, &[]).entry("s", entry).options("s", json!({ "timeout": "2m" }));
    let host = trial.open(&workspace, &config, &["s__raw"]);
    let start = Instant::now();
    host.call("s__raw", "{}");
    let (took, mut outcome) = (start.elapsed(), Outcome::default());
    // The deadline of the call is far away, so the call ended because of the answer.
    outcome.check(took < Duration::from_secs(60), || format!("the call ended after {took:?}"));
    outcome.check_time(trial, took, Duration::from_millis(500), || format!("the call ended after {took:?}"));
    outcome.figure(format!("ended after {}", milliseconds(took)))
}

fn long_id(trial: &Trial) -> Outcome {
    let workspace = Workspace::new();
    let host = trial.open(&workspace, &trial::config(&workspace, &[]), &["fast__echo"]);
    let mut outcome = Outcome::default();
    for id in ["7".repeat(5000), format!("\"{}\"", "i".repeat(5000)), format!("-{}", "9".repeat(400))] {
        host.request_as(&id, "tools/call", r#"{"name":"fast__echo","arguments":{}}"#);
        let answer = host
            .expect("an answer", |m| m.is_response() && m.id().is_none_or(|own| own == id || own == "null"));
        outcome.check(serde_json::from_str::<&serde_json::value::RawValue>(answer.text()).is_ok(), || {
            "no JSON".to_owned()
        });
    }
    host.call("fast__echo", "{}").content_text();
    outcome.figure("numbers and texts of 5,000 characters")
}
