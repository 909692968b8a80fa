//! The index of tools: stored parts, and remembered tools.

use bytes::Bytes;

use super::*;
use crate::{
    catalog::{Change, Offer, ToolSource},
    era::Era,
    policy::Patterns,
    search::memory::{Followed, ToolPlace},
    surface::Snapshot,
};

/// Tools with a stored index: their own, or that of other tools.
struct Source {
    tools: Vec<Tool>,
    index: Vec<u8>,
}

impl ToolSource for Source {
    fn read(&self) -> Vec<Tool> {
        self.tools.clone()
    }

    fn names(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.name.clone()).collect()
    }

    fn are_visible(&self) -> bool {
        true
    }

    fn are(&self, tools: &[Tool]) -> bool {
        self.tools == tools
    }

    fn have_index(&self, _: &ServerName) -> bool {
        true
    }

    fn index(&self, _: &ServerName) -> Option<Bytes> {
        Some(self.index.clone().into())
    }
}

fn name(server: &str) -> ServerName {
    ServerName::parse(server).unwrap()
}

fn tools(server: &str, count: usize) -> Vec<Tool> {
    let tool = |number| {
        let definition = format!(
            r#"{{"name":"t{number:04}","description":"{server} thing{} word{}"}}"#,
            number % 13,
            number % 7
        );
        Tool::parse(Bytes::from(definition)).unwrap()
    };
    (0..count).map(tool).collect()
}

/// Three servers; the second and third have stored indexes, made of `indexed` of their tools.
fn snapshot(count: usize, indexed: Option<usize>, layout: Layout) -> Snapshot {
    let mut catalog = Catalog::default();
    for (server, count) in [("alpha", 3), ("beta", count), ("gamma", count)] {
        let listed: Tools = tools(server, count).into();
        let listed = match indexed.filter(|_| server != "alpha") {
            Some(indexed) => {
                let index = StoredIndex::write(server, &listed[..indexed], None);
                let source = Source { tools: listed.to_vec(), index };
                Tools::later(listed.brief_to_save(), Box::new(source))
            }
            None => listed,
        };
        let offer = Offer::new(Era::Legacy, None, None, Vec::new()).with_tools(listed);
        catalog = catalog.apply(Change::Remembered(name(server), Arc::new(offer)));
    }
    Snapshot::new(Arc::new(catalog), Arc::new(Layout { name_limit: 64, ..layout }), true)
}

fn found(snapshot: &Snapshot, query: &str) -> Vec<(String, f32)> {
    let hits = snapshot.tool_index.search(query, 9, None, || None);
    hits.into_iter().map(|(found, hit)| (found.exposed.clone(), hit.score)).collect()
}

fn read(snapshot: &Snapshot) -> [bool; 2] {
    ["beta", "gamma"].map(|server| snapshot.catalog.get(&name(server)).unwrap().offer.tools.are_read())
}

#[test]
fn a_search_with_remembered_indexes_reads_the_tools_of_servers_that_it_finds() {
    for count in [40, 3000] {
        let (fresh, stored) =
            (snapshot(count, None, Layout::default()), snapshot(count, Some(count), Layout::default()));
        stored.tool_index.prepare(|| None);
        assert_eq!(read(&stored), [false, false]);
        assert_eq!(found(&stored, "beta thing5"), found(&fresh, "beta thing5"));
        // Names of a small catalog may depend on each other.
        assert_eq!(read(&stored), [true, count == 40]);
        for query in ["gamma word3 thing2", "alpha", "t0007", "thing1 word1. beta word2"] {
            assert_eq!(found(&stored, query), found(&fresh, query), "{query}");
        }
        let explained = |snapshot: &Snapshot| {
            let explained = snapshot.tool_index.explain("thing5", "gamma__t0005", || None).unwrap();
            serde_json::to_string(&explained).unwrap()
        };
        assert_eq!(explained(&stored), explained(&fresh));
    }
}

#[test]
fn an_exposed_name_finds_its_tool_first() {
    let snapshot = snapshot(40, None, Layout::default());
    for query in ["beta__t0007", " gamma__t0031\n"] {
        let hits = snapshot.tool_index.search(query, 5, None, || None);
        assert_eq!((hits[0].0.exposed.as_str(), hits[0].1.is_clear()), (query.trim(), true));
    }
}

#[test]
fn an_index_that_does_not_fit_the_tools_is_made_anew() {
    let fresh = snapshot(40, None, Layout::default());
    let wrong = snapshot(40, Some(39), Layout::default());
    assert_eq!(found(&wrong, "gamma thing2"), found(&fresh, "gamma thing2"));
    // A stored index is not used if some of its tools may not be called.
    let policy = Policy { deny: Patterns::compile(["t0002"]).unwrap(), ..Policy::default() };
    let exposures = [(name("beta"), Exposure { policy, ..Exposure::default() })];
    let layout = || Layout { exposures: exposures.clone().into(), ..Layout::default() };
    let (fresh, stored) = (snapshot(40, None, layout()), snapshot(40, Some(40), layout()));
    for query in ["beta thing2", "gamma thing2"] {
        assert_eq!(found(&stored, query), found(&fresh, query));
    }
}

#[test]
fn a_remembered_tool_is_followed_to_its_new_name_within_its_server() {
    let snapshot = snapshot(5, None, Layout::default());
    let index = &snapshot.tool_index;
    let tool = &tools("beta", 5)[3];
    let remembered = |server: &str, tool_name: &str| {
        let called = ToolPlace { server: name(server), tool: tool_name.to_owned() };
        let definition = definition_hash(tool);
        let mut memory = SearchMemory::default();
        let words = remembered_words("umbrella");
        memory.learn(&Followed { words, called, definition, passed_over: Vec::new(), weight: 1.0 }, 0);
        memory
    };
    let found = |memory: &SearchMemory, server: Option<&ServerName>| -> Vec<String> {
        let hits = index.search_recalling("umbrella", 5, server, (memory, 0), || None);
        hits.iter().map(|(found, _)| found.exposed.clone()).collect()
    };
    assert_eq!(found(&remembered("beta", "t0003"), None), ["beta__t0003"]);
    assert_eq!(found(&remembered("beta", "old_name"), None), ["beta__t0003"], "the same definition");
    assert!(found(&remembered("gamma", "old_name"), None).is_empty(), "another server's is not followed");
    assert!(found(&remembered("beta", "t0003"), Some(&name("gamma"))).is_empty());
}
