//! A tool: its definition as the server wrote it.

use std::{
    borrow::Cow,
    ops::{Deref, Range},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;

use crate::{
    apps::ToolUi,
    arguments::CompiledSchema,
    size_limit,
    wire::{Members, Span, string_value},
};

/// The compiled schema of a tool whose definition is longer than this is not kept, because it takes several times the memory.
const KEPT_SCHEMA: usize = 64 << 10;

/// A tool: its definition as the server wrote it, and the places of parts that we may replace. Clones share
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool(Arc<ToolData>);

/// The data of a [`Tool`].
#[derive(Debug, PartialEq, Eq)]
pub struct ToolData {
    pub name: String,
    pub definition: Bytes,
    places: ToolPlaces,
    /// What it says about apps, if anything.
    pub ui: Option<Box<ToolUi>>,
    schema: SchemaCell,
}

/// The member whose place is remembered.
const SCHEMA: &str = "inputSchema";
/// How many bytes of a definition one byte of its description may take: most escapes have as many, or have three
/// for each byte.
const ESCAPED: usize = 2;
/// How long the end of a cut text may be that is a part of an escape.
const LONGEST_ESCAPE: usize = "\\ud83d\\ude42".len();

/// Where the values of two members stand in a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolPlaces {
    /// The value at `name`, with its quotes.
    name: [u32; 2],
    /// The value at `description`; empty if there is none.
    description: [u32; 2],
}

/// A tool's schema, once it was needed: where it stands, and the compiled one. Both follow from the definition,
/// so comparisons ignore them.
#[derive(Debug, Default)]
struct SchemaCell {
    place: OnceLock<Option<[u32; 2]>>,
    compiled: OnceLock<Option<Arc<CompiledSchema>>>,
}

impl PartialEq for SchemaCell {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SchemaCell {}

impl Deref for Tool {
    type Target = ToolData;

    fn deref(&self) -> &ToolData {
        &self.0
    }
}

impl ToolPlaces {
    /// `None` for places that do not fit into 32 bits.
    pub fn new(name: &Span, description: Option<&Span>) -> Option<Self> {
        let description = description.map_or(Some([0, 0]), numbers)?;
        Some(Self { name: numbers(name)?, description })
    }

    /// The same as numbers, to be saved.
    pub fn numbers(self) -> [u32; 4] {
        let ([a, b], [c, d]) = (self.name, self.description);
        [a, b, c, d]
    }

    pub fn from_numbers([a, b, c, d]: [u32; 4]) -> Self {
        Self { name: [a, b], description: [c, d] }
    }
}

fn numbers(span: &Span) -> Option<[u32; 2]> {
    Some([u32::try_from(span.start).ok()?, u32::try_from(span.end).ok()?])
}

fn span([start, end]: [u32; 2]) -> Span {
    start as usize..end as usize
}

impl Tool {
    /// `definition` is one JSON object; `None` if it has no name.
    pub fn parse(definition: Bytes) -> Option<Self> {
        let whole = 0..definition.len();
        let mut name_span = None;
        let mut description_span = None;
        let mut ui = None;
        for member in Members::of(&definition, &whole).flatten() {
            match &*member.key {
                "name" => name_span = Some(member.value),
                "description" => description_span = Some(member.value),
                "_meta" => ui = ToolUi::read(&definition, &member.value).map(Box::new),
                _ => {}
            }
        }
        let name_span = name_span?;
        let name = string_value(&definition[name_span.clone()])?.into_owned();
        let places = ToolPlaces::new(&name_span, description_span.as_ref())?;
        Self::new(name, definition, places, ui)
    }

    /// A tool that was parsed before and says nothing about apps. `None` if the places cannot be those of its name and
    /// description.
    pub fn remembered(definition: Bytes, places: ToolPlaces) -> Option<Self> {
        let is_string = |place: Range<usize>| {
            let text = definition.get(place)?;
            (text.len() > 1 && text.starts_with(b"\"") && text.ends_with(b"\"")).then_some(text)
        };
        let name = string_value(is_string(span(places.name))?)?.into_owned();
        definition.get(span(places.description))?;
        Self::new(name, definition, places, None)
    }

    fn new(name: String, definition: Bytes, places: ToolPlaces, ui: Option<Box<ToolUi>>) -> Option<Self> {
        let schema = SchemaCell::default();
        (!name.is_empty()).then(|| Self(Arc::new(ToolData { name, definition, places, ui, schema })))
    }
}

impl ToolData {
    /// The value at `name`, with its quotes.
    pub fn name_span(&self) -> Span {
        span(self.places.name)
    }

    /// The value at `description`.
    pub fn description_span(&self) -> Option<Span> {
        Some(span(self.places.description)).filter(|span| !span.is_empty())
    }

    pub fn places(&self) -> ToolPlaces {
        self.places
    }

    pub fn description(&self) -> Option<String> {
        string_value(&self.definition[self.description_span()?]).map(Cow::into_owned)
    }

