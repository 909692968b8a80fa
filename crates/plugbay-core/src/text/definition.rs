//! Definitions without hidden characters: other bytes of the JSON stay as they came.

use std::borrow::Cow;

use bytes::{BufMut, Bytes, BytesMut};
use memchr::{memchr, memchr_iter};

use super::{HiddenKinds, is_hidden_break, kind, marks};
use crate::wire::{Cursor, ScanError, Span, Unescaped, Walk, string_value};

/// A definition without hidden characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleaned {
    /// `None`: nothing had to be taken out.
    pub definition: Option<Bytes>,
    /// The kinds of characters that were taken out.
    pub stripped: HiddenKinds,
    /// The kinds of those that stay, because a call must repeat them: in keys, and in values that a schema compares with.
    pub kept: HiddenKinds,
}

/// Whether JSON contains nothing that could be hidden: no character outside of ASCII, no escape of one, and
/// no escape of a control character other than a line break or tab.
pub fn is_plain(json: &[u8]) -> bool {
    let escaped = |at: usize| matches!(json.get(at + 1), Some(b'u' | b'b' | b'f' | b'r'));
    json.is_ascii() && memchr(0x7f, json).is_none() && !memchr_iter(b'\\', json).any(escaped)
}

/// Takes hidden characters out of the texts of a JSON value; line breaks among them become blanks. Keys stay,
/// and so do the top-level members `identity`, by which the item is requested, and the values that arguments
/// are compared with.
pub fn clean_definition(json: &Bytes, identity: &[&str]) -> Cleaned {
    let mut edits = Edits::default();
    if !is_plain(json) {
        let _ = edits.value(&mut Cursor::new(json, 0), json, Place::Top(identity), 0);
    }
    let Edits { cuts, stripped, kept } = edits;
    let definition = (!cuts.is_empty()).then(|| {
        let (mut out, mut done) = (BytesMut::with_capacity(json.len()), 0);
        for Cut { span, is_break } in cuts {
            out.put_slice(&json[done..span.start]);
            out.put_slice(if is_break { b" " } else { b"" });
            done = span.end;
        }
        out.put_slice(&json[done..]);
        out.freeze()
    });
    Cleaned { definition, stripped, kept }
}

/// Where a value stands.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// The definition itself, with the members that stay.
    Top(&'a [&'a str]),
    /// Text for people and models.
    Text,
    /// The arguments of a prompt, which have names.
    Arguments,
    Schema,
    /// Schemas by names that are the server's own.
    SchemasByName,
    /// Repeated by calls, or referred to.
    Kept,
}

impl Place<'_> {
    fn of_member(self, key: &str) -> Self {
        match (self, key) {
            (Self::Top(identity), key) if identity.contains(&key) => Self::Kept,
            (Self::Top(_), "inputSchema" | "outputSchema") | (Self::SchemasByName, _) => Self::Schema,
            (Self::Top(_), "arguments") => Self::Arguments,
            (Self::Kept, _)
            | (Self::Arguments, "name")
            | (
                Self::Schema,
                "const" | "enum" | "default" | "pattern" | "required" | "dependentRequired" | "dependencies"
                | "$ref" | "$id" | "$anchor" | "$dynamicRef" | "$dynamicAnchor",
            ) => Self::Kept,
            (Self::Top(_) | Self::Text | Self::Arguments, _) => Self::Text,
            (
                Self::Schema,
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            ) => Self::SchemasByName,
            (Self::Schema, _) => Self::Schema,
        }
    }
}

/// A place to cut out.
struct Cut {
    span: Span,
    /// It is a line break: a blank takes its place.
    is_break: bool,
}

#[derive(Default)]
struct Edits {
    /// The places to cut out, in the order of the text.
    cuts: Vec<Cut>,
    stripped: HiddenKinds,
    kept: HiddenKinds,
}

impl Edits {
    /// Cleans one value in one pass. Invalid JSON ends the pass; everything before is cleaned.
    fn value(
        &mut self,
        cursor: &mut Cursor<'_>,
        json: &[u8],
        place: Place<'_>,
        depth: u32,
    ) -> Result<(), ScanError> {
        match cursor.peek()? {
            b'"' => {
                let (span, _) = cursor.string()?;
                self.string(json, &span, matches!(place, Place::Kept));
            }
            b'{' => {
                let mut members = Walk::open(cursor, b'{', depth)?;
                while members.advance(cursor)? {
                    let (span, _) = cursor.string()?;
                    self.string(json, &span, true);
                    let key = string_value(&json[span]).unwrap_or_default();
                    cursor.expect(b':')?;
                    self.value(cursor, json, place.of_member(&key), depth + 1)?;
                }
            }
            b'[' => {
                let mut elements = Walk::open(cursor, b'[', depth)?;
                let inner = if let Place::Top(_) = place { Place::Text } else { place };
                while elements.advance(cursor)? {
                    self.value(cursor, json, inner, depth + 1)?;
                }
            }
            _ => _ = cursor.value(depth)?,
        }
        Ok(())
    }

