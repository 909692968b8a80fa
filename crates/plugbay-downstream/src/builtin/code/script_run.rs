//! The run of a script: what it asks for, and what it is answered.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use plugbay_core::{
    script::{Function, RunningScript, Script, ScriptAnswer, ScriptCall, ScriptError, ScriptEvent},
    surface::{BuiltinTool, Callable, Effect},
    tool_result::ToolResult,
};
use tokio::time::{Instant, sleep_until};

use super::{
    super::unknown,
    CodeRequest,
    ledger::{CallState, CalledTool, Entered, Ledger},
    lookups,
    reply::{self, End},
};
use crate::{
    run::{
        Ending,
        calls::{CallEnd, PlannedCall, RunningCalls},
        consent,
        host::Host,
    },
    suspended::RunId,
};

/// Limit of calls in flight; others wait.
const AT_ONCE: usize = 32;
/// How often a script is restarted after its process has died.
const RESTARTS: usize = 3;
/// Arguments and results above this many bytes are read in another thread.
const LONG: usize = 64 << 10;

/// The setting that allows every call.
const REMEDY: &str = r#""code": {"ask": "never"}"#;

/// A script that runs.
pub(super) struct CodeRun {
    host: Host,
    script: Script,
    dry_run: bool,
    ledger: Ledger,
    /// What it has printed.
    printed: String,
    running: RunningCalls<u32>,
    /// Calls that wait until running ones have ended.
    waiting: VecDeque<(u32, PlannedCall)>,
    /// The latest moment to answer the host.
    deadline: Instant,
    restarts: usize,
}

/// What happens next.
enum Next {
    Script(ScriptEvent),
    CallEnded(u32, CallEnd),
    Late,
}

impl CodeRun {
    pub(super) async fn begin(host: Host, request: CodeRequest) -> Ending {
        let CodeRequest { code, input, dry_run } = request;
        let mut seed = [0; 8];
        let seed = getrandom::fill(&mut seed).map_or(1, |()| u64::from_le_bytes(seed));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or_default();
        let patience = host.outer.session.gateway().settings().code.patience;
        let mut run = Self {
            host,
            script: Script { code, input, seed, now },
            dry_run,
            ledger: Ledger::default(),
            printed: String::new(),
            running: RunningCalls::default(),
            waiting: VecDeque::new(),
            deadline: Instant::now() + patience,
            restarts: 0,
        };
        let end = run.run().await;
        let printed = std::mem::take(&mut run.printed);
        reply::ended(&run.host.outer.session, printed, end, &run.ledger, dry_run).await
    }

    async fn run(&mut self) -> End {
        loop {
            let ended = match start(&self.host, self.script.clone()).await {
                Ok(mut script) => self.converse(&mut *script).await,
                Err(error) => Err(error),
            };
            match ended {
                Ok(end) => return end,
                Err(ScriptError::Died(_)) if self.restarts < RESTARTS && self.ledger.is_replayable() => {
                    self.restarts += 1;
                    self.ledger.rewind();
                    self.printed.clear();
                }
                Err(ScriptError::Died(why)) => {
                    return End::Failed(format!("{why}. The run cannot be resumed."));
                }
                Err(error) => return End::Failed(error.to_string()),
            }
        }
    }

    /// Answers the script until it ends. `Err`: it has failed, or its process has died.
    async fn converse(&mut self, script: &mut dyn RunningScript) -> Result<End, ScriptError> {
        loop {
            while let Some((number, answer)) = self.ledger.next_answer() {
                script.answer(number, answer);
            }
            let next = tokio::select! {
                event = script.next() => Next::Script(event),
                Some((number, end)) = self.running.next() => Next::CallEnded(number, end),
                () = sleep_until(self.deadline) => Next::Late,
            };
            match next {
                Next::Script(ScriptEvent::Call(call)) => match self.ledger.enter(&call) {
                    Entered::New => self.called(call).await,
                    Entered::Known => {}
                    Entered::Different => {
                        let why = "its process died, and the script has not made the same calls again";
                        return Ok(End::Failed(format!("{why}. The run cannot be resumed.")));
                    }
                },
                Next::Script(ScriptEvent::Text(text)) => {
                    self.printed.push_str(&String::from_utf8_lossy(&text));
                }
                Next::Script(ScriptEvent::Waits) => {}
                Next::Script(ScriptEvent::Returned(value)) => return Ok(End::Value(value)),
                Next::Script(ScriptEvent::Failed(error)) => return Err(error),
                Next::CallEnded(number, end) => {
                    self.call_ended(number, end).await;
                    self.begin_waiting();
                }
                Next::Late => self.stop().await,
            }
        }
    }

