//! Section `code`: the cost of a script in `run_code`, compared with the same calls one by one.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::args::Settings;
use crate::conditions::Conditions;
use crate::host::Host;
use crate::payload::Kind;
use crate::sandbox::{Sandbox, Server};
use crate::stats::{median, median_ratio, millis, spread};
use crate::stub::{WAIT, WAIT_TOOL};
use crate::table::{Table, number};
use crate::target::Target;
use crate::{Outcome, gateway, output};

const SERVER: &str = "stub";
/// Time limit until a gateway with an empty cache can call a tool.
const READY: Duration = Duration::from_secs(10);
/// Time until the process for the next script is ready.
const REFILL: Duration = Duration::from_millis(150);
/// Number of calls in one script, and of the host in comparison.
const CALLS: u32 = 200;
const SIZE: usize = 1024;
const AT_ONCE: u32 = 20;
/// Number of scripts per gateway that find a process ready.
const WARM: usize = 5;

/// The figures of the rounds, in milliseconds.
#[derive(Default)]
struct Figures {
    cold: Vec<f64>,
    warm: Vec<f64>,
    /// The time per call: in a script, without the time of an empty script; and as a request of the host.
    in_script: Vec<f64>,
    by_host: Vec<f64>,
    at_once: Vec<f64>,
}

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let binary = gateway::find(settings.gateway.as_deref())?;
    let (conditions, figures) = Conditions::during(settings, |rounds| {
        let mut figures = Figures::default();
        for round in 1..=rounds {
            output::progress(&format!("round {round} …"));
            measure(&binary, &mut figures)?;
        }
        Ok(figures)
    })?;
    output::show(&if settings.is_json() {
        figures.json(&conditions).to_string()
    } else {
        format!("{}\n\n{}", conditions.text(), figures.text())
    });
    Ok(())
}

/// One round, with its own gateway.
fn measure(binary: &Path, figures: &mut Figures) -> Outcome<()> {
    let target = Target::plugbay("plugbay", binary.to_owned(), Some("code".to_owned()));
    let sandbox = Sandbox::new()?;
    let mut host = target.open(&sandbox, &[Server::new(SERVER, ["--faults".to_owned()])])?;
    let call = json!({ "name": format!("{SERVER}__{}", Kind::Text.tool()), "arguments": { "size": SIZE } });
    host.call_until_result(&call, READY)?;
    figures.cold.push(timed(&mut host, "1")?);
    let mut empty = Vec::new();
    for _ in 0..WARM {
        thread::sleep(REFILL);
        empty.push(timed(&mut host, "1")?);
    }
    let empty_run = median(&empty).unwrap_or_default();
    figures.warm.extend(empty);
    thread::sleep(REFILL);
    let tool = Kind::Text.tool();
    let script = format!(
        "for (let n = 0; n < {CALLS}; n++) await tools.{SERVER}.{tool}({{ size: {SIZE} }}); return 1"
    );
    let all = timed(&mut host, &script)?;
    figures.in_script.push((all - empty_run).max(0.0) / f64::from(CALLS));
    let began = Instant::now();
    for _ in 0..CALLS {
        host.timed("tools/call", &call)?;
    }
    figures.by_host.push(millis(began.elapsed()) / f64::from(CALLS));
    thread::sleep(REFILL);
    let script = format!(
        "return (await Promise.all(Array.from({{ length: {AT_ONCE} }}, () => tools.{SERVER}.{WAIT_TOOL}()))).length"
    );
    figures.at_once.push(timed(&mut host, &script)?);
    Ok(())
}

/// How long a script takes from its host's point of view.
fn timed(host: &mut Host, code: &str) -> Outcome<f64> {
    let params = json!({ "name": "run_code", "arguments": { "code": code } });
    let began = Instant::now();
    let result = host.request("tools/call", &params)?;
    let took = millis(began.elapsed());
    if result["isError"] == true {
        return Err(format!("run_code failed: {result}").into());
    }
    Ok(took)
}

impl Figures {
    fn ratio(&self) -> Option<f64> {
        median_ratio(&self.in_script, &self.by_host)
    }

    fn text(&self) -> String {
        let mut table = Table::new(1, ["", "median", "spread %", "bar", ""]);
        let percent = |values: &[f64]| number(spread(values).map(|spread| spread * 100.0));
        let verdict = |value: Option<f64>, bar: f64| {
            if value.is_some_and(|value| value <= bar) { "kept" } else { "missed" }.to_owned()
        };
        let wait = WAIT.as_millis();
        for (name, values, bar) in [
            ("empty, cold: ms".to_owned(), &self.cold, 20.0),
            ("empty, warm: ms".to_owned(), &self.warm, 3.0),
            (format!("{AT_ONCE} at once of {wait} ms: ms"), &self.at_once, 90.0),
        ] {
            let value = median(values);
            table.row([name, number(value), percent(values), number(Some(bar)), verdict(value, bar)]);
        }
        let ratio = self.ratio();
        let name = "one by one: × a direct call".to_owned();
        table.row([name, number(ratio), percent(&self.in_script), number(Some(1.5)), verdict(ratio, 1.5)]);
        let micros = |values: &[f64]| number(median(values).map(|value| value * 1e3));
        format!(
            "{}\nA call in a script: {} µs; as a request of the host: {} µs.\n",
            table.render(),
            micros(&self.in_script),
            micros(&self.by_host)
        )
    }

    fn json(&self, conditions: &Conditions) -> Value {
        json!({
            "rounds": conditions.rounds,
            "loads": conditions.loads,
            "cold_ms": median(&self.cold),
            "warm_ms": median(&self.warm),
            "call_in_script_ms": median(&self.in_script),
            "call_by_host_ms": median(&self.by_host),
            "ratio": self.ratio(),
            "at_once_ms": median(&self.at_once),
        })
    }
}
