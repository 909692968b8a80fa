//! The value of a tool's result: the JSON that its caller is after, without the envelope of MCP.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use crate::wire::{Members, Span, elements, string_value};

/// The value of a result of `tools/call`, as JSON text. It is the first of these that there is:
///
/// 1. `structuredContent`, unless it is `null`;
/// 2. the text of the only text item, if it is JSON, else as a string;
/// 3. for several text items: an array of their values if each is JSON, else all lines as one string;
/// 4. the `content` as it is: images, links and the like;
/// 5. `null`.
///
/// A resource that is embedded as text is a text item.
pub fn result_value(result: &[u8]) -> Cow<'_, [u8]> {
    let all = 0..result.len();
    let structured = Members::find(result, &all, "structuredContent");
    if let Some(span) = structured.filter(|span| &result[span.clone()] != b"null") {
        return Cow::Borrowed(&result[span]);
    }
    let Some(content) = Members::find(result, &all, "content") else { return Cow::Borrowed(b"null") };
    let items = elements(result, &content);
    let texts: Vec<Cow<'_, str>> = items.iter().filter_map(|item| text(result, item)).collect();
    match <[_; 1]>::try_from(texts) {
        Ok([text]) if is_json(&text) => bytes(text),
        Ok([text]) => string(&text),
        Err(texts) if texts.is_empty() => Cow::Borrowed(&result[content]),
        Err(texts) if texts.iter().all(|text| is_json(text)) => {
            Cow::Owned(format!("[{}]", texts.join(",")).into_bytes())
        }
        Err(texts) => string(&texts.join("\n")),
    }
}

/// The text of a content item that has one.
fn text<'a>(result: &'a [u8], item: &Span) -> Option<Cow<'a, str>> {
    let text = |object: &Span| string_value(&result[Members::find(result, object, "text")?]);
    text(item).or_else(|| text(&Members::find(result, item, "resource")?))
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
}
