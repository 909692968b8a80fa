//! The results as tables and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::bars::{self, Bar};
use super::halves::HalfRow;
use super::learning::Curve;
use super::metrics::{DEPTHS, Quality, seed};
use super::ranker::Asked;
use super::speed::Cost;
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
            with(row.embeddings),
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
    let mut cost = Table::new(2, ["catalog", "table", "tools", "query µs", "worst µs", "build ms", "MB"]);
    for size in &results.sizes {
        cost.row([
            size.catalog.clone(),
            with(size.embeddings),
            size.tools.to_string(),
            number(Some(size.cost.query_us)),
            number(Some(size.cost.worst_us)),
            number(Some(size.cost.build_ms)),
            number(Some(megabytes(size.cost.bytes))),
        ]);
    }
    format!(
        "{}\n{}\n{}clear: how often the first hit is so far ahead that its schema is sent; right: how often rightly\n\
         tokens: o200k, median reply of five hits; lines: without schemas\n\
         what a host lists in search mode, with instructions: {} tokens\n\n{}\nprocessor time on one thread; the table itself: {} ms to read, {} MB beside the binary\n",
        quality.render(),
        halves(results),
        ranker(results),
        results.listing,
        cost.render(),
        number(Some(results.load.ms)),
        number(Some(megabytes(results.load.bytes)))
    )
}

/// The table of one half of each set.
pub(super) fn halves(results: &Results) -> String {
    let mut served = Table::new(
        1,
        ["half of", "tools", "queries", "R@1", "R@5", "named", "clear", "right", "no hits", "poor"],
    );
    for HalfRow { set, tools, queries, figures } in &results.served {
        let cells = [set.clone(), tools.to_string(), queries.to_string()];
        served.row(cells.into_iter().chain(figures.served().map(share)));
    }
    let mut unserved = Table::new(1, ["half of", "tools", "queries", "hits", "poor", "neither"]);
    for HalfRow { set, tools, queries, figures } in &results.unserved {
        let [hits, poor, neither] = [figures.hits, figures.poor, figures.hits - figures.poor].map(share);
        unserved.row([set.clone(), tools.to_string(), queries.to_string(), hits, poor, neither]);
    }
    let mut curves = Table::new(1, ["remembered queries a tool", "queries", "0", "1", "3", "10"]);
    for Curve { set, queries, recall } in &results.curves {
        let [none, one, three, ten] = recall.map(|(first, fifth)| format!("{first:.3} / {fifth:.3}"));
        curves.row([set.clone(), queries.to_string(), none, one, three, ten]);
    }
    let curves = if results.curves.is_empty() { String::new() } else { format!("\n{}", curves.render()) };
    format!("{}\nqueries that no tool serves\n{}{curves}", served.render(), unserved.render())
}

/// The page for the documentation.
pub(super) fn markdown(results: &Results) -> String {
    let mut page = format!(
        "# How well search finds\n\nMade by `cargo run --release -p plugbay-bench -- search --markdown`. Recall and \
         MRR are shares of one; tokens are o200k, of the median reply of five hits. *Clear*: how often the first hit \
         is so clearly right that its schema is sent; *right*: how often it is, then.\n\n\
         | queries | tools | {} | MRR | nDCG@5 | clear | right | tokens |\n|---|{}",
        DEPTHS.map(|depth| format!("R@{depth}")).join(" | "),
        "---|".repeat(DEPTHS.len() + 6),
    );
    for row in results.rows.iter().filter(|row| row.embeddings) {
        let Quality { recall, mrr, ndcg, clear, clear_right, tokens, .. } = row.quality;
        let shares = recall.into_iter().chain([mrr, ndcg, clear, clear_right]).map(share);
        let shares = shares.collect::<Vec<_>>().join(" | ");
        let _ = write!(page, "\n| {} ({}) | {} | {shares} | {tokens:.0} |", row.set, row.queries, row.tools);
    }
    page.push_str("\n\n| catalog | tools | µs a query | µs the costliest | ms for the index | MB |\n|---|---|---|---|---|---|");
    for size in results.sizes.iter().filter(|size| size.embeddings) {
        let Cost { query_us, worst_us, build_ms, bytes } = size.cost;
        let cells = [query_us, worst_us, build_ms, megabytes(bytes)].map(|value| number(Some(value)));
        let _ = write!(page, "\n| {} | {} | {} |", size.catalog, size.tools, cells.join(" | "));
    }
    page.push_str(&halves_markdown(results));
    page.push_str(&siblings_markdown(results));
    page.push_str(&ranker_markdown(results));
    let hand = results.rows.iter().find(|row| row.embeddings && row.set == "real/hand");
    let share = hand.map(|row| bars::of_seed(results.listing, &row.quality) * 100.0);
    let _ = write!(
        page,
        "\n\nProcessor time on one thread. The listing has {} tokens with its instructions, without what they say of \
         servers. To find and call one tool of real/hand costs {} % of what mcpzip 0.1 needs for it (listing {}, \
         search {} at least, describe {}; the calls themselves on both sides).",
        results.listing,
        number(share),
        seed::LISTING,
        seed::SEARCH,
        seed::DESCRIBE,
    );
    page
}