    /// Answers the host before the script has ended, and goes on when the host is back.
    async fn stop(&mut self) {
        let patience = self.host.outer.session.gateway().settings().code.patience;
        if let Some(run) = RunId::new() {
            let answer = reply::stopped(run, &self.printed, &self.ledger);
            self.host.stop(run, answer).await;
            self.printed.clear(); // it was told
        }
        self.deadline = Instant::now() + patience;
    }

    async fn called(&mut self, call: ScriptCall) {
        let Function::Tool { server, tool } = &call.function else {
            let answer = lookups::answer(&self.host.outer.session, &call).await;
            return self.ledger.answer(call.number, answer);
        };
        let planned = self.plan(call.number, server.as_deref(), tool, &call).await;
        if self.dry_run && planned.is_err() && has_placeholder(&call.arguments) {
            self.ledger.entry(call.number).state = CallState::Unchecked;
            return self.ledger.answer(call.number, ScriptAnswer::Unknown);
        }
        let planned = match planned {
            Ok(planned) => planned,
            Err((code, message)) => return self.refused(call.number, code, message),
        };
        if self.dry_run {
            self.ledger.entry(call.number).state = CallState::Checked;
            return self.ledger.answer(call.number, ScriptAnswer::Unknown);
        }
        let unasked = self.host.outer.session.gateway().settings().code.unasked;
        if planned.effect > unasked
            && let Err(why) = self.consent(&planned).await
        {
            return self.refused(call.number, "not_allowed", why);
        }
        self.waiting.push_back((call.number, planned));
        self.begin_waiting();
    }

    /// The call as it will be sent, or a code word and a text that say why it is not sent.
    async fn plan(
        &mut self,
        number: u32,
        server: Option<&str>,
        tool: &str,
        call: &ScriptCall,
    ) -> Result<PlannedCall, (&'static str, String)> {
        let session = Arc::clone(&self.host.outer.session);
        let snapshot = session.snapshot();
        let gateway = session.gateway();
        let (ticket, repair) = (gateway.tickets.next(), gateway.settings().repair);
        let found = match snapshot.executable(tool, server).map(|meant| (meant.name, meant.tool)) {
            Some((_, Callable::Listed(found))) if found.is_for_model() => found.clone(),
            Some((name, Callable::Unlisted(target))) => {
                let tool = CalledTool { name: name.clone(), effect: Effect::Destroys };
                self.ledger.entry(number).tool = Some(tool);
                let planned = PlannedCall::unlisted(ticket, &name, &target, &call.arguments);
                return planned.map(PlannedCall::whole).map_err(|why| ("wrong_arguments", why));
            }
            _ => {
                let name = self.ledger.entry(number).written_name();
                let written = server.map_or_else(|| tool.to_owned(), |server| format!("{server}__{tool}"));
                self.ledger.entry(number).tool = Some(CalledTool { name, effect: Effect::Reads });
                return Err(("unknown_tool", unknown(&session, &snapshot, &written)));
            }
        };
        let shown = CalledTool { name: found.exposed.clone(), effect: found.effect() };
        self.ledger.entry(number).tool = Some(shown);
        let arguments = call.arguments.clone();
        let plan = move || PlannedCall::new(ticket, &found, &arguments, repair).map(PlannedCall::whole);
        let planned = if call.arguments.len() > LONG {
            let planned = gateway.workers.run(session.caller(), plan).await;
            planned.unwrap_or_else(|_| Err("the arguments could not be checked".to_owned()))
        } else {
            plan()
        };
        planned.map_err(|why| ("wrong_arguments", why))
    }