    /// Cleans a string. `keeps`: hidden characters are only noted, and stay.
    fn string(&mut self, json: &[u8], span: &Span, keeps: bool) {
        if is_plain(&json[span.clone()]) {
            return;
        }
        let text = &json[span.start + 1..span.end - 1];
        let chars: Vec<char> = characters(text).map(|(char, _)| char).collect();
        if !chars.iter().any(|char| kind(*char).is_some()) {
            return;
        }
        let mut at = span.start + 1;
        for ((char, length), mark) in characters(text).zip(marks(&chars)) {
            let bytes = at..at + length;
            at = bytes.end;
            match mark {
                None => {}
                Some(kind) if keeps => self.kept.insert(kind),
                Some(kind) => {
                    self.stripped.insert(kind);
                    let is_break = is_hidden_break(kind, char);
                    match self.cuts.last_mut() {
                        Some(last) if last.span.end == bytes.start && !last.is_break && !is_break => {
                            last.span.end = bytes.end;
                        }
                        _ => self.cuts.push(Cut { span: bytes, is_break }),
                    }
                }
            }
        }
    }
}

/// The beginning of a JSON string that is given without its quotes, and whether more follows. Half of a pair
/// of surrogates becomes the replacement character.
pub(crate) fn string_start(text: &[u8], limit: usize) -> (String, bool) {
    let mut all = characters(text).map(|(char, _)| char);
    let read = |char| if char == LONE_HALF { char::REPLACEMENT_CHARACTER } else { char };
    let start = all.by_ref().take(limit).map(read).collect();
    (start, all.next().is_some())
}

/// The text of a JSON string that is given without its quotes, whatever its escapes say.
pub(crate) fn string_text(text: &[u8]) -> Cow<'_, str> {
    if memchr(b'\\', text).is_none() {
        return String::from_utf8_lossy(text);
    }
    let mut read = Unescaped::new(text);
    loop {
        read.pass_short_escapes();
        let Some(byte) = text.get(read.at) else { break };
        if *byte != b'\\' {
            read.out[read.end] = *byte;
            (read.at, read.end) = (read.at + 1, read.end + 1);
            continue;
        }
        let (char, length) = escape(&text[read.at..]);
        let char = if char == LONE_HALF { char::REPLACEMENT_CHARACTER } else { char };
        read.end += char.encode_utf8(&mut read.out[read.end..]).len();
        read.at += length;
    }
    read.out.truncate(read.end);
    Cow::Owned(
        String::from_utf8(read.out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

/// The characters of a JSON string without its quotes, each with the number of its bytes. One half of a pair
/// of surrogates counts as a noncharacter: if it stayed, it could pair with another half after a cut.
fn characters(text: &[u8]) -> impl Iterator<Item = (char, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let (char, length) = match rest[0] {
            b'\\' => escape(rest),
            byte if byte.is_ascii() => (char::from(byte), 1),
            _ => multibyte(rest),
        };
        at += length;
        Some((char, length))
    })
}

fn multibyte(bytes: &[u8]) -> (char, usize) {
    let length = match bytes[0] {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    };
    let text = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
    text.and_then(|text| text.chars().next()).map_or((char::REPLACEMENT_CHARACTER, 1), |char| (char, length))
}

/// The noncharacter that stands for half of a pair of surrogates.
const LONE_HALF: char = '\u{ffff}';

fn escape(bytes: &[u8]) -> (char, usize) {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    if let Some(first) = unit(0) {
        if let Some(char) = char::from_u32(first.into()) {
            return (char, 6);
        }
        let pair = unit(6).and_then(|second| char::decode_utf16([first, second]).next()?.ok());
        return pair.map_or((LONE_HALF, 6), |char| (char, 12));
    }
    let char = match bytes.get(1) {
        Some(b'n') => '\n',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(other) => char::from(*other),
        None => return ('\\', 1),
    };
    (char, 2)
}
