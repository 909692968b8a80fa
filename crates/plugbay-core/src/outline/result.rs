//! A large `tools/call` result rewritten: its text becomes an outline, everything else keeps its bytes.
//!
//! Images, audio, resource links, embedded resources, small texts, `_meta` and unknown members stay, in order.
//! An error keeps its message. See [`OutputSchema`] for `structuredContent`.

mod parts;

use std::borrow::Cow;

use parts::Parts;

use super::{about_tokens, outline, page, sample};
use crate::{
    shape::Shape,
    tokens::estimate,
    tool_result::{Block, ToolResult},
};

/// How many elements of an array and characters of a string a shortened `structuredContent` keeps.
const SHORT: (usize, usize) = (3, 200);

/// When and how a result is replaced.
#[derive(Clone, Copy)]
pub struct Replacement<'a> {
    /// The tokens that a result may have without being replaced.
    pub threshold: usize,
    /// Tokens of the outline, with its closing line.
    pub outline: usize,
    /// Tokens of an error's message that stay.
    pub error: usize,
    /// The last line: the handle, and how to read on.
    pub closing: &'a str,
    pub schema: OutputSchema<'a>,
}

/// Whether `structuredContent` is checked. If the tool has an `outputSchema`, a host may refuse a result
/// whose `structuredContent` is missing or does not match.
#[derive(Clone, Copy)]
pub enum OutputSchema<'a> {
    /// The tool has none: `structuredContent` is left out.
    None,
    /// The host checks it, or may: `structuredContent` stays whole.
    Kept,
    /// `structuredContent` is shortened if by this check it still matches the schema; else it stays whole.
    Shortened(&'a dyn Fn(&[u8]) -> bool),
}

/// A result that was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    pub result: Vec<u8>,
    /// Roughly how many tokens there were and are: of the text, and of `structuredContent` if it says
    /// something else.
    pub tokens_before: usize,
    pub tokens_after: usize,
    /// The shape of the result, if it is JSON.
    pub shape: Option<Shape>,
}

/// The readable parts of a result: `jq` takes `structured`, or else the text as JSON or JSON lines; lines,
/// pages and `grep` take the text, or else `structured`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable<'a> {
    /// `structuredContent`, unless the text says the same in a simpler form.
    pub structured: Option<&'a [u8]>,
    /// The large texts, each beginning on a new line, unless `structuredContent` says the same.
    pub text: Option<Cow<'a, str>>,
}

/// The readable parts of a result. The outline's paths and line numbers refer to them.
pub fn readable<'a>(result: &ToolResult<'a>) -> Option<Readable<'a>> {
    Parts::of(result).map(|parts| parts.readable())
}

/// The result with an outline, or with the head and tail of an error; `None` if it is small enough.
pub fn replace(result: &ToolResult<'_>, how: &Replacement<'_>) -> Option<Replaced> {
    let parts = Parts::of(result)?;
    // A text has at most as many tokens as bytes.
    if parts.bytes() <= how.threshold {
        return None;
    }
    let readable = parts.readable();
    let structured = readable.structured.map(String::from_utf8_lossy);
    let text_tokens = readable.text.as_deref().map_or(0, about_tokens);
    let tokens_before = text_tokens + structured.as_deref().map_or(0, about_tokens);
    if tokens_before <= how.threshold {
        return None;
    }
    let (text, shape) = if result.is_error {
        (cut_error(readable.text.as_deref().or(structured.as_deref())?, how)?, None)
    } else {
        outlined(structured.as_deref(), readable.text.as_deref(), how)
    };
    let kept = kept_structure(result, how.schema);
    let text = match &kept {
        Some(Cow::Owned(_)) => {
            format!("structuredContent has the first {} elements of each array\n{text}", SHORT.0)
        }
        _ => text,
    };
    let tokens_after = estimate(&text);
    let result = parts.written(&text, kept.as_deref());
    Some(Replaced { result, tokens_before, tokens_after, shape })
}

