//! The one JSON cursor: strict, builds nothing; it validates, limits depth, and finds where values end.

use std::borrow::Cow;

use super::{DEPTH_LIMIT, Span, skip};

/// Why some bytes are not JSON that we accept, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanError {
    #[error("unexpected byte at offset {0}")]
    Unexpected(usize),
    #[error("the message ends in the middle of a value")]
    Truncated,
    #[error("nested deeper than {DEPTH_LIMIT} levels at offset {0}")]
    TooDeep(usize),
}

/// A position in one JSON text, which must be UTF-8.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Moves on to a place at which another scan has found the start or the end of a value.
    pub(crate) fn move_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The next byte that is not white space, left in place.
    pub(crate) fn peek(&mut self) -> Result<u8, ScanError> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(ScanError::Truncated)
    }

    pub(crate) fn expect(&mut self, wanted: u8) -> Result<(), ScanError> {
        if self.peek()? != wanted {
            return Err(ScanError::Unexpected(self.at));
        }
        self.at += 1;
        Ok(())
    }

    /// Checks that only white space follows.
    pub(crate) fn end(&mut self) -> Result<(), ScanError> {
        match self.peek() {
            Err(ScanError::Truncated) => Ok(()),
            _ => Err(ScanError::Unexpected(self.at)),
        }
    }

    /// A string with its quotes; the flag tells whether it holds escapes.
    pub(crate) fn string(&mut self) -> Result<(Span, bool), ScanError> {
        self.expect(b'"')?;
        let start = self.at - 1;
        let mut escaped = false;
        loop {
            self.skip_plain();
            match self.next()? {
                b'"' => return Ok((start..self.at, escaped)),
                b'\\' => {
                    escaped = true;
                    self.escape()?;
                }
                0..0x20 => return Err(ScanError::Unexpected(self.at - 1)),
                _ => {}
            }
        }
    }

    /// A whole value, whatever it is. `depth` is how deep the value itself stands.
    pub(crate) fn value(&mut self, depth: u32) -> Result<Span, ScanError> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => return Ok(self.string()?.0),
            b'{' | b'[' => self.container(depth)?,
            b't' => self.literal(b"true")?,
            b'f' => self.literal(b"false")?,
            b'n' => self.literal(b"null")?,
            _ => self.number()?,
        }
        Ok(start..self.at)
    }

    /// The same for a value that has been checked before: only its end is looked for.
    pub(crate) fn checked_value(&mut self) -> Result<Span, ScanError> {
        let first = self.peek()?;
        let start = self.at;
        let end = match first {
            b'"' => skip::string_end(self.bytes, start),
            b'{' | b'[' => skip::container_end(self.bytes, start),
            _ => return self.value(0),
        };
        self.at = end.ok_or(ScanError::Truncated)?;
        Ok(start..self.at)
    }

    /// Objects and arrays without recursion: one bit per open level tells which of the two it is.
    fn container(&mut self, depth: u32) -> Result<(), ScanError> {
        const { assert!(DEPTH_LIMIT <= 64, "the open levels are kept in the bits of one u64") }
        let mut objects = 0u64;
        let mut open = 0u32;
        loop {
            // Here a value is due.
            let first = self.peek()?;
            if first == b'{' || first == b'[' {
                if depth + open >= DEPTH_LIMIT {
                    return Err(ScanError::TooDeep(self.at));
                }
                self.at += 1;
                open += 1;
                let object = first == b'{';
                objects = objects << 1 | u64::from(object);
                if self.peek()? == if object { b'}' } else { b']' } {
                    // Empty: falls through to the closing below.
                } else {
                    if object {
                        self.key()?;
                    }
                    continue;
                }
            } else {
                self.value(depth + open)?;
            }
            // A value has ended: close what closes, or go on to the next member.
            loop {
                if open == 0 {
                    return Ok(());
                }
                let object = objects & 1 == 1;
                match (self.peek()?, object) {
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        open -= 1;
                        objects >>= 1;
                    }
                    (b',', _) => {
                        self.at += 1;
                        if object {
                            self.key()?;
                        }
                        break;
                    }
                    _ => return Err(ScanError::Unexpected(self.at)),
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), ScanError> {
        self.string()?;
        self.expect(b':')
    }

    /// Skips the bytes of a string that mean only themselves, eight at a time if there are as many.
    fn skip_plain(&mut self) {
        while let Some(chunk) = self.bytes[self.at..].first_chunk::<8>() {
            let plain = plain_bytes(u64::from_le_bytes(*chunk));
            self.at += plain;
            if plain < 8 {
                return;
            }
        }
    }

    fn escape(&mut self) -> Result<(), ScanError> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(()),
            b'u' => {
                for _ in 0..4 {
                    if !self.next()?.is_ascii_hexdigit() {
                        return Err(ScanError::Unexpected(self.at - 1));
                    }
                }
                Ok(())
            }
            _ => Err(ScanError::Unexpected(self.at - 1)),
        }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), ScanError> {
        if !self.bytes[self.at..].starts_with(word) {
            return Err(ScanError::Unexpected(self.at));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), ScanError> {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(_) => return Err(ScanError::Unexpected(self.at)),
            None => return Err(ScanError::Truncated),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits()?;
        }
        Ok(())
    }

    fn some_digits(&mut self) -> Result<(), ScanError> {
        let start = self.at;
        self.digits();
        if self.at > start { Ok(()) } else { Err(ScanError::Unexpected(self.at)) }
    }

    fn digits(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn next(&mut self) -> Result<u8, ScanError> {
        let byte = *self.bytes.get(self.at).ok_or(ScanError::Truncated)?;
        self.at += 1;
        Ok(byte)
    }
}

