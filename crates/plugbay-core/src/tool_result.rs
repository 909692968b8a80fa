//! The result of `tools/call`, read in one pass: its blocks, its texts, and the value that its caller wants.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::{
    script::Reading,
    text::string_text,
    wire::{Cursor, Member, Members, ScanError, Span, Walk, string_value},
};

/// A result of `tools/call`, and the places of its parts.
pub struct ToolResult<'a> {
    pub(crate) json: &'a [u8],
    /// The members in their order. A key that occurs twice stays twice.
    pub(crate) members: Vec<Member<'a>>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) is_error: bool,
    content: Option<Span>,
    structured: Option<Span>,
}

/// An element of `content`.
pub(crate) struct Block {
    pub(crate) span: Span,
    /// The text of a text block, with its quotes.
    pub(crate) text: Option<Span>,
    /// The text of an embedded resource, with its quotes.
    embedded: Option<Span>,
}

impl<'a> ToolResult<'a> {
    /// Reads a result; `None` if it is no object.
    pub fn read(json: &'a [u8]) -> Option<Self> {
        let mut result = Self {
            json,
            members: Vec::new(),
            blocks: Vec::new(),
            is_error: false,
            content: None,
            structured: None,
        };
        result.read_members().ok()?;
        Some(result)
    }

    fn read_members(&mut self) -> Result<(), ScanError> {
        let mut cursor = Cursor::new(self.json, 0);
        cursor.peek()?;
        let mut walk = Walk::open(&mut cursor, b'{', 0)?;
        while walk.advance(&mut cursor)? {
            let (key_span, _) = cursor.string()?;
            cursor.expect(b':')?;
            let key = string_value(&self.json[key_span.clone()]).unwrap_or_default();
            let first = cursor.peek()?;
            let start = cursor.at();
            let value = if key == "content" && first == b'[' && self.content.is_none() {
                self.read_content(&mut cursor)?;
                start..cursor.at()
            } else {
                cursor.checked_value()?
            };
            match key.as_ref() {
                "content" => self.content = self.content.take().or(Some(value.clone())),
                "structuredContent" if first != b'n' => self.structured = Some(value.clone()),
                "isError" => self.is_error = self.json[value.clone()] == *b"true",
                _ => {}
            }
            self.members.push(Member { key, key_span, value });
        }
        cursor.end()
    }

    fn read_content(&mut self, cursor: &mut Cursor<'_>) -> Result<(), ScanError> {
        let mut walk = Walk::open(cursor, b'[', 1)?;
        while walk.advance(cursor)? {
            let first = cursor.peek()?;
            let start = cursor.at();
            let (text, embedded) = if first == b'{' {
                self.read_block(cursor)?
            } else {
                cursor.value(2).map(|_| (None, None))?
            };
            self.blocks.push(Block { span: start..cursor.at(), text, embedded });
        }
        Ok(())
    }

    /// The text of a text block, and that of an embedded resource. A block that does not say its type may be a text.
    fn read_block(&self, cursor: &mut Cursor<'_>) -> Result<(Option<Span>, Option<Span>), ScanError> {
        let (mut is_text, mut text, mut resource) = (true, None, None);
        let mut walk = Walk::open(cursor, b'{', 2)?;
        while walk.advance(cursor)? {
            let (key, _) = cursor.string()?;
            cursor.expect(b':')?;
            let value = cursor.checked_value()?;
            match &self.json[key] {
                b"\"type\"" => is_text = self.json[value] == *b"\"text\"",
                b"\"text\"" => text = Some(value).filter(|text| self.is_string(text)),
                b"\"resource\"" => resource = Some(value),
                _ => {}
            }
        }
        let embedded = resource.and_then(|resource| Members::find(self.json, &resource, "text"));
        Ok((text.filter(|_| is_text), embedded.filter(|text| self.is_string(text))))
    }

