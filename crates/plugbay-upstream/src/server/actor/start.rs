//! From a spec to a server that is open.

use std::sync::Arc;

use plugbay_core::{
    catalog::Dialect,
    era::Era,
    failure::{Cause, Failure},
};
use tokio::time::{Instant, timeout};

use super::{
    super::{
        ServerContext,
        opening::{self, OpenError, Opened},
    },
    dialect::{today, tries_both_transports},
};
use crate::{
    http::{Flavour, HttpLink},
    link::{Link, PipeLink},
    spec::{ServerSpec, Transport},
};

pub(super) struct Started {
    pub(super) link: Link,
    pub(super) opened: Opened,
    pub(super) dialect: Dialect,
}

/// Why a start failed. `silent`: the server ran but sent no message.
pub(super) struct StartError {
    pub(super) failure: Failure,
    pub(super) silent: bool,
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> Self {
        Self { failure, silent: false }
    }
}

/// Connects to a server and opens it within its start timeout.
pub(super) async fn start(
    spec: Arc<ServerSpec>,
    context: ServerContext,
    dialect: Dialect,
) -> Result<Started, StartError> {
    let deadline = Instant::now() + spec.timeouts.start;
    let mut attempt = Attempt { spec, dialect, first_failure: None };
    loop {
        let mut link = attempt.connect(&context)?;
        let opening = opening::open(&mut link, attempt.first_era(), &context.tickets, &context.host_registry);
        match timeout(deadline - Instant::now(), opening).await {
            Ok(Ok(opened)) => return Ok(attempt.started(link, opened)),
            Ok(Err(error)) => attempt.failed(link, error).await?,
            Err(_) => {
                let error = out_of_time(&attempt.spec, &link);
                attempt.end(link);
                return Err(error);
            }
        }
    }
}

/// One way to open a server; a failure may suggest another.
struct Attempt {
    spec: Arc<ServerSpec>,
    dialect: Dialect,
    /// The failure of the HTTP transport that was tried first, once the other one is.
    first_failure: Option<Failure>,
}

impl Attempt {
    fn connect(&self, context: &ServerContext) -> Result<Link, Failure> {
        let limit = self.spec.message_limit;
        match &self.spec.transport {
            Transport::Stdio(stdio) => {
                let launched = (context.launcher)(&self.spec.name, stdio)?;
                Ok(Link::Pipe(Box::new(PipeLink::new(launched, self.dialect.framing, limit))))
            }
            Transport::Http(http) => {
                let flavour = if self.dialect.sse { Flavour::Sse } else { Flavour::Streamable };
                Ok(Link::Http(Box::new(HttpLink::open(http, flavour, limit)?)))
            }
        }
    }

    fn first_era(&self) -> Era {
        let legacy_first = self.dialect.sse || self.dialect.asked_in_vain.is_some();
        if legacy_first { Era::Legacy } else { Era::Modern }
    }

    fn started(mut self, link: Link, opened: Opened) -> Started {
        self.dialect.era = opened.era.unwrap_or(Era::Legacy);
        self.dialect.asked_in_vain = match (opened.asked_in_vain, opened.era) {
            (true, _) => Some(today()),
            (false, Some(Era::Legacy)) => self.dialect.asked_in_vain,
            (false, _) => None,
        };
        Started { link, opened, dialect: self.dialect }
    }

    /// Ok: another attempt is worth while, in the dialect that is set now.
    async fn failed(&mut self, link: Link, error: OpenError) -> Result<(), Failure> {
        match error {
            // It does not survive `server/discover`: the next attempt sends `initialize`.
            OpenError::Closed { probing: true } => {
                self.dialect.asked_in_vain = Some(today());
                self.end(link);
                Ok(())
            }
            OpenError::Closed { probing: false } => {
                let failure = link.post_mortem("before it answered", self.spec.timeouts.shutdown).await;
                // It may have left the older transport since it was last opened.
                if self.dialect.sse { self.try_transport(false, failure) } else { Err(self.report(failure)) }
            }
            OpenError::Refused(text) => {
                let failure = link.failure(format!("refused to be initialised: {text}"));
                self.end(link);
                Err(failure)
            }
            OpenError::Undelivered(error) => {
                self.end(link);
                let failure = error.failure_of(&self.spec);
                let other = !self.dialect.sse && error.suggests_sse();
                if other { self.try_transport(true, failure) } else { Err(self.report(failure)) }
            }
        }
    }

    fn try_transport(&mut self, sse: bool, failure: Failure) -> Result<(), Failure> {
        if self.first_failure.is_some() || !tries_both_transports(&self.spec) {
            return Err(self.report(failure));
        }
        self.dialect.sse = sse;
        self.first_failure = Some(failure);
        Ok(())
    }

    /// Of two failures the first is reported: it is about the transport that was expected.
    fn report(&mut self, failure: Failure) -> Failure {
        self.first_failure.take().unwrap_or(failure)
    }

    fn end(&self, link: Link) {
        tokio::spawn(link.end(self.spec.timeouts.shutdown));
    }
}

fn out_of_time(spec: &ServerSpec, link: &Link) -> StartError {
    let what = format!("did not answer within {} s of its start", spec.timeouts.start.as_secs_f32());
    let mut failure = link.failure(what).because(Cause::OutOfTime);
    if failure.remedy.is_none() {
        let first = match &spec.transport {
            Transport::Stdio(_) => "run its command by hand",
            Transport::Http(_) => "check \"url\" and the network",
        };
        failure.remedy = Some(format!("{first}, or raise \"start\" in its \"plugbay\" settings"));
    }
    StartError { failure, silent: !link.has_sent() }
}
