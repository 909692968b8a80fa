//! A run that waits for the next request of its modern host.

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

/// Answers the host's request with `input_required`, and keeps the run for its next one.
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
