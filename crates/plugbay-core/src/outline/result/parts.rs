//! The parts of a result that an outline replaces, and their readable contents.

use std::borrow::Cow;

use super::Readable;
use crate::{
    text::{string_start, string_text},
    tool_result::{Block, ToolResult, only_member},
    wire::{Span, skip},
};

/// A text of at most `SMALL` bytes stays, unless such texts have `MANY` bytes together.
const SMALL: usize = 500;
const MANY: usize = 4000;
/// How many bytes of a text are compared with `structuredContent`.
const COMPARED: usize = 64 << 10;

/// A result, and the choice of its texts that are replaced.
pub(super) struct Parts<'r, 'a> {
    pub(super) result: &'r ToolResult<'a>,
    /// For each block, whether it is a large text.
    pub(super) is_large: Vec<bool>,
}

impl<'r, 'a> Parts<'r, 'a> {
    /// `None` if it has `content` or `structuredContent` twice. Small texts stay, unless they are many: then all are replaced.
    pub(super) fn of(result: &'r ToolResult<'a>) -> Option<Self> {
        let length = |block: &Block| block.text.as_ref().map_or(0, Span::len);
        let small: usize = result.blocks.iter().map(length).filter(|length| *length <= SMALL).sum();
        let is_large = |block: &Block| block.text.is_some() && (small > MANY || length(block) > SMALL);
        let is_large = result.blocks.iter().map(is_large).collect();
        (!result.is_ambiguous()).then_some(Self { result, is_large })
    }

    fn texts(&self) -> impl Iterator<Item = &'a [u8]> {
        let json = self.result.json;
        let large = self.result.blocks.iter().zip(&self.is_large).filter(|(_, is_large)| **is_large);
        large.filter_map(move |(block, _)| Some(&json[block.text.clone()?]))
    }

    /// How many bytes could be outlined.
    pub(super) fn bytes(&self) -> usize {
        self.texts().map(<[u8]>::len).sum::<usize>() + self.result.structured().map_or(0, <[u8]>::len)
    }

    pub(super) fn readable(&self) -> Readable<'a> {
        let texts: Vec<&[u8]> = self.texts().collect();
        let text = |texts: &[&'a [u8]]| match texts {
            [] => None,
            [one] => Some(decoded(one)),
            many => Some(Cow::Owned(many.iter().map(|text| decoded(text)).collect::<Vec<_>>().join("\n"))),
        };
        let Some(structured) = self.result.structured() else {
            return Readable { structured: None, text: text(&texts) };
        };
        match same(&texts, structured) {
            Same::Member => Readable { structured: None, text: text(&texts) },
            Same::Whole => Readable { structured: Some(structured), text: None },
            Same::No => Readable { structured: Some(structured), text: text(&texts) },
        }
    }
}

/// How texts repeat `structuredContent`.
enum Same {
    /// The text is the only member of `structuredContent`.
    Member,
    /// The text is the JSON, or the texts are the elements of its only member.
    Whole,
    No,
}

fn same(texts: &[&[u8]], structured: &[u8]) -> Same {
    let only = only_member(structured);
    match (texts, only) {
        ([text], Some(value)) if structured[value.clone()] == **text => Same::Member,
        ([text], _) if is_same_json(text, structured) => Same::Whole,
        ([], _) => Same::Whole,
        (many, Some(value)) if many.len() > 1 && structured[value.start] == b'[' => {
            let passed = skip::elements(structured, value.start + 1, many.len() + 1);
            if passed.count == many.len() { Same::Whole } else { Same::No }
        }
        _ => Same::No,
    }
}

/// Whether a quoted text is this JSON, except for white space. Only the beginning is compared.
fn is_same_json(text: &[u8], structured: &[u8]) -> bool {
    let (text, _) = string_start(&text[1..text.len() - 1], COMPARED);
    let end = structured.len().min(COMPARED);
    let mut own = significant(text.as_bytes());
    let mut other = significant(&structured[..end]);
    loop {
        match (own.next(), other.next()) {
            (Some(one), Some(two)) if one == two => {}
            (Some(_), Some(_)) => return false,
            (None, None) => return true,
            // The longer one was cut.
            _ => return text.len() >= COMPARED / 2 || end == COMPARED,
        }
    }
}

/// The bytes of JSON without white space outside of strings.
fn significant(json: &[u8]) -> impl Iterator<Item = u8> {
    let (mut in_string, mut escaped) = (false, false);
    json.iter().copied().filter(move |byte| {
        let is_quote = *byte == b'"' && !escaped;
        escaped = in_string && *byte == b'\\' && !escaped;
        in_string ^= is_quote;
        in_string || is_quote || !byte.is_ascii_whitespace()
    })
}

fn decoded(quoted: &[u8]) -> Cow<'_, str> {
    string_text(&quoted[1..quoted.len() - 1])
}
