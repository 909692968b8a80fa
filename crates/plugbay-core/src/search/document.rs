//! What of a tool can be searched: its texts, by where they stand.

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

/// Calls `found` with each text of a tool.
pub(super) fn each_text(server: &str, tool: &Tool, found: &mut dyn FnMut(Field, &str)) {
    found(Field::Server, server);
    found(Field::Name, &tool.name);
    Walk::new(&tool.definition).object(|walk, key| match key {
        b"\"title\"" | b"\"description\"" => text(walk, Field::Description, found),
        b"\"inputSchema\"" => schema(walk, DEPTH, found),
        _ => walk.skip(),
    });
}

fn text(walk: &mut Walk<'_>, field: Field, found: &mut dyn FnMut(Field, &str)) {
    if let Some(text) = string_value(walk.string()) {
        found(field, &text);
    }
}

fn schema(walk: &mut Walk<'_>, depth: u32, found: &mut dyn FnMut(Field, &str)) {
    if depth == 0 {
        return walk.skip();
    }
    walk.object(|walk, key| match key {
        b"\"properties\"" => walk.object(|walk, name| {
            if let Some(name) = string_value(name) {
                found(Field::Parameter, &name);
            }
            schema(walk, depth - 1, found);
        }),
        b"\"$defs\"" | b"\"definitions\"" => walk.object(|walk, _| schema(walk, depth - 1, found)),
        b"\"description\"" | b"\"title\"" => text(walk, Field::Detail, found),
        b"\"items\"" | b"\"additionalProperties\"" => schema(walk, depth - 1, found),
        b"\"enum\"" => walk.array(|walk| text(walk, Field::Detail, found)),
        b"\"anyOf\"" | b"\"oneOf\"" | b"\"allOf\"" => walk.array(|walk| schema(walk, depth - 1, found)),
        _ => walk.skip(),
    });
}
