//! Halves of query sets: thresholds are fitted on one, and figures are taken from the other.

use std::fmt::Write;

use plugbay_core::search::{Engine, Hit, reply::FURTHER};

use super::data::{Catalog, Query, Set};
use super::metrics::recall;

/// Number of hits in a reply.
const SHOWN: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Half {
    /// The half for choosing thresholds.
    Fit,
    /// The half for figures.
    Held,
}

impl Half {
    /// The half of a query, by its text alone, so that it is in the same half for every catalog.
    pub(super) fn of(query: &str) -> Self {
        if hash(query).count_ones().is_multiple_of(2) { Self::Fit } else { Self::Held }
    }
}

/// The FNV-1a hash.
pub(super) fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The engine's figures on one half of a set.
#[derive(Debug)]
pub(super) struct HalfRow {
    pub(super) set: String,
    pub(super) tools: usize,
    pub(super) queries: usize,
    pub(super) figures: Figures,
}

/// Shares of the queries.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) first: f64,
    pub(super) fifth: f64,
    /// The same, including the names that follow hits that fit badly.
    pub(super) named: f64,
    /// How often a schema is sent, and how often it is then the right one.
    pub(super) clear: f64,
    pub(super) clear_right: f64,
    /// How often there are any hits.
    pub(super) hits: f64,
    /// How often there are hits, but the reply says that none fits well.
    pub(super) poor: f64,
}

pub(super) fn row(catalog: &str, engine: &Engine, tools: usize, set: &Set, half: Half) -> HalfRow {
    let queries: Vec<&Query> = set.queries.iter().filter(|query| query.half == half).collect();
    HalfRow {
        set: format!("{catalog}/{}", set.name),
        tools,
        queries: queries.len(),
        figures: figures(engine, &queries),
    }
}

impl Figures {
    /// The figures of queries that some tool serves, in the order of the columns.
    pub(super) fn served(&self) -> [f64; 7] {
        [self.first, self.fifth, self.named, self.clear, self.clear_right, 1.0 - self.hits, self.poor]
    }
}

fn figures(engine: &Engine, queries: &[&Query]) -> Figures {
    let mut sum = Figures::default();
    for query in queries {
        let hits = engine.search(&query.text, SHOWN + FURTHER, None);
        let ranking: Vec<u32> = hits.iter().map(|hit| hit.tool).collect();
        let right = recall(&ranking, query, 1);
        sum.first += right;
        sum.fifth += recall(&ranking, query, SHOWN);
        let is_poor = hits.first().is_some_and(Hit::is_poor);
        sum.named += recall(&ranking, query, if is_poor { SHOWN + FURTHER } else { SHOWN });
        let Some(first) = hits.first() else { continue };
        sum.hits += 1.0;
        sum.poor += share(is_poor);
        sum.clear += share(first.is_clear());
        sum.clear_right += share(first.is_clear() && right > 0.0);
    }
    let count = f64::from(u32::try_from(queries.len().max(1)).unwrap_or(u32::MAX));
    Figures {
        first: sum.first / count,
        fifth: sum.fifth / count,
        named: sum.named / count,
        clear: sum.clear / count,
        clear_right: sum.clear_right / sum.clear.max(1.0),
        hits: sum.hits / count,
        poor: sum.poor / count,
    }
}

/// The queries in the half `fit` that find none of their tools, with their hits. Those of the other half stay
/// unseen.
pub(super) fn misses(catalog: &Catalog, engine: &Engine, set: &Set) -> String {
    let mut text = String::new();
    for query in set.queries.iter().filter(|query| query.half == Half::Fit) {
        let hits = engine.search(&query.text, SHOWN, None);
        let ranking: Vec<u32> = hits.iter().map(|hit| hit.tool).collect();
        let missed =
            if query.gold.is_empty() { !hits.is_empty() } else { recall(&ranking, query, SHOWN) < 1.0 };
        if missed {
            let names = ranking.iter().map(|tool| catalog.tools[*tool as usize].1.name.as_str());
            let names = names.collect::<Vec<_>>().join(" ");
            let _ = writeln!(text, "{}/{}: {:?} finds {names}", catalog.name, set.name, query.text);
        }
    }
    text
}

fn share(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_always_in_the_same_half_and_both_are_alike() {
        let fit = (0..1000).filter(|n| Half::of(&format!("query {n}")) == Half::Fit).count();
        assert!((400..600).contains(&fit), "{fit}");
        assert_eq!(Half::of("create issue"), Half::of("create issue"));
    }
}
