//! The parts of a `tools/call` result, found in one pass.

use std::borrow::Cow;

use super::Readable;
use crate::{
    text::{string_start, string_text},
    wire::{Cursor, Member, ScanError, Span, Walk, skip, string_value},
};

/// A text of at most so many bytes stays, unless there are many.
const SMALL: usize = 500;
const MANY: usize = 4000;
/// So many bytes of a text are compared with `structuredContent`.
const COMPARED: usize = 64 << 10;

pub(super) struct Parts<'a> {
    pub(super) result: &'a [u8],
    /// In order. A key that comes twice stays twice, as it came.
    pub(super) members: Vec<Member<'a>>,
    pub(super) blocks: Vec<Block>,
    pub(super) has_content: bool,
    pub(super) is_error: bool,
    structured: Option<Span>,
}

/// A content block.
pub(super) struct Block {
    pub(super) span: Span,
    /// The text of a text block, with its quotes.
    pub(super) text: Option<Span>,
    /// A text that is replaced.
    pub(super) is_large: bool,
}

impl<'a> Parts<'a> {
    /// `None` if it is no object, or has `content` twice.
    pub(super) fn of(result: &'a [u8]) -> Option<Self> {
        let mut parts = Self {
            result,
            members: Vec::new(),
            blocks: Vec::new(),
            has_content: false,
            is_error: false,
            structured: None,
        };
        parts.read().ok()?;
        let twice = |key: &str| parts.members.iter().filter(|member| member.key == key).count() > 1;
        if twice("content") || twice("structuredContent") {
            return None;
        }
        parts.mark_large();
        Some(parts)
    }

    fn read(&mut self) -> Result<(), ScanError> {
        let mut cursor = Cursor::new(self.result, 0);
        cursor.peek()?;
        let mut walk = Walk::open(&mut cursor, b'{', 0)?;
        while walk.advance(&mut cursor)? {
            let (key_span, _) = cursor.string()?;
            cursor.expect(b':')?;
            let key = string_value(&self.result[key_span.clone()]).unwrap_or_default();
            let first = cursor.peek()?;
            let start = cursor.at();
            let value = if key == "content" && first == b'[' {
                self.has_content = true;
                self.content(&mut cursor)?;
                start..cursor.at()
            } else {
                checked_value(self.result, &mut cursor, 1)?
            };
            match key.as_ref() {
                "structuredContent" if first == b'{' => self.structured = Some(value.clone()),
                "isError" => self.is_error = self.result[value.clone()] == *b"true",
                _ => {}
            }
            self.members.push(Member { key, key_span, value });
        }
        cursor.end()
    }

    fn content(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ScanError> {
        let mut walk = Walk::open(cursor, b'[', 1)?;
        while walk.advance(cursor)? {
            let first = cursor.peek()?;
            let start = cursor.at();
            let text = if first == b'{' { self.block(cursor)? } else { cursor.value(2).map(|_| None)? };
            self.blocks.push(Block { span: start..cursor.at(), text, is_large: false });
        }
        Ok(())
    }

    /// The text of a text block.
    fn block(&self, cursor: &mut Cursor<'_>) -> Result<Option<Span>, ScanError> {
        let (mut is_text, mut text) = (false, None);
        let mut walk = Walk::open(cursor, b'{', 2)?;
        while walk.advance(cursor)? {
            let (key, _) = cursor.string()?;
            cursor.expect(b':')?;
            let value = checked_value(self.result, cursor, 3)?;
            match &self.result[key] {
                b"\"type\"" => is_text = self.result[value] == *b"\"text\"",
                b"\"text\"" if self.result[value.start] == b'"' => text = Some(value),
                _ => {}
            }
        }
        Ok(text.filter(|_| is_text))
    }

    /// Small texts stay, unless they are many: then all are replaced.
    fn mark_large(&mut self) {
        let length = |block: &Block| block.text.as_ref().map_or(0, Span::len);
        let small: usize = self.blocks.iter().map(length).filter(|length| *length <= SMALL).sum();
        for block in &mut self.blocks {
            block.is_large = block.text.is_some() && (small > MANY || length(block) > SMALL);
        }
    }

    pub(super) fn structured(&self) -> Option<&'a [u8]> {
        self.structured.clone().map(|span| &self.result[span])
    }

    fn texts(&self) -> impl Iterator<Item = &'a [u8]> {
        let large = self.blocks.iter().filter(|block| block.is_large);
        large.filter_map(|block| Some(&self.result[block.text.clone()?]))
    }

    /// Bytes of all that could be outlined.
    pub(super) fn bytes(&self) -> usize {
        self.texts().map(<[u8]>::len).sum::<usize>() + self.structured().map_or(0, <[u8]>::len)
    }

    pub(super) fn readable(&self) -> Readable<'a> {
        let texts: Vec<&[u8]> = self.texts().collect();
        let text = |texts: &[&'a [u8]]| match texts {
            [] => None,
            [one] => Some(decoded(one)),
            many => Some(Cow::Owned(many.iter().map(|text| decoded(text)).collect::<Vec<_>>().join("\n"))),
        };
        let Some(structured) = self.structured() else {
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
    /// The only member of it is the text.
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

/// A value of a message that was checked before: what is inside need not be looked at again.
fn checked_value(json: &[u8], cursor: &mut Cursor<'_>, depth: u32) -> Result<Span, ScanError> {
    let first = cursor.peek()?;
    let start = cursor.at();
    let end = match first {
        b'"' => skip::string_end(json, start).ok_or(ScanError::Truncated)?,
        b'{' | b'[' => skip::value_end(json, start),
        _ => return cursor.value(depth),
    };
    cursor.move_to(end);
    Ok(start..end)
}

fn only_member(object: &[u8]) -> Option<Span> {
    let mut cursor = Cursor::new(object, 0);
    let mut walk = Walk::open(&mut cursor, b'{', 0).ok()?;
    if !walk.advance(&mut cursor).ok()? {
        return None;
    }
    cursor.string().ok()?;
    cursor.expect(b':').ok()?;
    let value = checked_value(object, &mut cursor, 1).ok()?;
    (cursor.peek() == Ok(b'}')).then_some(value)
}

/// Whether a quoted text is this JSON, but for white space; told from its beginning.
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
