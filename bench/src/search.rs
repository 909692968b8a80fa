//! Section `search`: how often the right tool is found, the tokens that it costs, and the time.

mod bars;
pub(crate) mod data;
mod halves;
mod learning;
pub(crate) mod metrics;
mod ranker;
mod report;
mod siblings;
mod speed;
mod typos;
mod written;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plugbay_core::exposure::Mode;
use plugbay_core::search::{EmbeddingTable, Engine};
use plugbay_core::surface::{LONGEST_INSTRUCTIONS, Layout, Snapshot, instructions};
use plugbay_core::tokens::counted;
use plugbay_core::wire::elements;

use self::data::{Catalog, Data, Query, Set};
pub(crate) use self::halves::Half;
use self::halves::HalfRow;
use self::learning::Curve;
use self::metrics::Quality;
use self::ranker::Asked;
use self::speed::{Cost, Load};
use crate::args::{Format, Settings};
use crate::{Outcome, output};

/// The embedding table that is linked into plugbay.
pub(crate) const TABLE: &[u8] = include_bytes!("../../crates/plugbay/assets/tools-64d-int8.bin");

/// More tools than anybody has, to measure their cost.
const LARGE: usize = 50_000;

/// The catalogs that this project's own queries are for.
const WRITTEN_FOR: [&str; 3] = ["few", "real", "real+distractors"];

/// The catalogs for which the prompts for a model are examined.
const RANKED: [&str; 2] = ["real", "real+distractors"];

/// The default folder of the data, relative to the workspace.
const DATA: &str = "../shared/data";

/// The engine's figures on one set of queries.
struct Row {
    set: String,
    tools: usize,
    queries: usize,
    embeddings: bool,
    quality: Quality,
}

/// The cost of an index.
struct Size {
    catalog: String,
    tools: usize,
    embeddings: bool,
    cost: Cost,
}

struct Results {
    rows: Vec<Row>,
    /// One half of each set, with the table: the sets with right tools, and those that no tool serves.
    served: Vec<HalfRow>,
    misses: Vec<String>,
    unserved: Vec<HalfRow>,
    /// The prompts for a ranking model, for whole sets.
    asked: Vec<Asked>,
    curves: Vec<Curve>,
    sizes: Vec<Size>,
    load: Load,
    /// Tokens of the tool list in search mode, with the instructions.
    listing: usize,
}

pub(crate) fn run(settings: &Settings) -> Outcome<()> {
    let folder = settings.data.clone().unwrap_or_else(default_folder);
    if !folder.is_dir() {
        output::show(&format!(
            "there is no data in {}; --data DIR names the folder with the catalogs and queries",
            folder.display()
        ));
        return Ok(());
    }
    let data = Data::read(&folder)?;
    let (table, load) = speed::load(TABLE)?;
    let table = Arc::new(table);
    let half = settings.half.unwrap_or(Half::Held);
    let mut results = Results {
        rows: Vec::new(),
        served: Vec::new(),
        misses: Vec::new(),
        unserved: Vec::new(),
        asked: Vec::new(),
        curves: Vec::new(),
        sizes: Vec::new(),
        load,
        listing: listing(),
    };
    halve(&data, &table, settings, half, &mut results);
    if settings.half.is_some() {
        output::show(&results.misses.concat());
        output::show(&report::halves(&results));
        return Ok(());
    }
    for catalog in &data.catalogs {
        if settings.wants_case(&catalog.name) {
            for embeddings in [true, false] {
                output::progress(&format!(
                    "{}: {} tools, {} the table …",
                    catalog.name,
                    catalog.tools.len(),
                    if embeddings { "with" } else { "without" }
                ));
                evaluate(catalog, embeddings.then_some(&table), settings.quick, &mut results);
            }
        }
    }
    let large = data.of_size(LARGE);
    if let (Some(large), None) = (&large, &settings.case) {
        output::progress(&format!("{}: {} tools …", large.name, large.tools.len()));
        measure(large, Some(&table), settings.quick, &mut results);
    }
    let bars = bars::judge(&results);
    output::show(&match settings.format {
        Format::Json => report::json(&results, &bars).to_string(),
        Format::Markdown => report::markdown(&results),
        Format::Text => format!("{}\n{}", report::text(&results), bars::render(&bars)),
    });
    match bars.iter().filter(|bar| bar.fails()).count() {
        0 => Ok(()),
        missed => Err(format!("{missed} bars are missed").into()),
    }
}

