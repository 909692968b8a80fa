//! The time that plugbay adds to a call: the same calls are made directly and through plugbay.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};

use super::{CommandError, host::Host, milliseconds, sandbox::Sandbox};

/// Number of rounds. Both ways take turns in each, so that the machine's load is the same for both.
const ROUNDS: usize = 5;
const CALLS_PER_ROUND: usize = 100;

#[derive(Debug, Serialize)]
pub struct Latencies {
    pub calls_each: usize,
    pub medians: Vec<Latency>,
}

/// Median times.
#[derive(Debug, Serialize)]
pub struct Latency {
    pub tool: String,
    #[serde(rename = "direct_ms", serialize_with = "milliseconds")]
    pub direct: Duration,
    #[serde(rename = "plugbay_ms", serialize_with = "milliseconds")]
    pub through: Duration,
    /// The difference of both.
    #[serde(rename = "added_ms", serialize_with = "milliseconds")]
    pub added: Duration,
}

pub(super) fn measure(sandbox: &Sandbox, through: &mut Host) -> Result<Latencies, CommandError> {
    let script = [
        ("clock", "weekday", json!({ "date": "2026-03-01" })),
        ("issues", "get_issue", json!({ "number": 7 })),
        ("shop", "get_order", json!({ "order": 1001 })),
    ];
    let mut medians = Vec::new();
    for (server, name, arguments) in script {
        let tool = format!("{server}__{name}");
        let params = |name: &str| json!({ "name": name, "arguments": arguments });
        let mut direct = sandbox.sample(server)?;
        let (mut alone, mut between) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            time_calls(&mut direct, &params(name), &mut alone)?;
            time_calls(through, &params(&tool), &mut between)?;
        }
        direct.finish()?;
        let (direct, through) = (median(alone), median(between));
        medians.push(Latency { tool, direct, through, added: through.saturating_sub(direct) });
    }
    Ok(Latencies { calls_each: ROUNDS * CALLS_PER_ROUND, medians })
}

fn time_calls(host: &mut Host, params: &Value, times: &mut Vec<Duration>) -> Result<(), CommandError> {
    for _ in 0..CALLS_PER_ROUND {
        let start = Instant::now();
        host.exchange_line("tools/call", params)?;
        times.push(start.elapsed());
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
