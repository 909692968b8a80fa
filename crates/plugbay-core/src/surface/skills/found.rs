//! Skills found by what they are for. They have an index of their own, so that no tool ranks lower for them.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::json;

use super::{super::instructions::one_line, Skill, Skills};
use crate::{
    catalog::Tool,
    name::ServerName,
    search::{EmbeddingTable, Engine},
    text::word,
};

/// How many skills are shown beside the tools that a search found.
const MOST: usize = 2;
/// How many characters of a description are shown.
const PURPOSE: usize = 160;

/// The index of all skills, made when first needed. It follows from the skills, so comparisons ignore it.
#[derive(Debug, Clone, Default)]
pub(super) struct EngineCell(Arc<OnceLock<Engine>>);

impl PartialEq for EngineCell {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for EngineCell {}

/// Up to this many skills are indexed in a moment.
const FEW: usize = 100;

impl Skills {
    /// Makes the index, if nobody has.
    pub fn prepare(&self, table: impl FnOnce() -> Option<Arc<EmbeddingTable>>) {
        if !self.shown.is_empty() {
            self.engine(table);
        }
    }

    /// Whether an answer comes without a long wait.
    pub fn is_quick(&self) -> bool {
        self.shown.len() <= FEW || self.engine.0.get().is_some()
    }

    fn engine(&self, table: impl FnOnce() -> Option<Arc<EmbeddingTable>>) -> &Engine {
        self.engine.0.get_or_init(|| build(&self.shown, table()))
    }

    /// The skills that a query clearly means, the best first; only those of `server`, if it is given.
    pub fn found(
        &self,
        query: &str,
        server: Option<&ServerName>,
        table: impl FnOnce() -> Option<Arc<EmbeddingTable>>,
    ) -> Vec<&Skill> {
        if self.shown.is_empty() {
            return Vec::new();
        }
        let hits = self.engine(table).search_meant(query, self.shown.len()).into_iter();
        let fitting = hits.map(|hit| &self.shown[hit.tool as usize]);
        fitting.filter(|skill| server.is_none_or(|server| skill.server == *server)).take(MOST).collect()
    }
}

impl Skill {
    /// The skill's line among the hits of a search. `reader` names the tool that reads it by its URI.
    pub fn line(&self, reader: &str) -> String {
        let Self { name, server, description, uri, .. } = self;
        // On one line, whatever its server wrote.
        let purpose: String = one_line(description).chars().take(PURPOSE).collect();
        let (name, uri) = (word(name), word(uri));
        format!("skill {name} of {server} - {purpose} (read it: {reader} {uri})")
    }
}

/// To the engine a skill is a tool without parameters.
fn build(skills: &[Skill], table: Option<Arc<EmbeddingTable>>) -> Engine {
    let tool = |skill: &Skill| {
        // A name that is missing must not shift the numbers of the others.
        let name = if skill.name.is_empty() { &skill.uri } else { &skill.name };
        let definition = json!({ "name": name, "description": skill.description }).to_string();
        Tool::parse(Bytes::from(definition)).expect("a tool has a name")
    };
    let tools: Vec<Tool> = skills.iter().map(tool).collect();
    let tools = skills.iter().zip(&tools).map(|(skill, tool)| (skill.server.as_str(), tool));
    Engine::build(&tools.collect::<Vec<_>>(), table)
}
