//! The two protocols in use: sessions that open with `initialize` (legacy), and stateless requests that
//! carry everything in `_meta` (modern). Converts messages of one to the other.

use bytes::Bytes;

use crate::wire::{Draft, Head, Hole, Kind, Members, Span, elements, folds_to};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    Legacy,
    Modern,
}

/// Revisions that open with `initialize`, oldest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The only one of them that has tasks.
pub const TASKS_VERSION: &str = "2025-11-25";
pub const MODERN_VERSION: &str = "2026-07-28";

pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
pub const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
pub const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";
pub const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
pub const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
pub const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// The code of the error by which a modern server names a capability that its client lacks.
pub const MISSING_CAPABILITY: &[u8] = b"-32021";

/// The legacy revision to speak with a host that asks for `requested`.
pub fn negotiate(requested: Option<&str>) -> &'static str {
    let newest = LEGACY_VERSIONS[LEGACY_VERSIONS.len() - 1];
    LEGACY_VERSIONS.into_iter().find(|version| Some(*version) == requested).unwrap_or(newest)
}

/// Whether the protocol itself has this method, in either era and from either side: then it is ours to
/// answer, or nobody's. The case of letters does not count: a lenient server could ignore it too.
pub fn is_core(method: &[u8]) -> bool {
    std::str::from_utf8(method).is_ok_and(|method| CORE.iter().any(|known| folds_to(method, known)))
}

const CORE: [&str; 36] = [
    "initialize",
    "ping",
    "server/discover",
    "subscriptions/listen",
    "logging/setLevel",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/prompts/list_changed",
    "notifications/roots/list_changed",
    "notifications/elicitation/complete",
    "notifications/subscriptions/acknowledged",
    "notifications/tasks",
    "notifications/tasks/status",
];

/// The members of a request's `_meta` that concern a gateway; values are spans of the message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meta {
    pub version: Option<Span>,
    pub capabilities: Option<Span>,
    pub client_info: Option<Span>,
    pub progress_token: Option<Span>,
    pub log_level: Option<Span>,
    /// The W3C trace context of the request.
    pub trace_parent: Option<Span>,
    pub trace_state: Option<Span>,
    /// The `traceparent` header of the HTTP request that carried this one.
    pub trace_header: Option<Bytes>,
}

impl Meta {
    /// `object` is the value at `_meta`.
    pub fn read(bytes: &[u8], object: &Span) -> Self {
        let mut meta = Self::default();
        for member in Members::of(bytes, object).flatten() {
            match &*member.key {
                VERSION_KEY => meta.version = Some(member.value),
                CAPABILITIES_KEY => meta.capabilities = Some(member.value),
                CLIENT_INFO_KEY => meta.client_info = Some(member.value),
                LOG_LEVEL_KEY => meta.log_level = Some(member.value),
                "progressToken" => meta.progress_token = Some(member.value),
                "traceparent" => meta.trace_parent = Some(member.value),
                "tracestate" => meta.trace_state = Some(member.value),
                _ => {}
            }
        }
        meta
    }

    /// The era of the request: one that names its protocol version is modern.
    pub fn era(&self) -> Era {
        if self.version.is_some() { Era::Modern } else { Era::Legacy }
    }
}

/// Where fields can be added to a request's `_meta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaSlot {
    /// After the opening brace of an existing `_meta`.
    Meta { at: usize, empty: bool },
    /// After the opening brace of `params`, which has no `_meta` yet.
    Params { at: usize, empty: bool },
    /// Before the closing brace of a request without `params`.
    Message { at: usize },
}

