//! Scripts whose steps the test writes, one line of JSON each.
//!
//! `{"call": ["server", "tool"], "with": {…}}`, `{"await": 0}`, `{"print": "text"}`, `{"return": value}`,
//! `{"return_answers": [0, 1]}`, `{"fail": "why"}`, and `{"die": 1}`, which only the script that was started
//! first obeys.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::atomic::{AtomicUsize, Ordering},
};

use plugbay_core::script::{
    Function, Reach, RunningScript, Script, ScriptAnswer, ScriptCall, ScriptError, ScriptEvent, ScriptFuture,
    Scripts,
};
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub(super) struct ScriptedScripts {
    started: AtomicUsize,
}

impl Scripts for ScriptedScripts {
    fn start(&self, script: Script) -> ScriptFuture<'_, Result<Box<dyn RunningScript>, ScriptError>> {
        let started = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let steps = script.code.lines().map(|line| serde_json::from_str(line).expect("a step")).collect();
        let script = Scripted { started, steps, calls: 0, answers: BTreeMap::new(), waits: false };
        Box::pin(std::future::ready(Ok(Box::new(script) as Box<dyn RunningScript>)))
    }

    fn reach(&self, _: String) -> ScriptFuture<'_, Result<Reach, ScriptError>> {
        Box::pin(std::future::ready(Ok(Reach::default())))
    }
}

struct Scripted {
    started: usize,
    steps: VecDeque<Value>,
    calls: u32,
    answers: BTreeMap<u64, Value>,
    waits: bool,
}

impl Scripted {
    /// Does the next step; `None` while the script waits for an answer.
    fn step(&mut self) -> Option<ScriptEvent> {
        loop {
            let step = self.steps.front().cloned().unwrap_or_else(|| json!({ "return": null }));
            if let Some(number) = step["await"].as_u64() {
                if !self.answers.contains_key(&number) {
                    let first = !std::mem::replace(&mut self.waits, true);
                    return first.then_some(ScriptEvent::Waits);
                }
                self.waits = false;
                self.steps.pop_front();
                continue;
            }
            self.steps.pop_front();
            if step["die"].as_u64().is_some_and(|number| number != self.started as u64) {
                continue;
            }
            return Some(self.event(&step));
        }
    }

    fn event(&mut self, step: &Value) -> ScriptEvent {
        if let Some(called) = step["call"].as_array() {
            let name = |at: usize| called[at].as_str().map(str::to_owned);
            let function = match (name(0), called.len()) {
                (Some(function), 1) if function == "search" => Function::Search,
                (Some(function), 1) if function == "describe" => Function::Describe,
                (Some(function), 1) if function == "help" => Function::Help,
                (Some(function), 1) if function == "results" => Function::Result,
                (tool, 1) => Function::Tool { server: None, tool: tool.unwrap() },
                (server, _) => Function::Tool { server, tool: name(1).unwrap() },
            };
            let arguments = step.get("with").map_or_else(|| "{}".to_owned(), Value::to_string);
            self.calls += 1;
            return ScriptEvent::Call(ScriptCall {
                number: self.calls - 1,
                function,
                arguments: arguments.into(),
            });
        }
        if let Some(text) = step["print"].as_str() {
            return ScriptEvent::Text(format!("{text}\n").into());
        }
        if let Some(why) = step["fail"].as_str() {
            return ScriptEvent::Failed(ScriptError::Wrong { message: why.to_owned(), call: None });
        }
        if step["die"].is_u64() {
            return ScriptEvent::Failed(ScriptError::Died("the sandbox has died".to_owned()));
        }
        if let Some(numbers) = step["return_answers"].as_array() {
            let answers = numbers.iter().map(|number| self.answers[&number.as_u64().unwrap()].clone());
            return ScriptEvent::Returned(answers.collect::<Value>().to_string().into());
        }
        ScriptEvent::Returned(step["return"].to_string().into())
    }
}

impl RunningScript for Scripted {
    fn next(&mut self) -> ScriptFuture<'_, ScriptEvent> {
        match self.step() {
            Some(event) => Box::pin(std::future::ready(event)),
            None => Box::pin(std::future::pending()),
        }
    }

    fn answer(&mut self, call: u32, answer: ScriptAnswer) {
        let json = |raw: &[u8]| serde_json::from_slice::<Value>(raw).unwrap();
        let answer = match answer {
            ScriptAnswer::Result { raw, reading } => {
                json!({ "read": format!("{reading:?}"), "raw": json(&raw) })
            }
            ScriptAnswer::Value(value) => json(&value),
            ScriptAnswer::Error { code, message, .. } => json!({ "code": code, "message": message }),
            ScriptAnswer::Unknown => json!("unknown"),
        };
        assert_eq!(self.answers.insert(call.into(), answer), None, "call {call} is answered twice");
    }
}