/// How many of eight bytes come before a quote, a backslash or a control character.
fn plain_bytes(chunk: u64) -> usize {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    // Borrows go upwards, so the lowest mark is always right.
    let below = |chunk: u64, limit: u8| chunk.wrapping_sub(ONES * u64::from(limit)) & !chunk & HIGH;
    let equal = |byte: u8| below(chunk ^ (ONES * u64::from(byte)), 1);
    let marks = equal(b'"') | equal(b'\\') | below(chunk, b' ');
    marks.trailing_zeros() as usize / 8
}

/// The members of an object or the elements of an array, one after the other.
#[derive(Debug)]
pub(crate) struct Walk {
    close: u8,
    pub(crate) count: usize,
}

impl Walk {
    /// Counts elements that were passed without it; the cursor stands before the next one, or before the end.
    pub(crate) fn pass(&mut self, elements: usize) {
        self.count += elements;
    }

    /// Enters an object or an array, whichever begins with this byte. `depth` is how deep it stands.
    pub(crate) fn open(cursor: &mut Cursor<'_>, open: u8, depth: u32) -> Result<Self, ScanError> {
        cursor.expect(open)?;
        if depth >= DEPTH_LIMIT {
            return Err(ScanError::TooDeep(cursor.at - 1));
        }
        Ok(Self { close: if open == b'{' { b'}' } else { b']' }, count: 0 })
    }

    /// Whether there is another one. The cursor then stands before it, or else after the end.
    pub(crate) fn advance(&mut self, cursor: &mut Cursor<'_>) -> Result<bool, ScanError> {
        if cursor.peek()? == self.close {
            cursor.at += 1;
            return Ok(false);
        }
        if self.count > 0 {
            cursor.expect(b',')?;
        }
        self.count += 1;
        Ok(true)
    }
}

/// The members of an object, in order, as spans of the message. The object must have been checked before,
/// except for [`Members::unchecked`].
#[derive(Debug)]
pub struct Members<'a> {
    cursor: Cursor<'a>,
    /// `None` at the end.
    walk: Option<Walk>,
    is_checked: bool,
}

/// One member of an object: its key decoded, key and value as spans of the message.
#[derive(Debug)]
pub struct Member<'a> {
    /// As in [`key_value`].
    pub key: Cow<'a, str>,
    /// The key as it was written, with its quotes.
    pub key_span: Span,
    pub value: Span,
}

impl<'a> Members<'a> {
    /// `object` is the span of an object value in `bytes`; anything else has no members.
    pub fn of(bytes: &'a [u8], object: &Span) -> Self {
        let mut cursor = Cursor::new(&bytes[..object.end], object.start);
        let walk = Walk::open(&mut cursor, b'{', 0).ok();
        Self { cursor, walk, is_checked: true }
    }

    /// The same for an object that may be anything: every value is checked.
    pub(super) fn unchecked(bytes: &'a [u8], object: &Span) -> Self {
        Self { is_checked: false, ..Self::of(bytes, object) }
    }

    /// The span of the value at `key`, if the object has it. The last of several wins, as in most parsers.
    pub fn find(bytes: &'a [u8], object: &Span, key: &str) -> Option<Span> {
        Self::of(bytes, object).flatten().filter(|member| member.key == key).last().map(|member| member.value)
    }

    fn advance(&mut self) -> Result<Option<Member<'a>>, ScanError> {
        let Self { cursor, walk: Some(walk), is_checked } = self else { return Ok(None) };
        if !walk.advance(cursor)? {
            return Ok(None);
        }
        let (key_span, escaped) = cursor.string()?;
        let key = decode_key(&cursor.bytes[key_span.clone()], escaped);
        cursor.expect(b':')?;
        let value = if *is_checked { cursor.checked_value() } else { cursor.value(1) }?;
        Ok(Some(Member { key, key_span, value }))
    }

    /// How far the object has been read.
    pub(crate) fn position(&self) -> usize {
        self.cursor.at()
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<Member<'a>, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        let member = self.advance();
        if !matches!(member, Ok(Some(_))) {
            self.walk = None;
        }
        member.transpose()
    }
}

/// The spans of an array's elements; anything else has none. The array must have been read before.
pub fn elements(bytes: &[u8], array: &Span) -> Vec<Span> {
    let mut cursor = Cursor::new(&bytes[..array.end], array.start);
    let mut found = Vec::new();
    let mut read = || -> Result<(), ScanError> {
        let mut walk = Walk::open(&mut cursor, b'[', 0)?;
        while walk.advance(&mut cursor)? {
            found.push(cursor.checked_value()?);
        }
        Ok(())
    };
    let _ = read(); // the elements before an error count
    found
}

