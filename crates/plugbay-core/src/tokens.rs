//! The tokens that tool definitions cost a model: which text is counted, and the cost of each server.
//!
//! Counting itself is left to the caller, so that only callers that count need a vocabulary.

mod estimate;

use std::collections::BTreeMap;

pub use estimate::estimate;

use crate::{
    catalog::Tool,
    name::ServerName,
    surface::{Found, Names},
    wire::{Cursor, Members, string_value},
};

/// The members of a definition that hosts put before their models.
const COUNTED: [&str; 3] = ["name", "description", "inputSchema"];

/// Tools with their price, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub server: ServerName,
    /// The tool as the host sees it: under its exposed name.
    pub tool: Tool,
    pub tokens: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    pub tools: usize,
    pub tokens: usize,
}

impl Ledger {
    /// Includes tools that are not in the list but behind others: with what they would cost there.
    pub fn of(names: &Names, count: impl Fn(&str) -> usize) -> Self {
        let entry = |found: &Found| {
            let tool = Tool::parse(found.definition())?;
            let tokens = count(&counted(&tool.definition));
            Some(Entry { server: found.target.server.clone(), tool, tokens })
        };
        Self { entries: names.iter().filter_map(entry).collect() }
    }

    pub fn by_server(&self) -> BTreeMap<ServerName, Cost> {
        let mut costs: BTreeMap<ServerName, Cost> = BTreeMap::new();
        for entry in &self.entries {
            costs.entry(entry.server.clone()).or_default().add(entry.tokens);
        }
        costs
    }

    pub fn total(&self) -> Cost {
        let mut total = Cost::default();
        for entry in &self.entries {
            total.add(entry.tokens);
        }
        total
    }
}

impl Cost {
    fn add(&mut self, tokens: usize) {
        self.tools += 1;
        self.tokens += tokens;
    }
}

/// Roughly what a definition costs, without a vocabulary.
pub fn estimate_definition(definition: &[u8]) -> usize {
    estimate(&counted(definition)) * 4 / 5 // the marks of JSON often share a token
}

/// The text that is counted for a definition: compact, in one order, without what stays in the host.
pub fn counted(definition: &[u8]) -> String {
    let whole = 0..definition.len();
    let present = COUNTED.iter().filter_map(|key| {
        let value = Members::find(definition, &whole, key)?;
        Some(format!("\"{key}\":{}", compact(&definition[value])))
    });
    format!("{{{}}}", present.collect::<Vec<_>>().join(","))
}

/// JSON without white space between its parts and without needless escapes, as it is after a host has
/// parsed and written it again. Numbers and the order of keys stay as they are.
pub fn compact(json: &[u8]) -> String {
    let mut out = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some((first, behind)) = rest.split_first() {
        match first {
            b'"' => {
                let (string, behind) = rest.split_at(string_length(rest));
                write_string(&mut out, string);
                rest = behind;
                continue;
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            other => out.push(*other),
        }
        rest = behind;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The length of the string at the start of `json`, with its quotes.
fn string_length(json: &[u8]) -> usize {
    Cursor::new(json, 0).string().map_or(json.len(), |(span, _)| span.end)
}

/// Writes a string without needless escapes. One that cannot be decoded (half a surrogate pair) stays as it
/// is.
fn write_string(out: &mut Vec<u8>, string: &[u8]) {
    let decoded = string.contains(&b'\\').then(|| string_value(string)).flatten();
    match decoded {
        Some(text) => out.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes()),
        None => out.extend_from_slice(string),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        catalog::{Catalog, Change, Offer},
        era::Era,
        surface::{Layout, Snapshot},
    };

    #[test]
    fn only_what_the_model_reads_is_counted() {
        let definition = br#"{ "inputSchema": { "b": 1.0, "a" : [ ] }, "annotations":{"x":1},
            "name" : "t", "description":"two  words: \u00e9 \"q\" \n", "_meta":{} }"#;
        let expected =
            r#"{"name":"t","description":"two  words: é \"q\" \n","inputSchema":{"b":1.0,"a":[]}}"#;
        assert_eq!(counted(definition), expected);
        assert_eq!(counted(b"{}"), "{}");
    }

    #[test]
    fn odd_strings_survive() {
        for odd in [r#""\ud800""#, r#""a\\""#, r#""\\\" {  }""#, r#""unclosed \""#] {
            assert_eq!(compact(odd.as_bytes()), odd);
        }
    }

    #[test]
    fn servers_are_charged_for_what_the_host_sees() {
        let mut catalog = Catalog::default();
        for (server, tools) in [("a", vec!["x", "y"]), ("b", vec!["z"]), ("c", vec![])] {
            let tools =
                tools.iter().map(|name| Tool::parse(format!(r#"{{"name":"{name}"}}"#).into()).unwrap());
            let offer = Arc::new(Offer::new(Era::Legacy, None, None, tools.collect()));
            catalog = catalog.apply(Change::Listed(ServerName::parse(server).unwrap(), offer));
        }
        let layout = Layout { name_limit: 64, ..Layout::default() };
        let snapshot = Snapshot::new(Arc::new(catalog), Arc::new(layout), true);
        let ledger = Ledger::of(&snapshot.names, str::len);
        let length = r#"{"name":"a__x"}"#.len();
        let names: Vec<&str> = ledger.entries.iter().map(|entry| entry.tool.name.as_str()).collect();
        assert_eq!(names, ["a__x", "a__y", "b__z"]);
        assert_eq!(ledger.total(), Cost { tools: 3, tokens: 3 * length });
        let costs = ledger.by_server();
        assert_eq!(costs[&ServerName::parse("a").unwrap()], Cost { tools: 2, tokens: 2 * length });
        assert_eq!(costs.len(), 2);
    }
}
