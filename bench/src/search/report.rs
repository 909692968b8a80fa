//! The results as tables and as JSON.

use serde_json::{Value, json};

use super::metrics::{DEPTHS, Quality};
use super::{Results, Row, Size};
use crate::table::{Table, number};

pub(super) fn text(results: &Results) -> String {
    let mut quality = Table::new(
        2,
        [
            "set", "table", "tools", "queries", "R@1", "R@3", "R@5", "R@10", "MRR", "nDCG@5", "clear",
            "right", "tokens", "lines",
        ],
    );
    for row in &results.rows {
        let [one, three, five, ten] = row.quality.recall.map(share);
        let Quality { mrr, ndcg, clear, clear_right, tokens, line_tokens, .. } = row.quality;
        quality.row([
            row.set.clone(),
            with(row.meaning),
            row.tools.to_string(),
            row.queries.to_string(),
            one,
            three,
            five,
            ten,
            share(mrr),
            share(ndcg),
            share(clear),
            share(clear_right),
            number(Some(tokens)),
            number(Some(line_tokens)),
        ]);
    }
    let mut cost = Table::new(2, ["catalogue", "table", "tools", "query µs", "worst µs", "build ms", "MB"]);
    for size in &results.sizes {
        cost.row([
            size.catalogue.clone(),
            with(size.meaning),
            size.tools.to_string(),
            number(Some(size.cost.query_us)),
            number(Some(size.cost.worst_us)),
            number(Some(size.cost.build_ms)),
            number(Some(megabytes(size.cost.bytes))),
        ]);
    }
    format!(
        "{}clear: how often the first hit is so far ahead that its schema is sent; right: how often rightly\n\
         tokens: o200k, median reply of five hits; lines: without schemas\n\
         what a host lists in search mode, with instructions: {} tokens\n\n{}\nprocessor time on one thread; the table itself: {} ms to read, {} MB beside the binary\n",
        quality.render(),
        results.listing,
        cost.render(),
        number(Some(results.load.ms)),
        number(Some(megabytes(results.load.bytes)))
    )
}

pub(super) fn json(results: &Results) -> Value {
    let row = |row: &Row| {
        let recall: Vec<Value> = DEPTHS
            .iter()
            .zip(row.quality.recall)
            .map(|(depth, recall)| json!({ "at": depth, "recall": recall }))
            .collect();
        json!({
            "set": row.set,
            "table": row.meaning,
            "tools": row.tools,
            "queries": row.queries,
            "recall": recall,
            "mrr": row.quality.mrr,
            "ndcg_5": row.quality.ndcg,
            "clear": row.quality.clear,
            "clear_and_right": row.quality.clear_right,
            "reply_tokens": row.quality.tokens,
            "reply_tokens_lines": row.quality.line_tokens,
        })
    };
    let size = |size: &Size| {
        json!({
            "catalogue": size.catalogue,
            "table": size.meaning,
            "tools": size.tools,
            "query_us": size.cost.query_us,
            "worst_query_us": size.cost.worst_us,
            "build_ms": size.cost.build_ms,
            "index_bytes": size.cost.bytes,
        })
    };
    json!({
        "section": "search",
        "listing_tokens": results.listing,
        "sets": results.rows.iter().map(row).collect::<Vec<_>>(),
        "indexes": results.sizes.iter().map(size).collect::<Vec<_>>(),
        "table": { "load_ms": results.load.ms, "heap_bytes": results.load.bytes },
    })
}

fn with(meaning: bool) -> String {
    if meaning { "with" } else { "without" }.to_owned()
}

fn share(value: f64) -> String {
    format!("{value:.3}")
}

fn megabytes(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1e6
}
