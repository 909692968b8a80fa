//! The envelope of a message: what kind it is and where its id, method and payload stand.

use bytes::Bytes;
use smallvec::SmallVec;

use super::{
    Frame, MEMBER_LIMIT, Members, ScanError, Span,
    cursor::{Cursor, string_value},
    letters::folds_to,
    scan,
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

/// Why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The id of the message, if it could be read and is valid.
    pub id: Option<Span>,
    /// The id of the request that the message answers, as it is written: possibly of the wrong kind.
    pub answers: Option<Span>,
    pub fault: Fault,
}

impl From<Fault> for Malformed {
    fn from(fault: Fault) -> Self {
        Self { id: None, answers: None, fault }
    }
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
    #[error("\"id\" must be a string or an integer of at most {ID_DIGITS} digits")]
    Id,
    #[error("\"method\" must be a string without escapes")]
    Method,
    #[error("\"params\" must be an object")]
    Params,
    #[error("\"params\", \"result\" or \"error\" has more than {MEMBER_LIMIT} members")]
    Members,
    #[error("a message has either \"method\", \"result\" or \"error\"")]
    Shape,
}

impl Head {
    /// Reads a whole message strictly: grammar, depth, and an envelope that every parser reads alike.
    /// The caller has checked that the bytes are UTF-8.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        Envelope::scan(bytes).unwrap_or_else(|| Envelope::read(bytes)).and_then(Envelope::into_head)
    }

    /// Reads the envelope of a message that another process of plugbay checks. The payload of a large
    /// response in one of the usual orders is skipped.
    pub fn peek(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() <= READ_WHOLE {
            return Self::read(bytes);
        }
        match leading_id(bytes).or_else(|| trailing_id(bytes)) {
            Some(head) => Ok(head),
            None => Self::read(bytes),
        }
    }

    /// The id of a response of which only the start and the end are known.
    pub fn id_of_truncated_response<'a>(start: &'a [u8], end: &'a [u8]) -> Option<&'a [u8]> {
        match Leading::read(start)?.id {
            Some(id) => Some(&start[id]),
            None => Some(&end[Trailing::read(end.trim_ascii_end(), 0)?.id?]),
        }
    }

    /// The message with another id and these changes in its payload.
    pub fn readdressed(&self, message: &Bytes, id: &[u8], changes: &[(Span, &[u8])]) -> Frame {
        let own = match &self.kind {
            Kind::Request { id, .. } | Kind::Result { id } => Some(id.clone()),
            Kind::Error { id } => id.clone(),
            Kind::Notification { .. } => None,
        };
        let mut edits: SmallVec<[(Span, &[u8]); 4]> = changes.iter().cloned().collect();
        edits.extend(own.map(|own| (own, id)));
        edits.sort_by_key(|(span, _)| span.start);
        Frame::edited(message, &edits)
    }
}

/// Checks that these bytes are one JSON object that can be the params of a message. The caller has checked
/// that they are UTF-8.
pub fn check_params(bytes: &[u8]) -> Result<(), Fault> {
    let mut cursor = Cursor::new(bytes, 0);
    let first = cursor.peek()?;
    cursor.value(PARAMS_DEPTH)?;
    cursor.end()?;
    if first == b'{' { Ok(()) } else { Err(Fault::NotAnObject) }
}

/// How deep the params stand in their message.
const PARAMS_DEPTH: u32 = 1;

/// `{"jsonrpc":"2.0","id":…,"result":{` up to the payload, the first two in any order or absent.
struct Leading {
    versioned: bool,
    id: Option<Span>,
    is_result: bool,
    payload: usize,
}

