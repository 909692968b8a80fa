//! `plugbay demo`: the whole job on the samples in the binary, with a real `plugbay serve` in the
//! middle. Needs no configuration and no network, and leaves nothing behind.

mod calls;
mod host;
mod latency;
mod stage;
mod startup;

use std::process::ExitCode;

pub use calls::Calls;
pub use latency::Latencies;
pub use stage::Opening;
pub use startup::{Costs, Event, Failed, Failures};

use serde::Serialize;

use super::{CommandError, Context};
use crate::{output::View, tokenizer};
use host::Host;
use stage::Stage;

/// Everything that was seen.
#[derive(Debug, Serialize)]
struct Demo {
    #[serde(flatten)]
    startup: startup::Startup,
    first_start: Opening,
    calls: Calls,
    latency: Latencies,
    second_start: Restart,
}

/// The second start, answered from the cache.
#[derive(Debug, Serialize)]
pub struct Restart {
    #[serde(flatten)]
    pub opening: Opening,
    pub same_tools: bool,
}

pub async fn demo(context: &Context, as_json: bool) -> Result<ExitCode, CommandError> {
    let show = Show { context, as_json };
    tokenizer::prepare();
    let stage = Stage::build(&context.environment.program)?;
    show.part(&Intro);

    let startup = startup::watch(&stage, &context.environment, |event| show.part(event)).await;
    show.part(&startup.failures);

    let (mut host, first_start, tools) = stage.open()?;
    show.part(&first_start);
    let calls = calls::make(&mut host)?;
    show.part(&calls);
    show.part(&startup.costs);

    let latency = latency::measure(&stage, &mut host)?;
    show.part(&latency);
    host.finish()?;

    let (host, opening, tools_again) = stage.open()?;
    host.finish()?;
    let second_start = Restart { opening, same_tools: tools == tools_again };
    show.part(&second_start);
    show.part(&Next { config: context.source.paths.user_file.clone() });

    if as_json {
        context.output.json(&Demo { startup, first_start, calls, latency, second_start });
    }
    Ok(ExitCode::SUCCESS)
}

/// What is shown first.
#[derive(Debug, Serialize)]
pub struct Intro;

/// What the reader does after this.
#[derive(Debug, Serialize)]
pub struct Next {
    pub config: Option<std::path::PathBuf>,
}

/// People see each part when it is there; programs get the whole at the end.
struct Show<'a> {
    context: &'a Context,
    as_json: bool,
}

impl Show<'_> {
    fn part(&self, part: &impl View) {
        if !self.as_json {
            self.context.output.show(part, false);
        }
    }
}

/// Times in JSON are milliseconds.
fn milliseconds<S: serde::Serializer>(time: &std::time::Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3)
}