/// The outline of the structured content, the text or both, and the closing line.
fn outlined(structured: Option<&str>, text: Option<&str>, how: &Replacement<'_>) -> (String, Option<Shape>) {
    let room = how.outline.saturating_sub(page::cost(how.closing));
    let (mut out, mut shape) = (String::new(), None);
    let both = structured.is_some() && text.is_some();
    for (label, part) in [("structuredContent", structured), ("text", text)] {
        let Some(part) = part else { continue };
        let label = if both { format!("{label}: ") } else { String::new() };
        let room = if both { (room / 2).saturating_sub(page::cost(&label)) } else { room };
        let outline = outline(part, room);
        out.push_str(&label);
        out.push_str(&outline.text);
        out.push('\n');
        shape = shape.or(outline.shape);
    }
    out.push_str(how.closing);
    (out, shape)
}

/// Head and tail of a message, in whole lines if these are not much shorter; `None` if it is short enough.
fn cut_error(message: &str, how: &Replacement<'_>) -> Option<String> {
    let tokens = about_tokens(message);
    if tokens <= how.error {
        return None;
    }
    let head = page::prefix(message, how.error * 2 / 3);
    let tail = page::suffix(&message[head.len()..], how.error / 3);
    let left = tokens.saturating_sub(estimate(head) + estimate(tail));
    let gap = format!("… about {} tokens of this error are left out …", page::count(left));
    Some(format!("{}\n{gap}\n{}\n{}", head.trim_end_matches('\n'), tail.trim_matches('\n'), how.closing))
}

/// `structuredContent` as it goes to the host.
fn kept_structure<'a>(result: &ToolResult<'a>, schema: OutputSchema<'_>) -> Option<Cow<'a, [u8]>> {
    let whole = result.structured()?;
    match schema {
        OutputSchema::None => None,
        OutputSchema::Kept => Some(Cow::Borrowed(whole)),
        OutputSchema::Shortened(matches) => {
            let short = sample::shortened(whole, SHORT.0, SHORT.1).map(String::into_bytes);
            let short = short.filter(|short| short.len() < whole.len() && matches(short));
            Some(short.map_or(Cow::Borrowed(whole), Cow::Owned))
        }
    }
}

impl Block {
    /// The block's bytes with another text.
    fn with_text(&self, result: &[u8], text: &str) -> Vec<u8> {
        let Some(span) = &self.text else { return result[self.span.clone()].to_vec() };
        let quoted = serde_json::Value::from(text).to_string();
        [&result[self.span.start..span.start], quoted.as_bytes(), &result[span.end..self.span.end]].concat()
    }
}

impl Parts<'_, '_> {
    /// The same result with one text instead of all large ones, and with this `structuredContent`.
    fn written(&self, text: &str, structured: Option<&[u8]>) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len() + 1024);
        out.push(b'{');
        for member in &self.result.members {
            let value = match member.key.as_ref() {
                "content" => Cow::Owned(self.new_content(text)),
                "structuredContent" => match structured {
                    Some(structured) => Cow::Borrowed(structured),
                    None => continue,
                },
                _ => Cow::Borrowed(&self.result.json[member.value.clone()]),
            };
            if out.len() > 1 {
                out.push(b',');
            }
            out.extend_from_slice(&self.result.json[member.key_span.clone()]);
            out.push(b':');
            out.extend_from_slice(&value);
        }
        if !self.result.has_content() {
            out.extend_from_slice(if out.len() > 1 { b",\"content\":" } else { b"\"content\":" });
            out.extend_from_slice(&self.new_content(text));
        }
        out.push(b'}');
        out
    }

    /// The blocks, with one text in place of all large ones.
    fn new_content(&self, text: &str) -> Vec<u8> {
        let mut blocks: Vec<Cow<'_, [u8]>> = Vec::new();
        let mut is_written = false;
        for (block, is_large) in self.result.blocks.iter().zip(&self.is_large) {
            if !is_large {
                blocks.push(Cow::Borrowed(&self.result.json[block.span.clone()]));
            } else if !is_written {
                is_written = true;
                blocks.push(Cow::Owned(block.with_text(self.result.json, text)));
            }
        }
        if !is_written {
            let text = serde_json::Value::from(text);
            blocks.push(Cow::Owned(format!("{{\"type\":\"text\",\"text\":{text}}}").into_bytes()));
        }
        [b"[".as_slice(), &blocks.join(b",".as_slice()), b"]"].concat()
    }
}
