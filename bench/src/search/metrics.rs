//! The quality of a ranking, and the size of the reply that shows it.

use plugbay_core::catalog::Tool;
use plugbay_core::search::{
    Engine, Hit,
    reply::{self, Detail, Found},
};
use serde_json::{Value, json};

use super::data::{Catalog, Mode, Query};
use super::siblings;
use crate::stats::median;

/// The ranks at which recall is measured.
pub(super) const DEPTHS: [usize; 4] = [1, 3, 5, 10];
const DEEPEST: usize = 10;
/// Number of hits in a reply.
const SHOWN: usize = 5;

/// The cost of mcpzip 0.1 on the same catalog, as measured; for its search replies, the lowest cost.
pub(super) mod seed {
    pub(crate) const LISTING: f64 = 293.0;
    pub(crate) const SEARCH: f64 = 343.0;
    pub(crate) const DESCRIBE: f64 = 362.0;
}

/// Means over the queries of a set.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Quality {
    /// At each of [`DEPTHS`].
    pub(super) recall: [f64; DEPTHS.len()],
    pub(super) mrr: f64,
    pub(super) ndcg: f64,
    /// How often the first hit is considered clearly right, and how often it then is.
    pub(super) clear: f64,
    pub(super) clear_right: f64,
    /// The o200k tokens of a reply with five hits: the median, and the median of its lines alone.
    pub(super) tokens: f64,
    pub(super) line_tokens: f64,
    /// The tokens for finding and calling the right tool, without the listing; and those with mcpzip.
    pub(super) use_tokens: f64,
    pub(super) seed_tokens: f64,
    /// How often two lines of a reply have the same purpose: in the tools' own words, and in the reply's.
    pub(super) alike: f64,
    pub(super) alike_told: f64,
    /// How often three of the shown tools are copies of one: same name, description and schema.
    pub(super) copies: f64,
}

pub(super) fn quality(engine: &Engine, catalog: &Catalog, queries: &[Query]) -> Quality {
    let mut sum = Quality::default();
    let (mut tokens, mut line_tokens) = (Vec::new(), Vec::new());
    for query in queries {
        let hits = engine.search(&query.text, DEEPEST, None);
        let ranking: Vec<u32> = hits.iter().map(|hit| hit.tool).collect();
        let clear = hits.first().is_some_and(Hit::is_clear);
        if clear {
            sum.clear += 1.0;
            sum.clear_right += f64::from(u8::from(recall(&ranking, query, 1) > 0.0));
        }
        let shown = &hits[..hits.len().min(SHOWN)];
        let reply = size(catalog, shown, clear);
        let (ours, seeds) = use_of(catalog, query, reply);
        sum.use_tokens += ours;
        sum.seed_tokens += seeds;
        tokens.push(reply);
        line_tokens.push(size(catalog, shown, false));
        sum.alike += share(siblings::say_the_same(catalog, shown));
        sum.alike_told += share(siblings::are_told_the_same(&reply_of(catalog, shown, false)));
        sum.copies += share(siblings::are_copies(catalog, shown));
        for (sum, depth) in sum.recall.iter_mut().zip(DEPTHS) {
            *sum += recall(&ranking, query, depth);
        }
        sum.mrr += reciprocal_rank(&ranking, query);
        sum.ndcg += ndcg(&ranking, query, SHOWN);
    }
    let mean = |sum: f64| sum / float(queries.len().max(1));
    Quality {
        recall: sum.recall.map(mean),
        mrr: mean(sum.mrr),
        ndcg: mean(sum.ndcg),
        clear: mean(sum.clear),
        clear_right: sum.clear_right / sum.clear.max(1.0),
        tokens: median(&tokens).unwrap_or_default(),
        line_tokens: median(&line_tokens).unwrap_or_default(),
        use_tokens: mean(sum.use_tokens),
        seed_tokens: mean(sum.seed_tokens),
        alike: mean(sum.alike),
        alike_told: mean(sum.alike_told),
        copies: mean(sum.copies),
    }
}

/// The calls that a model writes and the replies that it reads until the right tool is called: here a search
/// and the call; in mcpzip a search, a description and the call.
fn use_of(catalog: &Catalog, query: &Query, reply: f64) -> (f64, f64) {
    let right = query.gold.iter().flatten().next();
    let name = right.map(|tool| exposed(&catalog.tools[*tool as usize])).unwrap_or_default();
    let written = |call: Value| float(tokens(&call.to_string()));
    let search = written(json!({ "query": query.text }));
    let describe = written(json!({ "name": name }));
    let execute = written(json!({ "name": name, "arguments": {} }));
    (search + reply + execute, search + seed::SEARCH + describe + seed::DESCRIBE + execute)
}

