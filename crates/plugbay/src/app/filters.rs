//! jq filters over results, in the sandbox.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use plugbay_core::filter::{FilterError, FilterFuture, FilterOutput, Filters};
use plugbay_sandbox::{Limits, Outcome, Sandbox, SandboxFailure, Settings};

/// The filters of all gateways of this process; `program` is plugbay itself.
pub(super) fn sandboxed(program: &Path) -> Arc<dyn Filters> {
    Arc::new(SandboxedFilters(sandbox(program)))
}

/// The sandbox of all gateways of this process.
pub(super) fn sandbox(program: &Path) -> Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| Sandbox::new(Settings::new(program.to_owned()))).clone()
}

/// Runs filters in confined child processes.
#[derive(Debug)]
struct SandboxedFilters(Sandbox);

impl Filters for SandboxedFilters {
    fn run(&self, filter: String, input: Bytes) -> FilterFuture<'_> {
        Box::pin(async move {
            let outcome = self.0.jq(&filter, input, Limits::default()).await;
            outcome.map(output).map_err(|failure| error(&failure))
        })
    }
}

/// The output, cut to the values that are complete.
fn output(outcome: Outcome) -> FilterOutput {
    let cut = outcome.cut.is_some();
    if !cut {
        return FilterOutput { count: outcome.values, values: outcome.output, cut };
    }
    let values: Vec<Bytes> = outcome.whole().collect();
    FilterOutput { values: values.join(&b'\n').into(), count: outcome.values, cut }
}

fn error(failure: &SandboxFailure) -> FilterError {
    let told = failure.to_string();
    if failure.is_about_the_filter() { FilterError::Wrong(told) } else { FilterError::Unavailable(told) }
}