impl MetaSlot {
    pub fn find(bytes: &[u8], params: Option<&Span>) -> Self {
        let inside = |object: &Span| {
            let empty = Members::of(bytes, object).next().is_none();
            (object.start + 1, empty)
        };
        let Some(params) = params else {
            let at = bytes.iter().rposition(|byte| *byte == b'}').unwrap_or(bytes.len());
            return Self::Message { at };
        };
        let meta = Members::find(bytes, params, "_meta").filter(|meta| bytes[meta.start] == b'{');
        let (at, empty) = inside(meta.as_ref().unwrap_or(params));
        if meta.is_some() { Self::Meta { at, empty } } else { Self::Params { at, empty } }
    }

    /// Adds `fields` (members without braces) to the request.
    pub fn fill(self, draft: Draft, fields: &str) -> Draft {
        let comma = |empty: bool| if empty { "" } else { "," };
        let (at, text) = match self {
            Self::Meta { at, empty } => (at, format!("{fields}{}", comma(empty))),
            Self::Params { at, empty } => (at, format!("\"_meta\":{{{fields}}}{}", comma(empty))),
            Self::Message { at } => (at, format!(",\"params\":{{\"_meta\":{{{fields}}}}}")),
        };
        draft.with(at..at, Hole::Text(Bytes::from(text)))
    }
}

/// The members of `_meta` that make a request modern. A server of both eras that is spoken to in the legacy
/// one would take such a request for the other protocol's.
const ENVELOPE: [&str; 4] = [VERSION_KEY, CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY];

/// A modern request in the form for a legacy server: without the envelope, and otherwise unchanged.
#[must_use]
pub fn without_envelope(mut draft: Draft, params: Option<&Span>) -> Draft {
    let message = draft.message().clone();
    let meta = params.and_then(|params| Members::find(&message, params, "_meta"));
    let Some(meta) = meta else { return draft };
    let mut members = Members::of(&message, &meta).flatten().peekable();
    let (mut from, mut first) = (meta.start + 1, true);
    while let Some(member) = members.next() {
        let mut end = member.value.end;
        if ENVELOPE.contains(&&*member.key) {
            // One comma goes with it: the one before it, or else the one after.
            if first && members.peek().is_some() {
                end += 1 + message[end..].iter().position(|byte| *byte == b',').unwrap_or_default();
            }
            draft = draft.with(from..end, Hole::Text(Bytes::new()));
        } else {
            first = false;
        }
        from = end;
    }
    draft
}

/// A modern host's notification, such as a cancellation, in the form for a legacy server.
#[must_use]
pub fn notification_without_envelope(draft: Draft) -> Draft {
    let params = Head::read(draft.message()).ok().and_then(|head| head.payload);
    without_envelope(draft, params.as_ref())
}

/// The members that every modern result must have and a legacy server does not know, and where to insert
/// them: last, so that they win over anything that the server has written before, which is not searched for.
/// `cacheable`: also a note that the result should not be kept, because nobody tells when it changes.
pub fn completion(bytes: &[u8], head: &Head, cacheable: bool) -> Option<(Span, &'static [u8])> {
    let (Kind::Result { .. }, Some(result)) = (&head.kind, &head.payload) else {
        return None;
    };
    let at = result.end - 1;
    if bytes[result.start] != b'{' || bytes[at] != b'}' {
        return None; // no protocol has such a result: it is passed on as it came
    }
    let empty = bytes[result.start..at].trim_ascii_end().ends_with(b"{");
    let text: &[u8] = match (empty, cacheable) {
        (true, false) => br#""resultType":"complete""#,
        (false, false) => br#","resultType":"complete""#,
        (true, true) => br#""resultType":"complete","ttlMs":0,"cacheScope":"private""#,
        (false, true) => br#","resultType":"complete","ttlMs":0,"cacheScope":"private""#,
    };
    Some((at..at, text))
}

/// A code of one era that the other lacks, or uses for something else, and the code that the other uses.
struct Renumbering {
    era: Era,
    code: &'static [u8],
    said: &'static [u8],
    /// Only for a resource that does not exist: the code has other meanings, too.
    missing_resource: bool,
}

