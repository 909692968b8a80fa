//! Characters that make a text read differently from what it says, and text without them.
//!
//! A person sees none of them, but a model or a terminal obeys them: escape sequences, control characters,
//! direction marks, tags, zero-width characters, variation selectors. Some belong to a script or an emoji and
//! stay there.

mod definition;
mod quoted;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, fmt, fmt::Write};

pub use definition::{Cleaned, clean_definition, is_plain};
pub(crate) use definition::{string_start, string_text};
pub use quoted::{listed, on_one_line, quoted, word};

/// A kind of hidden characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hidden {
    /// An escape sequence of a terminal.
    Ansi,
    /// A control character other than a line break or tab.
    Control,
    /// A mark that turns the direction of text.
    Bidi,
    /// A tag character, which repeats ASCII invisibly.
    Tag,
    ZeroWidth,
    /// A variation selector where nothing can vary.
    Variation,
    /// An interlinear annotation, whose text is not shown.
    Annotation,
    Noncharacter,
}

impl Hidden {
    const ALL: [Self; 8] = [
        Self::Ansi,
        Self::Control,
        Self::Bidi,
        Self::Tag,
        Self::ZeroWidth,
        Self::Variation,
        Self::Annotation,
        Self::Noncharacter,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ansi => "ANSI escape",
            Self::Control => "control",
            Self::Bidi => "bidi",
            Self::Tag => "tag",
            Self::ZeroWidth => "zero-width",
            Self::Variation => "variation selector",
            Self::Annotation => "annotation",
            Self::Noncharacter => "noncharacter",
        }
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HiddenKinds(u16);

impl HiddenKinds {
    pub fn insert(&mut self, kind: Hidden) {
        self.0 |= 1 << kind as u16;
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Hidden> {
        Hidden::ALL.into_iter().filter(move |kind| self.0 & 1 << *kind as u16 != 0)
    }
}

impl fmt::Display for HiddenKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, kind) in self.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            f.write_str(kind.as_str())?;
        }
        Ok(())
    }
}

/// Whether readers of lines take a character for the end of one.
pub fn is_line_break(char: char) -> bool {
    matches!(char, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Text without hidden characters: for definitions. Line breaks among them become blanks, so that words stay apart.
pub fn stripped(text: &str) -> Cow<'_, str> {
    replaced(text, |kind, char, out| out.extend(is_hidden_break(kind, char).then_some(' ')))
}

/// Whether a hidden character is a line break: one that few readers take for one.
fn is_hidden_break(kind: Hidden, char: char) -> bool {
    kind == Hidden::Control && is_line_break(char)
}

/// The kinds of hidden characters in a text.
pub fn hidden_in(text: &str) -> HiddenKinds {
    let mut kinds = HiddenKinds::default();
    replaced(text, |kind, _, _| kinds.insert(kind));
    kinds
}

/// Text for a terminal: escape sequences are left out, other hidden characters are written as `\u{202e}`. A line that
/// was redrawn on the spot would hide its first text, so a lone carriage return is a line break.
pub fn shown(text: &str) -> Cow<'_, str> {
    replaced(text, |kind, char, out| match (kind, char) {
        (Hidden::Ansi, _) => {}
        (_, '\r') => out.push('\n'),
        (_, char) => out.extend(char.escape_unicode()),
    })
}

/// Text in which every hidden character is written out, those of escape sequences too: for what must be read in full
/// before it is trusted.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|char| char.is_control() || kind(char).is_some()) {
        return Cow::Borrowed(text);
    }
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len() + 16);
    for (char, mark) in chars.iter().zip(marks(&chars)) {
        if char.is_control() || mark.is_some() && kind(*char).is_some() {
            out.extend(char.escape_unicode());
        } else {
            out.push(*char);
        }
    }
    Cow::Owned(out)
}

/// A line of a log that keeps the colours that its writer gave it; other hidden characters are written out.
pub fn log_line(line: &str) -> Cow<'_, str> {
    if line.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~')) {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len() + 16);
    for (at, char) in line.char_indices() {
        let is_colour = || {
            let rest = line[at + 1..].strip_prefix('[').unwrap_or_default();
            rest.trim_start_matches(|next: char| next.is_ascii_digit() || next == ';').starts_with('m')
        };
        match char {
            '\n' | '\t' | '\u{200c}' | '\u{200d}' => out.push(char),
            '\u{1b}' if is_colour() => out.push(char),
            _ if kind(char).is_some() => out.extend(char.escape_unicode()),
            _ => out.push(char),
        }
    }
    Cow::Owned(out)
}

/// JSON of the same value in which hidden characters are escaped as `\u202e`.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    let is_hidden = |char: char| char > '~' && kind(char).is_some();
    if json.is_ascii() && !json.contains('\u{7f}') || !json.chars().any(is_hidden) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 32);
    for char in json.chars() {
        if is_hidden(char) {
            for unit in char.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(char);
        }
    }
    Cow::Owned(out)
}

fn replaced(text: &str, mut hidden: impl FnMut(Hidden, char, &mut String)) -> Cow<'_, str> {
    if is_plain_text(text) {
        return Cow::Borrowed(text);
    }
    let chars: Vec<char> = text.chars().collect();
    let marks = marks(&chars);
    if marks.iter().all(Option::is_none) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (char, mark) in chars.into_iter().zip(marks) {
        match mark {
            None => out.push(char),
            Some(kind) => hidden(kind, char, &mut out),
        }
    }
    Cow::Owned(out)
}