fn evaluate(catalog: &Catalog, table: Option<&Arc<EmbeddingTable>>, quick: bool, results: &mut Results) {
    let tools = catalog.borrowed();
    let embeddings = table.is_some();
    let engine = Engine::build(&tools, table.cloned());
    for set in &catalog.sets {
        results.rows.push(Row {
            set: format!("{}/{}", catalog.name, set.name),
            tools: tools.len(),
            queries: set.queries.len(),
            embeddings,
            quality: metrics::quality(&engine, catalog, &set.queries),
        });
    }
    drop(engine);
    measure(catalog, table, quick, results);
}

/// Adds the figures of one half of each set.
fn halve(data: &Data, table: &Arc<EmbeddingTable>, settings: &Settings, half: Half, results: &mut Results) {
    let few = data.catalogs.iter().find(|catalog| catalog.name == "real").map(written::few);
    for catalog in few.iter().chain(&data.catalogs).filter(|catalog| settings.wants_case(&catalog.name)) {
        let tools = catalog.borrowed();
        let engine = Engine::build(&tools, Some(Arc::clone(table)));
        if settings.misses && half == Half::Fit {
            let sets = catalog.sets.iter().cloned().chain(written::sets(catalog)).chain(written::unserved());
            results.misses.extend(sets.map(|set| halves::misses(catalog, &engine, &set)));
        }
        let row = |set: &Set| halves::row(&catalog.name, &engine, tools.len(), set, half);
        results.served.extend(catalog.sets.iter().map(row));
        if half == Half::Held {
            let curve = |set: &Set| learning::curve(&catalog.name, &engine, set);
            results.curves.extend(catalog.sets.iter().filter_map(curve));
        }
        if RANKED.contains(&catalog.name.as_str()) && settings.half.is_none() {
            let sets = catalog.sets.iter().cloned().chain(written::everyday(catalog));
            results.asked.extend(sets.flat_map(|set| ranker::asked(catalog, &engine, &set)));
        }
        if WRITTEN_FOR.contains(&catalog.name.as_str()) {
            let sets = written::sets(catalog);
            results.served.extend(sets.iter().map(row).filter(|row| row.queries > 0));
            results.unserved.extend(written::unserved().iter().map(row));
        }
    }
}

fn measure(catalog: &Catalog, table: Option<&Arc<EmbeddingTable>>, quick: bool, results: &mut Results) {
    let tools = catalog.borrowed();
    let embeddings = table.is_some();
    let build = || Engine::build(&tools, table.cloned());
    let engine = build();
    let written =
        if WRITTEN_FOR.contains(&catalog.name.as_str()) { written::sets(catalog) } else { Vec::new() };
    let queries: Vec<&Query> = catalog.sets.iter().chain(&written).flat_map(|set| &set.queries).collect();
    let cost = speed::measure(&engine, build, &queries, quick);
    results.sizes.push(Size { catalog: catalog.name.clone(), tools: tools.len(), embeddings, cost });
}

/// The tokens of the three tools and the instructions, without their parts about servers.
fn listing() -> usize {
    let layout = Layout { mode: Some(Mode::Search), name_limit: 64, ..Layout::default() };
    let snapshot = Snapshot::new(Arc::default(), Arc::new(layout), true);
    let tools = &snapshot.listing.tools;
    let definitions = elements(tools, &(0..tools.len())).into_iter().map(|span| counted(&tools[span]));
    let text = instructions(&snapshot, Some(&snapshot.listing), LONGEST_INSTRUCTIONS);
    definitions.chain([text]).map(|text| metrics::tokens(&text)).sum()
}

pub(crate) fn default_folder() -> PathBuf {
    // The workspace is where this was built; a binary that was moved needs --data.
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(DATA)
}
