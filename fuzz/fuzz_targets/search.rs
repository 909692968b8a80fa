//! Searches: hits are tools of the catalog, best first; an index that was stored finds the same; a reply has its own lines only.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plugbay_core::{
    catalog::Tool,
    search::{
        Engine, Hit, Recalled, StoredIndex, ToolGroup, memory, one_after_the_other,
        reply::{BUDGET, Detail, Found, found, nothing},
    },
};
use serde_json::json;

/// So many lines are tools.
const TOOLS: usize = 24;
const LIMIT: usize = 5;
const SERVER: &str = "alpha";

// The first line is a query, each other one a tool: its name, its description and a parameter, between tabs.
fuzz_target!(|bytes: &[u8]| {
    if let Some(stored) = StoredIndex::read(bytes) {
        let engine = of_one_group(ToolGroup::Stored(Box::new(stored)));
        check(&engine.search("list all issues, plese", LIMIT, None), usize::MAX);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (query, rest) = text.split_once('\n').unwrap_or((text, ""));
    let tools: Vec<Tool> = rest.lines().take(TOOLS).filter_map(tool).collect();
    let named: Vec<(&str, &Tool)> = tools.iter().map(|tool| (SERVER, tool)).collect();
    let engine = of_one_group(ToolGroup::New(named));

    let hits = engine.search(query, LIMIT, None);
    check(&hits, tools.len());
    assert!(hits.len() <= LIMIT);
    check(&engine.search_meant(query, LIMIT), tools.len());
    check(&engine.candidates(query, LIMIT, None), tools.len());
    let half = tools.len() as u32 / 2;
    assert!(engine.candidates(query, LIMIT, Some(0..half)).iter().all(|hit| hit.tool < half));
    let words = memory::remembered_words(query);
    let recalled: Vec<Recalled> =
        words.into_iter().zip(0..).map(|(stem, tool)| Recalled { stem, tool, weight: 1.0 }).collect();
    check(&engine.search_recalling(query, LIMIT, None, &recalled, None), tools.len());

    let stored = StoredIndex::write(SERVER, &tools, None);
    let stored = StoredIndex::read(&stored).expect("what is stored can be read");
    assert_eq!(of_one_group(ToolGroup::Stored(Box::new(stored))).search(query, LIMIT, None), hits);

    let names: Vec<String> = (0..hits.len()).map(|rank| format!("hit_{rank}")).collect();
    let hits: Vec<(&String, &Hit)> = names.iter().zip(&hits).collect();
    let shown: Vec<Found<'_>> = hits
        .iter()
        .map(|(name, hit)| Found { name, tool: &tools[hit.tool as usize], reads: false })
        .collect();
    for detail in [Detail::Brief, Detail::Full] {
        let reply = found(&shown, false, detail, BUDGET);
        let is_own = |line: &str| line.starts_with("hit_") || line.starts_with(['{', ' ']);
        assert!(reply.lines().filter(|line| !line.is_empty()).all(is_own), "{reply}");
    }
    nothing(query, &[SERVER, query]);
});

fn of_one_group(group: ToolGroup<'_>) -> Engine {
    Engine::of_groups(vec![group], None, None, one_after_the_other).0
}

/// Each hit is one of so many tools, comes once, and has a score.
fn check(hits: &[Hit], tools: usize) {
    for (rank, hit) in hits.iter().enumerate() {
        assert!((hit.tool as usize) < tools && hit.score.is_finite() && hit.score > 0.0, "{hit:?}");
        assert!(hits[..rank].iter().all(|before| before.tool != hit.tool), "{hit:?} comes twice");
    }
    assert!(hits.iter().skip(1).all(|hit| !hit.is_clear()), "only the first is clear");
}

fn tool(line: &str) -> Option<Tool> {
    let mut parts = line.splitn(3, '\t');
    let (name, description) = (parts.next()?, parts.next().unwrap_or_default());
    let parameter = parts.next().unwrap_or("path");
    let schema = json!({ "type": "object", "properties": { parameter: { "type": parameter } } });
    let definition = json!({ "name": name, "description": description, "inputSchema": schema });
    Tool::parse(Bytes::from(definition.to_string()))
}
