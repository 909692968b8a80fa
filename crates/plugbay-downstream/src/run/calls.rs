//! Tool calls of a run: requests by plugbay, dispatched as if the host had sent them.

use std::{borrow::Cow, future::poll_fn, pin::Pin, sync::Arc, task::Poll};

use bytes::Bytes;
use plugbay_core::{
    arguments::{self, CompiledSchema, Mode},
    catalog::Tool,
    era::Era,
    exchange::Ticket,
    reference,
    surface::{Effect, Found, Snapshot, Target},
    wire::{Frame, Head, Kind, Members, string_value, write},
};
use serde_json::Value;

use super::host::OuterRequest;
use crate::{
    context::RequestContext,
    dispatch,
    message::{Message, Request},
    outbox::Outbox,
    references,
    results::parts::on_one_line,
    session::CancelOnDrop,
};

/// How a call ended.
pub(crate) enum CallEnd {
    /// A result of `tools/call`, as raw JSON; it may report an error.
    Result(Bytes),
    Failed(String),
}

pub(crate) struct PlannedCall {
    /// The name that hosts know.
    pub(crate) tool: String,
    /// Raw JSON.
    pub(crate) arguments: String,
    pub(crate) effect: Effect,
    target: Target,
    /// The id of the call as a host's request, as raw JSON.
    id: String,
    request: Request,
    /// Whether the server has listed the tool.
    is_listed: bool,
    /// Whether the result must not be replaced by an outline.
    takes_whole: bool,
    /// The schema for arguments that refer to stored results. They are checked later, when their values are
    /// known.
    unchecked: Option<Arc<CompiledSchema>>,
}

impl PlannedCall {
    /// A call with these arguments. `Err` says why it cannot be made; the model reads it.
    pub(crate) fn new(number: Ticket, found: &Found, arguments: &[u8], repair: Mode) -> Result<Self, String> {
        let schema = found.tool.input_schema().unwrap_or_else(|| Arc::new(CompiledSchema::new(b"{}")));
        let refers = reference::may_be_in(arguments);
        let arguments = if refers { arguments.into() } else { fitting(&schema, arguments, repair)? };
        let arguments =
            String::from_utf8(arguments.into_owned()).map_err(|_| "the arguments are no UTF-8".to_owned())?;
        // No host uses ids like this.
        let id = format!("\"plugbay run {}\"", number.0);
        let request = request(&id, &found.exposed, &arguments)?;
        Ok(Self {
            tool: found.exposed.clone(),
            arguments,
            effect: found.effect(),
            target: found.target.clone(),
            id,
            request,
            is_listed: true,
            takes_whole: false,
            unchecked: refers.then_some(schema),
        })
    }

