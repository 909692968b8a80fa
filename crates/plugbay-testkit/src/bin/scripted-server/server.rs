//! The server: reads messages, answers the protocol, and leaves tool calls to `call`.

use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    io::{self, BufReader, Write},
    process::{self, ExitCode},
    sync::{Arc, Condvar, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json, value::RawValue};

use crate::{
    call, framing,
    request::{Message, Params},
    script::{Discover, Era, Method, Script, definitions},
    sleeper,
};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The additional members of every modern list.
const HINTS: &str = r#","resultType":"complete","ttlMs":300000,"cacheScope":"private""#;

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) script: Script,
    /// The state that calls and cancellations change, with a condition variable for threads that wait for it.
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Raw definitions.
    pub(crate) tools: Vec<String>,
    /// Raw ids of `notifications/cancelled`, in the order of arrival.
    pub(crate) cancelled: Vec<String>,
    /// Tool and raw id of each call, in the order of arrival.
    pub(crate) calls: Vec<(String, String)>,
    /// The client's answers: whole messages, by raw id.
    pub(crate) answers: BTreeMap<String, String>,
    /// The raw `params` of calls that are remembered.
    pub(crate) remembered: Vec<String>,
    initialized: bool,
    /// The client capabilities of `initialize`.
    declared: Vec<String>,
    /// Whether a modern request was served.
    modern: bool,
    /// Raw ids of `subscriptions/listen` that wait for changes of the tools.
    subscriptions: Vec<String>,
    /// The latest `subscriptions/listen` of any kind.
    subscription: Option<String>,
}

impl Server {
    pub(crate) fn new(script: Script) -> Arc<Self> {
        let state = State { tools: script.initial_tools(), ..State::default() };
        Arc::new(Self { script, state: Mutex::new(state), changed: Condvar::new() })
    }

    pub(crate) fn serve(self: Arc<Self>) -> ExitCode {
        let mut input = BufReader::new(io::stdin());
        while let Some(text) = framing::read(&mut input, self.script.framing) {
            self.log(&format!("in {text}"));
            if !self.script.mute {
                self.receive(&text);
            }
        }
        self.log("eof");
        if self.script.ignore_eof {
            thread::sleep(sleeper::LIFETIME);
        }
        ExitCode::SUCCESS
    }

    /// Writes one message, after the script's garbage. Ignores that the reader may be gone.
    pub(crate) fn send(&self, message: &str) {
        let mut output = io::stdout().lock();
        for line in &self.script.garbage {
            let _ = writeln!(output, "{line}");
        }
        let _ = framing::write(&mut output, self.script.framing, message);
    }

