//! The learning curve: the value of remembered queries. Tools learn queries of one half, and are searched
//! with the other half.

use std::collections::HashMap;

use plugbay_core::search::{Engine, Recalled, memory::remembered_words};

use super::data::{Query, Set};
use super::halves::Half;
use super::metrics::recall;

/// The numbers of queries that are remembered per tool.
pub(super) const TAUGHT: [usize; 4] = [0, 1, 3, 10];
const SHOWN: usize = 5;
/// Least number of usable queries in a set; fewer prove nothing.
const FEWEST: usize = 20;

/// Recall at 1 and at 5 by the number of queries remembered per tool, over the queries of tools that have
/// learned some.
#[derive(Debug)]
pub(super) struct Curve {
    pub(super) set: String,
    pub(super) queries: usize,
    pub(super) recall: [(f64, f64); TAUGHT.len()],
}

/// The curve of a set; `None` if hardly any tool has queries in both halves.
pub(super) fn curve(catalog: &str, engine: &Engine, set: &Set) -> Option<Curve> {
    let mut lessons: HashMap<u32, Vec<Vec<String>>> = HashMap::new();
    for query in set.queries.iter().filter(|query| query.half == Half::Fit) {
        if let Some(tool) = tool_of(query) {
            lessons.entry(tool).or_default().push(remembered_words(&query.text));
        }
    }
    let is_taught = |query: &&Query| {
        query.half == Half::Held && query.gold.iter().flatten().any(|tool| lessons.contains_key(tool))
    };
    let asked: Vec<&Query> = set.queries.iter().filter(is_taught).collect();
    if asked.len() < FEWEST {
        return None;
    }
    let recall = TAUGHT.map(|taught| figures(engine, &asked, &memory(&lessons, taught)));
    Some(Curve { set: format!("{catalog}/{}", set.name), queries: asked.len(), recall })
}

/// The tool that a user would call: if one is enough, the first right one.
fn tool_of(query: &Query) -> Option<u32> {
    match &query.gold[..] {
        [only] => only.first().copied(),
        _ => None,
    }
}

/// The tools that were called after each word, with their counts.
type Memory = HashMap<String, HashMap<u32, f32>>;

fn memory(lessons: &HashMap<u32, Vec<Vec<String>>>, taught: usize) -> Memory {
    let mut memory = Memory::new();
    for (tool, lessons) in lessons {
        for word in lessons.iter().take(taught).flatten() {
            *memory.entry(word.clone()).or_default().entry(*tool).or_default() += 1.0;
        }
    }
    memory
}

fn figures(engine: &Engine, queries: &[&Query], memory: &Memory) -> (f64, f64) {
    let (mut first, mut fifth) = (0.0, 0.0);
    for query in queries {
        let words = remembered_words(&query.text);
        let known = words.iter().filter_map(|word| Some((word, memory.get(word)?)));
        let recalled: Vec<Recalled> = known
            .flat_map(|(stem, tools)| {
                tools.iter().map(|(tool, weight)| Recalled {
                    stem: stem.clone(),
                    tool: *tool,
                    weight: *weight,
                })
            })
            .collect();
        let hits = engine.search_recalling(&query.text, SHOWN, None, &recalled, None);
        let ranking: Vec<u32> = hits.iter().map(|hit| hit.tool).collect();
        first += recall(&ranking, query, 1);
        fifth += recall(&ranking, query, SHOWN);
    }
    let count = f64::from(u32::try_from(queries.len().max(1)).unwrap_or(u32::MAX));
    (first / count, fifth / count)
}
