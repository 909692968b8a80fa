//! One message as received, with the positions of its envelope's members.

use std::{fmt, ops::Range, time::Instant};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// How a message was delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Newline,
    ContentLength,
}

/// The bytes of one message, kept as they were. Accessors give raw JSON text, never a re-encoding.
#[derive(Clone)]
pub struct RawMessage {
    text: String,
    pub framing: Framing,
    pub at: Instant,
    members: Members,
}

#[derive(Debug, Clone, Default)]
struct Members {
    id: Option<Range<usize>>,
    method: Option<Range<usize>>,
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Maybe<'a>,
    #[serde(borrow, default)]
    method: Maybe<'a>,
    #[serde(borrow, default)]
    params: Maybe<'a>,
    #[serde(borrow, default)]
    result: Maybe<'a>,
    #[serde(borrow, default)]
    error: Maybe<'a>,
}

/// A member that is absent, or present with any value, `null` included.
#[derive(Default)]
struct Maybe<'a>(Option<&'a str>);

impl<'de: 'a, 'a> Deserialize<'de> for Maybe<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(|raw| Self(Some(raw.get())))
    }
}

impl RawMessage {
    pub fn new(text: String, framing: Framing) -> Self {
        let members = Members::find(&text);
        Self { text, framing, at: Instant::now(), members }
    }

    /// The whole message.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// The raw text of `id`, quotes included.
    pub fn id(&self) -> Option<&str> {
        self.part(self.members.id.as_ref())
    }

    pub fn method(&self) -> Option<String> {
        self.part(self.members.method.as_ref()).and_then(|raw| serde_json::from_str(raw).ok())
    }

    /// The raw text of `params`.
    pub fn params(&self) -> Option<&str> {
        self.part(self.members.params.as_ref())
    }

    pub fn params_value(&self) -> Value {
        self.params().map_or(Value::Null, |raw| serde_json::from_str(raw).expect("params"))
    }

    pub fn is_response(&self) -> bool {
        self.members.result.is_some() || self.members.error.is_some()
    }

    pub fn is_error(&self) -> bool {
        self.members.error.is_some()
    }

    /// The raw text of `result`; panics if there is none.
    #[track_caller]
    pub fn result(&self) -> &str {
        self.part(self.members.result.as_ref()).unwrap_or_else(|| panic!("no result in {self:?}"))
    }

    #[track_caller]
    pub fn result_value(&self) -> Value {
        serde_json::from_str(self.result()).expect("result")
    }

    /// The text of the result's first content item.
    #[track_caller]
    pub fn content_text(&self) -> String {
        let result = self.result_value();
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {self:?}")).to_owned()
    }

    /// The raw text of `error`; panics if there is none.
    #[track_caller]
    pub fn error(&self) -> &str {
        self.part(self.members.error.as_ref()).unwrap_or_else(|| panic!("no error in {self:?}"))
    }

    #[track_caller]
    pub fn error_code(&self) -> i64 {
        let error: Value = serde_json::from_str(self.error()).expect("error");
        error["code"].as_i64().unwrap_or_else(|| panic!("no code in {self:?}"))
    }

    /// The text that reports a failure to the host: an error's message and data, or the text of an `isError`
    /// result.
    #[track_caller]
    pub fn failure(&self) -> String {
        if self.is_error() {
            let error: Value = serde_json::from_str(self.error()).expect("error");
            return format!("{} {}", error["message"].as_str().unwrap_or_default(), error["data"]);
        }
        assert_eq!(self.result_value()["isError"], true, "expected a failure, got {self:?}");
        self.content_text()
    }

    /// The messages of a batch, or this one alone.
    pub fn members_of_batch(&self) -> Vec<RawMessage> {
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(&self.text) else { return vec![self.clone()] };
        items.into_iter().map(|item| Self::new(item.get().to_owned(), self.framing)).collect()
    }

    /// The message, shortened for a list of many.
    pub(crate) fn brief(&self) -> String {
        cut(&self.text, 400)
    }

    fn part(&self, range: Option<&Range<usize>>) -> Option<&str> {
        range.map(|range| &self.text[range.clone()])
    }
}

/// Cuts long messages in the middle, because this is for reading in a failed test.
impl fmt::Debug for RawMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&cut(&self.text, 3000))
    }
}

fn cut(text: &str, limit: usize) -> String {
    const TAIL: usize = 100;
    if text.len() <= limit + TAIL {
        return text.to_owned();
    }
    let head = boundary(text, limit);
    let tail = boundary(text, text.len() - TAIL);
    format!("{} …[{} bytes]… {}", &text[..head], text.len(), &text[tail..])
}

/// The nearest character boundary at or before `index`.
fn boundary(text: &str, index: usize) -> usize {
    (0..=index).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl Members {
    fn find(text: &str) -> Self {
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text) else { return Self::default() };
        let place = |part: Maybe<'_>| {
            part.0.map(|part| {
                let start = part.as_ptr() as usize - text.as_ptr() as usize;
                start..start + part.len()
            })
        };
        Self {
            id: place(envelope.id),
            method: place(envelope.method),
            params: place(envelope.params),
            result: place(envelope.result),
            error: place(envelope.error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_bytes_of_each_member() {
        let text = r#"{"result": {"b":1.0,"a":123456789012345678901234567890} ,"id":null,"jsonrpc":"2.0"}"#;
        let message = RawMessage::new(text.to_owned(), Framing::Newline);
        assert_eq!(message.id(), Some("null"));
        assert_eq!(message.result(), r#"{"b":1.0,"a":123456789012345678901234567890}"#);
        assert_eq!(message.method(), None);
        assert!(message.is_response());
    }
}
