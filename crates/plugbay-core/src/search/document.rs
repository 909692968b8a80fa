//! The searchable texts of a tool, by field.

use std::borrow::Cow;

use crate::{
    catalog::Tool,
    wire::{Cursor, ScanError, Walk, string_value},
};

/// The field in which a text stands. How much a word says about a tool depends on it.
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

    /// How much a long text lowers the weight of its words, between 0 and 1.
    pub(super) fn length_counts(self) -> f32 {
        match self {
            Self::Name | Self::Server => 0.75,
            Self::Description | Self::Parameter => 0.4,
            Self::Detail => 0.3,
        }
    }
}

/// How deep in a schema parameters are looked for.
const DEPTH: u32 = 6;
/// How many bytes of a tool's texts are searched, and how many of each text: the first ones.
const SEARCHED: usize = 64 << 10;
const TEXT: usize = 16 << 10;

/// A text as it is written: there are many, and not all need to be decoded.
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

    /// Its beginning, as far as it is searched.
    pub(super) fn searched(self) -> Cow<'a, str> {
        let text = self.read();
        if text.len() <= TEXT {
            return text;
        }
        let end = text.floor_char_boundary(TEXT);
        match text {
            Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
            Cow::Owned(mut text) => {
                text.truncate(end);
                Cow::Owned(text)
            }
        }
    }

    fn length(self) -> usize {
        match self {
            Self::Plain(text) => text.len(),
            Self::Json(text) => text.len(),
        }
    }
}

/// Calls `found` with each searched text of a tool. After a byte that is not JSON there are none.
pub(super) fn each_text<'a>(server: &'a str, tool: &'a Tool, found: Found<'_, 'a>) {
    let mut room = SEARCHED;
    let found: Found<'_, 'a> = &mut |field, text| {
        if room > 0 {
            // Each text takes some time, however short it is.
            room = room.saturating_sub(text.length().clamp(8, TEXT));
            found(field, text);
        }
    };
    found(Field::Server, Text::Plain(server));
    found(Field::Name, Text::Plain(&tool.name));
    let mut reader = Reader { json: &tool.definition, cursor: Cursor::new(&tool.definition, 0), found };
    let _ = reader.definition();
}

/// The function that is called with each text.
type Found<'f, 'a> = &'f mut dyn FnMut(Field, Text<'a>);

/// Reads the texts of a definition; every byte is read once.
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

    /// Takes a string as a text, and skips any other value.
    fn text(&mut self, field: Field) -> Result<(), ScanError> {
        if self.cursor.peek()? != b'"' {
            return self.skip();
        }
        let (span, _) = self.cursor.string()?;
        (self.found)(field, Text::Json(&self.json[span]));
        Ok(())
    }

    /// Calls `member` with each key as it is written, to read the value. Skips a value that is no object.
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

    #[test]
    fn only_the_first_texts_of_a_definition_are_searched() {
        let long = "word ".repeat(100_000);
        let properties = (0..50_000).map(|n| format!(r#""p{n}":{{}}"#)).collect::<Vec<_>>().join(",");
        let definition = format!(
            r#"{{"name":"t","description":"{long}","inputSchema":{{"properties":{{{properties}}}}}}}"#
        );
        let tool = Tool::parse(Bytes::from(definition)).unwrap();
        let (mut texts, mut bytes) = (0, 0);
        each_text("s", &tool, &mut |_, text| {
            texts += 1;
            bytes += text.searched().len();
        });
        assert!(texts > 100 && texts < SEARCHED / 8 && bytes <= SEARCHED, "{texts} texts, {bytes} bytes");
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
