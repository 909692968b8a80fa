//! Starts the observers of a gateway for operators, and serves its metrics.

use std::{str::FromStr, sync::Arc};

use plugbay_core::{name::ServerName, server_state::ServerState};
use plugbay_downstream::http::{
    Access, Address, AddressError, Listener, MetricsPage, Unguarded, serve_metrics,
};
use plugbay_telemetry::{Metrics, Otlp, OtlpSettings, ServerGauge, Telemetry};
use plugbay_upstream::Status;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::error::CommandError;

/// The value of `--metrics` without an address.
pub const BESIDE: &str = "beside";

/// The place where metrics are served.
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

/// Starts the observers of a gateway. Without an exporter the gateway still runs, and logs the reason.
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

/// The metrics page for Prometheus, if metrics are kept.
pub fn page(telemetry: &Telemetry) -> Option<MetricsPage> {
    let metrics = Arc::clone(telemetry.prometheus()?);
    Some(Arc::new(move || metrics.page()))
}

/// The state of a server for metrics. A server that gives each session an instance of its own is in use if
/// one of these runs.
pub fn gauge((name, status): (ServerName, Status), own: &[(ServerName, i32)]) -> ServerGauge {
    let of_sessions = own.iter().filter(|(server, _)| *server == name).map(|(_, pid)| *pid);
    let pids: Vec<i32> = status.pid.into_iter().chain(of_sessions).collect();
    let state = match status.condition.server_state() {
        ServerState::Idle if !pids.is_empty() => ServerState::Ready,
        state => state,
    };
    ServerGauge { name: name.to_string(), state: state.as_str(), pids }
}

/// Writes and sends the remaining data.
pub async fn finish(telemetry: Arc<Telemetry>) {
    let _ = spawn_blocking(move || telemetry.finish()).await;
}

/// The metrics at a separate address, until this is dropped.
pub struct Page {
    pub address: String,
    _serving: AbortOnDrop,
}

pub async fn serve_page(
    address: &Address,
    allow_host: Vec<String>,
    page: MetricsPage,
) -> Result<Page, CommandError> {
    let place = address.at("/metrics");
    // On this machine metrics need no token. The names in `Host` are still checked.
    let access = Access::new(address, allow_host, Vec::new(), &[]).map_err(|Unguarded| {
        CommandError::usage(format!("without a token, everyone who can reach {place} could read the metrics"))
            .hint("serve them beside MCP, behind the token: --metrics, without an address")
            .hint("or only for this machine: --metrics 127.0.0.1:9464")
    })?;
    let listener = Listener::bind(address).await.map_err(|error| {
        CommandError::failed(format!("cannot serve metrics at {place}: {error}"))
            .hint("choose another address, or port 0 for any free port")
    })?;
    let address = listener.address()?.at("/metrics");
    let serving = tokio::spawn(async move {
        let _ = serve_metrics(listener, access, page).await;
    });
    Ok(Page { address, _serving: AbortOnDrop(serving) })
}

/// A task that is aborted when this is dropped.
pub struct AbortOnDrop(pub JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
