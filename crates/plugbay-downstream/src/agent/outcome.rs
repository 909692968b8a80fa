//! The outcome of a call: text for the model, and content blocks for the user.

use std::fmt::Write;

use plugbay_core::text::visible;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::report::CallStatus;
use crate::run::calls::CallEnd;

/// The model reads at most this much of a result, in characters.
const LONGEST: usize = 20_000;

pub(super) struct Outcome {
    pub(super) text: String,
    pub(super) status: CallStatus,
    /// Images, sounds, files and links, unchanged.
    pub(super) shown: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolAnswer {
    #[serde(default)]
    content: Vec<Box<RawValue>>,
    structured_content: Option<Box<RawValue>>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    mime_type: String,
    #[serde(default)]
    uri: String,
    resource: Option<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    uri: String,
    text: Option<String>,
}

impl Outcome {
    /// The outcome of a call that was not made.
    pub(super) fn refused(why: &str) -> Self {
        let text = format!("The call was not made: {why}");
        Self { text, status: CallStatus::Refused(why.to_owned()), shown: Vec::new() }
    }

    pub(super) fn of(end: CallEnd) -> Self {
        match end {
            CallEnd::Result(result) => Self::read(&result),
            CallEnd::Failed(why) => Self::failed(&why),
        }
    }

    /// The outcome of a call that was made and has no result.
    pub(super) fn failed(why: &str) -> Self {
        Self { text: failure(why), status: CallStatus::Failed(why.to_owned()), shown: Vec::new() }
    }

    /// Reads a result of `tools/call`.
    pub(super) fn read(result: &[u8]) -> Self {
        let answer: ToolAnswer = match serde_json::from_slice(result) {
            Ok(answer) => answer,
            Err(error) => return Self::failed(&format!("the result cannot be read: {error}")),
        };
        let (mut text, mut shown) = (String::new(), Vec::new());
        for raw in answer.content {
            let Ok(block) = serde_json::from_str::<Block>(raw.get()) else { continue };
            let _ = writeln!(text, "{}", block.describe());
            if block.kind != "text" {
                shown.push(raw);
            }
        }
        if let Some(structure) = answer.structured_content.filter(|_| text.is_empty()) {
            structure.get().clone_into(&mut text);
        }
        let text = cut(text.trim_end());
        if answer.is_error {
            return Self { text: failure(&text), status: CallStatus::Failed(text), shown };
        }
        Self { text, status: CallStatus::Done, shown }
    }
}

impl Block {
    /// Describes a block in words: the model may not be able to see it, and it may be large.
    fn describe(&self) -> String {
        let Self { kind, text, mime_type, uri, resource } = self;
        let [kind, mime_type, uri] = [kind, mime_type, uri].map(|text| visible(text));
        match (&*kind, resource) {
            ("text", _) => text.clone(),
            ("resource_link", _) => format!("[link to {uri}, shown to the user]"),
            ("resource", Some(Resource { text: Some(text), uri })) => format!("[{}]\n{text}", visible(uri)),
            ("resource", Some(Resource { uri, .. })) => format!("[{}, shown to the user]", visible(uri)),
            _ => format!("[{kind}, {mime_type}, shown to the user]"),
        }
    }
}

/// The text of a failed call. It says so, because not every provider has a flag for failed calls.
fn failure(why: &str) -> String {
    format!("The call failed: {why}")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}\n[cut here: {} bytes more]", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_results_become_text_and_keep_their_content_blocks() {
        let image = r#"{ "type":"image","data":"AAAA","mimeType":"image/png","n":1.0}"#;
        let link = r#"{"type":"resource_link","uri":"file:///a","name":"a"}"#;
        let file = r#"{"type":"resource","resource":{"uri":"file:///b","text":"B"}}"#;
        let blob = r#"{"type":"resource","resource":{"uri":"file:///c","blob":"AAAA"}}"#;
        let result = format!(r#"{{"content":[{{"type":"text","text":"Hi"}},{image},{link},{file},{blob}]}}"#);
        let outcome = Outcome::read(result.as_bytes());
        let expected = "Hi\n[image, image/png, shown to the user]\n[link to file:///a, shown to the user]\n\
            [file:///b]\nB\n[file:///c, shown to the user]";
        assert_eq!((outcome.text.as_str(), &outcome.status), (expected, &CallStatus::Done));
        let shown: Vec<&str> = outcome.shown.iter().map(|raw| raw.get()).collect();
        assert_eq!(shown, [image, link, file, blob]);
    }

    #[test]
    fn structured_content_is_the_text_of_a_tool_result_without_text() {
        let bare = Outcome::read(br#"{"structuredContent":{"n":12345678901234567890123}}"#);
        assert_eq!(bare.text, r#"{"n":12345678901234567890123}"#);
        let both = Outcome::read(br#"{"content":[{"type":"text","text":"n"}],"structuredContent":{}}"#);
        assert_eq!(both.text, "n");
    }

    #[test]
    fn failed_tool_results_say_so_and_long_ones_are_cut() {
        let failed = Outcome::read(br#"{"content":[{"type":"text","text":"no disk"}],"isError":true}"#);
        assert_eq!(failed.text, "The call failed: no disk");
        assert_eq!(failed.status, CallStatus::Failed("no disk".to_owned()));
        assert!(matches!(Outcome::read(b"7").status, CallStatus::Failed(_)));
        let long = format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, "ü".repeat(LONGEST + 3));
        assert!(Outcome::read(long.as_bytes()).text.ends_with("ü\n[cut here: 6 bytes more]"));
    }
}
