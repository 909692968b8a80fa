//! The parts of a result: its text, its value, its outline.

use std::borrow::Cow;

use bytes::Bytes;
use plugbay_core::{
    arguments::{CompiledSchema, Mode, check},
    filter::FilterError,
    outline::{self, OUTLINE_TOKENS, OutputSchema, Readable, Replacement},
    shape::Shape,
    text::on_one_line as on_one_line_text,
    tool_result::{ToolResult, result_value},
    wire::{Members, string_value},
};
use serde_json::{Value, json, value::RawValue};

/// How many tokens of an error message are kept.
const ERROR: usize = 1_500;

/// The result with an outline in place of large content; `None` if nothing is large. `threshold` is in bytes,
/// `closing` is the last line. `schema` is the tool's output schema, if the host may check results against
/// it.
pub(crate) fn outlined(
    result: &[u8],
    threshold: usize,
    closing: &str,
    schema: Option<&CompiledSchema>,
) -> Option<Vec<u8>> {
    let result = ToolResult::read(result).filter(|result| result.shown_bytes() > threshold)?;
    let fits = |json: &[u8]| schema.is_some_and(|schema| check(schema, json, Mode::CheckOnly).is_ok());
    let how = Replacement {
        threshold: 1, // it is decided in bytes, as hosts do
        outline: OUTLINE_TOKENS,
        error: ERROR,
        closing,
        schema: if schema.is_some() { OutputSchema::Shortened(&fits) } else { OutputSchema::None },
    };
    outline::replace(&result, &how).map(|replaced| replaced.result)
}

/// The texts of a result, joined by line breaks; `None` if it has none.
pub(crate) fn text_of(result: &[u8]) -> Option<String> {
    ToolResult::read(result)?.text().map(Cow::into_owned)
}

/// The text that lines, pages and `grep` refer to: the text of the outline.
pub(crate) fn readable_text(result: &[u8]) -> String {
    let structured = |json: &[u8]| String::from_utf8_lossy(json).into_owned();
    let read = ToolResult::read(result);
    match read.as_ref().and_then(outline::readable) {
        Some(Readable { text: Some(text), .. }) => text.into_owned(),
        Some(Readable { structured: Some(json), .. }) => structured(json),
        _ => read.and_then(|read| read.text()).map_or_else(|| structured(result), Cow::into_owned),
    }
}

/// The value of a result as JSON: its structured content, else its text as JSON, as a list of JSON lines, or
/// as a string. If not all of several texts are JSON, it is the JSON that the outline shows.
pub(crate) fn json_of(result: &Bytes) -> Bytes {
    let value = match result_value(result) {
        Cow::Borrowed(value) => Bytes::copy_from_slice(value), // `null` stands nowhere
        Cow::Owned(value) => value.into(),
    };
    let text = Some(&value).filter(|value| value.starts_with(b"\"")).and_then(|value| string_value(value));
    let Some(text) = text else { return value };
    lines_of_json(&text).or_else(|| outlined_json(result, &text)).map_or(value.clone(), Bytes::from)
}

/// The JSON that is outlined, if there are small texts beside it, such as `Found 3 issues:`.
fn outlined_json(result: &[u8], all: &str) -> Option<String> {
    let read = ToolResult::read(result)?;
    let text = outline::readable(&read)?.text.filter(|text| text.len() < all.len())?;
    let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
    if is_json { Some(text.into_owned()) } else { lines_of_json(&text) }
}

/// JSON lines as a list of values.
fn lines_of_json(text: &str) -> Option<String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let values: Result<Vec<&RawValue>, _> = lines.map(serde_json::from_str).collect();
    let values = values.ok().filter(|values| values.len() > 1)?;
    serde_json::to_string(&values).ok()
}

/// The result as an argument, in JSON: its text as an unchanged string, or its structured content if it has
/// no text.
pub(crate) fn argument_of(result: &Bytes) -> Vec<u8> {
    match text_of(result) {
        Some(text) => Value::from(text).to_string().into_bytes(),
        None => json_of(result).to_vec(),
    }
}

/// The keys and types of a value, on one line.
pub(crate) fn shape_of(value: &[u8]) -> String {
    Shape::of(value).map(|shape| shape.to_string()).unwrap_or_default()
}

/// The result with this text in place of `content` and `structuredContent`, and `isError` set to `failed`. All
/// other members stay.
pub(crate) fn with_text(result: &[u8], text: &str, failed: bool) -> Vec<u8> {
    let content = json!([{ "type": "text", "text": text }]);
    let mut replaced = format!(r#"{{"content":{content},"isError":{failed}"#).into_bytes();
    for member in Members::of(result, &(0..result.len())).flatten() {
        if !matches!(&*member.key, "content" | "structuredContent" | "isError") {
            replaced.push(b',');
            replaced.extend_from_slice(&result[member.key_span]);
            replaced.push(b':');
            replaced.extend_from_slice(&result[member.value]);
        }
    }
    replaced.push(b'}');
    replaced
}

/// A result of a text, in the form in which servers send it.
pub(crate) fn text_result(text: &str) -> Bytes {
    json!({ "content": [{ "type": "text", "text": text }] }).to_string().into()
}

/// The error message for a filter that failed, for the model.
pub(crate) fn filter_failed(error: &FilterError, value: &[u8]) -> String {
    match error {
        FilterError::Unavailable(_) => error.to_string(),
        FilterError::Wrong(_) => {
            format!("jq: {}\nthe result: {}", on_one_line_text(&error.to_string()), shape_of(value))
        }
    }
}

/// Replaces line breaks between values by spaces: a server could take one for the end of the message.
pub(crate) fn on_one_line(mut json: Vec<u8>) -> Vec<u8> {
    for byte in json.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    json
}
