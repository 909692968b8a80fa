//! Handles of stored results, and the places in arguments that refer to one.

#[cfg(test)]
mod tests;

use std::{
    fmt::{self, Write as _},
    str::FromStr,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};

use crate::wire::{Cursor, ScanError, Span, Walk, string_value};

/// The key of a reference.
const KEY: &str = "$result";
/// The key of its filter.
const FILTER: &str = "jq";
/// The key of a reference, as it is written in a message. Arguments without these bytes have no reference.
const WRITTEN: &[u8] = br#""$result""#;
/// The same in arguments that were put into a string.
const QUOTED: &[u8] = br#"\"$result\""#;
/// The prefix of every handle.
const PREFIX: &str = "r_";
/// How many references of one call are resolved.
pub const MOST: usize = 32;

/// The handle of a stored result: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(pub [u8; 16]);

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", BASE64.encode(self.0))
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle") // a handle is enough to read the result
    }
}

/// The text does not have the form of a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a handle looks like r_ and 22 letters and digits")]
pub struct NoHandle;

impl FromStr for Handle {
    type Err = NoHandle;

    fn from_str(text: &str) -> Result<Self, NoHandle> {
        let bytes = text.strip_prefix(PREFIX).and_then(|text| BASE64.decode(text).ok());
        bytes.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(NoHandle)
    }
}

/// The handle in the URI of a stored result.
pub fn in_uri(uri: &str) -> Option<Handle> {
    uri.strip_prefix("plugbay://result/")?.parse().ok()
}

/// A place in arguments that stands for a stored result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The object that the value replaces.
    pub span: Span,
    pub handle: Handle,
    /// The jq filter that is applied to the result; `None` for the text of the result.
    pub filter: Option<String>,
    /// Its place, for messages: `arguments.entities[0].text`.
    pub place: String,
}

/// Whether there may be references in the JSON text: a quick check.
pub fn may_be_in(json: &[u8]) -> bool {
    let key = memchr::memmem::find(json, b"$result");
    key.is_some_and(|at| {
        let from = &json[at.saturating_sub(2)..];
        [WRITTEN, QUOTED].iter().any(|written| memchr::memmem::find(from, written).is_some())
    })
}

/// The references within a value that has been checked, in the order in which they stand. A reference is an object of
/// `$result`, a handle, and perhaps `jq`, a text: each once, and nothing else. All other objects are left alone.
pub fn find(message: &[u8], value: &Span) -> Vec<Reference> {
    let mut search = Search {
        cursor: Cursor::new(&message[..value.end], value.start),
        message,
        steps: Vec::new(),
        found: Vec::new(),
    };
    let _ = search.value(0); // references before an error count
    search.found
}

/// Arguments that a model has put into a string, below one of the keys of an object: where they stand, and what they are.
pub fn unquoted(message: &[u8], object: &Span) -> Vec<(Span, String)> {
    let members = crate::wire::Members::of(message, object).flatten();
    let quoted =
        members.filter(|member| memchr::memmem::find(&message[member.value.clone()], QUOTED).is_some());
    let read = quoted.filter_map(|member| {
        Some((member.value.clone(), string_value(&message[member.value])?.into_owned()))
    });
    read.filter(|(_, text)| text.trim_start().starts_with('{') && is_json(text)).collect()
}

fn is_json(text: &str) -> bool {
    let mut cursor = Cursor::new(text.as_bytes(), 0);
    cursor.value(0).and_then(|_| cursor.end()).is_ok()
}

/// One step from a value to one within it.
enum Step {
    Key(Span),
    Index(usize),
}

struct Search<'a> {
    message: &'a [u8],
    cursor: Cursor<'a>,
    /// The steps from the outermost value to the current one.
    steps: Vec<Step>,
    found: Vec<Reference>,
}

impl Search<'_> {
    fn value(&mut self, depth: u32) -> Result<(), ScanError> {
        match self.cursor.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            _ => self.cursor.value(depth).map(drop),
        }
    }

    fn array(&mut self, depth: u32) -> Result<(), ScanError> {
        let mut walk = Walk::open(&mut self.cursor, b'[', depth)?;
        while walk.advance(&mut self.cursor)? {
            self.steps.push(Step::Index(walk.count - 1));
            self.value(depth + 1)?;
            self.steps.pop();
        }
        Ok(())
    }

    fn object(&mut self, depth: u32) -> Result<(), ScanError> {
        let start = self.cursor.at();
        let mut walk = Walk::open(&mut self.cursor, b'{', depth)?;
        let (mut result, mut filter) = (None, None);
        while walk.advance(&mut self.cursor)? {
            let (key, _) = self.cursor.string()?;
            self.cursor.expect(b':')?;
            self.cursor.peek()?;
            let from = self.cursor.at();
            self.steps.push(Step::Key(key.clone()));
            self.value(depth + 1)?;
            self.steps.pop();
            let value = from..self.cursor.at();
            match string_value(&self.message[key]).as_deref() {
                Some(KEY) => result = Some(value),
                Some(FILTER) => filter = Some(value),
                _ => {}
            }
        }
        // If a key occurs twice, there are more members than kinds of them.
        if walk.count == usize::from(result.is_some()) + usize::from(filter.is_some()) {
            self.found.extend(self.reference(start, result, filter));
        }
        Ok(())
    }

    fn reference(&self, start: usize, result: Option<Span>, filter: Option<Span>) -> Option<Reference> {
        let text = |span: Span| string_value(&self.message[span]);
        let handle = text(result?)?.parse().ok()?;
        let filter = match filter {
            Some(filter) => Some(text(filter)?.into_owned()),
            None => None,
        };
        Some(Reference { span: start..self.cursor.at(), handle, filter, place: self.place() })
    }

    fn place(&self) -> String {
        let mut place = String::new();
        for step in &self.steps {
            match step {
                Step::Index(at) => {
                    let _ = write!(place, "[{at}]");
                }
                Step::Key(key) => {
                    let key = string_value(&self.message[key.clone()]).unwrap_or_default();
                    let dot = if place.is_empty() { "" } else { "." };
                    let _ = write!(place, "{dot}{}", key.chars().take(64).collect::<String>());
                }
            }
        }
        place
    }
}
