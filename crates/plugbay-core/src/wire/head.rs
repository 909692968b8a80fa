//! The envelope of a message: what kind it is and where its id, method and payload stand.

use memchr::memmem;

use super::{
    Members, ScanError, Span,
    scan::{Scanner, string_value},
};

/// Where the parts of a message are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub kind: Kind,
    /// The whole value at `params`, `result` or `error`.
    pub payload: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `method` is the text between the quotes.
    Request {
        id: Span,
        method: Span,
    },
    Notification {
        method: Span,
    },
    Result {
        id: Span,
    },
    /// An error may answer a message whose id could not be read.
    Error {
        id: Option<Span>,
    },
}

/// Why a message is refused, with its id where that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub id: Option<Span>,
    pub fault: Fault,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("not valid JSON: {0}")]
    Json(#[from] ScanError),
    #[error("not valid JSON: the text is not UTF-8")]
    Utf8,
    #[error("the message is longer than {0} bytes")]
    TooLong(usize),
    #[error("batches are not part of MCP; send one message at a time")]
    Batch,
    #[error("a message must be a JSON object")]
    NotAnObject,
    #[error("the key {0:?} occurs twice")]
    Duplicate(&'static str),
    #[error("the key {found:?} must be written {expected:?}")]
    Case { found: String, expected: &'static str },
    #[error("\"jsonrpc\" must be \"2.0\"")]
    Version,
    #[error("\"id\" must be a string or an integer")]
    Id,
    #[error("\"method\" must be a string without escapes")]
    Method,
    #[error("\"params\" must be an object")]
    Params,
    #[error("a message has either \"method\", \"result\" or \"error\"")]
    Shape,
}

impl Head {
    /// Reads a whole message strictly: grammar, depth, and an envelope that every parser reads alike.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        Envelope::read(bytes).and_then(Envelope::into_head)
    }

    /// Reads a message from a server. The payload of a response whose id comes first is left unread,
    /// as long as nothing in it could be taken for a second id.
    pub fn read_quickly(bytes: &[u8]) -> Result<Self, Malformed> {
        match leading_id(bytes) {
            Some(head) if !hides_an_id(bytes, &head) => Ok(head),
            _ => Self::read(bytes),
        }
    }

    /// The id of a response of which only the first part is at hand.
    pub fn id_of_truncated_response(bytes: &[u8]) -> Option<Span> {
        match leading_id(bytes)?.kind {
            Kind::Result { id } => Some(id),
            Kind::Error { id } => id,
            _ => None,
        }
    }
}

/// `{"jsonrpc":"2.0","id":…,"result":` in any order of the first two, up to the start of the payload.
fn leading_id(bytes: &[u8]) -> Option<Head> {
    let mut scanner = Scanner::new(bytes, 0);
    scanner.expect(b'{').ok()?;
    let (mut id, mut versioned) = (None, false);
    loop {
        let (key, escaped) = scanner.string().ok()?;
        scanner.expect(b':').ok()?;
        let key = if escaped { return None } else { &bytes[key] };
        match key {
            br#""jsonrpc""# if !versioned => versioned = is_version(bytes, &scanner.value(1).ok()?),
            br#""id""# if id.is_none() => id = Some(scanner.value(1).ok()?).filter(|id| is_id(bytes, id)),
            br#""result""# | br#""error""# => {
                let id = id.filter(|_| versioned)?;
                let is_object = scanner.peek().ok()? == b'{';
                let payload = Some(scanner.at()..bytes.len() - 1);
                let kind =
                    if key == br#""result""# { Kind::Result { id } } else { Kind::Error { id: Some(id) } };
                return is_object.then_some(Head { kind, payload });
            }
            _ => return None,
        }
        scanner.expect(b',').ok()?;
    }
}

