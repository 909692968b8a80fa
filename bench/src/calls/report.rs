//! The rounds reduced to one row per case and route, as a table or as JSON.

use serde_json::{Value, json};

use crate::args::Cores;
use crate::calls::bars::{self, Bar};
use crate::calls::case::Case;
use crate::conditions::Conditions;
use crate::rounds::Series;
use crate::stats::{median, median_ratio, spread};
use crate::table::{Table, number, percent};

pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) target: String,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p50_spread: Option<f64>,
    pub(crate) p50_to_direct: Option<f64>,
    pub(crate) p50_to_pump: Option<f64>,
    pub(crate) cpu_us: Option<f64>,
    pub(crate) cpu_to_pump: Option<f64>,
    /// Only if more than one call is in flight: otherwise it repeats the latency.
    pub(crate) calls_per_second: Option<f64>,
    pub(crate) rewritten: bool,
}

pub(crate) fn rows(case: &Case, series: &[Series]) -> Vec<Row> {
    let named = |name: &str| series.iter().find(|one| one.target == name);
    let (direct, pump) = (named("direct"), named("pump"));
    let row = |one: &Series| Row {
        case: *case,
        target: one.target.clone(),
        p50_us: median(&one.p50_us),
        p50_spread: spread(&one.p50_us),
        p50_to_direct: direct.and_then(|direct| median_ratio(&one.p50_us, &direct.p50_us)),
        p50_to_pump: pump.and_then(|pump| median_ratio(&one.p50_us, &pump.p50_us)),
        cpu_us: median(&one.cpu_us),
        cpu_to_pump: pump.and_then(|pump| median_ratio(&one.cpu_us, &pump.cpu_us)),
        calls_per_second: median(&one.calls_per_second).filter(|_| case.in_flight > 1),
        rewritten: one.rewritten,
    };
    series.iter().map(row).collect()
}

pub(crate) fn text(conditions: &Conditions, rows: &[Row], bars: &[Bar]) -> String {
    format!("{}\n\n{}\n{}", conditions.text(), table(rows), bars::render(bars))
}

pub(crate) fn json(conditions: &Conditions, rows: &[Row], bars: &[Bar]) -> Value {
    json!({
        "section": "calls",
        "rounds": conditions.rounds,
        "one_core": conditions.cores == Cores::One,
        "load": conditions.loads,
        "rows": rows.iter().map(row_json).collect::<Vec<_>>(),
        "bars": bars.iter().map(Bar::json).collect::<Vec<_>>(),
    })
}

pub(crate) fn row_json(row: &Row) -> Value {
    json!({
        "size": row.case.size.bytes(),
        "kind": row.case.kind.label(),
        "in_flight": row.case.in_flight,
        "route": row.target,
        "p50_us": row.p50_us,
        "p50_spread": row.p50_spread,
        "p50_to_direct": row.p50_to_direct,
        "p50_to_pump": row.p50_to_pump,
        "cpu_us": row.cpu_us,
        "cpu_to_pump": row.cpu_to_pump,
        "calls_per_second": row.calls_per_second,
        "mb_per_second": megabytes_per_second(row),
        "byte_identical": !row.rewritten,
    })
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(
        2,
        ["case", "route", "p50 µs", "spread", "×direct", "×pump", "CPU µs", "CPU ×pump", "calls/s", "MB/s"],
    );
    for row in rows {
        let route = if row.rewritten { format!("{} *", row.target) } else { row.target.clone() };
        table.row([
            row.case.label(),
            route,
            number(row.p50_us),
            percent(row.p50_spread),
            number(row.p50_to_direct),
            number(row.p50_to_pump),
            number(row.cpu_us),
            number(row.cpu_to_pump),
            number(row.calls_per_second),
            number(megabytes_per_second(row)),
        ]);
    }
    let mut text = table.render();
    if rows.iter().any(|row| row.rewritten) {
        text.push_str("* results were whole, but not byte for byte those of the stub\n");
    }
    text
}

pub(crate) fn megabytes_per_second(row: &Row) -> Option<f64> {
    let size = u32::try_from(row.case.size.bytes()).ok()?;
    Some(row.calls_per_second? * f64::from(size) / 1e6)
}
