//! The host whose agent run it is: where it waits for the answer, and how it is asked something meanwhile.

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
    /// Where a modern host's gateway_requests go: whoever follows the agent run puts them.
    gateway_requests: mpsc::UnboundedSender<GatewayRequest>,
}

/// Where the host waits. A modern one waits elsewhere after each question.
#[derive(Clone)]
pub(super) struct OuterRequest {
    pub(super) session: Arc<Session>,
    /// Where the agent run is answered, and where servers' gateway_requests are put.
    pub(super) sink: Arc<Outbox>,
    pub(super) progress: Arc<ProgressReporter>,
    /// What its request declares, if it is modern.
    client_capabilities: ClientCapabilities,
}

/// What a modern host is asked.
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

    /// Its own model can be asked to use tools.
    pub(super) fn has_sampling_tools(&self) -> bool {
        match self.era {
            Era::Legacy => self.outer.session.lock().client_capabilities.sampling_tools,
            Era::Modern => self.outer.client_capabilities.sampling_tools,
        }
    }

    /// Its own model answers.
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

    /// The agent run is not looked after until the host is back.
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
