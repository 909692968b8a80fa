//! The measurement: every route has its turn in every round.

use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::batch::Done;
use crate::process::Family;
use crate::stats::{micros, percentile};

/// The work after an answer, such as a thread going to sleep, still counts as part of it.
const SETTLE: Duration = Duration::from_millis(2);

/// Rounds before new processes are spawned: their memory layout is random, and should not affect a whole
/// case.
const ROUNDS_PER_PROCESS: usize = 5;

/// An open and warmed-up route to the stub.
pub(crate) trait OpenRoute {
    /// The root of the processes between driver and stub.
    fn pid(&self) -> u32;

    /// A further process between them, if there is one.
    fn beside(&self) -> Option<u32> {
        None
    }

    /// Makes this many calls; `full_check` compares every byte of the answers.
    fn calls(&mut self, calls: usize, full_check: bool) -> Outcome<Done>;
}

impl<R: OpenRoute + ?Sized> OpenRoute for Box<R> {
    fn pid(&self) -> u32 {
        (**self).pid()
    }

    fn beside(&self) -> Option<u32> {
        (**self).beside()
    }

    fn calls(&mut self, calls: usize, full_check: bool) -> Outcome<Done> {
        (**self).calls(calls, full_check)
    }
}

/// One route's rounds in order: the same index is the same round on every route.
#[derive(Debug, Default)]
pub(crate) struct Series {
    pub(crate) target: String,
    pub(crate) p50_us: Vec<f64>,
    /// CPU time of the processes between driver and stub; empty for a direct call.
    pub(crate) cpu_us: Vec<f64>,
    pub(crate) calls_per_second: Vec<f64>,
    pub(crate) rewritten: bool,
}

/// Measures `rounds` of `calls` on the route to each target; `open` spawns one, and `name` labels it in the
/// report.
pub(crate) fn alternate<T, W: OpenRoute>(
    targets: &[T],
    name: impl Fn(&T) -> &str,
    open: impl Fn(&T) -> Outcome<W>,
    calls: usize,
    rounds: u32,
) -> Outcome<Vec<Series>> {
    let failed = |target: &T, error: Box<dyn std::error::Error>| format!("{}: {error}", name(target));
    let series = |target| Series { target: name(target).to_owned(), ..Series::default() };
    let mut all: Vec<Series> = targets.iter().map(series).collect();
    let mut routes = Vec::new();
    for round in 0..rounds as usize {
        if round % ROUNDS_PER_PROCESS == 0 {
            routes.clear();
            for (target, series) in targets.iter().zip(&mut all) {
                let route = open(target).and_then(|route| warm(route, calls, series));
                routes.push(route.map_err(|error| failed(target, error))?);
            }
        }
        // Each round begins with another route, so that no route always follows the same one.
        for turn in 0..targets.len() {
            let place = (turn + round) % targets.len();
            let done = measure(&mut routes[place], calls, &mut all[place]);
            done.map_err(|error| failed(&targets[place], error))?;
        }
    }
    Ok(all)
}

fn warm<W: OpenRoute>(mut route: W, calls: usize, series: &mut Series) -> Outcome<W> {
    let done = route.calls((calls / 2).max(4), true)?;
    series.rewritten |= done.rewritten > 0;
    Ok(route)
}

fn measure(route: &mut impl OpenRoute, calls: usize, series: &mut Series) -> Outcome<()> {
    thread::sleep(SETTLE);
    let cpu_before = family(route).cpu();
    // A few calls to wake up the cores. They count in the CPU time, but not in the latencies.
    let waking = (calls / 10).max(1);
    route.calls(waking, false)?;
    let mut done = route.calls(calls, false)?;
    thread::sleep(SETTLE);
    let cpu_after = family(route).cpu();

    series.p50_us.push(percentile(&mut done.latencies, 50).map_or(0.0, micros));
    series.rewritten |= done.rewritten > 0;
    series.calls_per_second.push(count(calls) / done.elapsed.as_secs_f64());
    if let (Some(before), Some(after)) = (cpu_before, cpu_after) {
        let spent = after.saturating_sub(before);
        series.cpu_us.push(micros(spent) / (count(calls) + count(waking)));
    }
    Ok(())
}

fn family(route: &impl OpenRoute) -> Family {
    let roots: Vec<u32> = [Some(route.pid()), route.beside()].into_iter().flatten().collect();
    Family::of_all(&roots)
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}
/// The figures that are reported of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    P50,
    Cpu,
}

impl Measure {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::P50 => "p50 µs",
            Self::Cpu => "CPU µs",
        }
    }

    pub(crate) fn of(self, series: &Series) -> &[f64] {
        match self {
            Self::P50 => &series.p50_us,
            Self::Cpu => &series.cpu_us,
        }
    }
}
