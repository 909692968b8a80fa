//! What of a tool can be searched: its texts, by where they stand.

use crate::{
    catalog::Tool,
    wire::{Members, Span, elements, string_value},
};

/// Where a text stands. What a word says about a tool depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
pub(super) fn each_text(server: &str, tool: &Tool, mut found: impl FnMut(Field, &str)) {
    found(Field::Server, server);
    found(Field::Name, &tool.name);
    let bytes = &tool.definition;
    for member in Members::of(bytes, &(0..bytes.len())).flatten() {
        match &*member.key {
            "title" | "description" => text(bytes, &member.value, Field::Description, &mut found),
            "inputSchema" => schema(bytes, &member.value, DEPTH, &mut found),
            _ => {}
        }
    }
}

fn text(bytes: &[u8], span: &Span, field: Field, found: &mut impl FnMut(Field, &str)) {
    if let Some(text) = string_value(&bytes[span.clone()]) {
        found(field, &text);
    }
}

fn schema(bytes: &[u8], span: &Span, depth: u32, found: &mut impl FnMut(Field, &str)) {
    if depth == 0 {
        return;
    }
    for member in Members::of(bytes, span).flatten() {
        match &*member.key {
            "properties" => {
                for property in Members::of(bytes, &member.value).flatten() {
                    found(Field::Parameter, &property.key);
                    schema(bytes, &property.value, depth - 1, found);
                }
            }
            "$defs" | "definitions" => {
                for definition in Members::of(bytes, &member.value).flatten() {
                    schema(bytes, &definition.value, depth - 1, found);
                }
            }
            "description" | "title" => text(bytes, &member.value, Field::Detail, found),
            "items" | "additionalProperties" => schema(bytes, &member.value, depth - 1, found),
            "enum" => {
                for value in elements(bytes, &member.value) {
                    text(bytes, &value, Field::Detail, found);
                }
            }
            "anyOf" | "oneOf" | "allOf" => {
                for part in elements(bytes, &member.value) {
                    schema(bytes, &part, depth - 1, found);
                }
            }
            _ => {}
        }
    }
}
