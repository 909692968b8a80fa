//! Reads catalogs and queries with their expected tools.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use bytes::Bytes;
use flate2::read::GzDecoder;
use plugbay_core::catalog::Tool;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::halves::Half;
use crate::Outcome;

/// The folders that have queries, smallest catalog first.
const FOLDERS: [&str; 4] = ["metatool", "bfcl", "real", "sealtools"];
/// A catalog of tools without queries, among which the right ones must be found.
const DISTRACTORS: &str = "toucan-catalog.jsonl.gz";

pub(crate) struct Data {
    pub(crate) catalogs: Vec<Catalog>,
}

pub(crate) struct Catalog {
    pub(crate) name: String,
    /// The tools, each with its server.
    pub(crate) tools: Vec<(String, Tool)>,
    pub(crate) sets: Vec<Set>,
}

#[derive(Clone)]
pub(crate) struct Set {
    pub(crate) name: String,
    pub(crate) queries: Vec<Query>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) text: String,
    /// Groups of tools by their numbers; any tool of a group satisfies it.
    pub(crate) gold: Vec<Vec<u32>>,
    pub(crate) mode: Mode,
    /// The half of its text; for a mistyped query, that of the original query.
    pub(crate) half: Half,
}

impl Query {
    pub(crate) fn new(text: &str, gold: Vec<Vec<u32>>, mode: Mode) -> Self {
        Self { text: text.to_owned(), gold, mode, half: Half::of(text) }
    }
}

/// The condition for a query to be satisfied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Each group counts separately.
    All,
    /// One group is enough.
    Any,
}

#[derive(Deserialize)]
struct ToolLine<'a> {
    id: String,
    server: String,
    #[serde(borrow)]
    name: &'a RawValue,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct QueryLine {
    query: String,
    gold: Vec<Vec<String>>,
    mode: Mode,
}

impl Data {
    /// The data in the known folders; each may be missing.
    pub(crate) fn read(folder: &Path) -> Outcome<Self> {
        let mut catalogs = Vec::new();
        for name in FOLDERS.iter().filter(|name| folder.join(name).is_dir()) {
            catalogs.push(catalog(&folder.join(name), name)?);
        }
        let real = catalogs.iter().find(|catalog| catalog.name == "real");
        if let (Some(real), true) = (real, folder.join(DISTRACTORS).is_file()) {
            let mut text = String::new();
            GzDecoder::new(File::open(folder.join(DISTRACTORS))?).read_to_string(&mut text)?;
            let mut tools = real.tools.clone();
            tools.extend(read_tools(&text)?.into_iter().map(|(_, server, tool)| (server, tool)));
            let sets = real.sets.clone();
            catalogs.push(Catalog { name: "real+distractors".to_owned(), tools, sets });
        }
        if catalogs.is_empty() {
            return Err(format!("{} holds none of {}", folder.display(), FOLDERS.join(", ")).into());
        }
        Ok(Self { catalogs })
    }

    /// The largest catalog, repeated under other servers' names until it has this many tools.
    pub(crate) fn of_size(&self, wanted: usize) -> Option<Catalog> {
        let largest = self.catalogs.iter().max_by_key(|catalog| catalog.tools.len())?;
        let again = (0..).flat_map(|time| {
            largest.tools.iter().map(move |(server, tool)| (format!("{server} {time}"), tool.clone()))
        });
        let name = format!("{}, repeated", largest.name);
        Some(Catalog { name, tools: again.take(wanted).collect(), sets: largest.sets.clone() })
    }
}

impl Catalog {
    pub(crate) fn borrowed(&self) -> Vec<(&str, &Tool)> {
        self.tools.iter().map(|(server, tool)| (server.as_str(), tool)).collect()
    }
}

fn catalog(folder: &Path, name: &str) -> Outcome<Catalog> {
    let lines = read_tools(&fs::read_to_string(folder.join("catalog.jsonl"))?)?;
    let numbers: HashMap<&str, u32> = lines.iter().zip(0..).map(|((id, ..), at)| (id.as_str(), at)).collect();
    let mut sets = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if let Some(set) = stem.strip_prefix("queries_") {
            let queries = read_queries(&fs::read_to_string(&path)?, &numbers)?;
            sets.push(Set { name: set.to_owned(), queries });
        }
    }
    sets.sort_by(|a, b| a.name.cmp(&b.name));
    let tools = lines.iter().map(|(_, server, tool)| (server.clone(), tool.clone())).collect();
    Ok(Catalog { name: name.to_owned(), tools, sets })
}

fn read_tools(text: &str) -> Outcome<Vec<(String, String, Tool)>> {
    let tool = |line: &str| -> Outcome<_> {
        let line: ToolLine<'_> = serde_json::from_str(line)?;
        let mut definition = format!("{{\"name\":{}", line.name);
        let members = [("description", line.description), ("inputSchema", line.input_schema)];
        for (key, value) in members.into_iter().filter_map(|(key, value)| Some((key, value?))) {
            write!(definition, ",\"{key}\":{value}")?;
        }
        definition.push('}');
        let tool = Tool::parse(Bytes::from(definition)).ok_or("a tool has no name")?;
        Ok((line.id, line.server, tool))
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(tool).collect()
}

fn read_queries(text: &str, numbers: &HashMap<&str, u32>) -> Outcome<Vec<Query>> {
    let query = |line: &str| -> Outcome<Query> {
        let line: QueryLine = serde_json::from_str(line)?;
        // A tool that is not in the catalog cannot be found: its group stays, and may be empty.
        let group =
            |ids: &Vec<String>| ids.iter().filter_map(|id| numbers.get(id.as_str()).copied()).collect();
        Ok(Query::new(&line.query, line.gold.iter().map(group).collect(), line.mode))
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(query).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_tools_and_queries() {
        let tools = read_tools(
            "{\"id\":\"a__x\",\"server\":\"a\",\"server_desc\":\"\",\"name\":\"x\",\"description\":\"d\",\"inputSchema\":{\"n\":1.0}}\n\n\
             {\"id\":\"a__y\",\"server\":\"a\",\"name\":\"y\"}\n",
        )
        .unwrap();
        assert_eq!(tools[0].2.definition, r#"{"name":"x","description":"d","inputSchema":{"n":1.0}}"#);
        let numbers = HashMap::from([("a__x", 0), ("a__y", 1)]);
        let line = r#"{"qid":"1","query":"q","gold":[["a__y","gone"],["gone"]],"mode":"any","meta":{}}"#;
        let expected = Query::new("q", vec![vec![1], vec![]], Mode::Any);
        assert_eq!(read_queries(line, &numbers).unwrap(), [expected]);
        assert!(read_queries("{}", &numbers).is_err());
    }
}
