//! A tool in one line: `files__read(path: string, limit?: int) - Reads a file.`

mod kind;
mod node;
mod sentence;

use std::collections::HashSet;

pub use sentence::first_sentence;
pub(crate) use sentence::{READS, sentence_ends, without_marks};

use self::{
    kind::kind,
    node::{Document, Node},
};
use crate::{catalog::Tool, text::word, tokens::estimate};

/// What a line may cost, in tokens. Required parameters are shown beyond that, up to [`REQUIRED`].
pub const LINE: usize = 44;
/// What the required parameters of a line may cost, in tokens.
const REQUIRED: usize = 400;
/// A purpose is cut here, in characters.
const PURPOSE: usize = 90;
/// How many bytes of a description are searched for its first sentence.
const DESCRIPTION: usize = 4 << 10;
/// How many parameters are shown; the others are only counted.
const PARAMETERS: usize = 100;

/// What a model must know to call a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub name: String,
    /// The required ones first; otherwise in the order of the schema.
    pub parameters: Vec<Parameter>,
    /// How many more parameters there are.
    pub more: usize,
    /// The first sentence of its description.
    pub purpose: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    pub name: String,
    pub needed: bool,
    /// The kind as in TypeScript: `string`, `int[]`, `"a"|"b"`, `{x: number}`.
    pub kind: String,
}

impl Signature {
    /// `name` is the one that hosts use.
    pub fn of(name: &str, tool: &Tool) -> Self {
        let (parameters, more) = tool.raw("inputSchema").map(parameters).unwrap_or_default();
        let description = tool.description().unwrap_or_default();
        let purpose = purpose(&first_sentence(without_marks(beginning(&description))));
        Self { name: word(name).into_owned(), parameters, more, purpose }
    }

    /// One line of about `budget` tokens: what does not fit is counted, not shown.
    pub fn line(&self, budget: usize) -> String {
        let head = format!("{}(", self.name);
        let tail = if self.purpose.is_empty() { ")".to_owned() } else { format!(") - {}", self.purpose) };
        let mut room = budget.saturating_sub(estimate(&head) + estimate(&tail));
        let mut room_for_required = room.max(REQUIRED);
        let mut shown = Vec::new();
        for parameter in &self.parameters {
            let text = parameter.to_string();
            let cost = estimate(&text) + 1;
            if cost > if parameter.needed { room_for_required } else { room } {
                break; // a later one may fit, but the order says what matters
            }
            room = room.saturating_sub(cost);
            room_for_required = room_for_required.saturating_sub(cost);
            shown.push(text);
        }
        let hidden = self.parameters.len() + self.more - shown.len();
        if hidden > 0 {
            shown.push(format!("+{hidden}"));
        }
        format!("{head}{}{tail}", shown.join(", "))
    }
}

/// A sentence in the form for a line.
pub(crate) fn purpose(sentence: &str) -> String {
    shorten(without_marks(sentence), PURPOSE)
}

/// The sentences at the beginning of a tool's description; a line without an end mark counts as one.
pub(crate) fn sentences(tool: &Tool) -> Vec<String> {
    let description = tool.description().unwrap_or_default();
    sentence::all(beginning(&description))
}

fn beginning(description: &str) -> &str {
    &description[..description.floor_char_boundary(DESCRIPTION)]
}

impl std::fmt::Display for Signature {
    /// The complete signature.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.line(usize::MAX))
    }
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}: {}", self.name, if self.needed { "" } else { "?" }, self.kind)
    }
}

/// The first parameters, with the required ones first, and how many more there are.
fn parameters(schema: &[u8]) -> (Vec<Parameter>, usize) {
    let document = Document::new(schema);
    let schema = document.root().resolved();
    let needed: HashSet<String> = schema.texts("required").into_iter().collect();
    let mut all: Vec<(bool, String, Node<'_>)> = schema
        .members("properties")
        .into_iter()
        .map(|(name, own)| (needed.contains(&name), name, own))
        .collect();
    all.sort_by_key(|(needed, ..)| !needed);
    let more = all.len().saturating_sub(PARAMETERS);
    let parameter = |(needed, name, own): &(bool, String, Node<'_>)| {
        let kind = kind(own, *needed);
        Parameter { name: word(name).into_owned(), needed: *needed, kind }
    };
    (all.iter().take(PARAMETERS).map(parameter).collect(), more)
}

/// The beginning of a text, up to the end of a word.
fn shorten(text: &str, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    let end = text[..end].rfind(' ').unwrap_or(end);
    format!("{}…", text[..end].trim_end_matches([',', ';', ':', ' ']))
}

#[cfg(test)]
mod tests;