    fn refused(&mut self, number: u32, code: &'static str, message: String) {
        let entry = self.ledger.entry(number);
        entry.state = CallState::Refused(message.clone());
        let is_dry = self.dry_run;
        let answer = ScriptAnswer::Error { code, message, result: None };
        self.ledger.answer(number, if is_dry { ScriptAnswer::Unknown } else { answer });
    }

    /// Asks the user to consent. Meanwhile other calls go on, and the clock stands still.
    async fn consent(&mut self, planned: &PlannedCall) -> Result<(), String> {
        self.host.outer.progress.report(&format!("asking whether {} may be called", planned.tool));
        let begun = Instant::now();
        let mut ended = Vec::new();
        let answer = {
            let asking = consent::obtain(planned, &mut self.host, BuiltinTool::RunCode, REMEDY);
            tokio::pin!(asking);
            loop {
                tokio::select! {
                    answer = &mut asking => break answer,
                    Some(one) = self.running.next() => ended.push(one),
                }
            }
        };
        for (number, end) in ended {
            self.call_ended(number, end).await;
        }
        self.deadline += begun.elapsed();
        answer
    }

    /// Sends waiting calls, up to the limit of calls in flight.
    fn begin_waiting(&mut self) {
        while self.running.len() < AT_ONCE
            && let Some((number, planned)) = self.waiting.pop_front()
        {
            if planned.is_stale(&self.host.outer.session.snapshot()) {
                self.refused(number, "unknown_tool", "the tool has changed meanwhile, or is gone".to_owned());
                continue;
            }
            self.ledger.entry(number).state = CallState::UnderWay;
            let under_way = self.ledger.under_way().join(", ");
            self.host.outer.progress.report(&format!("calling {under_way}"));
            self.running.begin(number, planned, &self.host.outer);
        }
    }

    async fn call_ended(&mut self, number: u32, end: CallEnd) {
        let answer = match end {
            CallEnd::Failed(message) => ScriptAnswer::Error { code: "failed", message, result: None },
            CallEnd::Result(raw) if raw.len() > LONG => {
                let session = &self.host.outer.session;
                let kept = raw.clone();
                let read = session.gateway().workers.run(session.caller(), move || answer_of(raw)).await;
                read.unwrap_or_else(|_| answer_of(kept))
            }
            CallEnd::Result(raw) => answer_of(raw),
        };
        self.ledger.entry(number).state = match &answer {
            ScriptAnswer::Error { message, .. } => CallState::Failed(message.clone()),
            _ => CallState::Done,
        };
        self.ledger.answer(number, answer);
    }
}

async fn start(host: &Host, script: Script) -> Result<Box<dyn RunningScript>, ScriptError> {
    let scripts = Arc::clone(&host.outer.session.gateway().scripts);
    scripts.start(script).await
}

/// Whether the arguments hold a value that a dry run does not know.
fn has_placeholder(arguments: &[u8]) -> bool {
    String::from_utf8_lossy(arguments).contains("‹result of call ")
}

/// A result as the script sees it: its value, or an error.
fn answer_of(raw: Bytes) -> ScriptAnswer {
    let Some(result) = ToolResult::read(&raw) else {
        let message = "the result cannot be read".to_owned();
        return ScriptAnswer::Error { code: "failed", message, result: Some(raw) };
    };
    if result.is_error() {
        let message = result.text().map_or_else(|| "the tool reports an error".to_owned(), Cow::into_owned);
        return ScriptAnswer::Error { code: "tool_error", message, result: Some(raw.clone()) };
    }
    let reading = result.reading();
    ScriptAnswer::Result { raw: raw.clone(), reading }
}