impl Leading {
    fn read(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, 0);
        cursor.expect(b'{').ok()?;
        let (mut id, mut versioned) = (None, false);
        loop {
            let (key, _) = cursor.string().ok()?;
            cursor.expect(b':').ok()?;
            match &bytes[key] {
                br#""jsonrpc""# if !versioned => versioned = is_version(bytes, &cursor.value(1).ok()?),
                br#""id""# if id.is_none() => id = Some(cursor.value(1).ok()?),
                name @ (br#""result""# | br#""error""#) => {
                    let is_object = cursor.peek().ok()? == b'{';
                    let is_result = name == br#""result""#;
                    let leading = Self { versioned, id, is_result, payload: cursor.at() };
                    return is_object.then_some(leading);
                }
                _ => return None,
            }
            cursor.expect(b',').ok()?;
        }
    }

    fn head(self, id: Span, end: usize) -> Head {
        let kind = if self.is_result { Kind::Result { id } } else { Kind::Error { id: Some(id) } };
        Head { kind, payload: Some(self.payload..end) }
    }
}

/// A response whose id comes before the payload.
fn leading_id(bytes: &[u8]) -> Option<Head> {
    let leading = Leading::read(bytes).filter(|leading| leading.versioned)?;
    let id = leading.id.clone().filter(|id| is_id(bytes, id))?;
    bytes.ends_with(b"}}").then(|| leading.head(id, bytes.len() - 1))
}

/// A response that ends in `},"jsonrpc":"2.0","id":…}`, these two in any order: what the official
/// SDKs write.
fn trailing_id(bytes: &[u8]) -> Option<Head> {
    let leading = Leading::read(bytes).filter(|leading| leading.id.is_none())?;
    let trailing = Trailing::read(bytes, leading.payload)?;
    let whole = leading.versioned != trailing.versioned;
    let id = trailing.id.filter(|id| whole && is_id(bytes, id))?;
    Some(leading.head(id, trailing.payload_end))
}

/// The members after the payload, up to the end of the message.
struct Trailing {
    payload_end: usize,
    versioned: bool,
    id: Option<Span>,
}

impl Trailing {
    /// `from`: the start of the payload, or a place in it.
    fn read(bytes: &[u8], from: usize) -> Option<Self> {
        let window = bytes.len().saturating_sub(TAIL).max(from);
        let before_last = bytes.len().checked_sub(1)?;
        let payload_end = window + memchr::memrchr(b'}', bytes.get(window..before_last)?)? + 1;
        let (mut id, mut versioned) = (None, false);
        let mut cursor = Cursor::new(bytes, payload_end);
        while cursor.peek().ok()? == b',' {
            cursor.expect(b',').ok()?;
            let (key, _) = cursor.string().ok()?;
            cursor.expect(b':').ok()?;
            let value = cursor.value(1).ok()?;
            match &bytes[key] {
                br#""jsonrpc""# if !versioned => versioned = is_version(bytes, &value),
                br#""id""# if id.is_none() => id = Some(value),
                _ => return None,
            }
        }
        cursor.expect(b'}').ok()?;
        (cursor.at() == bytes.len()).then_some(Self { payload_end, versioned, id })
    }
}

/// A message up to this size is read whole even if that is not necessary, because it costs little.
const READ_WHOLE: usize = 512;

/// The longest number that is an id: readers keep longer ones as floating-point numbers, or reject them.
const ID_DIGITS: usize = 64;

