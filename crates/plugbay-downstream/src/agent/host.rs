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

use super::teller::Teller;
use crate::{
    context::RequestContext,
    outbox::Outbox,
    sampling,
    session::{Replied, Session},
};

pub(super) struct Host {
    pub(super) place: Place,
    era: Era,
    /// Where a modern host's questions go: whoever follows the agent run puts them.
    questions: mpsc::UnboundedSender<Question>,
}

/// Where the host waits. A modern one waits elsewhere after each question.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) session: Arc<Session>,
    /// Where the agent run is answered, and where servers' questions are put.
    pub(super) sink: Arc<Outbox>,
    pub(super) teller: Arc<Teller>,
    /// What its request declares, if it is modern.
    client_capabilities: ClientCapabilities,
}

/// What a modern host is asked.
pub(super) struct Question {
    pub(super) method: &'static str,
    /// Raw JSON.
    pub(super) params: String,
    pub(super) answer: oneshot::Sender<Returned>,
}

/// The host is back with an answer, and waits there.
pub(super) struct Returned {
    pub(super) place: Place,
    /// Raw JSON, an object.
    pub(super) answer: Bytes,
}

impl Place {
    pub(super) fn of(context: RequestContext<'_>) -> Self {
        let RequestContext { session, sink, request, .. } = context;
        Self {
            session: Arc::clone(session),
            sink: Arc::clone(sink),
            teller: Arc::new(Teller::new(request, sink)),
            client_capabilities: request.client_capabilities(),
        }
    }
}

impl Host {
    pub(super) fn new(place: Place, era: Era, questions: mpsc::UnboundedSender<Question>) -> Self {
        Self { place, era, questions }
    }

    /// Its own model can be asked to use tools.
    pub(super) fn lends_model(&self) -> bool {
        match self.era {
            Era::Legacy => self.place.session.lock().client_capabilities.sampling_tools,
            Era::Modern => self.place.client_capabilities.sampling_tools,
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
    ) -> Result<Replied, ServerRequestError> {
        let Place { session, sink, .. } = &self.place;
        match self.era {
            Era::Legacy => session.hear_for_ourselves(sink, method, &params).await,
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
            self.place.client_capabilities.lacks(params.as_bytes(), method.as_bytes(), Some(&everything));
        if let Some(lacking) = lacking {
            return Err(ServerRequestError::Undeclared(lacking));
        }
        self.place.session.gateway().suspended.can_pause()?;
        let (answer, returned) = oneshot::channel();
        let _ = self.questions.send(Question { method, params, answer });
        let Returned { place, answer } = returned.await.map_err(|_| ServerRequestError::HostGone)?;
        self.place = place;
        Ok(answer)
    }
}
