//! Messages of a host, parsed as far as plugbay reads them.

use std::borrow::Cow;

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::Meta,
    extension::Extensions,
    level::Level,
    size_limit::{self, TooLong},
    wire::{self, Frame, Head, Members, Span, folds_to, string_value},
};

use crate::{refusal::Refusal, respond, seal::Owner, workers::Workers};

/// A message of a host.
#[expect(clippy::large_enum_variant, reason = "taken apart as soon as it is made")]
pub(crate) enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

/// A message longer than this is read in another thread: reading 1 to 2 MB takes about a millisecond.
pub(crate) const LONG: usize = 1 << 20;

impl Message {
    /// Reads a message, in another thread if it is long. Other requests are served meanwhile.
    pub(crate) async fn read_in_turn(
        workers: &Workers,
        caller: Owner,
        message: Bytes,
    ) -> Result<Self, Frame> {
        if message.len() <= LONG {
            return Self::read(message);
        }
        let read = workers.run(caller, move || Self::read(message)).await;
        read.unwrap_or_else(|_| Err(respond::error(b"null", &Refusal::ShuttingDown)))
    }

    /// Reads the envelope. `Err` is the answer to a malformed message.
    pub(crate) fn read(message: Bytes) -> Result<Self, Frame> {
        match Head::read(&message) {
            Ok(Head { kind: wire::Kind::Request { id, method }, payload, .. }) => {
                Ok(Self::Request(Request::new(message, id, method, payload)))
            }
            Ok(Head { kind: wire::Kind::Notification { method }, payload, .. }) => {
                Ok(Self::Notification(Notification { message, method, params: payload }))
            }
            Ok(head) => Ok(Self::Response(Response { message, head })),
            Err(malformed) => {
                let id = malformed.id.clone().map_or(&b"null"[..], |id| &message[id]);
                Err(respond::error(id, &Refusal::Malformed(malformed.clone())))
            }
        }
    }
}

pub(crate) struct Notification {
    pub(crate) message: Bytes,
    pub(crate) method: Span,
    pub(crate) params: Option<Span>,
}

impl Notification {
    /// Reads the notification like a request, but without an id.
    pub(crate) fn as_request(&self) -> Request {
        Request::new(self.message.clone(), 0..0, self.method.clone(), self.params.clone())
    }
}

/// The host's response to a server request.
pub(crate) struct Response {
    pub(crate) message: Bytes,
    pub(crate) head: Head,
}

#[derive(Clone, Default)]
pub(crate) struct Request {
    pub(crate) message: Bytes,
    pub(crate) id: Span,
    pub(crate) method: Span,
    pub(crate) params: Option<Span>,
    /// The members of `params` that any method reads, found in one pass.
    pub(crate) name: Option<Span>,
    pub(crate) uri: Option<Span>,
    pub(crate) cursor: Option<Span>,
    pub(crate) task: Option<Span>,
    pub(crate) task_id: Option<Span>,
    pub(crate) notifications: Option<Span>,
    pub(crate) arguments: Option<Span>,
    pub(crate) opening: InitializeParams,
    pub(crate) state: Option<Span>,
    pub(crate) responses: Option<Span>,
    pub(crate) meta: Meta,
    pub(crate) faults: ParamsFaults,
}

/// Faults for which a request is refused, whatever its method.
#[derive(Clone, Default)]
pub(crate) struct ParamsFaults {
    /// A key that different parsers could read differently.
    pub(crate) ambiguous: Option<&'static str>,
    /// A part that plugbay reads and that exceeds its limit.
    pub(crate) too_long: Option<TooLong>,
}

/// The params of `initialize`.
#[derive(Clone, Default)]
pub(crate) struct InitializeParams {
    pub(crate) protocol_version: Option<Span>,
    pub(crate) capabilities: Option<Span>,
    pub(crate) client_info: Option<Span>,
}

/// Keys of `params` that must be unambiguous. If one occurred twice, or also in another case, a server could
/// read another name than the one that plugbay checked.
const UNAMBIGUOUS: [&str; 9] =
    ["name", "uri", "ref", "arguments", "_meta", "inputResponses", "requestState", "task", "taskId"];

/// The parts of `params` that plugbay looks into on the event loop, and their limits. All others have only the limit of
/// the message.
const LIMITED: [(&str, usize); 10] = [
    ("name", size_limit::REFERENCE),
    ("uri", size_limit::REFERENCE),
    ("_meta", size_limit::META),
    ("capabilities", size_limit::CAPABILITIES),
    ("clientInfo", size_limit::CLIENT_INFO),
    ("ref", size_limit::REFERENCE),
    ("task", size_limit::REFERENCE),
    ("taskId", size_limit::REFERENCE),
    ("level", size_limit::REFERENCE),
    ("notifications", size_limit::SUBSCRIPTION),
];
const SMALLEST_LIMIT: usize = size_limit::REFERENCE;

