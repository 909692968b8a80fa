//! Tool calls of an agent run: requests of plugbay, dispatched as if the host had sent them.

use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll};

use plugbay_core::{
    era::Era,
    exchange::Ticket,
    surface::{Effect, Found, Snapshot, Target},
    wire::{Frame, Head, Kind, Members, string_value, write},
};
use serde_json::Value;

use super::{host::OuterRequest, outcome::Outcome};
use crate::{
    context::RequestContext,
    dispatch,
    message::{Message, Request},
    outbox::Outbox,
    references,
    session::CancelOnDrop,
};

pub(super) struct PlannedCall {
    /// By the name that hosts know.
    pub(super) tool: String,
    /// Raw JSON.
    pub(super) arguments: String,
    pub(super) effect: Effect,
    target: Target,
    request: Request,
}

impl PlannedCall {
    /// `None`: the arguments cannot be sent.
    pub(super) fn new(number: Ticket, found: &Found, arguments: &[u8]) -> Option<Self> {
        let arguments = String::from_utf8(arguments.to_vec()).ok()?;
        // No host numbers its requests like this.
        let id = format!("\"plugbay agent {}\"", number.0);
        let name = Value::from(found.exposed.as_str());
        let params = format!(r#"{{"name":{name},"arguments":{arguments},"_meta":{{"progressToken":{id}}}}}"#);
        let message = write::request(id.as_bytes(), "tools/call", params.as_bytes());
        let Ok(Message::Request(request)) = Message::read(message) else { return None };
        Some(Self {
            tool: found.exposed.clone(),
            arguments,
            effect: found.effect(),
            target: found.target.clone(),
            request,
        })
    }

    /// Whether the name now leads to another tool, to one with a stronger effect, or to none.
    pub(super) fn is_stale(&self, snapshot: &Snapshot) -> bool {
        let now = snapshot.names.get(&self.tool);
        now.is_none_or(|now| now.target != self.target || now.effect() > self.effect)
    }

    /// Makes the call and waits for its outcome. Dropping the future cancels the call.
    ///
    /// It is made in the legacy protocol, whatever the host speaks: there a server can ask in the middle of
    /// it. A modern host cannot be asked then, so there the server hears at once that it cannot.
    async fn execute(self, outer: OuterRequest) -> Outcome {
        let inner = Arc::new(Outbox::within(&outer.sink));
        let _cancel = CancelOnDrop { session: &outer.session, id: self.request.id() };
        let (session, request) = (&outer.session, &self.request);
        let context = RequestContext { session, sink: &inner, request, era: Era::Legacy };
        match references::replaced(context).await {
            Ok(None) => dispatch::call_tool(context),
            Ok(Some(request)) => dispatch::call_tool(context.with_request(&request)),
            Err(why) => return Outcome::failed(&why),
        }
        while let Some(frames) = inner.take().await {
            for frame in frames {
                inner.written(frame.len());
                if let Some(outcome) = self.receive(frame, &outer) {
                    return outcome;
                }
            }
        }
        Outcome::failed("there is no answer")
    }

    fn receive(&self, frame: Frame, outer: &OuterRequest) -> Option<Outcome> {
        let message = frame.into_bytes();
        let head = Head::read(&message).ok()?;
        match (&head.kind, &head.payload) {
            (Kind::Result { .. }, Some(result)) => Some(Outcome::read(&message[result.clone()])),
            (Kind::Error { .. }, payload) => {
                let words = payload.as_ref().and_then(|error| Members::find(&message, error, "message"));
                let words = words.and_then(|words| string_value(&message[words]));
                Some(Outcome::failed(words.as_deref().unwrap_or("no reason given")))
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

/// The calls in flight. Dropping this cancels them at once, which spawned futures would not do.
#[derive(Default)]
pub(super) struct RunningCalls(Vec<RunningCall>);

struct RunningCall {
    /// Which of its turn it is.
    at: usize,
    /// Where it stands in the report.
    line: usize,
    outcome: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

impl RunningCalls {
    pub(super) fn begin(&mut self, at: usize, line: usize, planned_call: PlannedCall, outer: &OuterRequest) {
        self.0.push(RunningCall { at, line, outcome: Box::pin(planned_call.execute(outer.clone())) });
    }

    /// The next that is over; `None` when there are no more.
    pub(super) async fn next(&mut self) -> Option<(usize, usize, Outcome)> {
        poll_fn(|context| {
            for number in 0..self.0.len() {
                if let Poll::Ready(outcome) = self.0[number].outcome.as_mut().poll(context) {
                    let RunningCall { at, line, .. } = self.0.swap_remove(number);
                    return Poll::Ready(Some((at, line, outcome)));
                }
            }
            if self.0.is_empty() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}
