//! The prompts for a ranking model: whether the right tool is in the prompt, and its length.

use std::collections::HashSet;

use plugbay_core::catalog::Tool;
use plugbay_core::model::{Prompt, Turn};
use plugbay_core::search::{Engine, ranking};

use super::data::{Catalog, Query, Set};
use super::metrics::{exposed, recall, tokens};
use crate::stats::median;

/// Number of names that a search asks the model for.
const LIMIT: usize = 5;
/// Numbers of likeliest tools in the prompt; `None` is the prompt that plugbay sends.
const SHOWN: [Option<usize>; 5] = [Some(10), Some(20), Some(40), Some(80), None];

/// The figures of one kind of prompt for a set of queries.
pub(super) struct Asked {
    pub(super) set: String,
    pub(super) queries: usize,
    pub(super) shown: Option<usize>,
    /// R@1 of a model that always names a right tool, if the prompt contains one.
    pub(super) ceiling: f64,
    /// The o200k tokens of the whole prompt.
    pub(super) median: f64,
    pub(super) longest: usize,
}

/// Each kind of prompt for a set.
pub(super) fn asked(catalog: &Catalog, engine: &Engine, set: &Set) -> Vec<Asked> {
    let names: Vec<String> = catalog.tools.iter().map(exposed).collect();
    SHOWN
        .iter()
        .map(|shown| {
            let one = |query: &Query| ask(catalog, engine, &names, query, *shown);
            let (right, sizes): (Vec<f64>, Vec<usize>) = set.queries.iter().map(one).unzip();
            let count = float(set.queries.len().max(1));
            Asked {
                set: format!("{}/{}", catalog.name, set.name),
                queries: set.queries.len(),
                shown: *shown,
                ceiling: right.iter().sum::<f64>() / count,
                median: median(&sizes.iter().map(|size| float(*size)).collect::<Vec<_>>())
                    .unwrap_or_default(),
                longest: sizes.iter().copied().max().unwrap_or_default(),
            }
        })
        .collect()
}

/// Whether the scripted model ranks a right tool first, and the tokens that it reads.
fn ask(
    catalog: &Catalog,
    engine: &Engine,
    names: &[String],
    query: &Query,
    shown: Option<usize>,
) -> (f64, usize) {
    let likely = engine.candidates(&query.text, shown.unwrap_or(ranking::CANDIDATES), None);
    let mut order: Vec<u32> = likely.iter().map(|hit| hit.tool).collect();
    if shown.is_none() {
        let known: HashSet<u32> = order.iter().copied().collect();
        order.extend((0..).zip(names).map(|(tool, _)| tool).filter(|tool| !known.contains(tool)));
    }
    let tool = |at: u32| -> (&str, &Tool) { (&names[at as usize], &catalog.tools[at as usize].1) };
    let prompt = ranking::prompt(&query.text, LIMIT, order.iter().map(|at| tool(*at)));
    let answer = scripted(&prompt, names, query);
    let chosen = ranking::names(&answer).unwrap_or_default();
    let place = |name: &String| order.iter().copied().find(|at| names[*at as usize] == *name);
    let ranked: Vec<u32> = chosen.iter().filter_map(place).collect();
    (recall(&ranked, query, 1), size(&prompt))
}

/// The answer of a model that knows the right tools: those that are in the prompt.
fn scripted(prompt: &Prompt, names: &[String], query: &Query) -> String {
    let text = text(prompt);
    let listed: HashSet<&str> = text.lines().map(|line| line.split('(').next().unwrap_or_default()).collect();
    let right = query.gold.iter().flatten().map(|tool| names[*tool as usize].as_str());
    let right: Vec<&str> = right.filter(|name| listed.contains(name)).collect();
    serde_json::Value::from(right).to_string()
}

fn size(prompt: &Prompt) -> usize {
    tokens(prompt.system.as_deref().unwrap_or_default()) + tokens(text(prompt))
}

fn text(prompt: &Prompt) -> &str {
    match prompt.turns.first() {
        Some(Turn::User(text)) => text,
        _ => "",
    }
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