    pub(crate) fn notify_list_changed(&self) {
        let state = self.state.lock().expect("state");
        let (initialized, subscriptions) = (state.initialized, state.subscriptions.clone());
        drop(state);
        if initialized {
            self.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        }
        for id in subscriptions {
            self.send(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"{SUBSCRIPTION}":{id}}}}}}}"#
            ));
        }
    }

    /// The raw id of the latest `subscriptions/listen`.
    pub(crate) fn subscription(&self) -> Option<String> {
        self.state.lock().expect("state").subscription.clone()
    }

    pub(crate) fn log(&self, line: &str) {
        let Some(path) = &self.script.log else { return };
        if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    fn receive(self: &Arc<Self>, text: &str) {
        let Some(message) = Message::parse(text) else { return };
        let params = message.read_params();
        match (message.id, message.method.as_deref()) {
            (Some(id), Some(method)) => self.request(id, method, &message, params),
            (Some(id), None) => {
                let mut state = self.state.lock().expect("state");
                state.answers.insert(id.get().to_owned(), text.to_owned());
                self.changed.notify_all();
            }
            (None, Some("notifications/initialized")) => self.state.lock().expect("state").initialized = true,
            (None, Some("notifications/cancelled")) => self.cancelled(&params),
            _ => {}
        }
    }

    fn request(self: &Arc<Self>, id: &RawValue, method: &str, message: &Message<'_>, params: Params<'_>) {
        let id = id.get();
        let modern = match self.era_of(method, &params) {
            Ok(modern) => modern,
            Err(error) => return self.fail(id, &error),
        };
        match method {
            "initialize" => self.answer(id, &self.initialize(&params)),
            "server/discover" if modern => self.answer(id, &self.discover()),
            "server/discover" => self.refuse_discover(id),
            "ping" => self.answer(id, "{}"),
            "tools/list" => {
                thread::sleep(Duration::from_millis(self.script.list_delay_ms));
                self.answer(id, &self.list(&params, modern));
                self.log("listed");
            }
            "resources/list" | "resources/templates/list" | "prompts/list" => {
                self.list_other(id, method, modern);
            }
            "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" if !modern => {
                self.answer(id, "{}");
            }
            "subscriptions/listen" if modern => self.listen(id, message, &params),
            _ => match (self.other(method, &params), scripted(method)) {
                (Some(name), _) => {
                    let raw = message.params.map_or("{}", RawValue::get);
                    call::start(self, Method::Other, id, raw, Params { name, ..params }, modern);
                }
                (None, Some(method)) => {
                    let raw = message.params.map_or("{}", RawValue::get);
                    call::start(self, method, id, raw, params, modern);
                }
                (None, None) => self.fail(id, &method_not_found(method)),
            },
        }
    }

    /// The script's key for this request, if its `methods` have one.
    fn other(&self, method: &str, params: &Params<'_>) -> Option<String> {
        let cursor = params.cursor.as_deref().unwrap_or_default();
        let about = [params.uri.as_str(), cursor].map(|about| format!("{method} {about}"));
        let names = about.into_iter().chain([method.to_owned()]);
        names.into_iter().find(|name| self.script.methods.contains_key(name))
    }

    /// Whether to serve the request as a modern one; or the error that refuses it.
    fn era_of(&self, method: &str, params: &Params<'_>) -> Result<bool, Value> {
        let version = params.meta.version.as_deref();
        let speaks_legacy = match self.script.era {
            Era::Legacy => return Ok(false),
            Era::Modern => false,
            Era::Dual => !(self.script.lock_era && self.state.lock().expect("state").modern),
        };
        match version {
            None if speaks_legacy => Ok(false),
            _ if method == "initialize" => Err(json!({
                "code": -32601,
                "message": format!("initialize is not accepted; this server speaks {MODERN}"),
            })),
            None => Err(json!({"code": -32602, "message": "_meta lacks protocolVersion"})),
            Some(MODERN) if params.meta.capabilities.is_none() => {
                Err(json!({"code": -32602, "message": "_meta lacks clientCapabilities"}))
            }
            Some(MODERN) => {
                self.state.lock().expect("state").modern = true;
                Ok(true)
            }
            Some(other) => Err(json!({
                "code": -32022,
                "message": "Unsupported protocol version",
                "data": {"supported": [MODERN], "requested": other},
            })),
        }
    }

    fn initialize(&self, params: &Params<'_>) -> String {
        self.state.lock().expect("state").declared = keys(params.capabilities);
        let asked = params.protocol_version.as_deref().filter(|version| LEGACY.contains(version));
        let version = self.script.protocol.as_deref().or(asked).unwrap_or(LEGACY[3]);
        let mut result = json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": {"name": "scripted-server", "version": env!("CARGO_PKG_VERSION")},
        });
        if let Some(instructions) = &self.script.instructions {
            result["instructions"] = instructions.as_str().into();
        }
        result.to_string()
    }

    fn discover(&self) -> String {
        let mut result = json!({
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": self.capabilities(),
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted-server", "version": env!("CARGO_PKG_VERSION")}},
            "ttlMs": 3_600_000,
            "cacheScope": "public",
        });
        if let Some(instructions) = &self.script.instructions {
            result["instructions"] = instructions.as_str().into();
        }
        result.to_string()
    }

    fn capabilities(&self) -> Value {
        let mut all = json!({"tools": {"listChanged": true}});
        if self.script.logging {
            all["logging"] = json!({});
        }
        if self.script.resources.is_some() || self.script.templates.is_some() {
            all["resources"] = json!({"subscribe": true, "listChanged": true});
        }
        if self.script.prompts.is_some() {
            all["prompts"] = json!({"listChanged": true});
        }
        if !self.script.completes.is_empty() {
            all["completions"] = json!({});
        }
        for (key, value) in &self.script.capabilities {
            all[key] = value.clone();
        }
        all
    }

    fn refuse_discover(&self, id: &str) {
        match self.script.discover {
            Discover::Error => self.fail(id, &method_not_found("server/discover")),
            Discover::Silent => {}
            Discover::Exit => process::exit(1),
        }
    }

    fn list(&self, params: &Params<'_>, modern: bool) -> String {
        let cursor = params.cursor.as_deref();
        let state = self.state.lock().expect("state");
        let declared = if modern { keys(params.meta.capabilities) } else { state.declared.clone() };
        let more = declared.iter().filter_map(|key| self.script.tools_with.get(key));
        let more = more.flat_map(|tools| definitions(tools));
        let tools: Vec<String> = state.tools.iter().cloned().chain(more).collect();
        let start = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0).min(tools.len());
        let end = start + self.script.page_size.unwrap_or(usize::MAX).min(tools.len() - start);
        let page = tools[start..end].join(",");
        let next = if end < tools.len() { format!(r#","nextCursor":"{end}""#) } else { String::new() };
        let hints = if modern { HINTS } else { "" };
        format!(r#"{{"tools":[{page}]{next}{hints}}}"#)
    }

    /// Answers the lists of everything but tools, always in one page.
    fn list_other(&self, id: &str, method: &str, modern: bool) {
        let (key, definitions) = match method {
            "resources/list" => ("resources", &self.script.resources),
            "resources/templates/list" => ("resourceTemplates", &self.script.templates),
            _ => ("prompts", &self.script.prompts),
        };
        let definitions: Vec<&str> = definitions.iter().flatten().map(|raw| raw.get()).collect();
        let hints = if modern { HINTS } else { "" };
        self.answer(id, &format!(r#"{{"{key}":[{}]{hints}}}"#, definitions.join(",")));
    }

    /// Grants everything that is asked for.
    fn listen(&self, id: &str, message: &Message<'_>, params: &Params<'_>) {
        let filter = message.member("notifications").unwrap_or("{}");
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"{SUBSCRIPTION}":{id}}},"notifications":{filter}}}}}"#
        ));
        let mut state = self.state.lock().expect("state");
        state.subscription = Some(id.to_owned());
        if params.notifications.tools_list_changed {
            state.subscriptions.push(id.to_owned());
        }
    }

    fn cancelled(&self, params: &Params<'_>) {
        let Some(id) = params.request_id else { return };
        let mut state = self.state.lock().expect("state");
        state.cancelled.push(id.get().to_owned());
        state.subscriptions.retain(|subscription| subscription != id.get());
        self.changed.notify_all();
    }

    fn answer(&self, id: &str, result: &str) {
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }

    fn fail(&self, id: &str, error: &Value) {
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
    }
}

/// The keys of a raw object.
fn keys(object: Option<&RawValue>) -> Vec<String> {
    let members: Option<BTreeMap<String, Value>> =
        object.and_then(|object| serde_json::from_str(object.get()).ok());
    members.unwrap_or_default().into_keys().collect()
}

/// The requests with scripted answers.
fn scripted(method: &str) -> Option<Method> {
    match method {
        "tools/call" => Some(Method::Call),
        "resources/read" => Some(Method::Read),
        "prompts/get" => Some(Method::Get),
        "completion/complete" => Some(Method::Complete),
        _ => None,
    }
}

fn method_not_found(method: &str) -> Value {
    json!({"code": -32601, "message": format!("Method not found: {method}")})
}
