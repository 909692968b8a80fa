//! Runs: the common part of `natural_language` and `run_code`.
//!
//! A run makes calls as if its host had made them, and may ask the host's user. It answers one or more
//! requests of the host: a modern host gets questions as answers, and a long run stops and continues in a
//! later request.

pub(crate) mod calls;
pub(crate) mod consent;
pub(crate) mod host;
mod paused;
mod progress;

use std::pin::Pin;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use self::{
    host::{Host, HostNeeded, OuterRequest},
    paused::Paused,
};
use crate::{
    context::RequestContext,
    suspended::{PausedRun, RunId},
};

/// Answers the host's request that is in flight when the run ends.
pub(crate) type Ending = Box<dyn FnOnce(RequestContext<'_>) + Send>;

/// A run in progress. Dropping it cancels its calls.
pub(crate) struct ActiveRun {
    run: Pin<Box<dyn Future<Output = Ending> + Send>>,
    needs: mpsc::UnboundedReceiver<HostNeeded>,
}

enum Step {
    Ended(Ending),
    Pauses(Paused),
    Stops(Stop, ActiveRun),
}

impl ActiveRun {
    /// Starts a run for this request.
    pub(crate) fn new<F>(context: RequestContext<'_>, run: impl FnOnce(Host) -> F) -> Self
    where
        F: Future<Output = Ending> + Send + 'static,
    {
        let (sender, needs) = mpsc::unbounded_channel();
        let host = Host::new(OuterRequest::of(context), context.era, sender);
        Self { run: Box::pin(run(host)), needs }
    }

    /// Drives the run until it ends, or until it needs another request of the host.
    pub(crate) fn drive(self, context: RequestContext<'_>) {
        context.later(self.next(), |context, next| match next {
            Step::Ended(answer) => answer(context),
            Step::Pauses(paused) => paused::pause(context, paused),
            Step::Stops(stop, run) => stop.stop(context, run),
        });
    }

    async fn next(mut self) -> Step {
        tokio::select! {
            biased; // a run that has ended needs nothing
            answer = &mut self.run => Step::Ended(answer),
            Some(need) = self.needs.recv() => match need {
                HostNeeded::Asked(request) => Step::Pauses(Paused { request, run: self }),
                HostNeeded::Back(stop) => Step::Stops(stop, self),
            },
        }
    }
}

/// A run that stops until the host's next request.
pub(crate) struct Stop {
    run: RunId,
    /// Answers the host's current request.
    answer: Ending,
    /// Takes the next request.
    back: oneshot::Sender<OuterRequest>,
}

impl Stop {
    /// Answers the host's request, and keeps the run for a later one.
    fn stop(self, context: RequestContext<'_>, run: ActiveRun) {
        let stopped = Box::new(Stopped { back: self.back, run });
        context.gateway().suspended.stopped_runs.keep(self.run, context.session.result_owner(), stopped);
        (self.answer)(context);
    }
}

struct Stopped {
    back: oneshot::Sender<OuterRequest>,
    run: ActiveRun,
}

impl PausedRun for Stopped {
    fn resume(self: Box<Self>, context: RequestContext<'_>, _: Option<Bytes>) {
        let _ = self.back.send(OuterRequest::of(context));
        self.run.drive(context);
    }
}
