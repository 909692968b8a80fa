//! The result of a call: its text unchanged, any other item on one line.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
};

use plugbay_core::{
    text::escaped_json,
    wire::{Members, string_value},
};
use plugbay_sandbox::Outcome;
use serde_json::Value;

use super::{Output, Style, clean, clean_line, json::pretty, one_line, units::size};
use crate::{commands::call::CallResult, error::CommandError};

impl Output {
    /// Prints the result. Returns whether the tool succeeded. A tool's error goes to stderr, like any other.
    pub fn call_result(&self, call: &CallResult) -> bool {
        let result: Value = serde_json::from_slice(&call.result).unwrap_or_default();
        let failed = result["isError"] == true;
        // A person reads a terminal; a program or a file gets the data unchanged.
        let read = Reader { is_terminal: io::stdout().is_terminal() };
        if self.json {
            let json = String::from_utf8_lossy(&call.result);
            self.raw(if read.is_terminal { escaped_json(&json) } else { json }.as_bytes());
            self.raw("\n");
        } else if failed {
            self.tell(&complaint(&call.tool, &text(call, &result, Reader { is_terminal: true }), self.err));
        } else {
            self.raw(text(call, &result, read));
        }
        !failed
    }
}

impl Output {
    /// Prints the values that a filter made of a result, one per line; raw strings unchanged.
    pub fn filtered(&self, outcome: &Outcome, raw: bool) -> Result<(), CommandError> {
        let read = Reader { is_terminal: io::stdout().is_terminal() };
        for value in outcome.whole() {
            let text = string_value(&value).filter(|_| raw);
            let line = match text {
                Some(text) => read.text(&text),
                None if read.is_terminal => escaped_json(&String::from_utf8_lossy(&value)).into_owned(),
                None => String::from_utf8_lossy(&value).into_owned(),
            };
            self.raw(format!("{line}\n"));
        }
        match outcome.cut {
            Some(_) => Err(CommandError::failed("the values are too large to print").hint(format!(
                "{} of them are printed; choose fewer, with limit(10; …) for one",
                outcome.values
            ))),
            None => Ok(()),
        }
    }
}

fn complaint(tool: &str, text: &str, style: Style) -> String {
    let text = if text.is_empty() { "it gave no reason\n" } else { text };
    format!("{} {tool}: {text}", style.bad("error:"))
}

/// The reader of a result.
#[derive(Clone, Copy)]
struct Reader {
    is_terminal: bool,
}

impl Reader {
    fn text(self, text: &str) -> String {
        if self.is_terminal { clean(text) } else { text.to_owned() }
    }
}

fn text(call: &CallResult, result: &Value, reader: Reader) -> String {
    let raw = &call.result;
    let mut pieces: Vec<String> = Vec::new();
    let mut has_text = false;
    for (index, item) in result["content"].as_array().into_iter().flatten().enumerate() {
        let said = item["text"].as_str().or(item["resource"]["text"].as_str());
        has_text |= said.is_some();
        pieces.push(said.map_or_else(|| describe(item, call.saved.get(&index)), |text| reader.text(text)));
    }
    let structured = Members::find(raw, &(0..raw.len()), "structuredContent");
    if let Some(span) = structured.filter(|_| !has_text) {
        pieces.push(pretty(&String::from_utf8_lossy(&raw[span])));
    }
    if result["resultType"] == "input_required" {
        pieces.push("[the tool asks its user something, which only a host can answer]".to_owned());
    }
    let mut text = pieces.join("\n");
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Describes content that is not text, on one line.
fn describe(item: &Value, file: Option<&PathBuf>) -> String {
    let field = |value: &Value| value.as_str().map(one_line).filter(|text| !text.is_empty());
    // Base64 holds three bytes in four characters.
    let data = |value: &Value| value.as_str().map(|data| size(data.trim_end_matches('=').len() * 3 / 4));
    let (kind, source) = match item["type"].as_str() {
        Some("resource") => ("resource", &item["resource"]),
        Some("resource_link") => ("link", item),
        Some(kind) => (kind, item),
        None => ("unknown content", item),
    };
    let parts = [
        Some(clean_line(kind)),
        field(&source["uri"]),
        field(&source["name"]).filter(|_| kind == "link"),
        field(&source["mimeType"]),
        data(&source["data"]).or(data(&source["blob"])),
    ];
    let file = file.map(|file| format!(": {}", clean_line(&file.to_string_lossy()))).unwrap_or_default();
    format!("[{}{file}]", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[track_caller]
    fn check(result: &str, expected: &str) {
        check_saved(result, BTreeMap::new(), expected);
    }

    #[track_caller]
    fn check_saved(result: &str, saved: BTreeMap<usize, PathBuf>, expected: &str) {
        let call = CallResult { tool: "t".to_owned(), result: result.to_owned().into(), saved };
        let reader = Reader { is_terminal: true };
        assert_eq!(text(&call, &serde_json::from_str(result).unwrap(), reader), expected);
    }

    #[test]
    fn text_is_plain_and_the_rest_is_described() {
        check(
            r#"{"content":[{"type":"text","text":"a\u001b[31mb"},{"type":"text","text":"c\n"}]}"#,
            "ab\nc\n",
        );
        check(
            r#"{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}"#,
            "[image, image/png, 3 B]\n",
        );
        check(
            r#"{"content":[{"type":"resource_link","uri":"file:///x","name":"x","mimeType":"text/plain"}]}"#,
            "[link, file:///x, x, text/plain]\n",
        );
        check(r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"inside"}}]}"#, "inside\n");
        check(
            r#"{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"AAAAAAA="}}]}"#,
            "[resource, a:b, 5 B]\n",
        );
        check(r#"{"content":[{"type":"hologram"}]}"#, "[hologram]\n");
        check(r#"{"content":[]}"#, "");
    }

    #[test]
    fn a_program_gets_the_text_of_a_result_as_it_came() {
        let result = r#"{"content":[{"type":"text","text":"a\u001b[31mb\u202e\r\n"}]}"#;
        let call = CallResult { tool: "t".to_owned(), result: result.into(), saved: BTreeMap::new() };
        let value = serde_json::from_str(result).unwrap();
        assert_eq!(text(&call, &value, Reader { is_terminal: false }), "a\x1b[31mb\u{202e}\r\n");
        assert_eq!(text(&call, &value, Reader { is_terminal: true }), "ab\\u{202e}\n");
    }

    #[test]
    fn saved_content_is_shown_with_its_file() {
        check_saved(
            r#"{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}"#,
            BTreeMap::from([(0, "/tmp/t-1.png".into())]),
            "[image, image/png, 3 B: /tmp/t-1.png]\n",
        );
    }

    #[test]
    fn structure_is_shown_where_there_is_no_text() {
        check(r#"{"content":[],"structuredContent":{"z":1.50,"a":2}}"#, "{\n  \"z\": 1.50,\n  \"a\": 2\n}\n");
        check(r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"z":1}}"#, "x\n");
    }

    #[test]
    fn a_complaint_names_its_tool() {
        assert_eq!(
            complaint("calc.evaluate", "division by zero\n", Style::PLAIN),
            "error: calc.evaluate: division by zero\n"
        );
    }
}
