//! The outline of a large result: a language model reads it instead, to decide what to ask for next.
//!
//! One pass over the text, bounded memory, and at most a given number of tokens. Text of the server stands on
//! its own line after a label, a path or a line number, so that it cannot pass for a line of plugbay.

mod excerpt;
mod json;
mod page;
mod result;
mod sample;
#[cfg(test)]
mod tests;
mod text;

pub use excerpt::{Excerpt, grep, lines, page};
use page::Page;
pub use result::{OutputSchema, Readable, Replacement, readable, replace};

use crate::{shape::Shape, tokens::estimate};

/// The tokens of a text up to this length are counted; of a longer one, only samples are.
const COUNTED: usize = 64 << 10;
const SAMPLES: usize = 16;

/// The tokens of an outline, unless the caller knows better.
pub const OUTLINE_TOKENS: usize = 400;

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Json,
    JsonLines,
    Markdown,
    Html,
    Table,
    Diff,
    Listing,
    Text,
}

/// A text for a model instead of a larger one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    pub kind: Kind,
    /// Lines, without a line break at the end.
    pub text: String,
    /// Roughly how many tokens the whole has.
    pub whole_tokens: usize,
    /// The shape, if it is JSON.
    pub shape: Option<Shape>,
}

/// Outlines a text in at most `tokens` tokens: JSON, JSON lines or text.
pub fn outline(text: &str, tokens: usize) -> Outline {
    let whole_tokens = about_tokens(text);
    let mut page = Page::new(tokens);
    let (kind, shape) = write(&mut page, text, whole_tokens);
    Outline { kind, text: page.finish(), whole_tokens, shape }
}

fn write(page: &mut Page, whole: &str, whole_tokens: usize) -> (Kind, Option<Shape>) {
    let size = page::size(whole.len(), whole_tokens);
    if let Some((kind, profile)) = json::read(whole) {
        json::write(page, whole, kind, &profile, &size);
        return (kind, Some(profile.shape()));
    }
    (text::write(page, whole, &size), None)
}

/// Roughly how many tokens a text has; of a long one, only samples are counted.
pub fn about_tokens(text: &str) -> usize {
    if text.len() <= COUNTED {
        return estimate(text);
    }
    let length = COUNTED / SAMPLES;
    let sample = |at: usize| {
        let start = text.floor_char_boundary((text.len() - length) / (SAMPLES - 1) * at);
        &text[start..text.floor_char_boundary(start + length)]
    };
    let (mut bytes, mut tokens) = (0, 0);
    for part in (0..SAMPLES).map(sample) {
        bytes += part.len();
        tokens += estimate(part);
    }
    text.len() / 64 * tokens / (bytes / 64).max(1)
}
