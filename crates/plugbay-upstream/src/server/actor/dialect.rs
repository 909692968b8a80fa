//! The dialect in which a server is opened: from its configuration, from the cache, or by trial.

use std::time::SystemTime;

use plugbay_core::{
    catalog::Dialect,
    era::Era,
    start::{AttemptEnd, FramingTrial},
    wire::Framing,
};

use crate::spec::{self, HttpFlavour, ServerSpec, Transport};

/// For this many days, a server that did not survive or answer `server/discover` is opened with `initialize`.
const DISCOVER_PAUSE_DAYS: u64 = 7;

/// The dialect of a server, and what its starts have shown about it.
pub(super) struct Speech {
    pub(super) dialect: Dialect,
    trial: FramingTrial,
}

impl Speech {
    /// The dialect of the first start; `known` is that of the last opening.
    pub(super) fn new(spec: &ServerSpec, known: Option<Dialect>) -> Self {
        let trial = FramingTrial::new(known.map_or(Framing::Newline, |known| known.framing));
        Self { dialect: configured(spec, known), trial }
    }

    /// Whether the framing of the next start is only a guess.
    pub(super) fn guesses_framing(&self, spec: &ServerSpec) -> bool {
        finds_framing(spec) && self.trial.is_guess(self.dialect.framing)
    }

    pub(super) fn opened(&mut self, dialect: Dialect) {
        self.dialect = dialect;
        self.trial.opened(dialect.framing);
    }

    /// Chooses the dialect for the start after one that failed.
    pub(super) fn start_failed(&mut self, spec: &ServerSpec, end: AttemptEnd) {
        match &spec.transport {
            Transport::Stdio(_) if finds_framing(spec) => {
                self.dialect.framing = self.trial.failed(self.dialect.framing, end);
            }
            Transport::Http(http) if http.flavour == HttpFlavour::Auto => self.dialect.sse = false,
            Transport::Stdio(_) | Transport::Http(_) => {}
        }
    }
}

/// Whether the framing is determined by trial.
fn finds_framing(spec: &ServerSpec) -> bool {
    matches!(&spec.transport, Transport::Stdio(stdio) if stdio.framing == spec::Framing::Auto)
}

fn configured(spec: &ServerSpec, known: Option<Dialect>) -> Dialect {
    let known = known.unwrap_or_else(|| Era::Legacy.into());
    let is_recent = |day: &u64| today().saturating_sub(*day) < DISCOVER_PAUSE_DAYS;
    let known = Dialect { asked_in_vain: known.asked_in_vain.filter(is_recent), ..known };
    match &spec.transport {
        Transport::Stdio(stdio) => {
            let framing = match stdio.framing {
                spec::Framing::ContentLength => Framing::ContentLength,
                spec::Framing::Newline => Framing::Newline,
                spec::Framing::Auto => known.framing,
            };
            Dialect { framing, ..known }
        }
        Transport::Http(http) if http.remote => Dialect { sse: false, ..known },
        Transport::Http(http) => {
            let sse = match http.flavour {
                HttpFlavour::Sse => true,
                HttpFlavour::Streamable => false,
                HttpFlavour::Auto => known.sse,
            };
            Dialect { sse, plain_api: false, ..known }
        }
    }
}

/// Whether the HTTP transport is determined by trial, for a server or for a remote gateway.
pub(super) fn tries_both_transports(spec: &ServerSpec) -> bool {
    matches!(&spec.transport, Transport::Http(http) if http.flavour == HttpFlavour::Auto)
}

/// Days since 1970.
pub(super) fn today() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / (24 * 3600)
}