    /// At most so many bytes of the description, and whether that is all of it. Nothing after them is decoded.
    pub fn description_start(&self, longest: usize) -> Option<(String, bool)> {
        let json = &self.definition[self.description_span()?];
        let decoded = |json: &[u8]| string_value(json).map(Cow::into_owned);
        let enough = 1 + ESCAPED * longest;
        let (mut text, mut is_whole) = if json.len() <= enough + LONGEST_ESCAPE {
            (decoded(json)?, true)
        } else {
            let is_start = |at: &usize| json[*at] & 0xc0 != 0x80;
            let end = (1..=enough).rev().find(is_start)?;
            let backslashes = json[..end].iter().rev().take_while(|byte| **byte == b'\\').count();
            let end = end - backslashes % 2;
            // A cut in the middle of a longer escape is moved to before it.
            let escapes = (end.saturating_sub(LONGEST_ESCAPE)..end).rev().filter(|at| json[*at] == b'\\');
            let cut = |end: usize| decoded(&[&json[..end], b"\""].concat());
            ([end].into_iter().chain(escapes).find_map(cut)?, false)
        };
        if text.len() > longest {
            text.truncate(text.floor_char_boundary(longest));
            is_whole = false;
        }
        Some((text, is_whole))
    }

    /// Its `inputSchema`, compiled when it is first needed; `None` if it has none, or one that is too large
    /// to check calls with. A large one is not kept.
    pub fn input_schema(&self) -> Option<Arc<CompiledSchema>> {
        let schema = || self.raw(SCHEMA).filter(|schema| schema.len() <= size_limit::SCHEMA);
        let compile = || schema().map(|schema| Arc::new(CompiledSchema::new(schema)));
        if self.definition.len() > KEPT_SCHEMA {
            return compile();
        }
        self.schema.compiled.get_or_init(compile).clone()
    }

    /// The value of a member of the definition, as it stands. That of the schema is looked for only once:
    /// a definition can have very many members.
    pub fn raw(&self, key: &str) -> Option<&[u8]> {
        let find = || Members::find(&self.definition, &(0..self.definition.len()), key);
        let place = match key {
            SCHEMA => self.schema.place.get_or_init(|| numbers(&find()?)).map(span)?,
            "description" => self.description_span()?,
            _ => find()?,
        };
        Some(&self.definition[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_tool_is_the_one_that_was_parsed() {
        for definition in
            [r#"{"x":1.0,"name":"a\u0062","description":"d"}"#, r#"{"description":7,"name":"a"}"#]
        {
            let parsed = Tool::parse(Bytes::from_static(definition.as_bytes())).unwrap();
            let numbers = parsed.places().numbers();
            let remembered =
                Tool::remembered(parsed.definition.clone(), ToolPlaces::from_numbers(numbers)).unwrap();
            assert_eq!((&remembered, remembered.description()), (&parsed, parsed.description()));
        }
    }

    #[test]
    fn the_start_of_a_description_is_that_of_the_whole() {
        let texts = ["plain ", "é天🙂", "\n\"\\", r"\u0061", "\u{1}"];
        let plain = texts.map(|text| serde_json::Value::from(text.repeat(60)).to_string());
        let escaped = [r"\u0061", r"\ud83d\ude42", r"a\\", r"\\", r"xy\n"]
            .map(|text| format!("\"{}\"", text.repeat(60)));
        for json in plain.iter().chain(&escaped) {
            let definition = format!(r#"{{"name":"t","description":{json}}}"#);
            let tool = Tool::parse(definition.into()).unwrap();
            let whole = tool.description().unwrap();
            for longest in 0..200 {
                let (start, is_whole) = tool.description_start(longest).unwrap();
                assert!(whole.starts_with(&start) && start.len() <= longest, "{json} {longest}: {start}");
                assert!(start.len() + 4 > longest.min(whole.len()) / 3, "{json} {longest}: {start}");
                assert_eq!(is_whole, start == whole, "{json} {longest}");
            }
        }
        for none in [r#"{"name":"t"}"#, r#"{"name":"t","description":7}"#] {
            assert_eq!(Tool::parse(none.into()).unwrap().description_start(9), None);
        }
    }

    #[test]
    fn places_that_cannot_be_a_tools_are_rejected() {
        let definition = Bytes::from_static(br#"{"name":"a"}"#);
        for numbers in
            [[8, 99, 0, 0], [9, 8, 0, 0], [1, 5, 0, 0], [8, 11, 5, 99], [8, 11, 9, 5], [8, 9, 0, 0]]
        {
            assert_eq!(
                Tool::remembered(definition.clone(), ToolPlaces::from_numbers(numbers)),
                None,
                "{numbers:?}"
            );
        }
        assert!(Tool::remembered(definition, ToolPlaces::from_numbers([8, 11, 0, 0])).is_some());
    }
}
