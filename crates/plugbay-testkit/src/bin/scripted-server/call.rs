//! One tool call, or another request with a scripted answer: acts out its behaviour on its own thread.

use std::{
    collections::BTreeMap,
    env, process,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    ask,
    request::Params,
    script::{Behaviour, Exit, Method, definitions},
    server::Server,
    startup::say,
};

/// How long `cancelled_log` waits for each cancellation that is to come.
const CANCELLATION_PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug)]
struct Call {
    method: Method,
    id: String,
    /// `params` as received.
    params: String,
    /// The name of the tool or prompt, or a URI.
    about: String,
    token: Option<String>,
    /// How many cancellations `cancelled_log` waits for.
    wait: usize,
    modern: bool,
    /// A modern client's answers to earlier questions.
    responses: Option<String>,
    state: Option<String>,
}

pub(crate) fn start(
    server: &Arc<Server>,
    method: Method,
    id: &str,
    raw: &str,
    params: Params<'_>,
    modern: bool,
) {
    let call = Call {
        method,
        id: id.to_owned(),
        params: raw.to_owned(),
        about: params.about(method).to_owned(),
        token: params.meta.progress_token.map(|token| token.get().to_owned()),
        wait: params.arguments.wait,
        modern,
        responses: params.input_responses.map(|responses| responses.get().to_owned()),
        state: params.request_state,
    };
    server.state.lock().expect("state").calls.push((call.about.clone(), call.id.clone()));
    let server = Arc::clone(server);
    thread::spawn(move || call.run(&server));
}

impl Call {
    fn run(self, server: &Server) {
        let plain = Behaviour::default();
        let behaviour = server.script.behaviour_of(self.method, &self.about).unwrap_or(&plain);
        for line in &behaviour.stderr {
            say(line);
            server.log(&format!("said {line}"));
        }
        thread::sleep(Duration::from_millis(behaviour.delay_ms));
        self.progress(server, behaviour);
        behaviour.send.iter().for_each(|line| server.send(&self.fill_in(server, line)));
        if let Some(tools) = &behaviour.change_tools {
            server.state.lock().expect("state").tools = definitions(tools);
            server.notify_list_changed();
        }
        if let Some(crash) = &behaviour.crash {
            exit(crash);
        }
        if behaviour.hang {
            return;
        }
        let asked = self.ask(server, behaviour);
        server.send(&self.envelope(server, behaviour, asked));
        if let Some(code) = behaviour.exit_after {
            process::exit(code);
        }
    }

    fn fill_in(&self, server: &Server, line: &str) -> String {
        let subscription = server.subscription().unwrap_or_default();
        line.replace("TOKEN", self.token.as_deref().unwrap_or("null")).replace("SUBSCRIPTION", &subscription)
    }

    fn progress(&self, server: &Server, behaviour: &Behaviour) {
        let Some(token) = &self.token else { return };
        let total = behaviour.progress;
        for step in 1..=total {
            thread::sleep(Duration::from_millis(behaviour.progress_ms));
            server.send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{step},"total":{total},"message":"step {step} of {total}"}}}}"#
            ));
        }
    }

    /// Asks the questions, if any, and returns the basis of the answer.
    fn ask(&self, server: &Server, behaviour: &Behaviour) -> Asked {
        match &behaviour.ask[..] {
            [] => Asked::Nothing,
            questions if !self.modern => Asked::Answers(ask::in_words(server, &self.id, questions)),
            questions if self.state.as_deref() != Some(ask::STATE) => {
                Asked::Result(ask::by_result(questions))
            }
            _ => Asked::Answers(self.responses.clone().unwrap_or_default()),
        }
    }

    fn envelope(&self, server: &Server, behaviour: &Behaviour, asked: Asked) -> String {
        let (key, body) = match &behaviour.error {
            Some(error) => ("error", error.get().to_owned()),
            None => ("result", self.result(server, behaviour, asked)),
        };
        let order: Vec<&str> = match (&behaviour.key_order[..], behaviour.id_last) {
            ([], false) => vec!["jsonrpc", "id", "result"],
            ([], true) => vec!["jsonrpc", "result", "id"],
            (given, _) => given.iter().map(String::as_str).collect(),
        };
        let mut members: Vec<String> = order
            .into_iter()
            .map(|member| match member {
                "jsonrpc" => r#""jsonrpc":"2.0""#.to_owned(),
                "id" => format!(r#""id":{}"#, self.id),
                _ => format!(r#""{key}":{body}"#),
            })
            .collect();
        if let Some(second) = &behaviour.duplicate_id {
            members.push(format!(r#""id":{second}"#));
        }
        format!("{{{}}}", members.join(","))
    }

    fn result(&self, server: &Server, behaviour: &Behaviour, asked: Asked) -> String {
        if let Asked::Result(result) = asked {
            return result;
        }
        if let Some(result) = &behaviour.result {
            return result.get().to_owned();
        }
        let size = behaviour.size.or(behaviour.big_line.map(|mebibytes| mebibytes << 20));
        let text = if let Asked::Answers(answers) = asked {
            answers
        } else if let Some(size) = size {
            "x".repeat(size)
        } else if behaviour.echo {
            self.params.clone()
        } else if behaviour.pid {
            process::id().to_string()
        } else if behaviour.remember {
            let mut state = server.state.lock().expect("state");
            state.remembered.push(self.params.clone());
            state.remembered.join("\n")
        } else if behaviour.env {
            json!(env::vars().collect::<BTreeMap<_, _>>()).to_string()
        } else if behaviour.cancelled_log {
            self.cancellations(server)
        } else {
            format!("{} ok", self.about)
        };
        let content = json!({"type": "text", "text": text});
        let mut result = match self.method {
            Method::Call | Method::Other => json!({"content": [content]}),
            Method::Read => json!({"contents": [{"uri": self.about, "text": text}]}),
            Method::Get => json!({"messages": [{"role": "user", "content": content}]}),
            Method::Complete => json!({"completion": {"values": [text]}}),
        };
        if self.modern {
            result["resultType"] = "complete".into();
        }
        result.to_string()
    }

    fn cancellations(&self, server: &Server) -> String {
        let deadline = Instant::now() + CANCELLATION_PATIENCE;
        let mut state = server.state.lock().expect("state");
        while state.cancelled.len() < self.wait && Instant::now() < deadline {
            (state, _) = server.changed.wait_timeout(state, CANCELLATION_PATIENCE).expect("state");
        }
        let cancelled: Vec<Value> = state.cancelled.iter().map(|id| raw(id)).collect();
        let calls: Vec<(&str, Value)> =
            state.calls.iter().map(|(tool, id)| (tool.as_str(), raw(id))).collect();
        json!({"cancelled": cancelled, "calls": calls}).to_string()
    }
}

enum Asked {
    Nothing,
    /// The answers are not known yet: this result asks for them.
    Result(String),
    /// Raw JSON.
    Answers(String),
}

fn raw(id: &str) -> Value {
    serde_json::from_str(id).unwrap_or(Value::Null)
}

fn exit(exit: &Exit) -> ! {
    exit.stderr.iter().for_each(|line| say(line));
    process::exit(exit.code)
}
