//! An agent run whose modern host has been asked something: nothing goes on until its next request.

use bytes::Bytes;

use super::{
    ActiveRun,
    host::{GatewayRequest, OuterRequest, Returned},
};
use crate::{context::RequestContext, suspended::PausedRun};

pub(super) struct Paused {
    pub(super) request: GatewayRequest,
    pub(super) run: ActiveRun,
}

/// Answers the host's request with the request, and keeps the run for its next one.
pub(super) fn pause(context: RequestContext<'_>, paused: Paused) {
    let (method, params) = (paused.request.method, paused.request.params.clone());
    context.gateway().suspended.pause(context, method, &params, Box::new(paused));
}

impl PausedRun for Paused {
    fn resume(self: Box<Self>, context: RequestContext<'_>, answer: Option<Bytes>) {
        let Some(answer) = answer else { return pause(context, *self) };
        let Self { request, run } = *self;
        let _ = request.answer.send(Returned { outer: OuterRequest::of(context), answer });
        run.drive(context);
    }
}
