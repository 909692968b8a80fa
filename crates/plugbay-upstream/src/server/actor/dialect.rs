//! The dialect in which a server is opened: from its configuration, from the cache, and by trial.

use std::time::SystemTime;

use plugbay_core::{catalog::Dialect, era::Era, wire::Framing};

use crate::spec::{self, HttpFlavour, ServerSpec, Transport};

/// For so many days a server that did not survive or answer `server/discover` is opened by `initialize`.
const DISCOVER_PAUSE_DAYS: u64 = 7;

/// The dialect for the first start; `known` is the one of the last opening.
pub(super) fn configured(spec: &ServerSpec, known: Option<Dialect>) -> Dialect {
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
        Transport::Http(http) => {
            let sse = match http.flavour {
                HttpFlavour::Sse => true,
                HttpFlavour::Streamable => false,
                HttpFlavour::Auto => known.sse,
            };
            Dialect { sse, ..known }
        }
    }
}

/// The dialect for the start after one that failed; `silent`: the server ran but sent no message.
pub(super) fn after_failed_start(dialect: Dialect, spec: &ServerSpec, silent: bool) -> Dialect {
    match &spec.transport {
        Transport::Stdio(stdio) if silent && stdio.framing == spec::Framing::Auto => {
            let framing = match dialect.framing {
                Framing::Newline => Framing::ContentLength,
                Framing::ContentLength => Framing::Newline,
            };
            Dialect { framing, ..dialect }
        }
        Transport::Http(http) if http.flavour == HttpFlavour::Auto => Dialect { sse: false, ..dialect },
        _ => dialect,
    }
}

/// Whether the HTTP transport is found out by trial.
pub(super) fn tries_both_transports(spec: &ServerSpec) -> bool {
    matches!(&spec.transport, Transport::Http(http) if http.flavour == HttpFlavour::Auto)
}

/// Days since 1970.
pub(super) fn today() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / (24 * 3600)
}