/// The held-out halves and the learning curve.
fn halves_markdown(results: &Results) -> String {
    let mut page = "\n\nThe held-out half of each set, by a hash of the query; thresholds were fitted on the other half. *No hits* and \
        *poor* (the reply says that none fits well) are wrong here. *Named*: R@5 with the names that stand behind hits that \
        fit badly.\n\n\
        | half of | tools | queries | R@1 | R@5 | named | clear | right | no hits | poor |\n|---|---|---|---|---|---|---|---|---|---|"
        .to_owned();
    for HalfRow { set, tools, queries, figures } in &results.served {
        let cells = figures.served().map(share).join(" | ");
        let _ = write!(page, "\n| {set} | {tools} | {queries} | {cells} |");
    }
    page.push_str(
        "\n\nQueries that no tool serves: how often there are hits, and how often without a word that none fits well.\n\n\
         | half of | tools | queries | hits | unmarked |\n|---|---|---|---|---|",
    );
    for HalfRow { set, tools, queries, figures } in &results.unserved {
        let cells = [figures.hits, figures.hits - figures.poor].map(share).join(" | ");
        let _ = write!(page, "\n| {set} | {tools} | {queries} | {cells} |");
    }
    page.push_str(
        "\n\nThe learning curve: R@1 / R@5 of held-out queries, by how many queries of the other half are remembered of each \
         tool. Only queries whose tools could be taught.\n\n| set | queries | 0 | 1 | 3 | 10 |\n|---|---|---|---|---|---|",
    );
    for Curve { set, queries, recall } in &results.curves {
        let cells = recall.map(|(first, fifth)| format!("{first:.3} / {fifth:.3}")).join(" | ");
        let _ = write!(page, "\n| {set} | {queries} | {cells} |");
    }
    page
}

/// How often lines of a reply say the same thing.
fn siblings_markdown(results: &Results) -> String {
    let mut page = "\n\nSiblings: how often two of the five tools have the same purpose as they say it, and how often two lines of the \
        reply still say the same; how often three of the tools are copies of one on several servers.\n\n\
        | queries | tools | same purpose | same line | copies |\n|---|---|---|---|---|"
        .to_owned();
    for row in results.rows.iter().filter(|row| row.embeddings) {
        let Quality { alike, alike_told, copies, .. } = row.quality;
        let cells = [alike, alike_told, copies].map(share).join(" | ");
        let _ = write!(page, "\n| {} | {} | {cells} |", row.set, row.tools);
    }
    page
}

/// The prompts for a ranking model.
fn ranker_markdown(results: &Results) -> String {
    let mut page = "\n\nA model as ranker: R@1 if it always names a right tool that its prompt has, and the prompt's tokens, system prompt \
        included. *Shown*: so many of the likeliest tools; *as sent*: the prompt that plugbay sends.\n\n\
        | queries | shown | R@1 at most | tokens, median | tokens, most |\n|---|---|---|---|---|"
        .to_owned();
    for Asked { set, queries, shown, ceiling, median, longest } in &results.asked {
        let shown = shown_as(*shown);
        let _ = write!(page, "\n| {set} ({queries}) | {shown} | {ceiling:.3} | {median:.0} | {longest} |");
    }
    page
}

fn shown_as(shown: Option<usize>) -> String {
    shown.map_or_else(|| "as sent".to_owned(), |count| count.to_string())
}

/// The same as a table.
fn ranker(results: &Results) -> String {
    let mut table =
        Table::new(2, ["a model ranks", "shown", "queries", "R@1 at most", "tokens", "most tokens"]);
    for Asked { set, queries, shown, ceiling, median, longest } in &results.asked {
        table.row([
            set.clone(),
            shown_as(*shown),
            queries.to_string(),
            share(*ceiling),
            number(Some(*median)),
            longest.to_string(),
        ]);
    }
    table.render()
}

pub(super) fn json(results: &Results, bars: &[Bar]) -> Value {
    let row = |row: &Row| {
        let recall: Vec<Value> = DEPTHS
            .iter()
            .zip(row.quality.recall)
            .map(|(depth, recall)| json!({ "at": depth, "recall": recall }))
            .collect();
        json!({
            "set": row.set,
            "table": row.embeddings,
            "tools": row.tools,
            "queries": row.queries,
            "recall": recall,
            "mrr": row.quality.mrr,
            "ndcg_5": row.quality.ndcg,
            "clear": row.quality.clear,
            "clear_and_right": row.quality.clear_right,
            "reply_tokens": row.quality.tokens,
            "reply_tokens_lines": row.quality.line_tokens,
            "use_tokens": row.quality.use_tokens,
            "use_tokens_mcpzip": row.quality.seed_tokens,
            "same_purpose": row.quality.alike,
            "same_line": row.quality.alike_told,
            "copies": row.quality.copies,
        })
    };
    let size = |size: &Size| {
        json!({
            "catalog": size.catalog,
            "table": size.embeddings,
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
        "bars": bars.iter().map(Bar::json).collect::<Vec<_>>(),
        "table": { "load_ms": results.load.ms, "heap_bytes": results.load.bytes },
    })
}

fn with(embeddings: bool) -> String {
    if embeddings { "with" } else { "without" }.to_owned()
}

fn share(value: f64) -> String {
    format!("{value:.3}")
}

fn megabytes(bytes: usize) -> f64 {
    f64::from(u32::try_from(bytes).unwrap_or(u32::MAX)) / 1e6
}
