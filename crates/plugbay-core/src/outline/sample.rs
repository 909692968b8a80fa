//! Samples of JSON values, cut so that they still parse: long strings end with `…`, and a string that begins
//! with `…` stands for values that are left out.

use std::fmt::Write;

use crate::{
    shape::profile::key_name,
    text::{string_start, stripped},
    tokens::estimate,
    wire::{Cursor, ScanError, Walk},
};

/// How much of a value is shown.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Characters of a string.
    string: usize,
    depth: u32,
    elements: usize,
    members: usize,
    /// Arrays say how much was left out.
    tells: bool,
}

/// The cuts to try, the most generous first.
const CUTS: [Cut; 11] = [
    Cut { string: 160, depth: 6, elements: 5, members: 48, tells: true },
    Cut { string: 80, depth: 4, elements: 3, members: 32, tells: true },
    Cut { string: 48, depth: 3, elements: 2, members: 24, tells: true },
    Cut { string: 32, depth: 2, elements: 1, members: 20, tells: true },
    Cut { string: 24, depth: 1, elements: 1, members: 16, tells: true },
    Cut { string: 16, depth: 1, elements: 0, members: 12, tells: true },
    Cut { string: 16, depth: 1, elements: 0, members: 8, tells: true },
    Cut { string: 12, depth: 1, elements: 0, members: 6, tells: true },
    Cut { string: 12, depth: 1, elements: 0, members: 5, tells: true },
    Cut { string: 12, depth: 1, elements: 0, members: 4, tells: true },
    Cut { string: 12, depth: 1, elements: 0, members: 3, tells: true },
];
/// The most digits of a number.
const NUMBER: usize = 32;

/// The value that begins at `start`, in at most `tokens` tokens; `None` if too little of it fits.
pub(super) fn sample(json: &[u8], start: usize, tokens: usize) -> Option<String> {
    let written = |cut| {
        let mut writer = Writer { json, cut, out: String::new() };
        writer.value(&mut Cursor::new(json, start), 0).ok()?;
        Some(writer.out).filter(|out| estimate(out) <= tokens)
    };
    CUTS.into_iter().find_map(written)
}

/// A whole value of which only arrays and strings are cut: no key is lost, no type changes.
pub(super) fn shortened(json: &[u8], elements: usize, string: usize) -> Option<String> {
    let cut = Cut { string, depth: u32::MAX, elements, members: usize::MAX, tells: false };
    let mut writer = Writer { json, cut, out: String::new() };
    writer.value(&mut Cursor::new(json, 0), 0).ok()?;
    Some(writer.out)
}

/// A sample of a member as an object of its own: `start` is where its key begins.
pub(super) fn sample_member(json: &[u8], start: usize, tokens: usize) -> Option<String> {
    let mut cursor = Cursor::new(json, start);
    let (key, _) = cursor.string().ok()?;
    cursor.expect(b':').ok()?;
    cursor.peek().ok()?;
    let key = quoted(&key_name(&json[key.start + 1..key.end - 1]));
    let value = sample(json, cursor.at(), tokens.checked_sub(estimate(&key) + 3)?)?;
    Some(format!("{{{key}:{value}}}"))
}

/// The beginning of a JSON string that is given without its quotes, as a JSON string.
pub(super) fn string(raw: &[u8], limit: usize) -> String {
    let (start, is_cut) = string_start(raw, limit);
    let mut text = stripped(&start).into_owned();
    text.push_str(if is_cut { "…" } else { "" });
    quoted(&text)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether every parser reads a number: not too long, not too large.
fn is_common(number: &[u8]) -> bool {
    let value = std::str::from_utf8(number).ok().and_then(|text| text.parse::<f64>().ok());
    number.len() <= NUMBER && value.is_some_and(f64::is_finite)
}

struct Writer<'a> {
    json: &'a [u8],
    cut: Cut,
    out: String,
}

impl Writer<'_> {
    fn value(&mut self, cursor: &mut Cursor<'_>, depth: u32) -> Result<(), ScanError> {
        match cursor.peek()? {
            b'"' => {
                let (span, _) = cursor.string()?;
                self.out.push_str(&string(&self.json[span.start + 1..span.end - 1], self.cut.string));
            }
            open @ (b'{' | b'[') if depth >= self.cut.depth => self.left_out(cursor, open, depth)?,
            b'{' => self.object(cursor, depth)?,
            b'[' => self.array(cursor, depth)?,
            _ => {
                let span = cursor.value(depth)?;
                let scalar = &self.json[span];
                let is_number = scalar.first().is_some_and(|first| !first.is_ascii_alphabetic());
                if self.cut.tells && is_number && !is_common(scalar) {
                    self.out.push_str(&string(scalar, NUMBER));
                } else {
                    self.out.push_str(&String::from_utf8_lossy(scalar));
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, cursor: &mut Cursor<'_>, depth: u32) -> Result<(), ScanError> {
        let mut members = Walk::open(cursor, b'{', depth)?;
        self.out.push('{');
        while members.advance(cursor)? {
            let (key, _) = cursor.string()?;
            cursor.expect(b':')?;
            if members.count > self.cut.members {
                cursor.value(depth + 1)?;
                continue;
            }
            self.comma(members.count);
            let key = self.key(&self.json[key]);
            self.out.push_str(&key);
            self.out.push(':');
            self.value(cursor, depth + 1)?;
        }
        if let Some(more) = members.count.checked_sub(self.cut.members).filter(|more| *more > 0) {
            self.comma(members.count);
            let _ = write!(self.out, "\"…\":\"{more} more\"");
        }
        self.out.push('}');
        Ok(())
    }

    fn array(&mut self, cursor: &mut Cursor<'_>, depth: u32) -> Result<(), ScanError> {
        let mut elements = Walk::open(cursor, b'[', depth)?;
        self.out.push('[');
        while elements.advance(cursor)? {
            if elements.count > self.cut.elements {
                cursor.value(depth + 1)?;
                continue;
            }
            self.comma(elements.count);
            self.value(cursor, depth + 1)?;
        }
        let more = elements.count.saturating_sub(self.cut.elements);
        if more > 0 && self.cut.tells {
            self.comma(elements.count);
            let _ = write!(self.out, "\"… {more} more\"");
        }
        self.out.push(']');
        Ok(())
    }

    fn key(&self, quoted_key: &[u8]) -> String {
        let raw = &quoted_key[1..quoted_key.len() - 1];
        if self.cut.tells { quoted(&key_name(raw)) } else { String::from_utf8_lossy(quoted_key).into_owned() }
    }

    fn comma(&mut self, count: usize) {
        if count > 1 && !self.out.ends_with(['{', '[']) {
            self.out.push(',');
        }
    }

    /// Writes only how much is left out.
    fn left_out(&mut self, cursor: &mut Cursor<'_>, open: u8, depth: u32) -> Result<(), ScanError> {
        let mut walk = Walk::open(cursor, open, depth)?;
        while walk.advance(cursor)? {
            if open == b'{' {
                cursor.string()?;
                cursor.expect(b':')?;
            }
            cursor.value(depth + 1)?;
        }
        let words = match (open, walk.count) {
            (b'{', 0) => "{}".to_owned(),
            (_, 0) => "[]".to_owned(),
            (b'{', 1) => "\"… 1 key\"".to_owned(),
            (_, 1) => "\"… 1 element\"".to_owned(),
            (b'{', count) => format!("\"… {count} keys\""),
            (_, count) => format!("\"… {count} elements\""),
        };
        self.out.push_str(&words);
        Ok(())
    }
}