/// The text of a JSON string given with its quotes; `None` if it is not a string.
pub fn string_value(json: &[u8]) -> Option<Cow<'_, str>> {
    decode(json, memchr::memchr(b'\\', json).is_some())
}

/// The text of a key given with its quotes. A key with half of a surrogate pair is no text. It is returned as
/// it was written, because the members after it count, too.
pub(crate) fn key_value(json: &[u8]) -> Cow<'_, str> {
    decode_key(json, memchr::memchr(b'\\', json).is_some())
}

fn decode_key(quoted: &[u8], escaped: bool) -> Cow<'_, str> {
    let written = || String::from_utf8_lossy(&quoted[1..quoted.len() - 1]);
    decode(quoted, escaped).unwrap_or_else(written)
}

fn decode(quoted: &[u8], escaped: bool) -> Option<Cow<'_, str>> {
    if escaped {
        return serde_json::from_slice(quoted).ok().map(Cow::Owned);
    }
    let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    std::str::from_utf8(inner).ok().map(Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(text: &[u8]) -> Result<(), ScanError> {
        let mut cursor = Cursor::new(text, 0);
        cursor.value(0)?;
        cursor.end()
    }

    fn agrees_with_serde(text: &[u8]) -> Result<(), TestCaseError> {
        let ours = std::str::from_utf8(text).is_ok() && scan(text).is_ok();
        let theirs = serde_json::from_slice::<&serde_json::value::RawValue>(text).is_ok();
        prop_assert_eq!(ours, theirs, "{:?}", String::from_utf8_lossy(text));
        Ok(())
    }

    #[test]
    fn counts_depth() {
        let nested = |n: usize| [vec![b'['; n], vec![b']'; n]].concat();
        assert_eq!(scan(&nested(64)), Ok(()));
        assert_eq!(scan(&nested(65)), Err(ScanError::TooDeep(64)));
        assert_eq!(scan(&nested(100_000)), Err(ScanError::TooDeep(64)));
    }

    #[test]
    fn finds_members_with_escaped_keys() {
        let text = br#" {"a" : 1, "\u0062":{"x":[1,2]} , "c":"d"} "#;
        let span = 1..text.len() - 1;
        let found: Vec<_> = Members::of(text, &span)
            .map(|member| {
                let member = member.unwrap();
                (member.key.into_owned(), String::from_utf8(text[member.value].to_vec()).unwrap())
            })
            .collect();
        let expected = [("a", "1"), ("b", r#"{"x":[1,2]}"#), ("c", r#""d""#)];
        assert_eq!(found, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }

    #[test]
    fn members_behind_a_key_that_is_no_text_are_found() {
        let text = br#"{"\ud800":1,"a\udc00\u0062":2,"c":3}"#;
        let members: Vec<_> = Members::of(text, &(0..text.len())).flatten().collect();
        let keys: Vec<&str> = members.iter().map(|member| &*member.key).collect();
        assert_eq!(keys, [r"\ud800", r"a\udc00\u0062", "c"]);
        assert_eq!(Members::find(text, &(0..text.len()), "c"), Some(text.len() - 2..text.len() - 1));
    }

    #[test]
    fn members_of_checked_and_unchecked_objects_are_the_same() {
        let long = "{\"]\\\"}\":[1,2]},".repeat(20);
        let text = format!(r#"{{"a":[{long}1],"b":"]}}","c":{{}},"d":[[],[{{"e":"\\"}}]],"f":-1.5e3}}"#);
        let whole = 0..text.len();
        let read = |members: Members<'_>| {
            members
                .map(|member| member.map(|member| (member.key.into_owned(), member.value)))
                .collect::<Vec<_>>()
        };
        let strict = read(Members::unchecked(text.as_bytes(), &whole));
        assert_eq!(strict.len(), 5);
        assert!(strict.iter().all(Result::is_ok), "{strict:?}");
        assert_eq!(read(Members::of(text.as_bytes(), &whole)), strict);
    }

    proptest! {
        #[test]
        fn accepts_what_serde_accepts(text in r#"[\[\]{},:"\\u01eE+.\- tnrufalse]{0,24}"#) {
            agrees_with_serde(text.as_bytes())?;
        }

        #[test]
        fn accepts_strings_that_serde_accepts(text in r#"[a-zé天 \\\\"\x00-\x1f\x7f-\x9f]{0,40}"#) {
            agrees_with_serde(format!("\"{text}\"").as_bytes())?;
            agrees_with_serde(serde_json::Value::from(text).to_string().as_bytes())?;
        }

        #[test]
        fn accepts_damaged_json_only_if_serde_does(at in 0usize..60, byte in any::<u8>()) {
            let mut text = br#"{"a":[1,-2.5e3,"x\n\u00e9",{"b":null}],"c":{"d":true},"e":[],"f":{}}"#.to_vec();
            text[at] = byte;
            agrees_with_serde(&text)?;
        }
    }
}
