//! `--jq`: a filter over the value of the result.

use std::time::Duration;

use bytes::Bytes;
use plugbay_core::tool_result::result_value;
use plugbay_sandbox::{Limits, Outcome, Sandbox, SandboxFailure, Settings};

use super::{CommandError, Context};

/// The limits of a filter. They are larger than for models, because a user waits for the output and can stop
/// it.
const LIMITS: Limits =
    Limits { deadline: Duration::from_secs(60), memory: 1024 * 1024 * 1024, output: 64 * 1024 * 1024 };

/// The jq filter of a call.
pub(super) struct Filter<'a> {
    text: &'a str,
    sandbox: Sandbox,
}

impl<'a> Filter<'a> {
    /// Checks the filter before the tool is called: afterwards the result would be lost.
    pub(super) async fn check(context: &Context, text: &'a str) -> Result<Self, CommandError> {
        let program = context.environment.program.clone();
        let sandbox = Sandbox::new(Settings { spare: Duration::ZERO, ..Settings::new(program) });
        sandbox.check(text).await.map_err(|failure| refusal(&failure))?;
        Ok(Self { text, sandbox })
    }

    /// The values that the filter gives for the result.
    pub(super) async fn apply(&self, result: &[u8]) -> Result<Outcome, CommandError> {
        let value = Bytes::from(result_value(result).into_owned());
        let outcome = self.sandbox.jq(self.text, value, LIMITS).await;
        outcome.map_err(|failure| refusal(&failure))
    }
}

fn refusal(failure: &SandboxFailure) -> CommandError {
    match failure {
        SandboxFailure::Filter(_) => CommandError::usage(failure.to_string()),
        _ => CommandError::failed(failure.to_string()),
    }
}