/// Whether a host's parser could meet an `id` behind the one that we replace. Such a message could
/// answer a request that was never sent to this server; only a whole reading tells.
fn hides_an_id(bytes: &[u8], head: &Head) -> bool {
    let rest = &bytes[head.payload.clone().map_or(0, |payload| payload.start)..];
    let closed = bytes.ends_with(b"}}");
    // Inside a JSON string the quotes of a key are escaped, so text that quotes JSON does not match.
    // `\u006` is how a key that spells "id" with escapes must contain at least one of its letters.
    !closed || memmem::find(rest, br#""id""#).is_some() || memmem::find(rest, br"\u006").is_some()
}

#[derive(Debug, Default)]
struct Envelope<'a> {
    bytes: &'a [u8],
    version: Option<Span>,
    id: Option<Span>,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let nameless = |fault| Malformed { id: None, fault };
        if std::str::from_utf8(bytes).is_err() {
            return Err(nameless(Fault::Utf8));
        }
        let mut start = Scanner::new(bytes, 0);
        match start.peek().map_err(|e| nameless(e.into()))? {
            b'{' => {}
            first => {
                let well_formed = start.value(0).and_then(|_| start.end());
                let fault = if first == b'[' { Fault::Batch } else { Fault::NotAnObject };
                return Err(nameless(well_formed.err().map_or(fault, Fault::Json)));
            }
        }
        let mut envelope = Self { bytes, ..Self::default() };
        let mut members = Members::of(bytes, &(start.at()..bytes.len()));
        let mut fault = None;
        for member in members.by_ref() {
            let member = member.map_err(|e| nameless(e.into()))?;
            // The first fault counts, but go on: the answer should carry the id if there is one.
            fault = fault.or(envelope.take(&member.key, member.value).err());
        }
        Scanner::new(bytes, members.position()).end().map_err(|e| nameless(e.into()))?;
        match fault {
            Some(fault) => Err(envelope.malformed(fault)),
            None => Ok(envelope),
        }
    }

    fn take(&mut self, key: &str, value: Span) -> Result<(), Fault> {
        let slots: [(&'static str, &mut Option<Span>); 6] = [
            ("jsonrpc", &mut self.version),
            ("id", &mut self.id),
            ("method", &mut self.method),
            ("params", &mut self.params),
            ("result", &mut self.result),
            ("error", &mut self.error),
        ];
        for (name, slot) in slots {
            if key == name {
                return if slot.replace(value).is_some() { Err(Fault::Duplicate(name)) } else { Ok(()) };
            }
            if key.eq_ignore_ascii_case(name) {
                return Err(Fault::Case { found: key.to_string(), expected: name });
            }
        }
        Ok(()) // what we do not know passes
    }

    fn into_head(self) -> Result<Head, Malformed> {
        self.check().map_err(|fault| self.malformed(fault))
    }

    fn check(&self) -> Result<Head, Fault> {
        let bytes = self.bytes;
        if !self.version.as_ref().is_some_and(|version| is_version(bytes, version)) {
            return Err(Fault::Version);
        }
        let id = self.id.clone().filter(|id| &bytes[id.clone()] != b"null");
        if id.as_ref().is_some_and(|id| !is_id(bytes, id)) {
            return Err(Fault::Id);
        }
        match (&self.method, &self.result, &self.error) {
            (Some(method), None, None) => {
                if self.id.is_some() && id.is_none() {
                    return Err(Fault::Id); // a request must not have a null id
                }
                if self.params.as_ref().is_some_and(|params| bytes[params.start] != b'{') {
                    return Err(Fault::Params);
                }
                let method = plain_text(bytes, method).ok_or(Fault::Method)?;
                let kind = match id {
                    Some(id) => Kind::Request { id, method },
                    None => Kind::Notification { method },
                };
                Ok(Head { kind, payload: self.params.clone() })
            }
            (None, Some(result), None) => {
                let kind = Kind::Result { id: id.ok_or(Fault::Id)? };
                Ok(Head { kind, payload: Some(result.clone()) })
            }
            (None, None, Some(error)) => Ok(Head { kind: Kind::Error { id }, payload: Some(error.clone()) }),
            _ => Err(Fault::Shape),
        }
    }

    fn malformed(&self, fault: Fault) -> Malformed {
        // A doubled id is nobody's id.
        let id = self.id.clone().filter(|id| is_id(self.bytes, id) && fault != Fault::Duplicate("id"));
        Malformed { id, fault }
    }
}