    /// A call of a tool whose server has never listed any. The server decides whether it exists, and it may
    /// destroy things.
    pub(crate) fn unlisted(
        number: Ticket,
        name: &str,
        target: &Target,
        arguments: &[u8],
    ) -> Result<Self, String> {
        let any = Tool::parse(Bytes::from(format!(r#"{{"name":{}}}"#, Value::from(&*target.tool))));
        let tool = any.ok_or("the tool cannot be called")?;
        let (exposed, target) = (name.to_owned(), target.clone());
        let found = Found { exposed, target, tool, mode: None, pinned: false };
        let planned = Self::new(number, &found, arguments, Mode::CheckOnly)?;
        Ok(Self { is_listed: false, ..planned })
    }

    /// The same call, but its result stays whole, whatever its size.
    pub(crate) fn whole(self) -> Self {
        Self { takes_whole: true, ..self }
    }

    /// The request with values in place of references; only now its arguments are checked.
    async fn resolved(&self, context: RequestContext<'_>) -> Result<Option<Request>, String> {
        let Some(schema) = &self.unchecked else { return Ok(None) };
        let replaced = references::replaced(context).await?;
        let arguments = replaced.as_ref().unwrap_or(&self.request).arguments().unwrap_or(b"{}");
        let arguments = fitting(schema, arguments, context.gateway().settings().repair)?;
        request(&self.id, &self.tool, &String::from_utf8_lossy(&on_one_line(arguments.into_owned())))
            .map(Some)
    }

    /// Whether the name now leads to another tool, to one with a stronger effect, or to none.
    pub(crate) fn is_stale(&self, snapshot: &Snapshot) -> bool {
        let now = snapshot.names.get(&self.tool);
        match now {
            Some(now) => now.target != self.target || now.effect() > self.effect,
            None => self.is_listed,
        }
    }

    /// Makes the call and waits for its outcome. Dropping the future cancels the call.
    ///
    /// The call uses the legacy protocol in any case: there a server can ask in the middle of it. A modern
    /// host cannot be asked at that point, so its server gets an error at once.
    async fn execute(self, outer: OuterRequest) -> CallEnd {
        let inner = Outbox::within(&outer.sink);
        let inner = Arc::new(if self.takes_whole { inner.taking_whole_results() } else { inner });
        let _cancel = CancelOnDrop { session: &outer.session, id: self.request.id() };
        let (session, request) = (&outer.session, &self.request);
        let context = RequestContext { session, sink: &inner, request, era: Era::Legacy };
        match self.resolved(context).await {
            Ok(None) => dispatch::call_tool(context),
            Ok(Some(request)) => dispatch::call_tool(context.with_request(&request)),
            Err(why) => return CallEnd::Failed(why),
        }
        while let Some(frames) = inner.take().await {
            for frame in frames {
                inner.written(frame.len());
                if let Some(end) = self.receive(frame, &outer) {
                    return end;
                }
            }
        }
        CallEnd::Failed("there is no answer".to_owned())
    }

    fn receive(&self, frame: Frame, outer: &OuterRequest) -> Option<CallEnd> {
        let message = frame.into_bytes();
        let head = Head::read(&message).ok()?;
        match (&head.kind, &head.payload) {
            (Kind::Result { .. }, Some(result)) => Some(CallEnd::Result(message.slice(result.clone()))),
            (Kind::Error { .. }, payload) => {
                let words = payload.as_ref().and_then(|error| Members::find(&message, error, "message"));
                let words = words.and_then(|words| string_value(&message[words]));
                Some(CallEnd::Failed(words.as_deref().unwrap_or("no reason given").to_owned()))
            }
            (Kind::Notification { method }, Some(params))
                if &message[method.clone()] == b"notifications/progress" =>
            {
                let words = Members::find(&message, params, "message");
                let words = words.and_then(|words| string_value(&message[words])).unwrap_or_default();
                outer.progress.report(format!("{}: {words}", self.tool).trim_end_matches([':', ' ']));
                None
            }
            _ => {
                outer.sink.send_if_room(Frame::from(message));
                None
            }
        }
    }
}

/// The arguments, checked against the schema and repaired.
fn fitting<'a>(schema: &CompiledSchema, arguments: &'a [u8], repair: Mode) -> Result<Cow<'a, [u8]>, String> {
    arguments::check(schema, arguments, repair)
        .map(|checked| checked.arguments)
        .map_err(|refusal| refusal.to_string())
}

fn request(id: &str, tool: &str, arguments: &str) -> Result<Request, String> {
    let name = Value::from(tool);
    let params = format!(r#"{{"name":{name},"arguments":{arguments},"_meta":{{"progressToken":{id}}}}}"#);
    match Message::read(write::request(id.as_bytes(), "tools/call", params.as_bytes())) {
        Ok(Message::Request(request)) => Ok(request),
        _ => Err("these arguments cannot be sent".to_owned()),
    }
}

/// The calls in flight, each with its key. Dropping this cancels them at once; dropping spawned futures would
/// not.
pub(crate) struct RunningCalls<K>(Vec<(K, RunningCall)>);

type RunningCall = Pin<Box<dyn Future<Output = CallEnd> + Send>>;

impl<K> Default for RunningCalls<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K> RunningCalls<K> {
    pub(crate) fn begin(&mut self, key: K, planned_call: PlannedCall, outer: &OuterRequest) {
        self.0.push((key, Box::pin(planned_call.execute(outer.clone()))));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The next call that has ended; `None` when there are no more.
    pub(crate) async fn next(&mut self) -> Option<(K, CallEnd)> {
        poll_fn(|context| {
            for number in 0..self.0.len() {
                if let Poll::Ready(end) = self.0[number].1.as_mut().poll(context) {
                    return Poll::Ready(Some((self.0.swap_remove(number).0, end)));
                }
            }
            if self.0.is_empty() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}