    fn is_string(&self, value: &Span) -> bool {
        self.json[value.start] == b'"'
    }

    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The place of the value that a script gets. A text that `structuredContent` only wraps is text by its
    /// schema: it stays text, whatever it contains. Other text is parsed only if it is an object or a list.
    pub fn reading(&self) -> Reading {
        if self.structured.is_some() {
            return if self.is_wrapped_text() { Reading::Text } else { Reading::Structured };
        }
        let has_other = self.blocks.iter().any(|block| block.text.is_none() && block.embedded.is_none());
        if has_other || self.blocks.is_empty() {
            return Reading::Content; // an image beside a text must not be lost
        }
        let is_one = self.blocks.len() == 1;
        // A number or a word in quotes may just as well be a version or a line of a file.
        let is_json = |text: Cow<'_, str>| text.trim_start().starts_with(['{', '[']) && is_json(&text);
        match self.texts().all(is_json) {
            true if is_one => Reading::Json,
            true => Reading::JsonEach,
            false => Reading::Text,
        }
    }

    /// Whether `content` or `structuredContent` occurs twice: readers may take either.
    pub(crate) fn is_ambiguous(&self) -> bool {
        let is_twice = |key: &str| self.members.iter().filter(|member| member.key == key).count() > 1;
        is_twice("content") || is_twice("structuredContent")
    }

    pub(crate) fn has_content(&self) -> bool {
        self.content.is_some()
    }

    /// `structuredContent`, unless it is `null`.
    pub fn structured(&self) -> Option<&'a [u8]> {
        self.structured.clone().map(|span| &self.json[span])
    }

    /// The texts of text blocks and of resources that are embedded as text.
    fn texts(&self) -> impl Iterator<Item = Cow<'a, str>> {
        let json = self.json;
        let spans = self.blocks.iter().filter_map(|block| block.text.as_ref().or(block.embedded.as_ref()));
        spans.map(move |span| string_text(&json[span.start + 1..span.end - 1]))
    }

    /// The texts, each from a new line on; `None` if there are none.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        self.texts().reduce(|all, text| Cow::Owned(all.into_owned() + "\n" + &text))
    }

    /// Roughly how many bytes a model sees: texts or structured content. Most servers send the same as both.
    pub fn shown_bytes(&self) -> usize {
        let texts = self.blocks.iter().filter_map(|block| block.text.as_ref());
        texts.map(Span::len).sum::<usize>().max(self.structured.as_ref().map_or(0, Span::len))
    }

    /// Whether `structuredContent` only wraps the text: `{"result": "the text"}`. Many servers do so for tools that return text.
    fn is_wrapped_text(&self) -> bool {
        let Some(structured) = self.structured() else { return false };
        let mut texts = self.blocks.iter().filter_map(|block| block.text.as_ref());
        match (texts.next(), texts.next(), only_member(structured)) {
            (Some(text), None, Some(member)) => structured[member] == self.json[text.clone()],
            _ => false,
        }
    }

    /// The value of the result, as JSON text. It is the first of these that exists:
    ///
    /// 1. `structuredContent`, unless it is `null`, or an object whose only member is the text itself;
    /// 2. the text of the only text item, if it is JSON, else as a string;
    /// 3. for several text items: an array of their values if each is JSON, else all lines as one string;
    /// 4. the `content` as it is: images, links and the like;
    /// 5. `null`.
    ///
    /// A resource that is embedded as text is a text item.
    pub fn value(&self) -> Cow<'a, [u8]> {
        if let Some(structured) = self.structured().filter(|_| !self.is_wrapped_text()) {
            return Cow::Borrowed(structured);
        }
        let Some(content) = self.content.clone() else { return Cow::Borrowed(b"null") };
        let texts: Vec<Cow<'a, str>> = self.texts().collect();
        match <[_; 1]>::try_from(texts) {
            Ok([text]) if is_json(&text) => bytes(text),
            Ok([text]) => string(&text),
            Err(texts) if texts.is_empty() => Cow::Borrowed(&self.json[content]),
            Err(texts) if texts.iter().all(|text| is_json(text)) => {
                Cow::Owned(format!("[{}]", texts.join(",")).into_bytes())
            }
            Err(texts) => string(&texts.join("\n")),
        }
    }
}

/// The value of the only member of an object.
pub(crate) fn only_member(object: &[u8]) -> Option<Span> {
    let mut cursor = Cursor::new(object, 0);
    let mut walk = Walk::open(&mut cursor, b'{', 0).ok()?;
    if !walk.advance(&mut cursor).ok()? {
        return None;
    }
    cursor.string().ok()?;
    cursor.expect(b':').ok()?;
    let value = cursor.checked_value().ok()?;
    (cursor.peek() == Ok(b'}')).then_some(value)
}

/// [`ToolResult::value`] of a result; `null` if the JSON is no result.
pub fn result_value(result: &[u8]) -> Cow<'_, [u8]> {
    ToolResult::read(result).map_or(Cow::Borrowed(b"null"), |result| result.value())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