impl Request {
    fn new(message: Bytes, id: Span, method: Span, params: Option<Span>) -> Self {
        let mut request = Self { id, method, ..Self::default() };
        let mut seen = [false; UNAMBIGUOUS.len()];
        for member in params.iter().flat_map(|params| Members::of(&message, params)).flatten() {
            for (key, seen) in UNAMBIGUOUS.into_iter().zip(&mut seen) {
                if folds_to(&member.key, key) && (std::mem::replace(seen, true) || member.key != key) {
                    request.faults.ambiguous = Some(key);
                }
            }
            let is_too_long = !request.is_within_limit(&member.key, &member.value);
            let place = match &*member.key {
                "name" => &mut request.name,
                "uri" => &mut request.uri,
                "cursor" => &mut request.cursor,
                "task" => &mut request.task,
                "taskId" => &mut request.task_id,
                "notifications" => &mut request.notifications,
                "arguments" => &mut request.arguments,
                "protocolVersion" => &mut request.opening.protocol_version,
                "capabilities" => &mut request.opening.capabilities,
                "clientInfo" => &mut request.opening.client_info,
                "requestState" => &mut request.state,
                "inputResponses" => &mut request.responses,
                "_meta" => {
                    request.take_meta(Meta::read(&message, &member.value));
                    continue;
                }
                _ => continue,
            };
            *place = (!is_too_long).then_some(member.value);
        }
        Self { message, params, ..request }
    }

    /// Whether a part is short enough to be read; notes the first one that is not.
    fn is_within_limit(&mut self, key: &str, value: &Span) -> bool {
        if value.len() <= SMALLEST_LIMIT {
            return true;
        }
        let limited = LIMITED.iter().find(|(limited, _)| *limited == key);
        let checked = limited.map_or(Ok(()), |(key, limit)| size_limit::check_json(key, value.len(), *limit));
        let is_within = checked.is_ok();
        self.faults.too_long = self.faults.too_long.take().or(checked.err());
        is_within
    }

    /// Takes `_meta` without its overlong parts: it is read before the request is refused.
    fn take_meta(&mut self, mut meta: Meta) {
        for (key, part) in [("capabilities", &mut meta.capabilities), ("clientInfo", &mut meta.client_info)] {
            *part = part.take().filter(|value| self.is_within_limit(key, value));
        }
        self.meta = meta;
    }

    pub(crate) fn id(&self) -> &[u8] {
        &self.message[self.id.clone()]
    }

    pub(crate) fn method(&self) -> &[u8] {
        &self.message[self.method.clone()]
    }

    /// Whether the headers of a modern request must name the subject of this method.
    pub(crate) fn is_named(&self) -> bool {
        matches!(
            self.method(),
            b"tools/call"
                | b"prompts/get"
                | b"resources/read"
                | b"tasks/get"
                | b"tasks/update"
                | b"tasks/cancel"
        )
    }

