//! The cost of searching: processor time and memory, on one thread.

use std::hint::black_box;
use std::time::Duration;

use plugbay_core::search::{EmbeddingTable, Engine};
use rustix::time::{ClockId, clock_gettime};

use super::data::Query;
use crate::Outcome;
use crate::stats::{median, micros, millis};

/// Number of hits that a host asks for.
const LIMIT: usize = 5;

pub(super) struct Cost {
    /// The mean over the queries; the median over the passes.
    pub(super) query_us: f64,
    /// The most expensive query.
    pub(super) worst_us: f64,
    pub(super) build_ms: f64,
    pub(super) bytes: usize,
}

/// The one-time cost of the embedding table.
pub(super) struct Load {
    pub(super) ms: f64,
    pub(super) bytes: usize,
}

pub(super) fn measure(engine: &Engine, build: impl Fn() -> Engine, queries: &[&Query], quick: bool) -> Cost {
    let (passes, builds, least) =
        if quick { (3, 2, Duration::from_millis(20)) } else { (7, 7, Duration::from_millis(150)) };
    let query_us = (0..passes).map(|_| pass(engine, queries, least));
    let worst = queries.iter().map(|query| {
        // The minimum of a few runs, because an interruption is not the query's cost.
        let run = || cpu(|| drop(black_box(engine.search(&query.text, LIMIT, None))));
        (0..3).map(|_| run()).min().unwrap_or_default()
    });
    Cost {
        query_us: median(&query_us.collect::<Vec<_>>()).unwrap_or_default(),
        worst_us: worst.max().map(micros).unwrap_or_default(),
        build_ms: median(&(0..builds).map(|_| millis(cpu(|| drop(black_box(build()))))).collect::<Vec<_>>())
            .unwrap_or_default(),
        bytes: engine.heap_bytes(),
    }
}

pub(super) fn load(bytes: &'static [u8]) -> Outcome<(EmbeddingTable, Load)> {
    let once = || millis(cpu(|| drop(black_box(EmbeddingTable::read(bytes)))));
    let first = once(); // with the pages of the file coming in
    let table = EmbeddingTable::read(bytes).ok_or("the embedding table cannot be read")?;
    let load = Load { ms: first, bytes: table.heap_bytes() };
    Ok((table, load))
}

/// Runs all queries repeatedly until the time is measurable; returns microseconds per query.
fn pass(engine: &Engine, queries: &[&Query], least: Duration) -> f64 {
    let (mut spent, mut count) = (Duration::ZERO, 0u32);
    while spent < least && !queries.is_empty() {
        spent += cpu(|| {
            for query in queries {
                black_box(engine.search(black_box(&query.text), LIMIT, None));
            }
        });
        count += u32::try_from(queries.len()).unwrap_or(u32::MAX);
    }
    micros(spent) / f64::from(count.max(1))
}

/// The processor time of some work, whatever else the machine does.
fn cpu(work: impl FnOnce()) -> Duration {
    let before = now();
    work();
    now().saturating_sub(before)
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
