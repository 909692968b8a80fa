//! The host of an agent run: its request in flight, and requests to it during the run.

use std::sync::Arc;

use bytes::Bytes;
use plugbay_core::{
    capabilities::ClientCapabilities,
    era::Era,
    exchange::ServerRequestError,
    model::{Prompt, Reply, Trouble},
};
use tokio::sync::{mpsc, oneshot};

use super::progress::ProgressReporter;
use crate::{
    context::RequestContext,
    outbox::Outbox,
    sampling,
    session::{HostResult, Session},
};

pub(super) struct Host {
    pub(super) outer: OuterRequest,
    era: Era,
    /// Takes requests to a modern host; [`super::ActiveRun`] sends them.
    gateway_requests: mpsc::UnboundedSender<GatewayRequest>,
}

/// The host's request that the agent run answers. A modern host sends a new one after each pause.
#[derive(Clone)]
pub(super) struct OuterRequest {
    pub(super) session: Arc<Session>,
    /// Takes the answer and requests of servers.
    pub(super) sink: Arc<Outbox>,
    pub(super) progress: Arc<ProgressReporter>,
    /// What its request declares, if it is modern.
    client_capabilities: ClientCapabilities,
}

/// A request of plugbay to a modern host.
pub(super) struct GatewayRequest {
    pub(super) method: &'static str,
    /// Raw JSON.
    pub(super) params: String,
    pub(super) answer: oneshot::Sender<Returned>,
}

/// The host is back with an answer, and waits there.
pub(super) struct Returned {
    pub(super) outer: OuterRequest,
    /// Raw JSON, an object.
    pub(super) answer: Bytes,
}

impl OuterRequest {
    pub(super) fn of(context: RequestContext<'_>) -> Self {
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
    pub(super) fn new(
        outer: OuterRequest,
        era: Era,
        gateway_requests: mpsc::UnboundedSender<GatewayRequest>,
    ) -> Self {
        Self { outer, era, gateway_requests }
    }

    /// Whether the host declared `sampling.tools`.
    pub(super) fn has_sampling_tools(&self) -> bool {
        match self.era {
            Era::Legacy => self.outer.session.lock().client_capabilities.sampling_tools,
            Era::Modern => self.outer.client_capabilities.sampling_tools,
        }
    }

    /// Asks the host's model.
    pub(super) async fn sample(&mut self, prompt: &Prompt) -> Result<Reply, Trouble> {
        sampling::read(self.ask(sampling::METHOD, sampling::params(prompt)?).await)
    }

    /// `params` is raw JSON.
    pub(super) async fn ask(
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

    /// Answers the host's request with `input_required` and waits for its next request.
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
        let _ = self.gateway_requests.send(GatewayRequest { method, params, answer });
        let Returned { outer, answer } = returned.await.map_err(|_| ServerRequestError::HostGone)?;
        self.outer = outer;
        Ok(answer)
    }
}