    /// The subject of the request: `params.name`, `params.uri` or `params.taskId`.
    pub(crate) fn subject(&self) -> Option<Cow<'_, str>> {
        match self.method() {
            b"tools/call" | b"prompts/get" => self.text(self.name.as_ref()),
            b"resources/read" => self.text(self.uri.as_ref()),
            b"tasks/get" | b"tasks/update" | b"tasks/cancel" => self.text(self.task_id.as_ref()),
            _ => None,
        }
    }

    /// The name in the request, and where it stands.
    pub(crate) fn named(&self, what: &str) -> Result<(Cow<'_, str>, Span), Refusal> {
        let found = self.name.clone().and_then(|span| Some((string_value(self.raw(&span))?, span)));
        found.ok_or_else(|| Refusal::InvalidParams(format!("\"name\" must be {what}")))
    }

    /// The URI in the request, and where it stands.
    pub(crate) fn addressed(&self) -> Result<(Cow<'_, str>, Span), Refusal> {
        let found = self.uri.clone().and_then(|span| Some((string_value(self.raw(&span))?, span)));
        found.ok_or_else(|| Refusal::InvalidParams("\"uri\" must be the address of a resource".to_owned()))
    }

    pub(crate) fn params(&self) -> Option<(&[u8], &Span)> {
        Some((&self.message, self.params.as_ref()?))
    }

    /// Whether the request has no params.
    pub(crate) fn is_empty(&self) -> bool {
        self.params.as_ref().is_none_or(|params| Members::of(&self.message, params).next().is_none())
    }

    /// The arguments of a tool call, as raw JSON.
    pub(crate) fn arguments(&self) -> Option<&[u8]> {
        Some(self.raw(self.arguments.as_ref()?))
    }

    pub(crate) fn progress_token(&self) -> Option<&[u8]> {
        Some(self.raw(self.meta.progress_token.as_ref()?))
    }

    /// The log level of this request.
    pub(crate) fn log_level(&self) -> Option<Level> {
        Level::parse(&self.text(self.meta.log_level.as_ref())?)
    }

    /// Whether the request reads a resource.
    pub(crate) fn reads(&self) -> bool {
        self.method() == b"resources/read"
    }

    /// Whether its `_meta` names a protocol version, known or not.
    pub(crate) fn is_modern(&self) -> bool {
        self.meta.version.is_some()
    }

    pub(crate) fn version(&self) -> Option<Cow<'_, str>> {
        self.text(self.meta.version.as_ref())
    }

    /// The name in the host's `clientInfo`.
    pub(crate) fn client(&self) -> Option<Cow<'_, str>> {
        self.client_info("name")
    }

    pub(crate) fn client_version(&self) -> Option<Cow<'_, str>> {
        self.client_info("version")
    }

    fn client_info(&self, key: &str) -> Option<Cow<'_, str>> {
        let info = self.opening.client_info.as_ref().or(self.meta.client_info.as_ref())?;
        self.text(Members::find(&self.message, info, key).as_ref())
    }

    /// The client capabilities that a modern request declares.
    pub(crate) fn client_capabilities(&self) -> ClientCapabilities {
        let declared = self.meta.capabilities.as_ref();
        declared.map(|object| ClientCapabilities::read(&self.message, object)).unwrap_or_default()
    }

    /// The extensions that the host declares, in either era.
    pub(crate) fn extensions(&self) -> Extensions {
        let declared = self.meta.capabilities.as_ref().or(self.opening.capabilities.as_ref());
        declared.map(|object| Extensions::read(&self.message, object)).unwrap_or_default()
    }

    pub(crate) fn raw(&self, span: &Span) -> &[u8] {
        &self.message[span.clone()]
    }

    pub(crate) fn text(&self, span: Option<&Span>) -> Option<Cow<'_, str>> {
        string_value(self.raw(span?))
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, pin::pin, task::Poll};

    use super::*;

    fn read(params: &str) -> Request {
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
        match Message::read(message.into()) {
            Ok(Message::Request(request)) => request,
            _ => panic!("no request"),
        }
    }

    #[test]
    fn a_part_of_params_over_its_limit_is_noted_and_not_kept() {
        let object = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes));
        let capabilities = |bytes| read(&format!(r#"{{"capabilities":{}}}"#, object(bytes)));
        let within = capabilities(size_limit::CAPABILITIES - 10);
        assert!(within.faults.too_long.is_none() && within.opening.capabilities.is_some());
        let over = capabilities(size_limit::CAPABILITIES);
        assert!(over.opening.capabilities.is_none());
        let said = over.faults.too_long.unwrap().to_string();
        assert!(said.starts_with("`capabilities` is too long"), "{said}");

        let meta = |key: &str, bytes| read(&format!(r#"{{"_meta":{{"{key}":{}}}}}"#, object(bytes)));
        let declared = "io.modelcontextprotocol/clientCapabilities";
        let over = meta(declared, size_limit::CAPABILITIES);
        assert!(over.meta.capabilities.is_none() && over.faults.too_long.is_some());
        assert!(meta("x", size_limit::META - 20).faults.too_long.is_none());
        assert!(meta("x", size_limit::META).faults.too_long.is_some());
        for key in ["name", "uri", "level"] {
            let over = read(&format!(r#"{{"{key}":"{}"}}"#, "x".repeat(size_limit::REFERENCE)));
            assert!(over.name.is_none() && over.uri.is_none() && over.faults.too_long.is_some(), "{key}");
        }
        assert!(
            read(&format!(r#"{{"arguments":{}}}"#, object(2 << 20))).faults.too_long.is_none(),
            "it passes through"
        );
    }

    #[tokio::test]
    async fn a_long_message_is_read_when_a_thread_is_free_and_a_short_one_at_once() {
        let workers = Workers::default();
        let busy = workers.occupy().await;
        let message = |bytes: usize| {
            let padding = "x".repeat(bytes);
            Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{padding}"}}}}"#))
        };
        let short = Message::read_in_turn(&workers, Owner::default(), message(9)).await;
        assert!(matches!(short, Ok(Message::Request(_))));
        let mut long = pin!(Message::read_in_turn(&workers, Owner::default(), message(LONG)));
        let waits =
            std::future::poll_fn(|context| Poll::Ready(long.as_mut().poll(context).is_pending())).await;
        assert!(waits, "it was read on the event loop");
        drop(busy);
        assert!(matches!(long.await, Ok(Message::Request(_))));
    }
}
