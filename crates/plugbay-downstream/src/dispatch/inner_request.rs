//! A request by plugbay that is dispatched as if the host had sent it.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    era::Era,
    wire::{Frame, Head, Kind, Members, string_value, write},
};
use serde_json::Value;

use super::route_request;
use crate::{
    context::RequestContext,
    message::{Message, Request},
    outbox::Outbox,
    route::FindDestination,
    session::{CancelOnDrop, Session},
};

/// A request that plugbay makes on behalf of a host's request.
pub(crate) struct InnerRequest {
    request: Request,
    find: FindDestination,
    session: Arc<Session>,
    sink: Arc<Outbox>,
}

impl InnerRequest {
    /// A request on behalf of this context's request; `None` if it cannot be written.
    pub(crate) fn new(
        context: RequestContext<'_>,
        method: &str,
        params: &Value,
        find: FindDestination,
    ) -> Option<Self> {
        // No host uses ids like this.
        let id = format!("\"plugbay inner {}\"", context.gateway().tickets.next().0);
        let message = write::request(id.as_bytes(), method, params.to_string().as_bytes());
        let Ok(Message::Request(request)) = Message::read(message) else { return None };
        let (session, sink) = (Arc::clone(context.session), Arc::clone(context.sink));
        Some(Self { request, find, session, sink })
    }

    /// The result as raw JSON, or the error message. Dropping the future cancels the request.
    ///
    /// The request uses the legacy protocol in any case: only there can a server send requests in the middle
    /// of it.
    pub(crate) async fn result(self) -> Result<Bytes, String> {
        let inner = Arc::new(Outbox::within(&self.sink));
        let _cancel = CancelOnDrop { session: &self.session, id: self.request.id() };
        let (session, request) = (&self.session, &self.request);
        let context = RequestContext { session, sink: &inner, request, era: Era::Legacy };
        route_request(context, self.find);
        while let Some(frames) = inner.take().await {
            for frame in frames {
                inner.written(frame.len());
                let message = frame.into_bytes();
                match outcome(&message) {
                    Some(outcome) => return outcome,
                    None => self.sink.send_if_room(Frame::from(message)),
                }
            }
        }
        Err("there is no answer".to_owned())
    }
}

/// The result or error in a message; `None` if the message is no answer.
fn outcome(message: &Bytes) -> Option<Result<Bytes, String>> {
    let head = Head::read(message).ok()?;
    match (head.kind, head.payload) {
        (Kind::Result { .. }, Some(result)) => Some(Ok(message.slice(result))),
        (Kind::Error { .. }, payload) => {
            let words = payload.and_then(|error| Members::find(message, &error, "message"));
            let words = words.and_then(|words| string_value(&message[words]));
            Some(Err(words.as_deref().unwrap_or("no reason given").to_owned()))
        }
        _ => None,
    }
}