/// How far from the end the last members of an envelope can begin.
const TAIL: usize = 64;

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
    /// Reads an envelope fast. `None`: something is wrong, and [`Envelope::read`] tells what.
    fn scan(bytes: &'a [u8]) -> Option<Result<Self, Malformed>> {
        let mut envelope = Self { bytes, ..Self::default() };
        let (mut fault, mut readable) = (None, true);
        let is_json = scan::object(bytes, |found| match string_value(&bytes[found.key]) {
            Some(key) => {
                let is_wide = found.commas >= MEMBER_LIMIT && bytes[found.value.start] == b'{';
                fault = fault.take().or(envelope.take(&key, found.value, is_wide).err());
            }
            None => readable = false,
        });
        (is_json && readable).then(|| envelope.unless(fault))
    }

    fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let nameless = Malformed::from;
        let mut start = Cursor::new(bytes, 0);
        match start.peek().map_err(|error| nameless(error.into()))? {
            b'{' => {}
            first => {
                let well_formed = start.value(0).and_then(|_| start.end());
                let fault = if first == b'[' { Fault::Batch } else { Fault::NotAnObject };
                return Err(nameless(well_formed.err().map_or(fault, Fault::Json)));
            }
        }
        let mut envelope = Self { bytes, ..Self::default() };
        let mut members = Members::unchecked(bytes, &(start.at()..bytes.len()));
        let mut fault = None;
        for member in members.by_ref() {
            let member = match member {
                Err(error @ ScanError::TooDeep(_)) => return Err(Self::too_deep(bytes, error)),
                other => other.map_err(|e| nameless(e.into()))?,
            };
            let is_wide = Members::of(bytes, &member.value).nth(MEMBER_LIMIT).is_some();
            // The first fault counts, but go on: the answer should carry the id if there is one.
            fault = fault.or(envelope.take(&member.key, member.value, is_wide).err());
        }
        Cursor::new(bytes, members.position()).end().map_err(|e| nameless(e.into()))?;
        envelope.unless(fault)
    }

    /// The refusal of a message that is nested too deep, with its id if possible: its request would else wait
    /// for an answer.
    fn too_deep(bytes: &'a [u8], error: ScanError) -> Malformed {
        let mut envelope = Self { bytes, ..Self::default() };
        let fault = Fault::Json(error);
        for member in Members::of(bytes, &(0..bytes.len())) {
            let taken = member.ok().and_then(|member| envelope.take(&member.key, member.value, false).ok());
            if taken.is_none() {
                return Malformed::from(fault); // nobody can say whose it is
            }
        }
        envelope.malformed(fault)
    }

    fn unless(self, fault: Option<Fault>) -> Result<Self, Malformed> {
        match fault {
            Some(fault) => Err(self.malformed(fault)),
            None => Ok(self),
        }
    }

    /// `is_wide`: the value has more than [`MEMBER_LIMIT`] members.
    fn take(&mut self, key: &str, value: Span, is_wide: bool) -> Result<(), Fault> {
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
                return match slot.replace(value) {
                    Some(_) => Err(Fault::Duplicate(name)),
                    None if is_wide => Err(Fault::Members),
                    None => Ok(()),
                };
            }
            if folds_to(key, name) {
                return Err(Fault::Case { found: key.to_string(), expected: name });
            }
        }
        Ok(()) // unknown members pass
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
        // An id that occurs twice counts as none.
        let id = self.id.clone().filter(|_| fault != Fault::Duplicate("id"));
        // Some reader could take it for a request.
        let is_request = self.method.is_some() || matches!(fault, Fault::Case { expected: "method", .. });
        let answers = id.clone().filter(|_| !is_request);
        Malformed { id: id.filter(|id| is_id(self.bytes, id)), answers, fault }
    }
}

fn is_version(bytes: &[u8], value: &Span) -> bool {
    string_value(&bytes[value.clone()]).is_some_and(|version| version == "2.0")
}

/// Whether a value is a string, or a number that is written as an integer.
fn is_id(bytes: &[u8], value: &Span) -> bool {
    match &bytes[value.clone()] {
        [b'"', ..] => true,
        [b'-', digits @ ..] | digits => digits.len() <= ID_DIGITS && digits.iter().all(u8::is_ascii_digit),
    }
}

/// The span between the quotes of a string without escapes.
fn plain_text(bytes: &[u8], value: &Span) -> Option<Span> {
    let text = &bytes[value.clone()];
    (text.starts_with(b"\"") && !text.contains(&b'\\')).then(|| value.start + 1..value.end - 1)
}

#[cfg(test)]
mod tests;
