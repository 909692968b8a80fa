//! Runs one case: opens every way, warms it up, then takes turns.

use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::batch::{Batch, Done};
use crate::calls::case::Case;
use crate::host::Host;
use crate::payload::{IdPlace, Payload};
use crate::process::Family;
use crate::sandbox::{Sandbox, Server};
use crate::stats::{micros, percentile};
use crate::stub::TOOLS;
use crate::target::{Target, exposed};

const SERVER: &str = "stub";

/// What follows an answer (a thread going to sleep) still belongs to it.
const SETTLE: Duration = Duration::from_millis(2);

/// Until a gateway with an empty cache lists all tools.
const LISTING: Duration = Duration::from_secs(10);

/// New processes now and then: where one lies in memory is chance, and should not colour a whole case.
const ROUNDS_PER_PROCESS: usize = 5;

/// One way's rounds, in order: the same index is the same round on every way.
#[derive(Debug, Default)]
pub(crate) struct Series {
    pub(crate) target: String,
    pub(crate) p50_us: Vec<f64>,
    /// Of the processes between driver and stub; empty for a direct call.
    pub(crate) cpu_us: Vec<f64>,
    pub(crate) calls_per_second: Vec<f64>,
    pub(crate) rewritten: bool,
}

pub(crate) fn run(case: &Case, targets: &[Target], rounds: u32, id_last: bool) -> Outcome<Vec<Series>> {
    let id_place = if id_last { IdPlace::Last } else { IdPlace::First };
    let payload = Payload::new(case.kind, case.size.bytes(), id_place);
    let mut all: Vec<Series> = targets.iter().map(|target| Series::new(&target.name)).collect();
    let mut ways = Vec::new();
    for round in 0..rounds as usize {
        if round % ROUNDS_PER_PROCESS == 0 {
            ways.clear();
            for (target, series) in targets.iter().zip(&mut all) {
                let way = Way::open(target, case, &payload, series);
                ways.push(way.map_err(|error| target.failed(&*error))?);
            }
        }
        // Each round begins with another way, so that none always follows the same one.
        for turn in 0..targets.len() {
            let place = (turn + round) % targets.len();
            let done = ways[place].round(case, &payload, &mut all[place]);
            done.map_err(|error| targets[place].failed(&*error))?;
        }
    }
    Ok(all)
}

impl Series {
    fn new(target: &str) -> Self {
        Self { target: target.to_owned(), ..Self::default() }
    }
}

struct Way {
    host: Host,
    tool: String,
    /// After the host: the process ends before its home is removed.
    _sandbox: Sandbox,
}

impl Way {
    fn open(target: &Target, case: &Case, payload: &Payload, series: &mut Series) -> Outcome<Self> {
        let sandbox = Sandbox::new()?;
        let id_last = payload.before.len() > payload.after.len();
        let server = Server::new(SERVER, id_last.then(|| "--id-last".to_owned()));
        let mut host = target.open(&sandbox, &[server])?;
        let listed = host.tools_until(TOOLS, LISTING)?;
        let tool = exposed(&listed, SERVER, case.kind.tool())
            .ok_or_else(|| format!("{} is not in its list", case.kind.tool()))?
            .to_owned();
        let mut way = Self { host, tool, _sandbox: sandbox };
        let done = way.calls(case, payload, (case.calls / 2).max(4), true)?;
        series.rewritten |= done.rewritten > 0;
        Ok(way)
    }

    fn round(&mut self, case: &Case, payload: &Payload, series: &mut Series) -> Outcome<()> {
        thread::sleep(SETTLE);
        let cpu_before = Family::of(self.host.pid()).cpu();
        // A few to wake the cores up again: in the CPU time, not in the latencies.
        let waking = (case.calls / 10).max(1);
        self.calls(case, payload, waking, false)?;
        let mut done = self.calls(case, payload, case.calls, false)?;
        thread::sleep(SETTLE);
        let cpu_after = Family::of(self.host.pid()).cpu();

        let calls = count(case.calls);
        series.p50_us.push(percentile(&mut done.latencies, 50).map_or(0.0, micros));
        series.rewritten |= done.rewritten > 0;
        series.calls_per_second.push(calls / done.elapsed.as_secs_f64());
        if let (Some(before), Some(after)) = (cpu_before, cpu_after) {
            let spent = after.saturating_sub(before);
            series.cpu_us.push(micros(spent) / (calls + count(waking)));
        }
        Ok(())
    }

    fn calls(&mut self, case: &Case, payload: &Payload, calls: usize, full_check: bool) -> Outcome<Done> {
        let batch = Batch {
            tools: std::slice::from_ref(&self.tool),
            size: case.size.bytes(),
            expected: payload,
            calls,
            in_flight: case.in_flight,
            full_check,
        };
        batch.run(&mut self.host)
    }
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}
