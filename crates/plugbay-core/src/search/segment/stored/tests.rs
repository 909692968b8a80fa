//! A stored index ranks like a new one, and no bytes make it panic.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::search::{Engine, ToolGroup, one_after_the_other, tests::table};

type Server = (String, Vec<Tool>);

const WORDS: &[&str] = &[
    "create",
    "creates",
    "issue",
    "issues",
    "rain",
    "weather",
    "mail",
    "letter",
    "GitHub",
    "list_all",
    "天气预报",
    "the",
    "of",
    "repository",
    "a-very-long-word-of-more-than-sixteen-letters",
    "x1",
];

fn tool((name, description, parameter): (Vec<&str>, Vec<&str>, &str)) -> Tool {
    let definition = serde_json::json!({
        "name": name.join("_"),
        "description": description.join(" "),
        "inputSchema": { "properties": { parameter: { "description": description.first() } } },
    });
    Tool::parse(Bytes::from(definition.to_string())).unwrap()
}

fn servers() -> impl Strategy<Value = Vec<Server>> {
    let words = |count: std::ops::Range<usize>| vec(select(WORDS), count);
    let tools = vec((words(1..3), words(0..8), select(WORDS)).prop_map(tool), 0..8);
    vec((select(WORDS).prop_map(str::to_owned), tools), 1..5)
}

fn group((server, tools): &Server) -> Vec<(&str, &Tool)> {
    tools.iter().map(|tool| (server.as_str(), tool)).collect()
}

fn stored((server, tools): &Server, table: Option<&Arc<EmbeddingTable>>) -> ToolGroup<'static> {
    let bytes = StoredIndex::write(server, tools, table.cloned());
    let stored = StoredIndex::read(&bytes).unwrap();
    assert_eq!((stored.len(), stored.has_embeddings()), (tools.len(), table.is_some()));
    ToolGroup::Stored(Box::new(stored))
}

fn engine(
    groups: Vec<ToolGroup<'_>>,
    before: Option<&Engine>,
    table: Option<&Arc<EmbeddingTable>>,
) -> Engine {
    Engine::of_groups(groups, before, table.cloned(), one_after_the_other).0
}

proptest! {
    #[test]
    fn a_stored_index_ranks_like_a_new_one(
        servers in servers(),
        which in vec(any::<bool>(), 5),
        queries in vec(vec(select(WORDS), 1..5), 1..5),
        embedded: bool,
    ) {
        let table = embedded.then(table);
        let groups = servers.iter().zip(&which).map(|(server, is_stored)| {
            if *is_stored { stored(server, table.as_ref()) } else { ToolGroup::New(group(server)) }
        });
        let mixed = engine(groups.collect(), None, table.as_ref());
        let fresh = servers.iter().map(|server| ToolGroup::New(group(server))).collect();
        let fresh = engine(fresh, None, table.as_ref());
        // A stored index is added to an engine that has other words already.
        let last = servers.len() - 1;
        let first = servers[..last].iter().map(|server| ToolGroup::New(group(server))).collect();
        let (before, mut segments) = Engine::of_groups(first, None, table.clone(), one_after_the_other);
        let mut later: Vec<ToolGroup<'_>> = segments.drain(..).map(ToolGroup::Kept).collect();
        later.push(stored(&servers[last], table.as_ref()));
        let later = engine(later, Some(&before), table.as_ref());
        for query in queries {
            let query = query.join(" ");
            let expected = fresh.search(&query, 20, None);
            prop_assert_eq!(&mixed.search(&query, 20, None), &expected, "{}", query);
            prop_assert_eq!(&later.search(&query, 20, None), &expected, "{}", query);
        }
    }

    #[test]
    fn a_damaged_stored_index_is_rejected_or_can_be_searched(
        servers in servers(),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let mut bytes = StoredIndex::write(&servers[0].0, &servers[0].1, Some(table()));
        for length in 0..bytes.len() {
            prop_assert!(StoredIndex::read(&bytes[..length]).is_none(), "{}", length);
        }
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Some(stored) = StoredIndex::read(&bytes) {
            let damaged = engine(vec![ToolGroup::Stored(Box::new(stored))], None, Some(&table()));
            for word in WORDS {
                drop(damaged.search(word, 5, None));
            }
        }
    }

    #[test]
    fn reading_a_stored_index_of_arbitrary_bytes_ends(bytes in vec(any::<u8>(), 0..64)) {
        let _ = StoredIndex::read(&bytes);
    }
}

/// A change of how texts become terms, or of the form, must not be mistaken for what was stored before.
#[test]
fn the_same_tools_are_stored_as_the_same_bytes_while_the_version_stays() {
    let tools: Vec<Tool> =
        WORDS.windows(3).map(|words| tool((words[..2].to_vec(), words.to_vec(), words[2]))).collect();
    let bytes = StoredIndex::write("GitHub", &tools, Some(table()));
    let sum = bytes.iter().fold(0u64, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte));
    assert_eq!(
        (INDEX_VERSION, bytes.len(), sum),
        (1, 1214, 1_445_669_237_810_339_563),
        "a change needs a new version"
    );
}