/// The tokens of the reply that shows these hits.
fn size(catalog: &Catalog, hits: &[Hit], clear: bool) -> f64 {
    float(tokens(&reply_of(catalog, hits, clear)))
}

fn reply_of(catalog: &Catalog, hits: &[Hit], clear: bool) -> String {
    let tools: Vec<_> = hits.iter().map(|hit| &catalog.tools[hit.tool as usize]).collect();
    let names: Vec<String> = tools.iter().map(|tool| exposed(tool)).collect();
    let found: Vec<Found<'_>> =
        names.iter().zip(&tools).map(|(name, (_, tool))| Found { name, tool, reads: false }).collect();
    reply::found(&found, clear, Detail::Brief, reply::BUDGET)
}

pub(super) fn exposed((server, tool): &(String, Tool)) -> String {
    format!("{}__{}", server.replace(' ', "-"), tool.name)
}

/// The number of o200k tokens.
pub(crate) fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

/// The share of the groups that the first `depth` tools satisfy.
pub(crate) fn recall(ranking: &[u32], query: &Query, depth: usize) -> f64 {
    let seen = &ranking[..depth.min(ranking.len())];
    let satisfied = |group: &&Vec<u32>| group.iter().any(|tool| seen.contains(tool));
    let count = query.gold.iter().filter(satisfied).count();
    match query.mode {
        Mode::Any => f64::from(u8::from(count > 0)),
        Mode::All => float(count) / float(query.gold.len().max(1)),
    }
}

/// One divided by the rank of the first right tool.
fn reciprocal_rank(ranking: &[u32], query: &Query) -> f64 {
    let right = |tool: &u32| query.gold.iter().any(|group| group.contains(tool));
    ranking.iter().position(right).map_or(0.0, |at| 1.0 / float(at + 1))
}

/// Normalised discounted cumulative gain: each group counts once, and less the later it is satisfied.
fn ndcg(ranking: &[u32], query: &Query, depth: usize) -> f64 {
    let mut open: Vec<&Vec<u32>> = query.gold.iter().collect();
    let mut gain = 0.0;
    for (at, tool) in ranking.iter().take(depth).enumerate() {
        if let Some(group) = open.iter().position(|group| group.contains(tool)) {
            open.swap_remove(group);
            gain += discount(at);
        }
    }
    let ideal: f64 = (0..query.gold.len().min(depth)).map(discount).sum();
    if ideal > 0.0 { gain / ideal } else { 0.0 }
}

fn discount(at: usize) -> f64 {
    1.0 / float(at + 2).log2()
}

fn share(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(gold: &[&[u32]], mode: Mode) -> Query {
        Query::new("", gold.iter().map(|group| group.to_vec()).collect(), mode)
    }

    #[test]
    fn recall_counts_groups_or_any_of_them() {
        let all = query(&[&[1, 2], &[3]], Mode::All);
        let any = query(&[&[1, 2], &[3]], Mode::Any);
        let ranking = [9, 2, 1, 3];
        let at = |query: &Query| DEPTHS.map(|depth| recall(&ranking, query, depth).to_string());
        assert_eq!(at(&all), ["0", "0.5", "1", "1"]);
        assert_eq!(at(&any), ["0", "1", "1", "1"]);
        assert_eq!(recall(&[], &all, 5).to_string(), "0");
    }

    #[test]
    fn the_first_right_tool_sets_the_reciprocal_rank() {
        let query = query(&[&[1, 2], &[3]], Mode::All);
        let ranks =
            [&[3u32, 9][..], &[9, 2], &[9, 8, 7, 1], &[9]].map(|ranking| reciprocal_rank(ranking, &query));
        assert_eq!(ranks.map(|rank| rank.to_string()), ["1", "0.5", "0.25", "0"]);
    }

    #[test]
    fn gain_is_one_for_the_best_order_and_less_for_any_other() {
        let query = query(&[&[1, 2], &[3]], Mode::All);
        let close = |ranking: &[u32], expected: f64| (ndcg(ranking, &query, 5) - expected).abs() < 1e-9;
        assert!(close(&[3, 1], 1.0) && close(&[2, 3, 1], 1.0));
        let ideal = 1.0 + 1.0 / 3f64.log2();
        // A second tool of the same group adds nothing.
        assert!(close(&[1, 2], 1.0 / ideal));
        assert!(close(&[9, 1, 3], (1.0 / 3f64.log2() + 0.5) / ideal));
        assert!(close(&[9, 9, 9, 9, 9, 1], 0.0));
    }
}
