//! The refusal of arguments that cannot be repaired: the place, the missed part of the schema, an example.

use std::fmt::Write;

use serde_json::Value;

use super::{example::example, schema::Schema};
use crate::text::escaped_json;

/// The longest example that is shown, in bytes.
const EXAMPLE: usize = 4 << 10;
/// How much of a schema is shown, in characters.
const FRAGMENT: usize = 400;
/// How many problems are explained, and how many more are only named.
const EXPLAINED: usize = 5;
const NAMED: usize = 20;

/// Why arguments were not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub problems: Vec<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `filter.tags[0]`; empty for the arguments as a whole.
    pub place: String,
    /// A sentence without its end, on one line.
    pub message: String,
    /// The part of the schema that was missed.
    pub fragment: Option<String>,
    /// A value that would fit there.
    pub example: Option<String>,
}

impl Refusal {
    pub(super) fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }
}

impl Problem {
    pub(super) fn root(message: &str) -> Self {
        Self { place: String::new(), message: message.to_owned(), fragment: None, example: None }
    }

    pub(super) fn of(schema: &Schema, at: &Value, place: &str, message: impl Into<String>) -> Self {
        let (place, message) = (place.to_owned(), message.into());
        if !schema.explain() {
            return Self { place, message, fragment: None, example: None };
        }
        Self {
            place,
            message,
            fragment: Some(schema.whole(at)).filter(|at| at.is_object()).map(|at| cut(&at.to_string())),
            example: example(schema, at)
                .map(|example| escaped_json(&example.to_string()).into_owned())
                .filter(|text| text.len() <= EXAMPLE),
        }
    }

    /// Whether it lies within the value at `place`.
    pub(super) fn is_within(&self, place: &str) -> bool {
        self.place.len() > place.len()
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for (at, problem) in self.problems.iter().take(EXPLAINED + NAMED).enumerate() {
            text.push_str(&problem.message);
            if let Some(fragment) = problem.fragment.as_ref().filter(|_| at < EXPLAINED) {
                let _ = write!(text, "; schema: {fragment}");
            }
            if let Some(example) = problem.example.as_ref().filter(|_| at < EXPLAINED) {
                let _ = write!(text, "; for example: {example}");
            }
            text.push('\n');
        }
        if let more @ 1.. = self.problems.len().saturating_sub(EXPLAINED + NAMED) {
            let _ = writeln!(text, "and {more} more");
        }
        f.write_str(text.trim_end())
    }
}

impl std::error::Error for Refusal {}

/// The beginning of JSON, on one line.
fn cut(text: &str) -> String {
    match text.char_indices().nth(FRAGMENT) {
        Some((end, _)) => format!("{}…", escaped_json(&text[..end])),
        None => escaped_json(text).into_owned(),
    }
}
