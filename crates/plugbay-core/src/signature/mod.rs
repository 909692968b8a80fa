//! A tool in one line: `files__read(path: string, limit?: int) - Reads a file.`

mod kind;
mod node;
mod sentence;
mod steps;

use std::{borrow::Cow, collections::HashSet};

pub use sentence::first_sentence;
pub(crate) use sentence::{READS, sentence_ends, without_marks};
pub use steps::Steps;

use self::{
    kind::kind,
    node::{Document, Node},
    steps::StepsLeft,
};
use crate::{catalog::Tool, text::word, tokens::estimate};

/// What a line may cost, in tokens. Required parameters are shown beyond that, up to [`REQUIRED`].
pub const LINE: usize = 44;
/// What the required parameters of a line may cost, in tokens.
const REQUIRED: usize = 400;
/// A purpose is cut here, in characters.
const PURPOSE: usize = 90;
/// How many bytes of a description are searched for its first sentence, and how many sentences are compared
/// with those of other tools.
const DESCRIPTION: usize = 4 << 10;
const SENTENCES: usize = 64;
/// How many parameters are shown; the others are only counted.
const PARAMETERS: usize = 100;

/// What a model must know to call a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    pub name: String,
    /// The required ones first; otherwise in the order of the schema.
    pub parameters: Vec<Parameter>,
    /// How many more parameters there are; `None` if nobody has counted them, because there are too many.
    pub more: Option<usize>,
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
    /// The complete signature. `name` is the one that hosts use.
    pub fn of(name: &str, tool: &Tool) -> Self {
        Self::read(name, tool, (&StepsLeft::default(), Room::of(usize::MAX)))
    }

    /// The signature for a line of a reply: parameters that do not fit into [`LINE`] are only counted.
    pub fn for_line(name: &str, tool: &Tool, steps: &mut Steps) -> Self {
        steps.share(|steps| Self::read(name, tool, (steps, Room::of(LINE))))
    }

    fn read(name: &str, tool: &Tool, within: (&StepsLeft, Room)) -> Self {
        let schema = tool.raw("inputSchema");
        let (parameters, more) =
            schema.map_or_else(|| (Vec::new(), Some(0)), |schema| parameters(schema, within));
        let purpose = purpose(&first_sentence(without_marks(&beginning(tool))));
        Self { name: word(name).into_owned(), parameters, more, purpose }
    }

    /// One line of about `budget` tokens: what does not fit is counted, not shown.
    pub fn line(&self, budget: usize) -> String {
        let head = format!("{}(", self.name);
        let tail = if self.purpose.is_empty() { ")".to_owned() } else { format!(") - {}", self.purpose) };
        let mut room = Room::of(budget.saturating_sub(estimate(&head) + estimate(&tail)));
        // A later one may fit, but the order says what matters.
        let texts = self.parameters.iter().map(|parameter| (parameter.needed, parameter.to_string()));
        let fitting = texts.take_while(|(needed, text)| room.take(*needed, text));
        let mut shown: Vec<String> = fitting.map(|(_, text)| text).collect();
        match self.more.map(|more| self.parameters.len() + more - shown.len()) {
            Some(0) => {}
            Some(hidden) => shown.push(format!("+{hidden}")),
            None => shown.push("…".to_owned()),
        }
        format!("{head}{}{tail}", shown.join(", "))
    }
}

/// The tokens that further parameters of a line may cost.
struct Room {
    optional: usize,
    required: usize,
}

impl Room {
    fn of(tokens: usize) -> Self {
        Self { optional: tokens, required: tokens.max(REQUIRED) }
    }

    /// Takes the tokens of a parameter, if there are as many.
    fn take(&mut self, needed: bool, parameter: &str) -> bool {
        let cost = estimate(parameter) + 1;
        let fits = cost <= if needed { self.required } else { self.optional };
        if fits {
            self.optional = self.optional.saturating_sub(cost);
            self.required = self.required.saturating_sub(cost);
        }
        fits
    }
}

/// A sentence in the form for a line.
pub(crate) fn purpose(sentence: &str) -> String {
    shorten(without_marks(sentence), PURPOSE)
}

/// The first sentences of a tool's description; a line without an end mark counts as one.
pub(crate) fn sentences(tool: &Tool) -> Vec<String> {
    sentence::first(&beginning(tool), SENTENCES)
}

fn beginning(tool: &Tool) -> String {
    tool.description_start(DESCRIPTION).unwrap_or_default().0
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

/// The first parameters, with the required ones first, and how many more there are. Those for which there is
/// no room are not read.
fn parameters(schema: &[u8], (steps, mut room): (&StepsLeft, Room)) -> (Vec<Parameter>, Option<usize>) {
    let document = Document::new(schema, steps);
    let schema = document.root().schema();
    let needed: HashSet<Cow<'_, str>> =
        schema.list("required").filter_map(|name| name.text(usize::MAX)).collect();
    let (mut count, mut required, mut optional) = (0, Vec::new(), Vec::new());
    for (name, own) in schema.members("properties") {
        count += 1;
        let found = if needed.contains(&name) { &mut required } else { &mut optional };
        if found.len() < PARAMETERS {
            found.push((name, own));
        }
    }
    let is_whole = !steps.are_over();
    let required = required.iter().map(|parameter| (true, parameter));
    let optional = optional.iter().map(|parameter| (false, parameter));
    let read = |(needed, (name, own)): (bool, &(Cow<'_, str>, Node<'_>))| {
        let parameter = Parameter { name: word(name).into_owned(), needed, kind: kind(own, needed) };
        room.take(needed, &parameter.to_string()).then_some(parameter)
    };
    let shown: Vec<Parameter> = required.chain(optional).take(PARAMETERS).map_while(read).collect();
    let more = is_whole.then(|| count - shown.len());
    (shown, more)
}

/// The beginning of a text, up to the end of a word.
fn shorten(text: &str, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    let end = text[..end].rfind(' ').unwrap_or(end);
    format!("{}…", text[..end].trim_end_matches([',', ';', ':', ' ']))
}

#[cfg(test)]
mod tests;
