//! The rows of the section `daemon`, as a table or as JSON.

use serde_json::{Value, json};

use super::{DAEMON, PLAIN, PUMPED, Windows};
use crate::args::Cores;
use crate::calls::case::Case;
use crate::conditions::Conditions;
use crate::rounds::{Measure, Series};
use crate::stats::{median, median_ratio};
use crate::table::{Table, number};

/// Limit for the latency of one call at a time, as a multiple of that of a gateway behind a pump. Any process
/// between costs as much.
const P50_LIMIT: f64 = 1.25;
const FIRST_LIST_LIMIT_MS: f64 = 15.0;
const PRIVATE_LIMIT_MB: f64 = 3.0;

/// One figure of one case.
pub(super) struct Row {
    case: Case,
    measure: Measure,
    plain: Option<f64>,
    pumped: Option<f64>,
    daemon: Option<f64>,
    /// As a multiple of the figure without a daemon.
    to_plain: Option<f64>,
    /// As a multiple of the same behind a pump.
    to_pumped: Option<f64>,
}

impl Row {
    fn is_judged(&self) -> bool {
        self.measure == Measure::P50 && self.case.in_flight == 1
    }
}

pub(super) fn rows(case: &Case, series: &[Series]) -> [Row; 2] {
    [Measure::P50, Measure::Cpu].map(|measure| {
        let values = |route: &str| series.iter().find(|one| one.target == route).map(|one| measure.of(one));
        let ratio_to = |route: &str| {
            values(DAEMON).zip(values(route)).and_then(|(daemon, other)| median_ratio(daemon, other))
        };
        Row {
            case: *case,
            measure,
            plain: values(PLAIN).and_then(median),
            pumped: values(PUMPED).and_then(median),
            daemon: values(DAEMON).and_then(median),
            to_plain: ratio_to(PLAIN),
            to_pumped: ratio_to(PUMPED),
        }
    })
}

pub(super) fn text(conditions: &Conditions, rows: &[Row], windows: &Windows) -> String {
    let mut table = Table::new(2, ["case", "", PLAIN, PUMPED, DAEMON, "×plain", "×pumped", "at most", "bar"]);
    for row in rows {
        let limit = row.is_judged().then_some(P50_LIMIT);
        table.row([
            row.case.label(),
            row.measure.label().to_owned(),
            number(row.plain),
            number(row.pumped),
            number(row.daemon),
            number(row.to_plain),
            number(row.to_pumped),
            number(limit),
            verdict(row.to_pumped, limit).to_owned(),
        ]);
    }
    for (what, value, limit) in windows.bars() {
        let verdict = verdict(value, Some(limit)).to_owned();
        table.row([
            what.to_owned(),
            String::new(),
            String::new(),
            String::new(),
            number(value),
            String::new(),
            String::new(),
            number(Some(limit)),
            verdict,
        ]);
    }
    format!("{}\n\n{}", conditions.text(), table.render())
}

pub(super) fn json(conditions: &Conditions, rows: &[Row], windows: &Windows) -> Value {
    let row = |row: &Row| {
        json!({
            "size": row.case.size.bytes(),
            "in_flight": row.case.in_flight,
            "measure": row.measure.label(),
            "plain": row.plain,
            "pumped": row.pumped,
            "daemon": row.daemon,
            "to_plain": row.to_plain,
            "to_pumped": row.to_pumped,
        })
    };
    let bar = |(what, value, limit): (&str, Option<f64>, f64)| json!({ "what": what, "value": value, "limit": limit, "pass": value.map(|value| value <= limit) });
    json!({
        "section": "daemon",
        "rounds": conditions.rounds,
        "one_core": conditions.cores == Cores::One,
        "load": conditions.loads,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "windows": windows.bars().map(bar),
    })
}

impl Windows {
    fn bars(&self) -> [(&'static str, Option<f64>, f64); 2] {
        let megabytes = |kib: u64| u32::try_from(kib).map_or(f64::INFINITY, f64::from) / 1024.0;
        [
            ("first list of a window, ms", self.first_list_ms, FIRST_LIST_LIMIT_MS),
            ("private memory of a bridge, MB", self.private_kib.map(megabytes), PRIVATE_LIMIT_MB),
        ]
    }
}

fn verdict(value: Option<f64>, limit: Option<f64>) -> &'static str {
    match (value, limit) {
        (Some(value), Some(limit)) if value <= limit => "pass",
        (Some(_), Some(_)) => "FAIL",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::cases;

    #[test]
    fn the_ratio_of_the_daemon_is_judged_for_single_calls() {
        let series = |target: &str, p50| Series {
            target: target.to_owned(),
            p50_us: vec![p50; 3],
            cpu_us: vec![1.0; 3],
            ..Series::default()
        };
        let case = cases().next().expect("a case");
        let measured =
            |daemon| rows(&case, &[series(PLAIN, 6.0), series(PUMPED, 10.0), series(DAEMON, daemon)]);
        let verdict_of = |daemon| {
            let rows = measured(daemon);
            let judged: Vec<&Row> = rows.iter().filter(|row| row.is_judged()).collect();
            assert_eq!(judged.len(), 1);
            verdict(judged[0].to_pumped, Some(P50_LIMIT))
        };
        assert_eq!((verdict_of(12.0), verdict_of(13.0)), ("pass", "FAIL"));
    }
}
