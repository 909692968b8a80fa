//! Scripts of models, in the sandbox.

use std::{path::Path, sync::Arc};

use plugbay_core::script::{
    Function, Reach, Reading, RunningScript, Script, ScriptAnswer, ScriptCall, ScriptError, ScriptEvent,
    ScriptFuture, Scripts,
};
use plugbay_sandbox::{
    Answer, Call, CallKind, CodeFailure, Event, Reading as Part, Run, RunLimits, Sandbox, Script as Code,
};

use super::filters;

/// The scripts of all gateways of this process; `program` is plugbay itself.
pub(crate) fn sandboxed(program: &Path) -> Arc<dyn Scripts> {
    Arc::new(SandboxedScripts(filters::sandbox(program)))
}

/// Runs scripts in confined child processes.
#[derive(Debug)]
struct SandboxedScripts(Sandbox);

impl Scripts for SandboxedScripts {
    fn start(&self, script: Script) -> ScriptFuture<'_, Result<Box<dyn RunningScript>, ScriptError>> {
        Box::pin(async move {
            let Script { code, input, seed, now } = script;
            let run = self.0.code(Code { code, input, seed, now }, RunLimits::default()).await;
            run.map(|run| Box::new(SandboxedRun(run)) as Box<dyn RunningScript>).map_err(error)
        })
    }

    fn reach(&self, code: String) -> ScriptFuture<'_, Result<Reach, ScriptError>> {
        Box::pin(async move {
            let reach = self.0.reach(&code).await.map_err(error)?;
            let named = |(server, tool): (String, String)| (Some(server).filter(|one| !one.is_empty()), tool);
            let tools = reach.tools.into_iter().map(named).collect();
            Ok(Reach { tools, is_complete: reach.is_complete })
        })
    }
}

struct SandboxedRun(Run);

impl RunningScript for SandboxedRun {
    fn next(&mut self) -> ScriptFuture<'_, ScriptEvent> {
        Box::pin(async move {
            match self.0.next().await {
                Event::Call(call) => ScriptEvent::Call(called(call)),
                Event::Text(text) => ScriptEvent::Text(text),
                Event::Waiting => ScriptEvent::Waits,
                Event::Done(value) => ScriptEvent::Returned(value),
                Event::Failed(failure) => ScriptEvent::Failed(error(failure)),
            }
        })
    }

    fn answer(&mut self, call: u32, answer: ScriptAnswer) {
        self.0.answer(call, answered(answer));
    }
}

fn called(Call { number, kind, arguments }: Call) -> ScriptCall {
    let function = match kind {
        CallKind::Tool { server, tool } => Function::Tool { server, tool },
        CallKind::Search => Function::Search,
        CallKind::Describe => Function::Describe,
        CallKind::Help => Function::Help,
        CallKind::Result => Function::Result,
    };
    ScriptCall { number, function, arguments }
}

fn answered(answer: ScriptAnswer) -> Answer {
    match answer {
        ScriptAnswer::Result { raw, reading } => Answer::Result { raw, read: part(reading) },
        ScriptAnswer::Value(value) => Answer::Value(value),
        ScriptAnswer::Error { code, message, result } => {
            Answer::Error { message, code: code.to_owned(), result }
        }
        ScriptAnswer::Unknown => Answer::Unknown,
    }
}

fn part(reading: Reading) -> Part {
    match reading {
        Reading::Structured => Part::Structured,
        Reading::Json => Part::Json,
        Reading::JsonEach => Part::JsonEach,
        Reading::Text => Part::Text,
        Reading::Content => Part::Content,
    }
}

fn error(failure: CodeFailure) -> ScriptError {
    let told = failure.to_string();
    match failure {
        CodeFailure::Died(_) => ScriptError::Died(told),
        CodeFailure::Thrown { call, .. } => ScriptError::Wrong { message: told, call },
        failure if failure.is_about_the_script() => ScriptError::Wrong { message: told, call: None },
        _ => ScriptError::Unavailable(told),
    }
}
