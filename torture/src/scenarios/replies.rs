//! One message of a server must not stop everything else: answers, notifications, lists and events, while
//! another caller is measured.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use plugbay_testkit::{Endpoint, Play};
use serde_json::{Value, json};

use super::{
    generator::{LONGEST, UNITS, execute, long, members},
    work::{Ledger, Stage},
};
use crate::{
    dice::Dice,
    neighbour::{Neighbour, beside},
    scenario::{Outcome, Scenario},
    trial::{self, Trial},
};

pub(crate) const ALL: &[Scenario] = &[Scenario {
    name: "generated-answers",
    rule: "No generated answer, notification, question, prompt, resource, instruction or event of a server of at most 16 MB holds up another caller for more than 50 ms",
    run: generated_answers,
}];

/// Below the size up to which a server's capabilities are read.
const CAPABILITIES: usize = 250 << 10;

/// The kind of a server's message.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Result,
    Error,
    /// Lines before the answer.
    Before,
    /// The result of a modern server that asks for input.
    Questions,
    Prompt,
    Resource,
    Completion,
    Prompts,
    Resources,
    /// The instructions and capabilities of a newly started server.
    Opening,
    /// The body of a server over HTTP.
    Body,
    /// The events of a server over HTTP.
    Events,
}

const KINDS: [Kind; 12] = [
    Kind::Result,
    Kind::Error,
    Kind::Before,
    Kind::Questions,
    Kind::Prompt,
    Kind::Resource,
    Kind::Completion,
    Kind::Prompts,
    Kind::Resources,
    Kind::Opening,
    Kind::Body,
    Kind::Events,
];

/// Hostile content in one of three shapes, of about `bytes` bytes.
struct Content {
    unit: &'static str,
    bytes: usize,
    shape: usize,
}

impl Content {
    fn draw(dice: &mut Dice, most: usize) -> Self {
        Self { unit: *dice.pick(&UNITS), bytes: (most >> dice.roll(8)).max(1000), shape: dice.roll(3) }
    }

    /// Shortens the content to the limit of a message, including escapes. A longer answer to `initialize` is
    /// refused.
    fn fitting(mut self, kind: Kind) -> Self {
        let longest = if matches!(kind, Kind::Opening) { 2 << 20 } else { LONGEST };
        while stub_file(kind, &self).1.lines().any(|line| line.len() > longest) {
            self.bytes /= 2;
        }
        self
    }

    fn label(&self) -> String {
        let shape = ["one text", "many keys", "many texts"][self.shape];
        format!("{shape} of {:?} up to {} bytes", self.unit, self.bytes)
    }

    fn text(&self) -> String {
        Value::from(long(self.unit, self.bytes)).to_string()
    }

    fn keys(&self, value: &str) -> String {
        members(self.bytes / (12 + value.len()), |n| format!("{}{n}", self.unit), value)
    }

    /// A raw list of the items that `item` makes from numbers.
    fn list(&self, item: impl Fn(usize, &str) -> String) -> String {
        let unit = Value::from(self.unit).to_string();
        let count = (self.bytes / (item(1000, &unit).len() + 1)).max(1);
        format!("[{}]", (0..count).map(|n| item(n, &unit)).collect::<Vec<_>>().join(","))
    }

