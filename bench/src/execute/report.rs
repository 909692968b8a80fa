//! The rows of the section `execute`, as a table or as JSON.

use serde_json::{Value, json};

use super::{ALL_MODE, EXECUTE_TOOL};
use crate::args::Cores;
use crate::calls::case::{Case, Size};
use crate::conditions::Conditions;
use crate::rounds::{Measure, Series};
use crate::stats::{median, median_ratio};
use crate::table::{Table, number};

/// Limit for the processor time of `execute_tool`, as a multiple of that in `all` mode, for calls in batches:
/// there system calls are shared, and a call costs little more than plugbay's own work.
const CPU_LIMIT: f64 = 2.0;

/// One figure of one case, route by route. CPU has no value for a direct call, which has no process in
/// between.
pub(super) struct Row {
    case: Case,
    measure: Measure,
    direct: Option<f64>,
    pump: Option<f64>,
    all: Option<f64>,
    execute: Option<f64>,
    execute_to_all: Option<f64>,
    /// Whether a result on some route was not byte for byte the stub's.
    rewritten: bool,
}

pub(super) fn rows(case: &Case, series: &[Series]) -> [Row; 2] {
    [Measure::P50, Measure::Cpu].map(|measure| {
        let values = |route: &str| series.iter().find(|one| one.target == route).map(|one| measure.of(one));
        let middle = |route: &str| median(values(route)?);
        Row {
            case: *case,
            measure,
            direct: middle("direct"),
            pump: middle("pump"),
            all: middle(ALL_MODE),
            execute: middle(EXECUTE_TOOL),
            execute_to_all: values(EXECUTE_TOOL)
                .zip(values(ALL_MODE))
                .and_then(|(execute, all)| median_ratio(execute, all)),
            rewritten: series.iter().any(|one| one.rewritten),
        }
    })
}

pub(super) fn text(conditions: &Conditions, rows: &[Row]) -> String {
    let mut table = Table::new(2, ["case", "", "direct", "pump", ALL_MODE, EXECUTE_TOOL, "execute/all"]);
    for row in rows {
        table.row([
            if row.rewritten { format!("{} *", row.case.label()) } else { row.case.label() },
            row.measure.label().to_owned(),
            number(row.direct),
            number(row.pump),
            number(row.all),
            number(row.execute),
            number(row.execute_to_all),
        ]);
    }
    let rewritten = rows.iter().any(|row| row.rewritten);
    let note = if rewritten { "* results were whole, but not byte for byte those of the stub\n" } else { "" };
    format!("{}\n\n{}{note}{}", conditions.text(), table.render(), bar(rows))
}

pub(super) fn json(conditions: &Conditions, rows: &[Row]) -> Value {
    let row = |row: &Row| {
        json!({
            "size": row.case.size.bytes(),
            "in_flight": row.case.in_flight,
            "measure": row.measure.label(),
            "direct": row.direct,
            "pump": row.pump,
            "all": row.all,
            "execute_tool": row.execute,
            "execute_to_all": row.execute_to_all,
            "byte_identical": !row.rewritten,
        })
    };
    json!({
        "section": "execute",
        "rounds": conditions.rounds,
        "one_core": conditions.cores == Cores::One,
        "load": conditions.loads,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "bar": { "limit": CPU_LIMIT, "value": judged(rows), "pass": judged(rows).map(passes) },
    })
}

fn bar(rows: &[Row]) -> String {
    let Some(ratio) = judged(rows) else { return "bar: not measured\n".to_owned() };
    let verdict = if passes(ratio) { "pass" } else { "FAIL" };
    let ratio = number(Some(ratio));
    format!("bar: 1 KB ×32, CPU of execute_tool at most {CPU_LIMIT} × that of all mode: {ratio}, {verdict}\n")
}

fn judged(rows: &[Row]) -> Option<f64> {
    let judged =
        |row: &&Row| row.measure == Measure::Cpu && row.case.size == Size::Small && row.case.in_flight > 1;
    rows.iter().find(judged)?.execute_to_all
}

fn passes(ratio: f64) -> bool {
    ratio <= CPU_LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::cases;

    fn series(target: &str, cpu: f64) -> Series {
        Series { target: target.to_owned(), p50_us: vec![10.0; 3], cpu_us: vec![cpu; 3], ..Series::default() }
    }

    fn measured(execute: f64) -> Vec<Row> {
        let series = [series(ALL_MODE, 4.0), series(EXECUTE_TOOL, execute)];
        cases().flat_map(|case| rows(&case, &series)).collect()
    }

    #[test]
    fn execute_tool_is_judged_by_all_mode_of_the_same_run() {
        assert_eq!(judged(&measured(8.0)).map(passes), Some(true));
        assert_eq!(judged(&measured(9.0)).map(passes), Some(false));
    }

    #[test]
    fn without_all_mode_there_is_no_ratio() {
        let alone: Vec<Row> = cases().flat_map(|case| rows(&case, &[series(EXECUTE_TOOL, 4.0)])).collect();
        assert_eq!(judged(&alone), None);
        assert!(bar(&alone).contains("not measured"));
    }
}
