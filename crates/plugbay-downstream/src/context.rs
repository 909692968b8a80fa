//! The context of a host's request: its session, its era, and the outbox for its answer.

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use plugbay_core::{era::Era, size_limit, surface::Snapshot, wire::Frame};
use serde_json::Value;
use tokio::task::JoinError;

use crate::{
    gateway::Gateway, message::Request, outbox::Outbox, refusal::Refusal, respond, session::Session,
};

/// Arguments of up to this many bytes are checked on the event loop, as far as one pass can tell.
const QUICKLY_CHECKED: usize = 64 << 10;

/// Everything that a handler needs to answer a request, now or later.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub(crate) session: &'a Arc<Session>,
    /// Takes the answer and all messages before it.
    pub(crate) sink: &'a Arc<Outbox>,
    pub(crate) request: &'a Request,
    pub(crate) era: Era,
}

impl<'a> RequestContext<'a> {
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.session.snapshot()
    }

    pub(crate) fn gateway(&self) -> &'a Gateway {
        self.session.gateway()
    }

    /// The same request with another body, as `execute_tool` contains it.
    pub(crate) fn with_request<'b>(self, request: &'b Request) -> RequestContext<'b>
    where
        'a: 'b,
    {
        RequestContext { request, ..self }
    }

    /// The refusal of a tool that another access token of the caller could allow.
    pub(crate) fn missing_scope(&self, tool: &str) -> Option<Refusal> {
        if tool.len() > size_limit::NAME {
            return None;
        }
        let gateway = self.gateway();
        let scope = gateway.principal.scopes_for(tool, &gateway.snapshots.borrow())?;
        Some(Refusal::MissingScope { scope })
    }

    // --- answers

    pub(crate) fn answer(&self, frame: Frame) {
        self.sink.answer(frame);
    }

    pub(crate) fn result(&self, result: Value) {
        self.answer(respond::result(self.request.id(), self.era, result));
    }

    /// Answers the call of a built-in tool. An `Err` is shown to the model.
    pub(crate) fn text(&self, reply: &Result<String, String>) {
        let (Ok(text) | Err(text)) = reply;
        self.answer(respond::tool_text(self.request.id(), self.era, text, reply.is_err()));
    }

    pub(crate) fn refuse(&self, refusal: &Refusal) {
        self.sink.refuse(self.request.id(), refusal);
    }

    // --- later

    /// Runs `coming` in the background, then `then`. If the host cancels the request first, `coming` is
    /// dropped.
    pub(crate) fn later<T: Send + 'static>(
        self,
        coming: impl Future<Output = T> + Send + 'static,
        then: impl FnOnce(RequestContext<'_>, T) + Send + 'static,
    ) {
        let id = Bytes::copy_from_slice(self.request.id());
        let length = self.request.message.len();
        let cancelled = match self.session.wait(id.clone(), Arc::clone(self.sink), length) {
            Ok(cancelled) => cancelled,
            Err(refusal) => return self.refuse(&refusal),
        };
        let context = self.to_owned();
        tokio::spawn(async move {
            let come = tokio::select! {
                biased; // a cancelled request has lost its id, perhaps to another one
                _ = cancelled => None,
                come = coming => Some(come),
            };
            match come.filter(|_| context.session.release(&id)) {
                Some(come) => then(context.borrow(), come),
                // Last, because cancellations of requests to the host use the same outbox.
                None => context.sink.cancelled(),
            }
            context.session.notify_if_idle();
        });
    }

    /// Continues when every server has listed its tools or failed, or the wait for it is over.
    pub(crate) fn when_settled(self, then: impl FnOnce(RequestContext<'_>) + Send + 'static) {
        let gateway = self.gateway().clone();
        self.later(async move { gateway.settled().await }, |context, ()| then(context));
    }

    /// Continues when the indexes of tools and skills are built. Other requests are served meanwhile.
    pub(crate) fn when_searchable(
        self,
        snapshot: &Snapshot,
        then: impl FnOnce(RequestContext<'_>) + Send + 'static,
    ) {
        if snapshot.tool_index.is_quick() && snapshot.resources.skills.is_quick() {
            return then(self);
        }
        let (tool_index, resources) = (Arc::clone(&snapshot.tool_index), Arc::clone(&snapshot.resources));
        let table = self.gateway().table;
        let ready = self.worked(move || {
            tool_index.prepare(table);
            resources.skills.prepare(table);
        });
        self.later(ready, |context, _| then(context));
    }

    /// The arguments of a call, if they are short enough for a quick check.
    pub(crate) fn short_arguments(&self) -> Option<&'a [u8]> {
        self.request.arguments().filter(|arguments| arguments.len() <= QUICKLY_CHECKED)
    }

    /// Continues with `quickly`, the result of a quick check of the arguments. If that is `None`, `find`
    /// checks them in another thread.
    pub(crate) fn checked<T: Send + 'static>(
        self,
        quickly: Option<T>,
        find: impl FnOnce(RequestContext<'_>) -> T + Send + 'static,
        then: impl FnOnce(RequestContext<'_>, T) + Send + 'static,
    ) {
        if let Some(found) = quickly {
            return then(self, found);
        }
        let owned = self.to_owned();
        let working = self.worked(move || find(owned.borrow()));
        self.later(working, |context, found| match found {
            Ok(found) => then(context, found),
            Err(_) => context.text(&Err("the arguments could not be checked".to_owned())),
        });
    }

    /// Answers the call of a built-in tool with a text, made in another thread if that may take long.
    pub(crate) fn text_made(
        self,
        takes_long: bool,
        make: impl FnOnce(&Session) -> Result<String, String> + Send + 'static,
    ) {
        if !takes_long {
            return self.text(&make(self.session));
        }
        let session = Arc::clone(self.session);
        let working = self.worked(move || make(&session));
        self.later(working, |context, text| {
            context.text(&text.unwrap_or_else(|_| Err("the answer could not be made".to_owned())));
        });
    }

    /// Runs work in another thread, once this is awaited and a thread is free.
    fn worked<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = Result<T, JoinError>> + Send + 'static {
        let (workers, caller) = (Arc::clone(&self.gateway().workers), self.session.caller());
        async move { workers.run(caller, work).await }
    }

    pub(crate) fn to_owned(self) -> OwnedContext {
        OwnedContext {
            session: Arc::clone(self.session),
            sink: Arc::clone(self.sink),
            request: self.request.clone(),
            era: self.era,
        }
    }
}

/// A [`RequestContext`] that a future can keep.
#[derive(Clone)]
pub(crate) struct OwnedContext {
    session: Arc<Session>,
    sink: Arc<Outbox>,
    request: Request,
    era: Era,
}

impl OwnedContext {
    pub(crate) fn borrow(&self) -> RequestContext<'_> {
        RequestContext { session: &self.session, sink: &self.sink, request: &self.request, era: self.era }
    }
}
