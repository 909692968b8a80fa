//! From a spec to an open server.

use std::sync::Arc;

use plugbay_core::{
    catalog::Dialect,
    era::Era,
    failure::{Cause, Failure},
    start::{AttemptEnd, GiveUp},
    wire::Framing,
};
use tokio::sync::mpsc;

use super::{
    super::{
        ServerContext,
        opening::{self, OpenError, Opened},
    },
    dialect::{today, tries_both_transports},
    start_watch::Watch,
};
use crate::{
    http::{Flavour, HttpLink, TransportError, remote},
    link::{Link, PipeLink, Witness},
    slots::Slot,
    spec::{ServerSpec, Transport},
};

pub(super) struct Started {
    pub(super) link: Link,
    pub(super) opened: Opened,
    pub(super) dialect: Dialect,
    /// Watches the start until the first complete list.
    pub(super) watch: Watch,
    pub(super) slot: Option<Slot>,
}

/// The reason why a start failed, and what it shows about the framing.
pub(super) struct StartError {
    pub(super) failure: Failure,
    pub(super) end: AttemptEnd,
}

/// A start that is about to begin: its dialect, its turn, its slot, and the sender that reports a slow start.
pub(super) struct Plan {
    pub(super) dialect: Dialect,
    /// Whether the framing is only a guess.
    pub(super) guesses_framing: bool,
    pub(super) watch: Watch,
    pub(super) slot: Option<Slot>,
    pub(super) slow: mpsc::UnboundedSender<Failure>,
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> Self {
        Self { failure, end: AttemptEnd::Unclear }
    }
}

/// Connects to a server and opens it. Ends when the start is no longer worth waiting for.
pub(super) async fn start(
    spec: Arc<ServerSpec>,
    context: ServerContext,
    plan: Plan,
) -> Result<Started, StartError> {
    let Plan { dialect, guesses_framing, mut watch, slot, slow } = plan;
    let mut attempt = Attempt { spec, dialect, guesses_framing, first_failure: None };
    loop {
        let mut link = attempt.connect(&context)?;
        let (pid, witness) = (link.pid(), link.witness());
        let (first, guess) = (attempt.first_era(), attempt.guesses_framing);
        let opening = opening::open(&mut link, first, guess, &context.tickets, &context.host_registry);
        let is_slow = || {
            let _ = slow.send(slow_start(&attempt.spec, &witness));
        };
        match watch.over(opening, pid, is_slow).await {
            Ok(Ok(opened)) => {
                watch.progressed();
                return Ok(attempt.started(link, opened, watch, slot));
            }
            Ok(Err(error)) => attempt.failed(link, error).await?,
            Err(why) => return Err(attempt.given_up(link, why, &watch)),
        }
    }
}

/// One way to open a server; a failure may suggest another.
struct Attempt {
    spec: Arc<ServerSpec>,
    dialect: Dialect,
    guesses_framing: bool,
    /// The failure of the HTTP transport that was tried first, while another one is tried.
    first_failure: Option<Failure>,
}

/// The HTTP transport to try next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    Streamable,
    Sse,
    PlainApi,
}

impl Attempt {
    fn connect(&self, context: &ServerContext) -> Result<Link, Failure> {
        let limit = self.spec.message_limit;
        match &self.spec.transport {
            Transport::Stdio(stdio) => {
                let launched = (context.launcher)(&self.spec.name, stdio);
                let launched = launched.map_err(|failure| failure.hiding(&stdio.secrets()))?;
                Ok(Link::Pipe(Box::new(PipeLink::new(launched, self.dialect.framing, limit))))
            }
            Transport::Http(http) => {
                let flavour = match self.dialect {
                    Dialect { plain_api: true, .. } => Flavour::PlainApi,
                    Dialect { sse: true, .. } => Flavour::Sse,
                    _ => Flavour::Streamable,
                };
                let session_id =
                    http.remote.then(|| context.host_registry.session_id(remote::new_session_id));
                let credentials = context.credentials.clone();
                let link = HttpLink::open(http, flavour, limit, session_id.as_deref(), credentials)?;
                Ok(Link::Http(Box::new(link)))
            }
        }
    }

    fn first_era(&self) -> Era {
        let Dialect { sse, plain_api, .. } = self.dialect;
        let legacy_first = sse || plain_api || self.dialect.asked_in_vain.is_some();
        if legacy_first { Era::Legacy } else { Era::Modern }
    }

    fn started(mut self, link: Link, opened: Opened, watch: Watch, slot: Option<Slot>) -> Started {
        self.dialect.era = opened.era.unwrap_or(Era::Legacy);
        self.dialect.asked_in_vain = match (opened.asked_in_vain, opened.era) {
            (true, _) => Some(today()),
            (false, Some(Era::Legacy)) => self.dialect.asked_in_vain,
            (false, _) => None,
        };
        Started { link, opened, dialect: self.dialect, watch, slot }
    }

