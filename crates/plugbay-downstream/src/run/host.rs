//! The host of a run: its request in flight, and requests to it during the run.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::Era,
    exchange::ServerRequestError,
    model::{ModelError, Prompt, Reply},
};
use tokio::sync::{mpsc, oneshot};

use super::{Ending, Stop, progress::ProgressReporter};
use crate::{
    context::RequestContext,
    outbox::Outbox,
    sampling,
    session::{HostResult, Session},
    suspended::RunId,
};

pub(crate) struct Host {
    pub(crate) outer: OuterRequest,
    era: Era,
    /// Takes what the run needs from a later request of the host; read by [`super::ActiveRun`].
    needs: mpsc::UnboundedSender<HostNeeded>,
}

/// The host's request that the run answers. After a pause or a stop it is a new one.
#[derive(Clone)]
pub(crate) struct OuterRequest {
    pub(crate) session: Arc<Session>,
    /// Takes the answer and server requests.
    pub(crate) sink: Arc<Outbox>,
    pub(crate) progress: Arc<ProgressReporter>,
    /// The capabilities in the request, if it is modern.
    client_capabilities: ClientCapabilities,
}

/// Something that a run needs from a later request of the host.
pub(crate) enum HostNeeded {
    /// The answer of a modern host to a question.
    Asked(GatewayRequest),
    /// Only the request itself.
    Back(Stop),
}

/// A request by plugbay to a modern host.
pub(crate) struct GatewayRequest {
    pub(crate) method: &'static str,
    /// Raw JSON.
    pub(crate) params: String,
    pub(crate) answer: oneshot::Sender<Returned>,
}

/// The host's next request, with its answer.
pub(crate) struct Returned {
    pub(crate) outer: OuterRequest,
    /// Raw JSON, an object.
    pub(crate) answer: Bytes,
}

impl OuterRequest {
    pub(crate) fn of(context: RequestContext<'_>) -> Self {
        let RequestContext { session, sink, request, .. } = context;
        Self {
            session: Arc::clone(session),
            sink: Arc::clone(sink),
            progress: Arc::new(ProgressReporter::new(request, sink)),
            client_capabilities: request.client_capabilities(),
        }
    }
}

impl Host {
    pub(crate) fn new(outer: OuterRequest, era: Era, needs: mpsc::UnboundedSender<HostNeeded>) -> Self {
        Self { outer, era, needs }
    }

    /// Whether the host declared `sampling.tools`.
    pub(crate) fn has_sampling_tools(&self) -> bool {
        match self.era {
            Era::Legacy => self.outer.session.lock().client_capabilities.sampling_tools,
            Era::Modern => self.outer.client_capabilities.sampling_tools,
        }
    }

    /// Asks the host's model.
    pub(crate) async fn sample(&mut self, prompt: &Prompt) -> Result<Reply, ModelError> {
        sampling::read(self.ask(sampling::METHOD, sampling::params(prompt)?).await)
    }

    /// `params` is raw JSON.
    pub(crate) async fn ask(
        &mut self,
        method: &'static str,
        params: String,
    ) -> Result<HostResult, ServerRequestError> {
        let OuterRequest { session, sink, .. } = &self.outer;
        match self.era {
            Era::Legacy => session.request_host(sink, method, &params).await,
            Era::Modern => self.ask_by_answering(method, params).await.map(Ok),
        }
    }

    /// Answers the host's request with `input_required`, and waits for its next request.
    async fn ask_by_answering(
        &mut self,
        method: &'static str,
        params: String,
    ) -> Result<Bytes, ServerRequestError> {
        let everything = 0..params.len();
        let lacking =
            self.outer.client_capabilities.lacks(params.as_bytes(), method.as_bytes(), Some(&everything));
        if let Some(lacking) = lacking {
            return Err(ServerRequestError::Undeclared(lacking));
        }
        self.outer.session.gateway().suspended.can_pause()?;
        let (answer, returned) = oneshot::channel();
        let _ = self.needs.send(HostNeeded::Asked(GatewayRequest { method, params, answer }));
        let Returned { outer, answer } = returned.await.map_err(|_| ServerRequestError::HostGone)?;
        self.outer = outer;
        Ok(answer)
    }

    /// Stops the run: sends `answer` to the request in flight, and waits for the request that continues the
    /// run.
    pub(crate) async fn stop(&mut self, run: RunId, answer: Ending) {
        let (back, next) = oneshot::channel();
        let _ = self.needs.send(HostNeeded::Back(Stop { run, answer, back }));
        match next.await {
            Ok(outer) => self.outer = outer,
            Err(_) => std::future::pending().await, // the run is being dropped
        }
    }
}
