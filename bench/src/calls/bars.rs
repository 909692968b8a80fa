//! The limits for plugbay, relative to the pump in the same run.

use serde_json::{Value, json};

use crate::calls::case::Size;
use crate::calls::report::Row;
use crate::table::{Table, number};

#[derive(Debug)]
pub(crate) struct Bar {
    case: String,
    measure: &'static str,
    limit: f64,
    value: Option<f64>,
}

impl Bar {
    /// Whether the limit is kept. A figure that could not be measured has not passed.
    fn passes(&self) -> bool {
        self.value.is_some_and(|value| value <= self.limit)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "case": self.case,
            "measure": self.measure,
            "limit": self.limit,
            "value": self.value,
            "pass": self.passes(),
        })
    }
}

pub(crate) fn judge(rows: &[Row]) -> Vec<Bar> {
    let plugbay = rows.iter().filter(|row| row.target == "plugbay");
    plugbay
        .flat_map(|row| {
            let (p50_limit, cpu_limit) = limits(row.case.size);
            let case = row.case.label();
            [
                Bar { case: case.clone(), measure: "p50", limit: p50_limit, value: row.p50_to_pump },
                Bar { case, measure: "CPU", limit: cpu_limit, value: row.cpu_to_pump },
            ]
        })
        .collect()
}

pub(crate) fn render(bars: &[Bar]) -> String {
    if bars.is_empty() {
        return "bars: plugbay was not measured\n".to_owned();
    }
    let mut table = Table::new(2, ["case", "measure", "×pump", "at most", ""]);
    for bar in bars {
        let verdict = if bar.passes() { "pass" } else { "FAIL" };
        table.row([
            bar.case.clone(),
            bar.measure.to_owned(),
            number(bar.value),
            number(Some(bar.limit)),
            verdict.to_owned(),
        ]);
    }
    let passed = bars.iter().filter(|bar| bar.passes()).count();
    format!("bars: {passed} of {} pass\n{}", bars.len(), table.render())
}

/// The limits as multiples of the pump's p50 and CPU. A small message is all overhead, a large one all
/// copying.
fn limits(size: Size) -> (f64, f64) {
    match size {
        Size::Small => (2.0, 2.0),
        Size::Medium | Size::Large => (1.3, 1.8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::case;
    use crate::calls::report;
    use crate::rounds::Series;

    fn series(target: &str, p50: f64, cpu: f64) -> Series {
        Series {
            target: target.to_owned(),
            p50_us: vec![p50; 3],
            cpu_us: vec![cpu; 3],
            calls_per_second: vec![1.0; 3],
            rewritten: false,
        }
    }

    #[test]
    fn plugbay_is_judged_by_the_pump() {
        let large = case::all().into_iter().find(|case| case.size == Size::Large).unwrap();
        let rows = report::rows(&large, &[series("pump", 10.0, 10.0), series("plugbay", 12.0, 19.0)]);
        let passes: Vec<bool> = judge(&rows).iter().map(Bar::passes).collect();
        assert_eq!(passes, [true, false]);
    }

    #[test]
    fn without_a_pump_nothing_passes_and_without_plugbay_nothing_is_judged() {
        let case = case::all()[0];
        let alone = report::rows(&case, &[series("plugbay", 1.0, 1.0)]);
        assert!(judge(&alone).iter().all(|bar| !bar.passes()));
        assert!(judge(&report::rows(&case, &[series("pump", 1.0, 1.0)])).is_empty());
    }
}
