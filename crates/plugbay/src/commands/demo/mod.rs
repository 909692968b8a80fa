//! `plugbay demo`: a real `plugbay serve` with the samples behind it, from start to restart. Needs no
//! configuration and no network, and leaves nothing behind.

mod calls;
mod host;
mod latency;
mod sandbox;
mod startup;

use std::process::ExitCode;

pub use calls::{Call, Calls};
pub use latency::Latencies;
pub use sandbox::Opening;
pub use startup::{Costs, Event, Failed, Failures};

use serde::Serialize;

use super::{CommandError, Context};
use crate::{output::View, tokenizer};
use host::Host;
use sandbox::Sandbox;

/// Show everything at work with sample servers.
///
/// The sample servers are part of plugbay. The demo needs no configuration and no network, and changes nothing.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {}

/// The demo as JSON.
#[derive(Debug, Serialize)]
struct Demo {
    #[serde(flatten)]
    startup: startup::Startup,
    first_start: Opening,
    calls: Calls,
    latency: Latencies,
    second_start: Restart,
    search_start: Opening,
    search_calls: Calls,
}

/// The second start, answered from the cache.
#[derive(Debug, Serialize)]
pub struct Restart {
    #[serde(flatten)]
    pub opening: Opening,
    pub same_tools: bool,
}

/// The first line of the demo.
#[derive(Debug, Serialize)]
pub struct Intro;

/// The next steps for the user.
#[derive(Debug, Serialize)]
pub struct Next {
    pub command: &'static str,
}

pub async fn demo(context: &Context) -> Result<ExitCode, CommandError> {
    let show = Show { context };
    tokenizer::prepare();
    let sandbox = Sandbox::new(&context.environment.program)?;
    show.part(&Intro);

    let startup = startup::watch(&sandbox, &context.environment, |event| show.part(event)).await?;
    show.part(&startup.failures);
    show.part(&startup.costs);

    let (mut host, first_start) = sandbox.serve("all")?;
    show.part(&first_start);
    let calls = calls::by_name(&mut host)?;
    show.part(&calls);
    let latency = latency::measure(&sandbox, &mut host)?;
    show.part(&latency);
    host.finish()?;

    let (host, opening) = sandbox.serve("all")?;
    host.finish()?;
    let second_start = Restart { same_tools: first_start.tools == opening.tools, opening };
    show.part(&second_start);

    let (mut host, search_start) = sandbox.serve("search")?;
    show.part(&search_start);
    let search_calls = calls::by_search(&mut host)?;
    show.part(&search_calls);
    host.finish()?;
    show.part(&Next { command: "plugbay setup" });

    if context.output.is_json() {
        let demo = Demo { startup, first_start, calls, latency, second_start, search_start, search_calls };
        context.output.json(&demo);
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the demo: people see each part when it is ready, programs get all of it at the end.
struct Show<'a> {
    context: &'a Context,
}

impl Show<'_> {
    fn part(&self, part: &impl View) {
        if !self.context.output.is_json() {
            self.context.output.show(part);
        }
    }
}

/// Serializes times as milliseconds.
fn milliseconds<S: serde::Serializer>(time: &std::time::Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((time.as_secs_f64() * 1e6).round() / 1e3)
}
