//! One call of an errand: a request of our own, dispatched as if the host had sent it.

use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll};

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    surface::{Effect, Found, Target},
    wire::{Frame, Head, Kind, Members, string_value},
};
use serde_json::Value;

use super::{Teller, outcome::Outcome};
use crate::{
    dispatch,
    message::{Message, Request},
    outbox::Outbox,
    respond,
    session::Session,
};

pub(super) struct Calling {
    /// By the name that hosts know.
    pub(super) tool: String,
    /// Raw JSON.
    pub(super) arguments: String,
    pub(super) effect: Effect,
    target: Target,
    session: Arc<Session>,
    /// Where the errand is answered, and where servers' questions are put.
    sink: Arc<Outbox>,
    teller: Arc<Teller>,
    request: Request,
}

impl Calling {
    /// `None`: the arguments cannot be sent.
    pub(super) fn new(
        session: &Arc<Session>,
        sink: &Arc<Outbox>,
        teller: &Arc<Teller>,
        found: &Found,
        arguments: &[u8],
    ) -> Option<Self> {
        let arguments = String::from_utf8(arguments.to_vec()).ok()?;
        // No host numbers its requests like this.
        let id = format!("\"plugbay errand {}\"", session.gateway().tickets.next().0);
        let name = Value::from(found.exposed.as_str());
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{name},"arguments":{arguments},"_meta":{{"progressToken":{id}}}}}}}"#
        );
        let Ok(Message::Request(request)) = Message::read(Bytes::from(message)) else { return None };
        Some(Self {
            tool: found.exposed.clone(),
            arguments,
            effect: found.effect(),
            target: found.target.clone(),
            session: Arc::clone(session),
            sink: Arc::clone(sink),
            teller: Arc::clone(teller),
            request,
        })
    }

    /// Whether by now the name leads to another tool, to one that may do worse than was agreed on, or to
    /// nobody knows what.
    pub(super) fn means_something_else(&self) -> bool {
        let snapshot = self.session.snapshot();
        let now = snapshot.names.get(&self.tool);
        now.is_none_or(|now| now.target != self.target || now.effect() > self.effect)
    }

    /// Makes the call and waits for what becomes of it. Whoever waits no longer takes the call back.
    ///
    /// It is made in the legacy protocol, whatever the host speaks: there a server can ask in the middle of
    /// it. A modern host cannot be asked, so there the server hears at once that it cannot.
    async fn made(self) -> Outcome {
        let inner = Arc::new(Outbox::within(&self.sink));
        let _taken_back = TakenBack(&self);
        dispatch::call_tool(&self.session, &inner, &self.request, Era::Legacy);
        while let Some(frames) = inner.take().await {
            for frame in frames {
                inner.written(frame.len());
                if let Some(outcome) = self.heard(frame) {
                    return outcome;
                }
            }
        }
        Outcome::failed("there is no answer")
    }

    fn heard(&self, frame: Frame) -> Option<Outcome> {
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
                self.teller.tell(format!("{}: {words}", self.tool).trim_end_matches([':', ' ']));
                None
            }
            _ => {
                self.sink.tell_if_room(Frame::from(message));
                None
            }
        }
    }
}

/// A call that was answered is no longer there.
struct TakenBack<'a>(&'a Calling);

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        self.0.session.cancel(self.0.request.id(), respond::not_needed());
    }
}

/// The calls that are under way. Dropped, they are taken back at once, as they would not be in tasks of their
/// own.
#[derive(Default)]
pub(super) struct Running(Vec<UnderWay>);

struct UnderWay {
    /// Which of its turn it is.
    at: usize,
    /// Where it stands in the report.
    line: usize,
    outcome: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

impl Running {
    pub(super) fn begin(&mut self, at: usize, line: usize, calling: Calling) {
        self.0.push(UnderWay { at, line, outcome: Box::pin(calling.made()) });
    }

    /// The next that is over; `None` when there are no more.
    pub(super) async fn next(&mut self) -> Option<(usize, usize, Outcome)> {
        poll_fn(|context| {
            for number in 0..self.0.len() {
                if let Poll::Ready(outcome) = self.0[number].outcome.as_mut().poll(context) {
                    let UnderWay { at, line, .. } = self.0.swap_remove(number);
                    return Poll::Ready(Some((at, line, outcome)));
                }
            }
            if self.0.is_empty() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}