const RENUMBERED: [Renumbering; 5] = [
    Renumbering { era: Era::Legacy, code: b"-32002", said: b"-32602", missing_resource: false },
    Renumbering { era: Era::Modern, code: b"-32602", said: b"-32002", missing_resource: true },
    // These had no meaning once, and are now for headers, capabilities and versions that do not fit.
    Renumbering { era: Era::Legacy, code: b"-32020", said: b"-32000", missing_resource: false },
    Renumbering { era: Era::Legacy, code: b"-32021", said: b"-32000", missing_resource: false },
    Renumbering { era: Era::Legacy, code: b"-32022", said: b"-32000", missing_resource: false },
];

/// The place of an error code that means something else in the other era, and the code to put there.
/// `of_reading`: the error answers `resources/read`.
pub fn renumbered(bytes: &[u8], head: &Head, era: Era, of_reading: bool) -> Option<(Span, &'static [u8])> {
    let (Kind::Error { .. }, Some(error)) = (&head.kind, &head.payload) else { return None };
    let code = Members::find(bytes, error, "code")?;
    let data = Members::find(bytes, error, "data");
    let missing = of_reading && data.is_some_and(|data| Members::find(bytes, &data, "uri").is_some());
    let fits = |row: &&Renumbering| {
        row.era == era && *row.code == bytes[code.clone()] && (missing || !row.missing_resource)
    };
    let row = RENUMBERED.iter().find(fits)?;
    Some((code, row.said))
}

/// Where to insert a further member into a result's `_meta`, and the text to insert.
pub fn remark(bytes: &[u8], head: &Head, member: &[u8]) -> Option<(usize, Vec<u8>)> {
    let (Kind::Result { .. }, Some(result)) = (&head.kind, &head.payload) else {
        return None;
    };
    let is_object = |span: &Span| bytes[span.start] == b'{';
    let meta = Members::find(bytes, result, "_meta").filter(is_object);
    let object = meta.as_ref().or(Some(result).filter(|result| is_object(result)))?;
    let comma: &[u8] = if Members::of(bytes, object).next().is_none() { b"" } else { b"," };
    let text = match meta {
        Some(_) => [member, comma].concat(),
        None => [b"\"_meta\":{", member, b"}", comma].concat(),
    };
    Some((object.start + 1, text))
}

/// A modern server's result that asks the host's user something, and then wants the call again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequired {
    /// The object with the server requests by key.
    pub requests: Option<Span>,
    pub state: Option<Span>,
}

impl InputRequired {
    /// `None` for every other answer; a large one is only searched for `input_required`.
    pub fn read(bytes: &[u8], head: &Head) -> Option<Self> {
        let (Kind::Result { .. }, Some(result)) = (&head.kind, &head.payload) else {
            return None;
        };
        memchr::memmem::find(bytes, INPUT_REQUIRED)?;
        let (mut kind, mut requests, mut state) = (None, None, None);
        for member in Members::of(bytes, result).flatten() {
            match &*member.key {
                "resultType" => kind = Some(member.value),
                "inputRequests" => requests = Some(member.value),
                "requestState" => state = Some(member.value),
                _ => {}
            }
        }
        (&bytes[kind?] == INPUT_REQUIRED).then_some(Self { requests, state })
    }
}

/// The elicitations in a legacy server's error: the user must visit their URLs before the server is called
/// again. The modern protocol has no such error: there a result asks for them.
pub fn visits_required(bytes: &[u8], head: &Head) -> Option<Vec<Span>> {
    let (Kind::Error { .. }, Some(error)) = (&head.kind, &head.payload) else { return None };
    let code = Members::find(bytes, error, "code")?;
    if &bytes[code] != VISITS_REQUIRED {
        return None;
    }
    let data = Members::find(bytes, error, "data")?;
    let visits = elements(bytes, &Members::find(bytes, &data, "elicitations")?);
    (!visits.is_empty() && visits.iter().all(|visit| bytes[visit.start] == b'{')).then_some(visits)
}

