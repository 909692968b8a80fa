//! `run_code`: a script of the host's model makes many calls in one request. The script runs in the sandbox.
//! Its calls are made here, as if the host had made them.
//!
//! - [`script_run`]: the run: what the script asks for, and what it is answered.
//! - [`ledger`]: the calls of a run, each made once.
//! - [`lookups`]: `search`, `describe`, `help` and `results`, which are answered here.
//! - [`reply`]: the reply that the host's model reads.

mod ledger;
mod lookups;
mod reply;
mod script_run;

use std::sync::LazyLock;

use bytes::Bytes;
use plugbay_core::{
    arguments::{self, CompiledSchema, Mode},
    era::Era,
    size_limit,
    surface::BuiltinTool,
};

use self::script_run::CodeRun;
use super::call_arguments::Arguments;
use crate::{context::RequestContext, message::Request, run::ActiveRun, suspended::RunId};

/// The schema of the arguments.
static SCHEMA: LazyLock<CompiledSchema> = LazyLock::new(|| super::schema_of(BuiltinTool::RunCode));

/// What a call of `run_code` asks for.
enum Wanted {
    Run(CodeRequest),
    Resume(RunId),
}

/// A script to run.
struct CodeRequest {
    code: String,
    /// Raw JSON, or nothing.
    input: Bytes,
    /// The calls are checked and reported, but not made.
    dry_run: bool,
}

/// Runs a script and answers the request. Cancelling the request ends the script and cancels its calls.
pub(super) fn begin(context: RequestContext<'_>) {
    if context.era == Era::Modern {
        match context.gateway().suspended.resume_run(context) {
            Ok(true) => return,
            Ok(false) => {}
            Err(refusal) => return context.refuse(&refusal),
        }
    }
    match Wanted::of(context.request, context.gateway().settings().repair) {
        Ok(Wanted::Resume(run)) => {
            let stopped = context.gateway().suspended.stopped_runs.take(run, context.session.result_owner());
            match stopped {
                Some(run) => run.resume(context, None),
                None => context.text(&Err(reply::cannot_resume(run))),
            }
        }
        Ok(Wanted::Run(request)) => {
            ActiveRun::new(context, |host| CodeRun::begin(host, request)).drive(context);
        }
        Err(why) => context.text(&Err(why)),
    }
}

impl Wanted {
    /// `Err` is for the model.
    fn of(request: &Request, repair: Mode) -> Result<Self, String> {
        let given = request.arguments().unwrap_or(b"{}");
        // A flag that is misspelt must not make a dry run a real one.
        let checked = arguments::check(&SCHEMA, given, repair).map_err(|refusal| refusal.to_string())?;
        let arguments = Arguments::within(&checked.arguments);
        let text = |key, limit| arguments.text_within(key, limit).map_err(|too_long| too_long.to_string());
        let (code, resume) = (text("code", size_limit::CODE)?, text("resume", size_limit::NAME)?);
        match (code, resume) {
            (Some(_), Some(_)) => {
                Err("give \"code\" or \"resume\": a stopped run goes on with the code that it has".to_owned())
            }
            (None, None) => {
                let missing = "\"code\" is missing: JavaScript that calls tools, such as \
                    `return await tools.server.tool({…})`";
                Err(arguments.with_unknown(missing, BuiltinTool::RunCode, &[]))
            }
            (None, Some(resume)) => match resume.trim().parse() {
                Ok(run) => Ok(Self::Resume(run)),
                Err(()) => Err("\"resume\" must be the name of a stopped run: run_…".to_owned()),
            },
            (Some(code), None) => Ok(Self::Run(CodeRequest {
                code,
                input: arguments.raw("input").map(Bytes::copy_from_slice).unwrap_or_default(),
                dry_run: arguments.is_true("dry_run"),
            })),
        }
    }
}
