//! What the way through plugbay costs a call: the same calls, with nobody in between and with us.

use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;

use super::{
    CommandError,
    host::Host,
    milliseconds,
    stage::{SAMPLES, Stage},
};

/// Both ways take turns, so that neither has the machine in a better hour.
const ROUNDS: usize = 5;
const CALLS_PER_ROUND: usize = 100;

#[derive(Debug, Serialize)]
pub struct Latencies {
    pub calls_each: usize,
    pub medians: Vec<Latency>,
}

/// Medians.
#[derive(Debug, Serialize)]
pub struct Latency {
    pub tool: String,
    #[serde(rename = "direct_ms", serialize_with = "milliseconds")]
    pub direct: Duration,
    #[serde(rename = "plugbay_ms", serialize_with = "milliseconds")]
    pub through: Duration,
}

impl Latency {
    pub fn ratio(&self) -> f64 {
        self.through.as_secs_f64() / self.direct.as_secs_f64().max(1e-9)
    }
}

pub(super) fn measure(stage: &Stage, through: &mut Host) -> Result<Latencies, CommandError> {
    let mut medians = Vec::new();
    for (server, _) in SAMPLES {
        let (tool, arguments) = match server {
            "calc" => ("evaluate", json!({ "expression": "(17 + 4) * 2" })),
            "clock" => ("weekday", json!({ "date": "2026-03-01" })),
            _ => ("list", json!({})),
        };
        let exposed = format!("{server}__{tool}");
        let params = |name: &str| json!({ "name": name, "arguments": arguments }).to_string();
        let mut direct = stage.open_sample(server)?;
        let (mut alone, mut between) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            time_calls(&mut direct, &params(tool), &mut alone)?;
            time_calls(through, &params(&exposed), &mut between)?;
        }
        direct.finish()?;
        medians.push(Latency { tool: exposed, direct: median(alone), through: median(between) });
    }
    Ok(Latencies { calls_each: ROUNDS * CALLS_PER_ROUND, medians })
}

fn time_calls(host: &mut Host, params: &str, times: &mut Vec<Duration>) -> Result<(), CommandError> {
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
