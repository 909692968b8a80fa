//! Observability for operators: the audit log, metrics for Prometheus, traces and metrics over OTLP.
//!
//! All of them observe calls. None of them waits, and none gets a value of an argument or of a result.

mod audit;
mod metrics;
mod otlp;
mod timestamp;

use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use plugbay_core::observe::{CallEnd, Observation, Observer, StartingCall};

pub use audit::{Audit, AuditSettings};
pub use metrics::{GatewayState, METRICS, Metrics, ServerGauge};
pub use otlp::{Otlp, OtlpSettings};
pub use timestamp::rfc3339;

/// All observers of a gateway.
#[derive(Default)]
pub struct Telemetry {
    on: AtomicBool,
    // Std locks: held only to read or to replace, never across an await.
    audit: RwLock<Option<Arc<Audit>>>,
    metrics: Option<Arc<Metrics>>,
    otlp: Option<Arc<Otlp>>,
}

impl Telemetry {
    pub fn new(metrics: Option<Arc<Metrics>>, otlp: Option<Arc<Otlp>>) -> Self {
        let on = AtomicBool::new(metrics.is_some() || otlp.is_some());
        Self { on, metrics, otlp, ..Self::default() }
    }

    /// Writes the audit log with these settings, from the next call on.
    pub fn audit(&self, settings: Option<AuditSettings>) {
        let mut audit = self.audit.write().unwrap_or_else(PoisonError::into_inner);
        *audit = settings.map(Audit::at);
        let on = audit.is_some() || self.metrics.is_some() || self.otlp.is_some();
        self.on.store(on, Ordering::Relaxed);
    }

    pub fn prometheus(&self) -> Option<&Arc<Metrics>> {
        self.metrics.as_ref()
    }

    /// Sends and writes the remaining data. This may take seconds, so it belongs at the end of the program.
    pub fn finish(&self) {
        let audit = self.audit.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(audit) = audit {
            audit.finish();
        }
        if let Some(otlp) = &self.otlp {
            otlp.finish();
        }
    }
}

impl Observer for Telemetry {
    fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    fn starts(&self, call: &StartingCall<'_>) -> Box<dyn Observation> {
        let audit = self.audit.read().unwrap_or_else(PoisonError::into_inner).clone();
        Box::new(Observed {
            audit: audit.map(|audit| audit.starts(call)),
            metrics: self.metrics.as_ref().map(|metrics| metrics.starts(call)),
            otlp: self.otlp.as_ref().map(|otlp| otlp.starts(call)),
        })
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Telemetry({})", if self.is_on() { "on" } else { "off" })
    }
}

struct Observed {
    audit: Option<audit::Entry>,
    metrics: Option<metrics::Measured>,
    otlp: Option<otlp::TracedCall>,
}

impl Observation for Observed {
    fn trace_parent(&self) -> Option<String> {
        self.otlp.as_ref().and_then(otlp::TracedCall::trace_parent)
    }

    fn ends(self: Box<Self>, end: CallEnd) {
        let Self { audit, metrics, otlp } = *self;
        if let Some(entry) = audit {
            entry.ends(end);
        }
        if let Some(measured) = metrics {
            measured.ends(end);
        }
        if let Some(spans) = otlp {
            spans.ends(end);
        }
    }
}