    /// Handles a failed attempt. `Ok`: another attempt is worthwhile, in the dialect that is now set.
    async fn failed(&mut self, link: Link, error: OpenError) -> Result<(), Failure> {
        match error {
            // It does not survive `server/discover`, so the next attempt sends `initialize`.
            OpenError::Closed { probing: true } => {
                self.dialect.asked_in_vain = Some(today());
                self.end(link);
                Ok(())
            }
            OpenError::Closed { probing: false } => {
                let failure = link.post_mortem("before it answered", self.spec.timeouts.shutdown).await;
                // It may have given up the older transport since its last opening.
                if self.dialect.sse && failure.cause != Cause::NeedsLogin {
                    self.try_transport(Other::Streamable, failure)
                } else {
                    Err(self.report(failure))
                }
            }
            OpenError::Refused(text) => {
                let failure = link.failure(format!("refused to be initialised: {text}"));
                self.end(link);
                Err(failure)
            }
            // The next attempt writes lines.
            OpenError::ReadsLines => {
                (self.dialect.framing, self.guesses_framing) = (Framing::Newline, false);
                self.end(link);
                Ok(())
            }
            OpenError::Undelivered(error) => {
                self.end(link);
                let failure = error.failure_of(&self.spec);
                match self.other_transport(&error) {
                    Some(other) => self.try_transport(other, failure),
                    // A remote that has `/tools` but no `/mcp`: the first failure does not show the cause.
                    None if self.dialect.plain_api => Err(failure),
                    None => Err(self.report(failure)),
                }
            }
        }
    }

    /// The transport that this error suggests.
    fn other_transport(&self, error: &TransportError) -> Option<Other> {
        let Dialect { sse, plain_api, .. } = self.dialect;
        match self.spec.is_remote() {
            true if plain_api && error.suggests_plain_api() => Some(Other::Streamable),
            true => error.suggests_plain_api().then_some(Other::PlainApi),
            false => (!sse && error.suggests_sse()).then_some(Other::Sse),
        }
    }

    fn try_transport(&mut self, other: Other, failure: Failure) -> Result<(), Failure> {
        if self.first_failure.is_some() || !tries_both_transports(&self.spec) {
            return Err(self.report(failure));
        }
        self.dialect.sse = other == Other::Sse;
        self.dialect.plain_api = other == Other::PlainApi;
        self.first_failure = Some(failure);
        Ok(())
    }

    fn given_up(&self, link: Link, why: GiveUp, watch: &Watch) -> StartError {
        let failure = match why {
            GiveUp::Idle => out_of_time(&self.spec, &link.witness()),
            GiveUp::TooLong => too_long(&self.spec, &link.witness(), watch),
        };
        let end = match why {
            _ if link.has_sent() => AttemptEnd::Spoke,
            GiveUp::Idle => AttemptEnd::Silent,
            GiveUp::TooLong => AttemptEnd::Unclear,
        };
        self.end(link);
        StartError { failure, end }
    }

    /// The failure to report: if there are two, the first, because it is about the expected transport.
    fn report(&mut self, failure: Failure) -> Failure {
        self.first_failure.take().unwrap_or(failure)
    }

    fn end(&self, link: Link) {
        tokio::spawn(link.end(self.spec.timeouts.shutdown));
    }
}

/// The failure of a start that exceeds its timeout but goes on.
pub(super) fn slow_start(spec: &ServerSpec, witness: &Witness) -> Failure {
    let what = format!("slow: still starting after {} s", spec.timeouts.start.as_secs_f32());
    with_remedy(spec, witness.failure(what))
}

/// The failure of a start in which the server did nothing.
fn out_of_time(spec: &ServerSpec, witness: &Witness) -> Failure {
    let what = format!("did not answer within {} s of its start", spec.timeouts.start.as_secs_f32());
    with_remedy(spec, witness.failure(what))
}

/// The failure of a start that reached the hard limit.
pub(super) fn too_long(spec: &ServerSpec, witness: &Witness, watch: &Watch) -> Failure {
    let what = format!("was still starting after {}, so plugbay ended it", watch.hard_end());
    with_remedy(spec, witness.failure(what))
}

fn with_remedy(spec: &ServerSpec, failure: Failure) -> Failure {
    let mut failure = failure.because(Cause::OutOfTime);
    if failure.remedy.is_none() {
        let first = match &spec.transport {
            Transport::Stdio(_) => "run its command by hand",
            Transport::Http(_) => "check \"url\" and the network",
        };
        failure.remedy = Some(format!("{first}, or raise \"start\" in its \"plugbay\" settings"));
    }
    failure
}
