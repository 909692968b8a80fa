//! The vocabulary that all servers of the matrix share, and what hosts have done with it.

use rmcp::model::{PaginatedRequestParams, Prompt, Resource, ResourceTemplate, Tool};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Era, Trouble};

const TEXT: &str = include_str!("../../../vocabulary.json");
const PAGE: usize = 2;

#[derive(Deserialize)]
pub(super) struct Vocabulary {
    pub(super) tools: Pages<Tool>,
    pub(super) resources: Pages<Resource>,
    pub(super) templates: Pages<ResourceTemplate>,
    pub(super) prompts: Pages<Prompt>,
    grown: Grown,
    words: Vec<String>,
    pub(super) pixel: String,
    /// How often the watched resource has been changed.
    #[serde(skip)]
    pub(super) touched: usize,
}

/// What comes to the lists when they grow.
#[derive(Deserialize)]
struct Grown {
    tools: Tool,
    resources: Resource,
    prompts: Prompt,
}

impl Vocabulary {
    pub(super) fn of(name: &str, era: Era) -> Result<Self, Trouble> {
        let mut vocabulary: Self = serde_json::from_str(&TEXT.replace("SERVER", name))?;
        if matches!(era, Era::Legacy) {
            // The SDK has the tasks of the modern era alone.
            vocabulary.tools.entries.retain(|tool| tool.name != "work");
        }
        Ok(vocabulary)
    }

    pub(super) fn grow(&mut self) {
        self.tools.entries.push(self.grown.tools.clone());
        self.resources.entries.push(self.grown.resources.clone());
        self.prompts.entries.push(self.grown.prompts.clone());
    }

    pub(super) fn words_from(&self, start: &str) -> Vec<String> {
        self.words.iter().filter(|word| word.starts_with(start)).cloned().collect()
    }

    /// Where each list was asked to go on.
    pub(super) fn cursors(&self) -> Value {
        json!({
            "tools": self.tools.cursors,
            "resources": self.resources.cursors,
            "templates": self.templates.cursors,
            "prompts": self.prompts.cursors,
        })
    }
}

/// A list that is given out in pages and remembers the cursors that came back.
#[derive(Deserialize)]
#[serde(from = "Vec<T>")]
pub(super) struct Pages<T> {
    entries: Vec<T>,
    cursors: Vec<String>,
}

impl<T> From<Vec<T>> for Pages<T> {
    fn from(entries: Vec<T>) -> Self {
        Self { entries, cursors: Vec::new() }
    }
}

impl<T: Clone> Pages<T> {
    /// The wanted page, and the cursor of the next if there is one.
    pub(super) fn page(&mut self, asked: Option<PaginatedRequestParams>) -> (Vec<T>, Option<String>) {
        let cursor = asked.and_then(|asked| asked.cursor);
        let start = cursor.as_ref().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let next = start + PAGE;
        self.cursors.extend(cursor.filter(|cursor| !self.cursors.contains(cursor)));
        let entries = self.entries.iter().skip(start).take(PAGE).cloned().collect();
        (entries, (next < self.entries.len()).then(|| next.to_string()))
    }
}