/// Whether a text certainly has no hidden characters.
fn is_plain_text(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~'))
        || !text.chars().any(|char| kind(char).is_some())
}

/// For each character, whether it is hidden where it stands.
fn marks(chars: &[char]) -> Vec<Option<Hidden>> {
    let mut marks = vec![None; chars.len()];
    let mut at = 0;
    while at < chars.len() {
        if let Some(length) = escape_sequence(&chars[at..]) {
            marks[at..at + length].fill(Some(Hidden::Ansi));
            at += length;
            continue;
        }
        let before = at.checked_sub(1).filter(|before| marks[*before].is_none()).map(|before| chars[before]);
        let after = chars.get(at + 1).copied();
        if let Some(length) = flag(before, &chars[at..]) {
            at += length;
            continue;
        }
        marks[at] = kind(chars[at]).filter(|_| !is_in_place(chars[at], before, after));
        at += 1;
    }
    marks
}

/// The kind of a character that is hidden, or that may be hidden where it does not belong.
fn kind(char: char) -> Option<Hidden> {
    Some(match char {
        '\n' | '\t' | ' '..='~' => return None,
        '\u{1b}' => Hidden::Ansi,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => Hidden::Control,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Hidden::Bidi
        }
        '\u{e0000}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}' => Hidden::Tag,
        '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            Hidden::Variation
        }
        '\u{ad}'
        | '\u{34f}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' => Hidden::ZeroWidth,
        '\u{fff0}'..='\u{fffb}' => Hidden::Annotation,
        '\u{fdd0}'..='\u{fdef}' => Hidden::Noncharacter,
        _ if char as u32 & 0xfffe == 0xfffe => Hidden::Noncharacter,
        _ => return None,
    })
}

/// Whether a character belongs to its neighbours: a line break of Windows, a joiner in a script or an emoji,
/// a selector after the character whose form it selects.
fn is_in_place(char: char, before: Option<char>, after: Option<char>) -> bool {
    let is_base =
        before.is_some_and(|before| !before.is_ascii() && !is_joiner(before) && !is_selector(before));
    match char {
        '\r' => after == Some('\n'),
        // A selector may stand before a joiner: a red heart on fire.
        '\u{200c}' | '\u{200d}' => before.is_some_and(|before| !before.is_ascii() && !is_joiner(before)),
        '\u{fe00}'..='\u{fe02}' => is_base,
        '\u{fe0e}' | '\u{fe0f}' => {
            let is_keycap = matches!(before, Some('0'..='9' | '#' | '*')) && after == Some('\u{20e3}');
            is_base || is_keycap
        }
        '\u{180b}'..='\u{180d}' | '\u{180f}' => matches!(before, Some('\u{1820}'..='\u{18aa}')),
        _ => false,
    }
}

fn is_joiner(char: char) -> bool {
    matches!(char, '\u{200c}' | '\u{200d}')
}

fn is_selector(char: char) -> bool {
    kind(char) == Some(Hidden::Variation)
}

/// The tags of a flag: only those of England, Scotland and Wales after a black flag exist.
fn flag(before: Option<char>, chars: &[char]) -> Option<usize> {
    const TAGS: u32 = 0xe_0000;
    let ascii = |tag: &char| u8::try_from((*tag as u32).checked_sub(TAGS)?).ok().filter(u8::is_ascii);
    let begins_with =
        |flag: &&[u8; 6]| chars.iter().take(6).map(ascii).eq(flag.iter().map(|byte| Some(*byte)));
    let is_flag =
        before == Some('\u{1f3f4}') && [b"gbeng\x7f", b"gbsct\x7f", b"gbwls\x7f"].iter().any(begins_with);
    is_flag.then_some(6)
}

/// The length of the escape sequence that begins here.
fn escape_sequence(chars: &[char]) -> Option<usize> {
    let count = |from: usize, is_part: fn(&char) -> bool| {
        chars[from.min(chars.len())..].iter().take_while(|char| is_part(char)).count()
    };
    // Parameters, then one final character, which is no line break.
    let control_sequence = |from: usize| {
        let end = from + count(from, |char| matches!(char, ' '..='?'));
        end + usize::from(chars.get(end).is_some_and(|last| matches!(last, '@'..='~')))
    };
    let length = match (chars.first()?, chars.get(1)) {
        ('\u{1b}', Some('[')) => control_sequence(2),
        ('\u{1b}', Some(']' | 'P' | 'X' | '^' | '_')) => string(chars, 2),
        ('\u{1b}', Some(' '..='/')) => {
            let end = 1 + count(1, |char| matches!(char, ' '..='/'));
            end + usize::from(chars.get(end).is_some_and(|last| matches!(last, '0'..='~')))
        }
        ('\u{1b}', Some('0'..='~')) => 2,
        ('\u{1b}', _) => 1,
        ('\u{9b}', _) => control_sequence(1),
        ('\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}', _) => string(chars, 1),
        _ => return None,
    };
    Some(length)
}

/// The end of a title, a link or the like: at BEL or `ESC \`, but never past the end of the line.
fn string(chars: &[char], from: usize) -> usize {
    let mut at = from.min(chars.len());
    while let Some(char) = chars.get(at).filter(|char| **char != '\n') {
        at += 1;
        match char {
            '\u{7}' | '\u{9c}' => break,
            '\u{1b}' if chars.get(at) == Some(&'\\') => return at + 1,
            _ => {}
        }
    }
    at
}
