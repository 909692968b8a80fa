//! What of a tool can be searched: its texts, by where they stand.

use std::borrow::Cow;

use crate::{
    catalog::Tool,
    wire::{Cursor, ScanError, Walk, string_value},
};

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

/// Calls `found` with each text of a tool. Behind a byte that is not JSON there are none.
pub(super) fn each_text<'a>(server: &'a str, tool: &'a Tool, found: Found<'_, 'a>) {
    found(Field::Server, Text::Plain(server));
    found(Field::Name, Text::Plain(&tool.name));
    let mut reader = Reader { json: &tool.definition, cursor: Cursor::new(&tool.definition, 0), found };
    let _ = reader.definition();
}

/// What is called with each text.
type Found<'f, 'a> = &'f mut dyn FnMut(Field, Text<'a>);

/// A definition on the way through its texts: every byte is read once.
struct Reader<'f, 'a> {
    json: &'a [u8],
    cursor: Cursor<'a>,
    found: Found<'f, 'a>,
}

impl<'a> Reader<'_, 'a> {
    fn definition(&mut self) -> Result<(), ScanError> {
        self.object(|reader, key| match key {
            b"\"title\"" | b"\"description\"" => reader.text(Field::Description),
            b"\"inputSchema\"" => reader.schema(DEPTH),
            _ => reader.skip(),
        })
    }

    fn schema(&mut self, depth: u32) -> Result<(), ScanError> {
        if depth == 0 {
            return self.skip();
        }
        self.object(|reader, key| match key {
            b"\"properties\"" => reader.object(|reader, name| {
                (reader.found)(Field::Parameter, Text::Json(name));
                reader.schema(depth - 1)
            }),
            b"\"$defs\"" | b"\"definitions\"" => reader.object(|reader, _| reader.schema(depth - 1)),
            b"\"description\"" | b"\"title\"" => reader.text(Field::Detail),
            b"\"items\"" | b"\"additionalProperties\"" => reader.schema(depth - 1),
            b"\"enum\"" => reader.array(|reader| reader.text(Field::Detail)),
            b"\"anyOf\"" | b"\"oneOf\"" | b"\"allOf\"" => reader.array(|reader| reader.schema(depth - 1)),
            _ => reader.skip(),
        })
    }

    /// A string is a text; another value is none.
    fn text(&mut self, field: Field) -> Result<(), ScanError> {
        if self.cursor.peek()? != b'"' {
            return self.skip();
        }
        let (span, _) = self.cursor.string()?;
        (self.found)(field, Text::Json(&self.json[span]));
        Ok(())
    }

    /// Calls `member` with each key as it is written; the value is read there. Another value is passed over.
    fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, &'a [u8]) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        if self.cursor.peek()? != b'{' {
            return self.skip();
        }
        let mut walk = Walk::open(&mut self.cursor, b'{', 0)?;
        while walk.advance(&mut self.cursor)? {
            let (key, _) = self.cursor.string()?;
            self.cursor.expect(b':')?;
            member(self, &self.json[key])?;
        }
        Ok(())
    }

    fn array(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        if self.cursor.peek()? != b'[' {
            return self.skip();
        }
        let mut walk = Walk::open(&mut self.cursor, b'[', 0)?;
        while walk.advance(&mut self.cursor)? {
            element(self)?;
        }
        Ok(())
    }

    fn skip(&mut self) -> Result<(), ScanError> {
        self.cursor.value(0).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_tools_texts_are_found_in_order_whatever_stands_between() {
        let definition = r#"{ "name" : "t", "x":[1,{"y":"]}\""},[]], "description":"d\\", "title":7,
            "inputSchema":{"type":"object","properties":{"a":{"enum":["b",1,["c"]]},"e":null},"$defs":{"f":{"title":"g"}}},
            "z":-1.5e3 }"#;
        let tool = Tool::parse(Bytes::from(definition)).unwrap();
        let mut texts = Vec::new();
        each_text("s", &tool, &mut |field, text| texts.push((field, text.read().into_owned())));
        let expected = [
            (Field::Server, "s"),
            (Field::Name, "t"),
            (Field::Description, "d\\"),
            (Field::Parameter, "a"),
            (Field::Detail, "b"),
            (Field::Parameter, "e"),
            (Field::Detail, "g"),
        ];
        assert_eq!(texts, expected.map(|(field, text)| (field, text.to_owned())));
    }

    proptest! {
        #[test]
        fn reading_texts_of_an_arbitrary_definition_ends(json in r#"[\[\]{},:"\\a1 ]{0,40}"#) {
            let mut found = |_: Field, _: Text<'_>| {};
            let mut reader = Reader { json: json.as_bytes(), cursor: Cursor::new(json.as_bytes(), 0), found: &mut found };
            let _ = reader.definition();
            reader.cursor = Cursor::new(json.as_bytes(), 0);
            let _ = reader.array(|reader| reader.schema(DEPTH));
        }
    }
}
