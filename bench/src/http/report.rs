//! The rows of the section `http`, as a table or as JSON.

use serde_json::{Value, json};

use crate::args::Cores;
use crate::calls::report::{Row, megabytes_per_second};
use crate::conditions::Conditions;
use crate::table::{Table, number, percent};

pub(crate) fn text(conditions: &Conditions, rows: &[Row]) -> String {
    let mut table =
        Table::new(2, ["case", "route", "p50 µs", "spread", "×direct", "CPU µs", "calls/s", "MB/s"]);
    for row in rows {
        table.row([
            row.case.label(),
            if row.rewritten { format!("{} *", row.target) } else { row.target.clone() },
            number(row.p50_us),
            percent(row.p50_spread),
            number(row.p50_to_direct),
            number(row.cpu_us),
            number(row.calls_per_second),
            number(megabytes_per_second(row)),
        ]);
    }
    format!("{}\n\n{}", conditions.text(), table.render())
}

pub(crate) fn json(conditions: &Conditions, rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "size": row.case.size.bytes(),
            "connections": row.case.in_flight,
            "route": row.target,
            "p50_us": row.p50_us,
            "p50_spread": row.p50_spread,
            "p50_to_direct": row.p50_to_direct,
            "cpu_us": row.cpu_us,
            "calls_per_second": row.calls_per_second,
            "mb_per_second": megabytes_per_second(row),
            "byte_identical": !row.rewritten,
        })
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    json!({
        "section": "http",
        "rounds": conditions.rounds,
        "one_core": conditions.cores == Cores::One,
        "load": conditions.loads,
        "rows": rows,
    })
}
