//! The questions that a call asks its client before it is answered: in separate requests, or in its result.

use std::time::{Duration, Instant};

use serde_json::{Value, value::RawValue};

use crate::{script::Ask, server::Server};

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Sends all questions at once and waits for all answers. Returns them as whole messages, in a raw JSON array
/// in the order of the questions.
pub(crate) fn in_words(server: &Server, call: &str, questions: &[Ask]) -> String {
    let ids: Vec<String> =
        (0..questions.len()).map(|n| Value::from(format!("of {call}, {n}")).to_string()).collect();
    for (id, question) in ids.iter().zip(questions) {
        let members = members(question);
        server.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},{members}}}"#));
    }
    let deadline = Instant::now() + PATIENCE;
    let mut state = server.state.lock().expect("state");
    while !ids.iter().all(|id| state.answers.contains_key(id)) && Instant::now() < deadline {
        (state, _) = server.changed.wait_timeout(state, PATIENCE).expect("state");
    }
    let answers: Vec<&str> =
        ids.iter().map(|id| state.answers.get(id).map_or("null", String::as_str)).collect();
    format!("[{}]", answers.join(","))
}

/// The result that asks for input, until the repeated call brings it.
pub(crate) fn by_result(questions: &[Ask]) -> String {
    let entries: Vec<String> = questions
        .iter()
        .enumerate()
        .map(|(n, question)| format!(r#""question {n}":{{{}}}"#, members(question)))
        .collect();
    let entries = entries.join(",");
    format!(r#"{{"resultType":"input_required","inputRequests":{{{entries}}},"requestState":"{STATE}"}}"#)
}

/// The request state, which must come back unchanged.
pub(crate) const STATE: &str = "scripted 1.0 +/=";

fn members(question: &Ask) -> String {
    let params = question.params.as_deref().map(RawValue::get);
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#""method":"{}"{params}"#, question.method)
}
