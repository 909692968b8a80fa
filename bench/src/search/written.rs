//! Queries written for this project, for the catalog `real`: everyday words, literals, compounds, typos, and
//! unserved ones.

use std::collections::HashMap;
use std::ops::Range;

use super::data::{Catalog, Mode, Query, Set};
use super::halves::Half;
use super::typos::mistyped;

/// The sets. Each line has a query, then the tools, any of which is right.
const SETS: [(&str, &str); 8] = [
    ("everyday", include_str!("../../queries/everyday.txt")),
    ("everyday-2", include_str!("../../queries/everyday-2.txt")),
    ("everyday-3", include_str!("../../queries/everyday-3.txt")),
    ("everyday-4", include_str!("../../queries/everyday-4.txt")),
    ("everyday-5", include_str!("../../queries/everyday-5.txt")),
    ("everyday-6", include_str!("../../queries/everyday-6.txt")),
    ("literals", include_str!("../../queries/literals.txt")),
    ("compounds", include_str!("../../queries/compounds.txt")),
];
/// The sets on which no threshold and no list was fitted: all of their queries are held out.
const BLIND: [&str; 3] = ["everyday-3", "everyday-4", "everyday-6"];
/// The set that was written for choosing lists and weights: none of its queries is held out.
const FOR_FITTING: &str = "everyday-5";
/// How many times each query is mistyped: once for the set `typos`, the other times for `typos-more`.
const SAMPLES: u64 = 6;
/// The sets of queries that no tool serves, and of those that only seem to have a tool.
const UNSERVED: [(&str, &str); 2] = [
    ("nothing", include_str!("../../queries/nothing.txt")),
    ("near", include_str!("../../queries/near.txt")),
];
/// The only servers of a user with everyday words.
const FEW: [&str; 12] = [
    "filesystem",
    "git",
    "memory",
    "fetch",
    "time",
    "sqlite",
    "sequential-thinking",
    "playwright",
    "github",
    "slack",
    "google-calendar",
    "gmail",
];

/// The sets for a catalog that begins with the tools of `real`.
pub(super) fn sets(catalog: &Catalog) -> Vec<Set> {
    let mut ids: HashMap<String, u32> = HashMap::new();
    for ((server, tool), at) in catalog.tools.iter().zip(0..) {
        ids.entry(id(server, &tool.name)).or_insert(at);
    }
    let mut sets: Vec<Set> = SETS.iter().map(|(name, text)| read(name, text, &ids)).collect();
    let clean = catalog.sets.iter().find(|set| set.name == "hand").or(sets.first()).cloned();
    if let Some(clean) = clean {
        sets.push(typos("typos", &clean, 0..1));
        sets.push(typos("typos-more", &clean, 1..SAMPLES));
    }
    sets
}

/// The sets of everyday words.
pub(super) fn everyday(catalog: &Catalog) -> Vec<Set> {
    sets(catalog).into_iter().filter(|set| set.name.starts_with("everyday")).collect()
}

/// The sets that should find nothing.
pub(super) fn unserved() -> Vec<Set> {
    let query = |line: &str| Query::new(line, Vec::new(), Mode::Any);
    let set =
        |(name, text): (&str, &str)| Set { name: name.to_owned(), queries: lines(text).map(query).collect() };
    UNSERVED.map(set).into()
}

/// The catalog of a user with a few servers.
pub(super) fn few(real: &Catalog) -> Catalog {
    let tools = real.tools.iter().filter(|(server, _)| FEW.contains(&server.as_str())).cloned().collect();
    Catalog { name: "few".to_owned(), tools, sets: Vec::new() }
}

/// Each query with a mistyped word; those without a suitable word are left out.
fn typos(name: &str, clean: &Set, samples: Range<u64>) -> Set {
    let all = samples.flat_map(|sample| clean.queries.iter().map(move |query| (sample, query)));
    let mistype = |(sample, query): (u64, &Query)| {
        Some(Query { text: mistyped(&query.text, sample)?, ..query.clone() })
    };
    Set { name: name.to_owned(), queries: all.filter_map(mistype).collect() }
}

/// The queries of a set. Those whose tools are not in the catalog are left out.
fn read(name: &str, text: &str, ids: &HashMap<String, u32>) -> Set {
    let query = |line: &str| {
        let (text, tools) = line.split_once(" | ")?;
        let gold: Vec<u32> = tools.split(' ').filter_map(|id| ids.get(id).copied()).collect();
        let query = Query::new(text, vec![gold], Mode::Any);
        let half = match name {
            FOR_FITTING => Half::Fit,
            _ if BLIND.contains(&name) => Half::Held,
            _ => query.half,
        };
        (!query.gold[0].is_empty()).then_some(Query { half, ..query })
    };
    Set { name: name.to_owned(), queries: lines(text).filter_map(query).collect() }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn id(server: &str, tool: &str) -> String {
    format!("{server}__{tool}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_queries_are_many_enough_and_none_comes_twice() {
        let mut seen = std::collections::HashSet::new();
        for ((name, text), least) in
            SETS.into_iter().chain(UNSERVED).zip([60, 60, 60, 60, 60, 60, 40, 30, 60, 30])
        {
            assert!(lines(text).count() >= least, "{name}");
            assert!(lines(text).all(|line| seen.insert(line.split(" | ").next())), "{name}");
        }
    }
}
