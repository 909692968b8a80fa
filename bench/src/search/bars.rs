//! The limits for search.

use serde_json::{Value, json};

use super::Results;
use super::metrics::{Quality, seed};
use crate::table::Table;

pub(super) struct Bar {
    what: String,
    limit: Limit,
    value: f64,
}

#[derive(Clone, Copy)]
enum Limit {
    AtLeast(f64),
    AtMost(f64),
    /// A time: printed but never failed, because it depends on the machine and its load.
    Within(f64),
}

impl Bar {
    fn passes(&self) -> bool {
        match self.limit {
            Limit::AtLeast(limit) => self.value >= limit,
            Limit::AtMost(limit) | Limit::Within(limit) => self.value <= limit,
        }
    }

    /// Whether the limit is missed, regardless of the machine.
    pub(super) fn fails(&self) -> bool {
        !self.passes() && !matches!(self.limit, Limit::Within(_))
    }

    pub(super) fn json(&self) -> Value {
        let (Limit::AtLeast(limit) | Limit::AtMost(limit) | Limit::Within(limit)) = self.limit;
        json!({ "bar": self.what, "limit": limit, "value": self.value, "pass": self.passes() })
    }
}

pub(super) fn render(bars: &[Bar]) -> String {
    let mut table = Table::new(1, ["bar", "", "limit", ""]);
    for bar in bars {
        let limit = match bar.limit {
            Limit::AtLeast(limit) => format!("at least {limit}"),
            Limit::AtMost(limit) | Limit::Within(limit) => format!("at most {limit}"),
        };
        let verdict = match bar.passes() {
            true => "pass",
            false if bar.fails() => "MISS",
            false => "slow",
        };
        table.row([bar.what.clone(), format!("{:.3}", bar.value), limit, verdict.to_owned()]);
    }
    let passed = bars.iter().filter(|bar| bar.passes()).count();
    format!("bars: {passed} of {} pass\n{}", bars.len(), table.render())
}

/// Least recall at 1 and at 5, by set.
const RECALL: [(&str, Option<f64>, f64); 5] = [
    ("real/hand", Some(0.66), 0.90),
    ("metatool/single", None, 0.72),
    ("bfcl/live", None, 0.87),
    ("sealtools/in", None, 0.90),
    ("real+distractors/hand", None, 0.70),
];
/// Limits in tokens: for the text in every conversation, and for the median reply.
const LISTING: f64 = 260.0;
const REPLY: f64 = 220.0;
/// The limit for the tokens to find and call a tool, as a share of mcpzip's.
const OF_SEED: f64 = 0.48;
/// Limits by catalog: processor time of a query in µs, and of the index in ms.
const TIMES: [(&str, f64, f64); 2] = [("real", 50.0, 60.0), ("real+distractors", 250.0, 600.0)];

/// The limits with their figures. Parts that were left out of a run are not judged.
pub(super) fn judge(results: &Results) -> Vec<Bar> {
    let quality = |set: &str| {
        let mut rows = results.rows.iter().filter(|row| row.embeddings);
        rows.find(|row| row.set == set).map(|row| row.quality)
    };
    let mut bars = Vec::new();
    let mut bar = |what: String, limit, value| bars.push(Bar { what, limit, value });
    for (set, first, fifth) in RECALL {
        let Some(Quality { recall: [one, _, five, _], .. }) = quality(set) else { continue };
        if let Some(first) = first {
            bar(format!("{set}, recall at 1"), Limit::AtLeast(first), one);
        }
        bar(format!("{set}, recall at 5"), Limit::AtLeast(fifth), five);
    }
    bar("listing, tokens".to_owned(), Limit::AtMost(LISTING), float(results.listing));
    for row in results.rows.iter().filter(|row| row.embeddings) {
        bar(format!("{}, tokens of a reply", row.set), Limit::AtMost(REPLY), row.quality.tokens);
    }
    if let Some(share) = quality("real/hand").map(|quality| of_seed(results.listing, &quality)) {
        bar("real/hand, to find and call, of what mcpzip needs".to_owned(), Limit::AtMost(OF_SEED), share);
    }
    for size in results.sizes.iter().filter(|size| size.embeddings) {
        let Some((name, query, build)) = TIMES.iter().find(|(name, ..)| *name == size.catalog) else {
            continue;
        };
        bar(format!("{name}, µs a query"), Limit::Within(*query), size.cost.query_us);
        bar(format!("{name}, ms for the index"), Limit::Within(*build), size.cost.build_ms);
    }
    bars
}

/// The tokens that a model reads and writes to find and call one tool, as a share of those with mcpzip.
pub(super) fn of_seed(listing: usize, quality: &Quality) -> f64 {
    (float(listing) + quality.use_tokens) / (seed::LISTING + quality.seed_tokens)
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_machine_fails_nothing() {
        let bar = |limit, value| Bar { what: String::new(), limit, value };
        assert!(!bar(Limit::AtLeast(0.9), 0.9).fails() && bar(Limit::AtLeast(0.9), 0.89).fails());
        assert!(bar(Limit::AtMost(1.0), 1.1).fails());
        let slow = bar(Limit::Within(1.0), 1.1);
        assert!(!slow.passes() && !slow.fails());
    }

    #[test]
    fn the_whole_way_is_compared() {
        let quality = Quality { use_tokens: 100.0, seed_tokens: 707.0, ..Quality::default() };
        assert!((of_seed(200, &quality) - 0.3).abs() < 1e-9);
    }
}
