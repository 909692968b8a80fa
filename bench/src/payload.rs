//! The deterministic answers: the stub sends them, and the driver knows what must arrive.

use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// One block of prose with escaped newlines and quotes.
    Text,
    /// Structured content of many small objects, each with ids of its own.
    Objects,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::Text, Self::Objects];

    /// The stub's tool that answers with this kind.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Text => "fetch_text",
            Self::Objects => "fetch_objects",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Objects => "objects",
        }
    }

    pub(crate) fn from_tool(tool: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tool() == tool)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum IdPlace {
    First,
    Last,
}

/// An answer around its id: the line is `before`, the id, and `after`.
#[derive(Debug)]
pub(crate) struct Payload {
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
    /// The value of `result`, which must arrive unchanged.
    pub(crate) result: Vec<u8>,
}

impl Payload {
    /// A payload. `size` is the length in bytes of the encoded text, or of the encoded items.
    pub(crate) fn new(kind: Kind, size: usize, id_place: IdPlace) -> Self {
        let result = match kind {
            Kind::Text => {
                format!(r#"{{"content":[{{"type":"text","text":"{}"}}],"isError":false}}"#, text(size))
            }
            Kind::Objects => format!(
                r#"{{"content":[{{"type":"text","text":"see the items"}}],"structuredContent":{{"items":[{}]}}}}"#,
                objects(size)
            ),
        };
        let (before, after) = match id_place {
            IdPlace::First => (r#"{"jsonrpc":"2.0","id":"#.to_owned(), format!(r#","result":{result}}}"#)),
            IdPlace::Last => (format!(r#"{{"result":{result},"jsonrpc":"2.0","id":"#), "}".to_owned()),
        };
        Self { before: before.into_bytes(), after: after.into_bytes(), result: result.into_bytes() }
    }

    /// The length of a line without its id.
    pub(crate) fn len(&self) -> usize {
        self.before.len() + self.after.len()
    }
}

/// JSON-encoded prose of exactly `size` bytes: whole sentences, so that no escape is cut, then dots.
fn text(size: usize) -> String {
    const SENTENCES: [&str; 4] = [
        r"The harbour master keeps one ledger for every berth, and nobody else writes in it.\n",
        r#"\"Is the tide in?\" asked the pilot; \"not before noon\", said the board.\n\n"#,
        r"A crate that arrives unmarked is weighed, listed and set aside until its owner comes. ",
        r#"See \"Rules of the quay\", part 3:\n\t- no open fires\n\t- no ropes across the path\n"#,
    ];
    let mut text = String::with_capacity(size);
    for sentence in SENTENCES.iter().cycle() {
        if text.len() + sentence.len() > size {
            break;
        }
        text.push_str(sentence);
    }
    text.extend(std::iter::repeat_n('.', size - text.len()));
    text
}

/// Encoded objects, comma-separated, of exactly `size` bytes unless `size` is too small for one.
fn objects(size: usize) -> String {
    const LAST: &str = r#"{"id":0,"pad":""}"#;
    let mut objects = String::with_capacity(size);
    let mut one = String::new();
    for number in 1.. {
        one.clear();
        let _ = write!(
            one,
            r#"{{"id":{number},"name":"berth {number}","owner":{{"id":"u-{}","active":{}}},"tags":["a","b"],"load":{}.25}},"#,
            number % 97,
            number % 2 == 0,
            number % 1000,
        );
        if objects.len() + one.len() + LAST.len() > size {
            break;
        }
        objects.push_str(&one);
    }
    let pad = size.saturating_sub(objects.len() + LAST.len());
    let _ = write!(objects, r#"{{"id":0,"pad":"{}"}}"#, ".".repeat(pad));
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_json_of_the_size_asked_for() {
        for (kind, id_place) in
            Kind::ALL.into_iter().flat_map(|kind| [(kind, IdPlace::First), (kind, IdPlace::Last)])
        {
            let envelope = Payload::new(kind, 500, id_place).len() - 500;
            for size in [500, 1000, 100_000] {
                let payload = Payload::new(kind, size, id_place);
                assert_eq!(payload.len(), envelope + size);
                let line = [&payload.before, b"7".as_slice(), &payload.after].concat();
                let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
                assert_eq!(value["id"], 7);
                assert!(value["result"]["content"][0]["text"].is_string());
            }
        }
    }
}
