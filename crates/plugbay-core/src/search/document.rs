//! What of a tool can be searched: its texts, by where they stand.

use std::borrow::Cow;

use super::walk::Walk;
use crate::{catalog::Tool, wire::string_value};

/// Where a text stands. What a word says about a tool depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Field {
    Name,
    Server,
    Description,
    Parameter,
    /// Descriptions and values of parameters.
    Detail,
}

pub(super) const FIELDS: usize = Field::ALL.len();

impl Field {
    pub const ALL: [Self; 5] = [Self::Name, Self::Server, Self::Description, Self::Parameter, Self::Detail];

    pub(super) fn weight(self) -> f32 {
        match self {
            Self::Name => 4.0,
            Self::Server => 1.5,
            Self::Description => 1.0,
            Self::Parameter => 0.5,
            Self::Detail => 0.6,
        }
    }

    /// How much the length of the text is held against its words, between 0 and 1.
    pub(super) fn length_counts(self) -> f32 {
        match self {
            Self::Name | Self::Server => 0.75,
            Self::Description | Self::Parameter => 0.4,
            Self::Detail => 0.3,
        }
    }
}

/// How deep into a schema is looked for parameters.
const DEPTH: u32 = 6;

/// A text as it is written: there are many, and not all need to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Text<'a> {
    Plain(&'a str),
    /// A JSON string with its quotes, or nothing.
    Json(&'a [u8]),
}

impl<'a> Text<'a> {
    pub(super) fn read(self) -> Cow<'a, str> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Json(text) => string_value(text).unwrap_or_default(),
        }
    }
}

/// Calls `found` with each text of a tool.
pub(super) fn each_text<'a>(server: &'a str, tool: &'a Tool, found: &mut dyn FnMut(Field, Text<'a>)) {
    found(Field::Server, Text::Plain(server));
    found(Field::Name, Text::Plain(&tool.name));
    Walk::new(&tool.definition).object(|walk, key| match key {
        b"\"title\"" | b"\"description\"" => found(Field::Description, Text::Json(walk.string())),
        b"\"inputSchema\"" => schema(walk, DEPTH, found),
        _ => walk.skip(),
    });
}

fn schema<'a>(walk: &mut Walk<'a>, depth: u32, found: &mut dyn FnMut(Field, Text<'a>)) {
    if depth == 0 {
        return walk.skip();
    }
    walk.object(|walk, key| match key {
        b"\"properties\"" => walk.object(|walk, name| {
            found(Field::Parameter, Text::Json(name));
            schema(walk, depth - 1, found);
        }),
        b"\"$defs\"" | b"\"definitions\"" => walk.object(|walk, _| schema(walk, depth - 1, found)),
        b"\"description\"" | b"\"title\"" => found(Field::Detail, Text::Json(walk.string())),
        b"\"items\"" | b"\"additionalProperties\"" => schema(walk, depth - 1, found),
        b"\"enum\"" => walk.array(|walk| found(Field::Detail, Text::Json(walk.string()))),
        b"\"anyOf\"" | b"\"oneOf\"" | b"\"allOf\"" => walk.array(|walk| schema(walk, depth - 1, found)),
        _ => walk.skip(),
    });
}