const VISITS_REQUIRED: &[u8] = b"-32042";

const INPUT_REQUIRED: &[u8] = br#""input_required""#;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(message: &'static str) -> String {
        let bytes = Bytes::from_static(message.as_bytes());
        let head = Head::read(&bytes).unwrap();
        let draft = MetaSlot::find(&bytes, head.payload.as_ref()).fill(Draft::new(bytes), "\"v\":1");
        String::from_utf8(draft.render(0).to_vec()).unwrap()
    }

    #[test]
    fn meta_fields_find_their_place() {
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"v":1}}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"v":1}}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","params":{"b":2},"id":1,"method":"a"}"#,
                r#"{"jsonrpc":"2.0","params":{"_meta":{"v":1},"b":2},"id":1,"method":"a"}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"c":3}}}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"v":1,"c":3}}}"#,
            ),
        ];
        for (before, after) in cases {
            assert_eq!(filled(before), after);
            assert!(Head::read(after.as_bytes()).is_ok());
        }
    }

    #[test]
    fn the_envelope_is_cut_out_of_meta_and_nothing_else() {
        let (v, c) = (VERSION_KEY, CAPABILITIES_KEY);
        let (i, l) = (CLIENT_INFO_KEY, LOG_LEVEL_KEY);
        let cases = [
            (format!(r#"{{ "{v}":"x", "{c}" : {{"{v}":[1,2]}},"{i}":{{}} , "{l}":"a,b" }}"#), "{ }"),
            (format!(r#"{{"{v}":"x" , "progressToken":7,"{c}":{{}}}}"#), r#"{ "progressToken":7}"#),
            (format!(r#"{{ "a":1.0 ,"{v}":"x", "{c}":{{}} , "é": 2 }}"#), r#"{ "a":1.0 , "é": 2 }"#),
            (
                format!(r#"{{"a":"{v}","io.modelcontextprotocol\/logLevel":"x"}}"#),
                &format!(r#"{{"a":"{v}"}}"#),
            ),
            (r#"{"traceparent":"00-a"}"#.to_owned(), r#"{"traceparent":"00-a"}"#),
            (format!(r#"{{"{v}":"x", "\ud800":1}}"#), r#"{ "\ud800":1}"#),
            (format!(r#"{{"\ud800":1,"{v}":"x"}}"#), r#"{"\ud800":1}"#),
            ("{}".to_owned(), "{}"),
            ("7".to_owned(), "7"),
        ];
        for (before, after) in cases {
            let around = |meta: &str| {
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{meta},"{v}":1}}}}"#)
            };
            let bytes = Bytes::from(around(&before));
            let params = Head::read(&bytes).unwrap().payload;
            let cut = without_envelope(Draft::new(bytes), params.as_ref()).render(0);
            assert_eq!(cut, around(after), "{before}");
            assert!(Head::read(&cut).is_ok());
        }
    }

    #[test]
    fn a_cancellation_to_a_legacy_server_has_no_envelope() {
        let around = |meta: &str, id: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"_meta":{meta},"requestId":{id}}}}}"#
            )
        };
        let message = around(&format!(r#"{{"{VERSION_KEY}":"{MODERN_VERSION}","x/y":1}}"#), "\"host\"");
        let id = message.find("\"host\"").unwrap();
        let draft = Draft::new(message.into()).with(id..id + 6, Hole::Ticket);
        assert_eq!(notification_without_envelope(draft).render(7), around(r#"{"x/y":1}"#, "7"));
        let bare = Draft::new(Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/x"}"#));
        assert_eq!(notification_without_envelope(bare.clone()).render(0), bare.render(0));
    }

    #[test]
    fn a_host_gets_the_version_it_asks_for_or_the_newest() {
        assert_eq!(negotiate(Some("2024-11-05")), "2024-11-05");
        assert_eq!(negotiate(Some("1999-01-01")), "2025-11-25");
        assert_eq!(negotiate(None), "2025-11-25");
    }

    fn edited(message: &str, edits: &[(Span, &[u8])]) -> String {
        let message = Bytes::from(message.to_owned());
        let frame = crate::wire::Frame::edited(&message, edits);
        String::from_utf8(frame.into_bytes().to_vec()).unwrap()
    }

    #[test]
    fn what_is_added_to_a_result_holds_whatever_was_there() {
        let long = format!(r#"{{"text":"{}","resultType":"input_required"}}"#, "x".repeat(600));
        for result in [r#"{"a":1}"#, "{}", "{ }", r#"{"resultType":"weird"}"#, &long] {
            for message in [
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#),
                format!(r#"{{"result":{result},"jsonrpc":"2.0","id":1}}"#),
            ] {
                let head = Head::read(message.as_bytes()).unwrap();
                let sent = edited(&message, completion(message.as_bytes(), &head, true).as_slice());
                let seen: serde_json::Value = serde_json::from_str(&sent).unwrap();
                assert_eq!(
                    (&seen["result"]["resultType"], &seen["result"]["ttlMs"]),
                    (&"complete".into(), &0.into())
                );
                let kept = result.strip_suffix('}').unwrap();
                assert!(sent.contains(kept), "{sent}");
            }
        }
        // The members after the result of a long answer are not read; it must still be one message.
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{long},"x":{{}}}}"#);
        let head = Head::read(message.as_bytes()).unwrap();
        assert!(
            Head::read(edited(&message, completion(message.as_bytes(), &head, true).as_slice()).as_bytes())
                .is_ok()
        );
    }

    #[test]
    fn codes_mean_the_same_in_both_eras() {
        let said = |era, of_reading, error: &str| {
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
            let head = Head::read(message.as_bytes()).unwrap();
            edited(&message, renumbered(message.as_bytes(), &head, era, of_reading).as_slice())
        };
        let error =
            |code: &str| format!(r#"{{"data":{{"uri":"x:1","n":1.0}}, "code" : {code},"message":"é"}}"#);
        for (era, of_reading, code, expected) in [
            (Era::Legacy, true, "-32002", "-32602"),
            (Era::Legacy, false, "-32002", "-32602"),
            (Era::Modern, true, "-32602", "-32002"),
            (Era::Modern, false, "-32602", "-32602"),
            (Era::Legacy, true, "-32602", "-32602"),
            (Era::Modern, true, "-32603", "-32603"),
            (Era::Legacy, false, "-32022", "-32000"),
            (Era::Modern, false, "-32022", "-32022"),
        ] {
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{}}}"#, error(expected));
            assert_eq!(said(era, of_reading, &error(code)), message, "{era:?}, {code}");
        }
        let without = r#"{"code":-32602,"message":"the cursor"}"#;
        assert!(said(Era::Modern, true, without).contains("-32602"), "it is not about a resource");
    }

    #[test]
    fn only_a_result_of_this_type_requires_input() {
        let read = |result: &str| {
            let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            let found = InputRequired::read(message.as_bytes(), &Head::read(message.as_bytes()).unwrap());
            let text = |span: Option<Span>| span.map(|span| message[span].to_owned());
            found.map(|found| (text(found.requests), text(found.state)))
        };
        let whole = r#"{"resultType":"input_required","requestState":"s","inputRequests":{"a":{}}}"#;
        assert_eq!(read(whole), Some((Some(r#"{"a":{}}"#.to_owned()), Some(r#""s""#.to_owned()))));
        assert_eq!(read(r#"{"resultType":"input_required"}"#), Some((None, None)));
        assert_eq!(read(r#"{"resultType":"complete","content":["input_required"]}"#), None);
        assert_eq!(read(r#"{"x":{"resultType":"input_required"}}"#), None);
    }
}