    /// A raw `CallToolResult`.
    fn result(&self) -> String {
        let content = match self.shape {
            0 => format!(r#"[{{"type":"text","text":{}}}]"#, self.text()),
            1 => "[]".to_owned(),
            _ => self.list(|n, unit| format!(r#"{{"type":"resource_link","uri":"a://{n}","name":{unit}}}"#)),
        };
        let structured = if self.shape == 1 { self.keys("[]") } else { "{}".to_owned() };
        format!(r#"{{"resultType":"complete","content":{content},"structuredContent":{structured}}}"#)
    }
}

fn generated_answers(trial: &Trial) -> Outcome {
    let stage = Stage::new(trial, &[]);
    let played = Arc::new(Mutex::new(Vec::new()));
    let endpoint = endpoint(&played);
    let modern = trial::stub(&stage.workspace, "m", &[("modern", "")]);
    let remote = json!({ "url": format!("{}/mcp", endpoint.url()) });
    let config = || {
        let entry = trial::stub(&stage.workspace, "s", &[]);
        let config = trial::config(&stage.workspace, &[]).entry("s", entry).entry("m", modern.clone());
        config.entry("h", remote.clone()).top("mode", json!("search"))
    };
    stage.workspace.write_config(&config());
    for name in ["m__raw", "h__raw"] {
        stage.await_tool(name);
    }
    let mut ledger = match Ledger::open(trial, &stage.gateway) {
        Ok(ledger) => ledger,
        Err(outcome) => return outcome,
    };
    let mut dice = Dice::new(trial.seed);
    let most = if trial.quick { 1 << 20 } else { 14 << 20 };
    let end = Instant::now() + Duration::from_secs(if trial.quick { 20 } else { 600 });
    for round in 0..trial.times(2 * KINDS.len(), 30 * KINDS.len()) {
        if Instant::now() > end && round >= KINDS.len() {
            break;
        }
        let kind = KINDS[round % KINDS.len()];
        let content = Content::draw(&mut dice, most).fitting(kind);
        let recipe = format!("{kind:?}: {}", content.label());
        let folder = stage.workspace.path().join("s");
        let (waits, answer) = beside(Neighbour::over_http(&stage.gateway), || match kind {
            Kind::Result | Kind::Error | Kind::Before => {
                with_file(&folder, &stub_file(kind, &content), || call(&stage, "s__raw"))
            }
            Kind::Questions => {
                let file = stub_file(kind, &content);
                with_file(&stage.workspace.path().join("m"), &file, || call(&stage, "m__raw"))
            }
            Kind::Prompt => with_file(&folder, &stub_file(kind, &content), || {
                stage.request("prompts/get", r#"{"name":"s__p"}"#)
            }),
            Kind::Resource => with_file(&folder, &stub_file(kind, &content), || {
                stage.request("resources/read", r#"{"uri":"stub://r"}"#)
            }),
            Kind::Completion => with_file(&folder, &stub_file(kind, &content), || {
                let about =
                    r#"{"ref":{"type":"ref/prompt","name":"s__p"},"argument":{"name":"a","value":""}}"#;
                stage.request("completion/complete", about)
            }),
            Kind::Prompts | Kind::Resources => with_file(&folder, &stub_file(kind, &content), || {
                // The tools are listed again, too: their marker shows that all lists have come.
                let tools = format!(
                    r#"[{{"name":"next","inputSchema":{{"type":"object"}}}},{{"name":"raw","inputSchema":{{"type":"object"}}}},{{"name":"marker_{round}","inputSchema":{{"type":"object"}}}}]"#
                );
                fs::write(folder.join("tools.json"), tools).expect("a list");
                call(&stage, "s__next")?;
                stage.await_tool(&format!("s__marker_{round}"));
                let method = if matches!(kind, Kind::Prompts) { "prompts/list" } else { "resources/list" };
                stage.request(method, "{}")
            }),
            Kind::Opening => {
                let name = format!("o{round}");
                let entry = trial::stub(&stage.workspace, &name, &[]);
                let folder = stage.workspace.path().join(&name);
                let answer = with_file(&folder, &stub_file(kind, &content), || {
                    stage.workspace.write_config(&config().entry(&name, entry));
                    stage.await_tool(&format!("{name}__raw"));
                    call(&stage, &format!("{name}__raw"))
                });
                stage.workspace.write_config(&config());
                answer
            }
            Kind::Body | Kind::Events => {
                *played.lock().expect("no panic") = remote_answer(kind, &content);
                call(&stage, "h__raw")
            }
        });
        // An answer over its limit was still read whole, so it counts as processed.
        let answer = answer.as_ref().map(|_| "").map_err(|&()| ());
        ledger.note(trial, recipe, &waits, answer);
    }
    drop(endpoint);
    ledger.close()
}

fn call(stage: &Stage, tool: &str) -> Result<String, ()> {
    let params = format!(r#"{{"name":"execute_tool","arguments":{}}}"#, execute(tool, "{}"));
    stage.request("tools/call", &params)
}

/// Runs `work` while a file is in the folder of a server.
fn with_file<T>(folder: &std::path::Path, (name, text): &(String, String), work: impl FnOnce() -> T) -> T {
    fs::write(folder.join(name), text).expect("a file of a server");
    let done = work();
    let _ = fs::remove_file(folder.join(name));
    done
}

/// The name and content of the file that makes a stub send this.
fn stub_file(kind: Kind, content: &Content) -> (String, String) {
    let answer = |file: &str, result: String| {
        (format!("{file}.answer"), format!(r#"{{"jsonrpc":"2.0","id":%ID%,"result":{result}}}"#))
    };
    match kind {
        Kind::Result | Kind::Body | Kind::Events => answer("raw", content.result()),
        Kind::Error => {
            let data = if content.shape == 1 { content.keys("1") } else { "null".to_owned() };
            let message = if content.shape == 0 { content.text() } else { "\"no\"".to_owned() };
            let error = format!(r#"{{"code":-32000,"message":{message},"data":{data}}}"#);
            ("raw.answer".to_owned(), format!(r#"{{"jsonrpc":"2.0","id":%ID%,"error":{error}}}"#))
        }
        Kind::Before => {
            let line = |method: &str, params: &str| {
                format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{method}\",\"params\":{params}}}\n")
            };
            let lines = match content.shape {
                0 => [
                    line("message", &format!(r#"{{"level":"error","data":{}}}"#, content.text())),
                    line("progress", &format!(r#"{{"progressToken":{},"progress":1}}"#, content.text())),
                    line("resources/updated", &format!(r#"{{"uri":{}}}"#, content.text())),
                ]
                .concat(),
                1 => line("message", &format!(r#"{{"level":"error","data":{}}}"#, content.keys("1"))),
                _ => line("message", r#"{"level":"error","data":"x"}"#).repeat(content.bytes / 80),
            };
            ("raw.before".to_owned(), lines)
        }
        Kind::Questions => {
            let message = if content.shape == 0 { content.text() } else { "\"?\"".to_owned() };
            let question = format!(
                r#"{{"method":"elicitation/create","params":{{"message":{message},"requestedSchema":{{"type":"object","properties":{{}}}}}}}}"#
            );
            let questions =
                if content.shape == 0 { format!(r#"{{"q":{question}}}"#) } else { content.keys(&question) };
            answer(
                "raw",
                format!(
                    r#"{{"resultType":"input_required","inputRequests":{questions},"requestState":"x"}}"#
                ),
            )
        }
        Kind::Prompt => {
            let one = |text: &str| format!(r#"{{"role":"user","content":{{"type":"text","text":{text}}}}}"#);
            let messages = if content.shape == 0 {
                format!("[{}]", one(&content.text()))
            } else {
                content.list(|_, unit| one(unit))
            };
            answer("prompts_get", format!(r#"{{"messages":{messages}}}"#))
        }
        Kind::Resource => {
            let one = |text: &str| format!(r#"{{"uri":"stub://r","text":{text}}}"#);
            let contents = if content.shape == 0 {
                format!("[{}]", one(&content.text()))
            } else {
                content.list(|_, unit| one(unit))
            };
            answer("resources_read", format!(r#"{{"contents":{contents}}}"#))
        }
        Kind::Completion => {
            let values = if content.shape == 0 {
                format!("[{}]", content.text())
            } else {
                content.list(|_, unit| unit.to_owned())
            };
            answer("completion_complete", format!(r#"{{"completion":{{"values":{values}}}}}"#))
        }
        Kind::Prompts => {
            let prompts = content.list(|n, unit| format!(r#"{{"name":"p{n}","description":{unit}}}"#));
            answer("prompts_list", format!(r#"{{"prompts":{prompts}}}"#))
        }
        Kind::Resources => {
            let resources = content.list(|n, unit| format!(r#"{{"uri":"stub://{n}","name":{unit}}}"#));
            answer("resources_list", format!(r#"{{"resources":{resources}}}"#))
        }
        Kind::Opening => {
            let instructions = if content.shape == 0 { content.text() } else { "\"i\"".to_owned() };
            let keys = if content.shape == 1 { content.keys("{}") } else { "{}".to_owned() };
            // A server with longer capabilities declares none, and has no tools.
            let is_short = keys.len() < CAPABILITIES;
            let (experimental, meta) = if is_short { (&*keys, "{}") } else { ("{}", &*keys) };
            let title = if content.shape == 2 { content.text() } else { "\"t\"".to_owned() };
            answer(
                "initialize",
                format!(
                    r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},"experimental":{experimental}}},"serverInfo":{{"name":"o","version":"0","title":{title}}},"instructions":{instructions},"_meta":{meta}}}"#
                ),
            )
        }
    }
}

/// The parts of an answer over HTTP: one is a body, two are events. `%ID%` stands for the id.
fn remote_answer(kind: Kind, content: &Content) -> Vec<String> {
    let (_, answer) = stub_file(kind, content);
    if matches!(kind, Kind::Body) {
        return vec![answer];
    }
    let last = format!("data: {answer}\n\n");
    let noise = match content.shape {
        0 => format!(": {}\nid: {}\n\n", long(content.unit, content.bytes), long(content.unit, 2000)),
        1 => "data: x\n".repeat(content.bytes / 8) + "\n",
        _ => "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"data\":1}}\n\n".repeat(content.bytes / 100),
    };
    vec![noise, last]
}

/// A server over HTTP with one tool, whose calls get the `played` parts as the answer.
fn endpoint(played: &Arc<Mutex<Vec<String>>>) -> Endpoint {
    let played = Arc::clone(played);
    Endpoint::answering(move |asked| {
        let id = asked.body["id"].to_string();
        let typed = |body: String| Play::Answer {
            status: 200,
            headers: vec![("content-type", "application/json")],
            body,
        };
        let result = |result: Value| {
            typed(json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": result }).to_string())
        };
        match asked.body["method"].as_str() {
            Some("initialize") => result(
                json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "h", "version": "0" } }),
            ),
            Some("tools/list") => {
                result(json!({ "tools": [{ "name": "raw", "inputSchema": { "type": "object" } }] }))
            }
            Some("tools/call") => {
                let mut parts = played.lock().expect("no panic").clone();
                if let Some(last) = parts.last_mut() {
                    *last = last.replacen("%ID%", &id, 1);
                }
                if parts.len() == 1 { typed(parts.remove(0)) } else { Play::Stream(parts) }
            }
            Some(method) if method.starts_with("notifications/") => {
                Play::Answer { status: 202, headers: Vec::new(), body: String::new() }
            }
            _ => Play::Answer { status: 405, headers: Vec::new(), body: String::new() },
        }
    })
}
