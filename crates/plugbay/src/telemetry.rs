//! Starts what operators see of a gateway, and serves its metrics.

use std::{str::FromStr, sync::Arc};

use plugbay_downstream::http::{
    Access, Address, AddressError, Listener, MetricsPage, Unguarded, serve_metrics,
};
use plugbay_telemetry::{Metrics, Otlp, OtlpSettings, Telemetry};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::error::CommandError;

/// What the option `--metrics` means without an address.
pub const BESIDE: &str = "beside";

/// Where metrics are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricsPlace {
    /// Beside MCP, behind the token.
    Beside,
    At(Address),
}

impl FromStr for MetricsPlace {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text == BESIDE { Ok(Self::Beside) } else { text.parse().map(Self::At) }
    }
}

/// The observers of a gateway. Without an exporter the gateway serves all the same, and says so.
pub fn start(metrics: bool, otlp: Option<OtlpSettings>) -> Arc<Telemetry> {
    let metrics = metrics.then(|| Arc::new(Metrics::default()));
    let otlp = otlp.and_then(|settings| match Otlp::start(settings) {
        Ok(otlp) => Some(Arc::new(otlp)),
        Err(error) => {
            tracing::error!("nothing is exported over OTLP: {error}");
            None
        }
    });
    Arc::new(Telemetry::new(metrics, otlp))
}

/// The metrics for Prometheus, if any are kept.
pub fn page(telemetry: &Telemetry) -> Option<MetricsPage> {
    let metrics = Arc::clone(telemetry.prometheus()?);
    Some(Arc::new(move || metrics.page()))
}

/// Writes and sends what is left.
pub async fn finish(telemetry: Arc<Telemetry>) {
    let _ = spawn_blocking(move || telemetry.finish()).await;
}

/// The metrics at an address of their own, until this is dropped.
pub struct Page {
    pub address: String,
    _serving: AbortOnDrop,
}

pub async fn serve_page(
    address: &Address,
    allow_host: Vec<String>,
    page: MetricsPage,
) -> Result<Page, CommandError> {
    let listener = Listener::bind(address).await.map_err(|error| {
        CommandError::failed(format!("cannot serve metrics at {address}: {error}"))
            .hint("choose another address, or port 0 for any free port")
    })?;
    let bound = listener.address()?.to_string();
    // Metrics need no token. The names in `Host` are checked all the same.
    let access = Access::with_callers(address, allow_host, Vec::new(), &[], None, true);
    let access = access.map_err(|Unguarded| CommandError::failed("the metrics cannot be guarded"))?;
    let serving = tokio::spawn(async move {
        let _ = serve_metrics(listener, access, page).await;
    });
    Ok(Page { address: format!("{bound}/metrics"), _serving: AbortOnDrop(serving) })
}

/// Ends a task with its owner.
pub struct AbortOnDrop(pub JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