fn string(text: &str) -> Cow<'static, [u8]> {
    Cow::Owned(serde_json::Value::from(text).to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(result: &str, expected: &str) {
        assert_eq!(std::str::from_utf8(&result_value(result.as_bytes())), Ok(expected), "{result}");
    }

    #[test]
    fn structured_content_is_the_value_of_a_result() {
        check(
            r#"{"content":[{"type":"text","text":"no"}],"structuredContent":{ "n": 1.10 }}"#,
            r#"{ "n": 1.10 }"#,
        );
        check(r#"{"content":[{"type":"text","text":"yes"}],"structuredContent":null}"#, r#""yes""#);
        check(r#"{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":"[1]"}}"#, "[1]");
        let other = r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"result":"a","n":1}}"#;
        check(other, r#"{"result":"a","n":1}"#);
    }

    #[test]
    fn a_script_gets_structured_content_json_text_or_content() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        for (result, expected) in [
            (json!({ "content": [text("no")], "structuredContent": { "n": 1 } }), Reading::Structured),
            (json!({ "content": [text("[1]")], "structuredContent": { "result": "[1]" } }), Reading::Text),
            (json!({ "content": [text(" {\"n\":1}")] }), Reading::Json),
            (json!({ "content": [text("1.10")] }), Reading::Text),
            (json!({ "content": [text("\"q\"")] }), Reading::Text),
            (json!({ "content": [text("[1"), text("2]")] }), Reading::Text),
            (json!({ "content": [text("{}"), text("[2]")] }), Reading::JsonEach),
            (json!({ "content": [text("{}"), image] }), Reading::Content),
            (json!({ "content": [] }), Reading::Content),
        ] {
            let json = result.to_string();
            assert_eq!(ToolResult::read(json.as_bytes()).unwrap().reading(), expected, "{json}");
        }
    }

    #[test]
    fn text_that_is_json_is_the_value_of_a_result() {
        check(r#"{"content":[{"type":"text","text":"{\"n\": 1.10}"}]}"#, r#"{"n": 1.10}"#);
        check(r#"{"content":[{"type":"text","text":"42"}]}"#, "42");
        check(r#"{"content":[{"type":"text","text":"say \"x\"\n"}]}"#, r#""say \"x\"\n""#);
        check(r#"{"content":[{"type":"text","text":""}]}"#, r#""""#);
        check(r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"[1]"}}]}"#, "[1]");
    }

    #[test]
    fn several_texts_are_an_array_of_json_or_one_string() {
        let texts = |first: &str, second: &str| {
            let item = |text| format!(r#"{{"type":"text","text":"{text}"}}"#);
            format!(r#"{{"content":[{},{{"type":"image","data":""}},{}]}}"#, item(first), item(second))
        };
        check(&texts("{}", "[1]"), "[{},[1]]");
        check(&texts("{}", "done"), r#""{}\ndone""#);
    }

    #[test]
    fn content_without_text_is_its_own_value() {
        check(r#"{"content":[{"type":"image","data":"UE5H"}]}"#, r#"[{"type":"image","data":"UE5H"}]"#);
        check(r#"{"content":[]}"#, "[]");
        check("{}", "null");
        check("nonsense", "null");
    }

    #[test]
    fn the_text_of_a_result_is_that_of_all_its_blocks() {
        let text = |result: &str| ToolResult::read(result.as_bytes()).unwrap().text().map(Cow::into_owned);
        assert_eq!(
            text(r#"{"content":[{"text":"a","type":"text"},{"text":"no","type":"other"}]}"#).as_deref(),
            Some("a")
        );
        let several =
            r#"{"content":[{"text":"a\n"},{"type":"image"},{"type":"resource","resource":{"text":"b"}},5]}"#;
        assert_eq!(text(several).as_deref(), Some("a\n\nb"));
        assert_eq!(text(r#"{"content":[{"type":"text","text":5}],"structuredContent":{}}"#), None);
        assert_eq!(text(r#"{"content":[{"type":"text","text":"\ud800x"}]}"#).as_deref(), Some("\u{fffd}x"));
    }

    #[test]
    fn the_length_of_a_result_is_that_of_its_texts_or_of_its_structured_content() {
        let shown = |result: &str| ToolResult::read(result.as_bytes()).unwrap().shown_bytes();
        assert_eq!(shown(r#"{"content":[{"type":"text","text":"abc"},{"type":"text","text":"d"}]}"#), 8);
        assert_eq!(shown(r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"a":[1,2]}}"#), 11);
        assert_eq!(shown(r#"{"content":[{"type":"image","data":"abcdefgh"}]}"#), 0);
    }
}