fn is_version(bytes: &[u8], value: &Span) -> bool {
    string_value(&bytes[value.clone()]).is_some_and(|version| version == "2.0")
}

/// A string, or a number that is written as an integer, of any size.
fn is_id(bytes: &[u8], value: &Span) -> bool {
    match &bytes[value.clone()] {
        [b'"', ..] => true,
        [b'-', digits @ ..] | digits => digits.iter().all(u8::is_ascii_digit),
    }
}

/// The span between the quotes of a string without escapes.
fn plain_text(bytes: &[u8], value: &Span) -> Option<Span> {
    let text = &bytes[value.clone()];
    (text.starts_with(b"\"") && !text.contains(&b'\\')).then(|| value.start + 1..value.end - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<'a>(bytes: &'a str, span: &Span) -> &'a str {
        &bytes[span.clone()]
    }

    #[test]
    fn reads_a_request_in_any_order() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[1]}}"#,
            r#" {"method":"ping", "params" : {"a":[1]},"jsonrpc":"2.0","id":1,"x":{}} "#,
        ] {
            let head = Head::read(message.as_bytes()).unwrap();
            let Kind::Request { id, method } = head.kind else { panic!("{head:?}") };
            assert_eq!((text(message, &id), text(message, &method)), ("1", "ping"));
            assert_eq!(text(message, &head.payload.unwrap()), r#"{"a":[1]}"#);
        }
    }

    #[test]
    fn reads_responses_quickly_and_strictly_alike() {
        for message in [
            r#"{"jsonrpc":"2.0","id":17,"result":{"content":[]}}"#,
            r#"{"id":17,"jsonrpc":"2.0","result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":17,"error":{"code":1,"message":"no","data":{}}}"#,
            r#"{"jsonrpc":"2.0","id":17,"result":{"issues":[{"id":4}],"x":{}}}"#,
            r#"{"jsonrpc":"2.0","result":{"content":[]},"id":17}"#,
        ] {
            let quick = Head::read_quickly(message.as_bytes()).unwrap();
            assert_eq!(quick, Head::read(message.as_bytes()).unwrap(), "{message}");
        }
    }

    #[test]
    fn a_second_id_is_never_overlooked() {
        for tail in [
            r#","id":2}"#,
            r#","id":2,"x":{}}"#,
            r#","\u0069d":2,"x":{}}"#,
            r#","i\u0064":2,"x":{}}"#,
            r#","ID":2,"x":{"y":{}}}"#,
        ] {
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[]}}{tail}"#);
            let strict = Head::read(message.as_bytes());
            assert!(strict.is_err(), "{message}");
            if !tail.contains("ID") {
                assert_eq!(Head::read_quickly(message.as_bytes()), strict, "{message}");
            }
        }
    }

    #[test]
    fn refuses_what_parsers_read_differently() {
        let check = |message: &str, fault: &str, id: Option<&str>| {
            let malformed = Head::read(message.as_bytes()).unwrap_err();
            assert!(malformed.fault.to_string().contains(fault), "{message}: {}", malformed.fault);
            assert_eq!(malformed.id.map(|id| &message[id]), id, "{message}");
        };
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, "twice", Some("1"));
        check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, "twice", None);
        check(r#"{"jsonrpc":"2.0","id":1,"Method":"a"}"#, "must be written", Some("1"));
        check(r#"{"jsonrpc":"1.0","id":"x","method":"a"}"#, "2.0", Some("\"x\""));
        check(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "string or an integer", None);
        check(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#, "string or an integer", None);
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#, "object", Some("1"));
        check(r#"{"jsonrpc":"2.0","id":1}"#, "either", Some("1"));
        check(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}]"#, "batch", None);
        check("{\"jsonrpc\":\"2.0\"", "not valid JSON", None);
        check(r#"{"jsonrpc":"2.0","id":1,"method":"a"} {}"#, "not valid JSON", None);
        check("7", "object", None);
    }

    #[test]
    fn tells_the_id_of_a_response_that_never_ended() {
        let head = br#"{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"aaaa"#;
        assert_eq!(Head::id_of_truncated_response(head).map(|id| &head[id]), Some(&b"12"[..]));
    }
}
