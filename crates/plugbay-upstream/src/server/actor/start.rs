//! From a spec to a server that has said who it is.

use std::{sync::Arc, time::SystemTime};

use plugbay_core::{catalog::Dialect, era::Era, failure::Failure, wire::Framing};
use tokio::time::{Instant, timeout};

use super::super::{
    Surroundings,
    opening::{self, OpenError, Opened},
};
use crate::{
    http::{Flavour, HttpLink},
    link::{Link, PipeLink},
    spec::{self, HttpFlavour, ServerSpec, Transport},
};

/// For so many days a server that took the modern server request badly is not asked it again. To all others it
/// costs nothing, and one that has been renewed is known by it at once.
const DAYS_OF_REST: u64 = 7;

/// How to speak to a server: remembered, or learnt when it was last opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Habits {
    pub(super) framing: Framing,
    pub(super) sse: bool,
    pub(super) asked_in_vain: Option<u64>,
}

pub(super) struct Started {
    pub(super) link: Link,
    pub(super) opened: Opened,
    pub(super) habits: Habits,
}

/// Why a start failed. `silent`: the server ran but never said a word.
pub(super) struct StartError {
    pub(super) failure: Failure,
    pub(super) silent: bool,
}

impl From<Failure> for StartError {
    fn from(failure: Failure) -> Self {
        Self { failure, silent: false }
    }
}

impl Habits {
    pub(super) fn new(spec: &ServerSpec, known: Option<Dialect>) -> Self {
        let rests = |day: &u64| today().saturating_sub(*day) < DAYS_OF_REST;
        let remembered = Self {
            framing: known.map(|known| known.framing).unwrap_or_default(),
            sse: known.is_some_and(|known| known.sse),
            asked_in_vain: known.and_then(|known| known.asked_in_vain).filter(rests),
        };
        match &spec.transport {
            Transport::Stdio(stdio) => Self {
                framing: match stdio.framing {
                    spec::Framing::ContentLength => Framing::ContentLength,
                    spec::Framing::Newline => Framing::Newline,
                    spec::Framing::Auto => remembered.framing,
                },
                ..remembered
            },
            Transport::Http(http) => Self {
                sse: match http.flavour {
                    HttpFlavour::Sse => true,
                    HttpFlavour::Streamable => false,
                    HttpFlavour::Auto => remembered.sse,
                },
                ..remembered
            },
        }
    }

    /// After a start that failed: what may have been wrong with it is tried the other way.
    pub(super) fn doubted(self, spec: &ServerSpec, silent: bool) -> Self {
        match &spec.transport {
            Transport::Stdio(stdio) if silent && stdio.framing == spec::Framing::Auto => {
                let framing = match self.framing {
                    Framing::Newline => Framing::ContentLength,
                    Framing::ContentLength => Framing::Newline,
                };
                Self { framing, ..self }
            }
            Transport::Http(http) if http.flavour == HttpFlavour::Auto => Self { sse: false, ..self },
            _ => self,
        }
    }
}

/// Connects to a server and opens it within its start timeout.
pub(super) async fn start(
    spec: Arc<ServerSpec>,
    around: Surroundings,
    mut habits: Habits,
) -> Result<Started, StartError> {
    let deadline = Instant::now() + spec.timeouts.start;
    let grace = spec.timeouts.shutdown;
    // Of the transport that was tried first, once the other one is.
    let mut first_failure: Option<Failure> = None;
    loop {
        let mut link = connect(&spec, &around, habits)?;
        let legacy_first = habits.sse || habits.asked_in_vain.is_some();
        let first = if legacy_first { Era::Legacy } else { Era::Modern };
        let opening = opening::open(&mut link, first, &around.tickets, &around.host_registry);
        let error = match timeout(deadline - Instant::now(), opening).await {
            Ok(Ok(opened)) => {
                habits.asked_in_vain = match (opened.asked_in_vain, opened.era) {
                    (true, _) => Some(today()),
                    (false, Some(Era::Legacy)) => habits.asked_in_vain,
                    (false, _) => None,
                };
                return Ok(Started { link, opened, habits });
            }
            Ok(Err(error)) => error,
            Err(_) => {
                let error = out_of_time(&spec, &link);
                tokio::spawn(link.end(grace));
                return Err(error);
            }
        };
        match error {
            // It does not survive the modern server request: it is asked again in the old way.
            OpenError::Closed { probing: true } => {
                habits.asked_in_vain = Some(today());
                tokio::spawn(link.end(grace));
            }
            // It may have left the old transport since we last met.
            OpenError::Closed { probing: false }
                if habits.sse && first_failure.is_none() && is_auto(&spec) =>
            {
                habits.sse = false;
                first_failure = Some(link.post_mortem("before it answered", grace).await);
            }
            OpenError::Closed { probing: false } => {
                let failure = link.post_mortem("before it answered", grace).await;
                return Err(first_failure.unwrap_or(failure).into());
            }
            OpenError::Refused(text) => {
                let failure = link.failure(format!("refused to be initialised: {text}"));
                tokio::spawn(link.end(grace));
                return Err(failure.into());
            }
            OpenError::Undelivered(trouble) => {
                tokio::spawn(link.end(grace));
                let failure = trouble.failure_of(&spec);
                let other_way = first_failure.is_none() && !habits.sse && is_auto(&spec);
                if !other_way || !trouble.speaks_of_another_transport() {
                    return Err(first_failure.unwrap_or(failure).into());
                }
                habits.sse = true;
                first_failure = Some(failure);
            }
        }
    }
}

fn connect(spec: &ServerSpec, around: &Surroundings, habits: Habits) -> Result<Link, Failure> {
    let limit = spec.message_limit;
    match &spec.transport {
        Transport::Stdio(stdio) => {
            let launched = (around.launcher)(&spec.name, stdio)?;
            Ok(Link::Pipe(Box::new(PipeLink::new(launched, habits.framing, limit))))
        }
        Transport::Http(http) => {
            let flavour = if habits.sse { Flavour::Sse } else { Flavour::Streamable };
            Ok(Link::Http(Box::new(HttpLink::open(http, flavour, limit)?)))
        }
    }
}

fn today() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / (24 * 3600)
}

fn is_auto(spec: &ServerSpec) -> bool {
    matches!(&spec.transport, Transport::Http(http) if http.flavour == HttpFlavour::Auto)
}

fn out_of_time(spec: &ServerSpec, link: &Link) -> StartError {
    let what = format!("did not answer within {} s of its start", spec.timeouts.start.as_secs_f32());
    let mut failure = link.failure(what);
    if failure.remedy.is_none() {
        let first = match &spec.transport {
            Transport::Stdio(_) => "run its command by hand",
            Transport::Http(_) => "check \"url\" and the network",
        };
        failure.remedy = Some(format!("{first}, or raise \"start\" in its \"plugbay\" settings"));
    }
    StartError { failure, silent: !link.has_spoken() }
}
