//! Traces and metrics over OTLP, by the semantic conventions for MCP. The SDK reads the `OTEL_*` variables.

use std::{
    fmt,
    sync::Once,
    time::{Duration, Instant},
};

use opentelemetry::{
    Context, KeyValue, SpanId, TraceFlags, TraceId,
    metrics::{Histogram, MeterProvider as _},
    trace::{
        Span as _, SpanContext, SpanKind, Status, TraceContextExt, TraceState, Tracer, TracerProvider as _,
    },
};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    metrics::SdkMeterProvider,
    trace::{SdkTracer, SdkTracerProvider, Span},
};
use plugbay_core::{
    era::{Era, MODERN_VERSION},
    observe::{CallEnd, CallOutcome, StartingCall},
};

/// Bucket boundaries in seconds, as the conventions advise.
const BOUNDARIES: [f64; 14] =
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
/// How long the program waits for the collector when it ends.
const LAST_EXPORT: Duration = Duration::from_secs(5);

/// Which signals are exported. The SDK itself reads where and how often to send them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtlpSettings {
    pub traces: bool,
    pub metrics: bool,
    /// Whether the environment names no service, so that the name is `plugbay`.
    pub unnamed: bool,
}

/// The exporters of traces and metrics.
pub struct Otlp {
    traces: Option<(SdkTracerProvider, SdkTracer)>,
    metrics: Option<(SdkMeterProvider, Histogram<f64>, Histogram<f64>)>,
}

impl Otlp {
    /// Starts the exporters; `Err` says why it failed. The SDK's client must not be made on a thread of the
    /// runtime.
    pub fn start(settings: OtlpSettings) -> Result<Self, String> {
        let made = std::thread::spawn(move || Self::new(settings)).join();
        made.unwrap_or_else(|_| Err("the OTLP exporter cannot start".to_owned()))
    }

    fn new(settings: OtlpSettings) -> Result<Self, String> {
        let resource = Resource::builder();
        let resource = if settings.unnamed { resource.with_service_name("plugbay") } else { resource };
        let resource =
            resource.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build();
        let client = client()?;
        let traces = settings.traces.then(|| traces(client.clone(), resource.clone())).transpose()?;
        let metrics = settings.metrics.then(|| metrics(client, resource)).transpose()?;
        Ok(Self { traces, metrics })
    }

    pub(crate) fn starts(&self, call: &StartingCall<'_>) -> TracedCall {
        let attributes = attributes(call);
        let name = match call.name.filter(|_| call.is_listed) {
            Some(name) => format!("{} {name}", call.method),
            None => call.method.to_owned(),
        };
        let spans = self.traces.as_ref().map(|(_, tracer)| spans(tracer, name, call, &attributes));
        let durations = self.metrics.as_ref().map(|(_, server, client)| [server.clone(), client.clone()]);
        TracedCall { spans, durations, attributes, since: Instant::now() }
    }

    /// Sends the remaining data. Call it from a thread that may block.
    pub fn finish(&self) {
        if let Some((provider, _)) = &self.traces {
            let _ = provider.shutdown_with_timeout(LAST_EXPORT);
        }
        if let Some((provider, ..)) = &self.metrics {
            let _ = provider.shutdown_with_timeout(LAST_EXPORT);
        }
    }
}

impl fmt::Debug for Otlp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Otlp(traces: {}, metrics: {})", self.traces.is_some(), self.metrics.is_some())
    }
}

fn client() -> Result<reqwest::blocking::Client, String> {
    static CRYPTO: Once = Once::new();
    CRYPTO.call_once(|| {
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let client = reqwest::blocking::Client::builder().redirect(reqwest::redirect::Policy::none());
    client.build().map_err(|error| error.without_url().to_string())
}

fn traces(
    client: reqwest::blocking::Client,
    resource: Resource,
) -> Result<(SdkTracerProvider, SdkTracer), String> {
    let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
    let exporter = exporter.map_err(|error| error.to_string())?;
    let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
    let tracer = provider.tracer("plugbay");
    Ok((provider, tracer))
}

fn metrics(
    client: reqwest::blocking::Client,
    resource: Resource,
) -> Result<(SdkMeterProvider, Histogram<f64>, Histogram<f64>), String> {
    let exporter = MetricExporter::builder().with_http().with_http_client(client).build();
    let exporter = exporter.map_err(|error| error.to_string())?;
    let provider =
        SdkMeterProvider::builder().with_resource(resource).with_periodic_exporter(exporter).build();
    let meter = provider.meter("plugbay");
    let histogram =
        |name| meter.f64_histogram(name).with_unit("s").with_boundaries(BOUNDARIES.to_vec()).build();
    let (server, client) =
        (histogram("mcp.server.operation.duration"), histogram("mcp.client.operation.duration"));
    Ok((provider, server, client))
}

/// The attributes of the call that both spans and both durations have.
fn attributes(call: &StartingCall<'_>) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("mcp.method.name", call.method.to_owned()),
        KeyValue::new("plugbay.server", call.server.as_str().to_owned()),
    ];
    if call.era == Era::Modern {
        attributes.push(KeyValue::new("mcp.protocol.version", MODERN_VERSION));
    }
    // A name that no server has listed may be any text that a model made up.
    if let Some(name) = call.name.filter(|_| call.is_listed) {
        attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
        attributes.push(KeyValue::new("gen_ai.tool.name", name.to_owned()));
    }
    attributes
}

/// The span of the host's request, and inside it the span of the request to the server.
fn spans(tracer: &SdkTracer, name: String, call: &StartingCall<'_>, attributes: &[KeyValue]) -> [Span; 2] {
    let parent =
        parent(call).map(|parent| Context::new().with_remote_span_context(parent)).unwrap_or_default();
    let mut own = attributes.to_vec();
    own.push(KeyValue::new("mcp.session.id", call.session.to_string()));
    own.extend(call.caller.map(|caller| KeyValue::new("enduser.id", caller.to_owned())));
    let server = tracer.span_builder(name.clone()).with_kind(SpanKind::Server).with_attributes(own);
    let server = server.start_with_context(tracer, &parent);
    let within = Context::new().with_remote_span_context(server.span_context().clone());
    let client = tracer.span_builder(name).with_kind(SpanKind::Client).with_attributes(attributes.to_vec());
    [server, client.start_with_context(tracer, &within)]
}

/// The trace context from the host, if it is valid: `00-TRACE-SPAN-FLAGS`.
fn parent(call: &StartingCall<'_>) -> Option<SpanContext> {
    let parts: Vec<&str> = call.trace_parent?.split('-').collect();
    let [version, trace, span, flags, ..] = parts[..] else { return None };
    if version.len() != 2 || version == "ff" || trace.len() != 32 || span.len() != 16 || flags.len() != 2 {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let state: TraceState = call.trace_state.and_then(|state| state.parse().ok()).unwrap_or_default();
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    Some(SpanContext::new(trace, span, flags, true, state)).filter(SpanContext::is_valid)
}

/// A call that is being traced.
pub(crate) struct TracedCall {
    spans: Option<[Span; 2]>,
    durations: Option<[Histogram<f64>; 2]>,
    attributes: Vec<KeyValue>,
    since: Instant,
}

impl TracedCall {
    /// The trace context of the request to the server.
    pub(crate) fn trace_parent(&self) -> Option<String> {
        let [_, client] = self.spans.as_ref()?;
        let context = client.span_context();
        let flags = context.trace_flags().to_u8();
        Some(format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id()))
    }

    pub(crate) fn ends(mut self, end: CallEnd) {
        let failure = failure(end.outcome);
        for span in self.spans.iter_mut().flatten() {
            if let Some(failure) = &failure {
                span.set_attribute(KeyValue::new("error.type", failure.clone()));
                span.set_status(Status::error(failure.clone()));
            }
            if let CallOutcome::Error(code) = end.outcome {
                span.set_attribute(KeyValue::new("rpc.response.status_code", code.to_string()));
            }
            span.end();
        }
        self.attributes.extend(failure.map(|failure| KeyValue::new("error.type", failure)));
        for duration in self.durations.iter().flatten() {
            duration.record(self.since.elapsed().as_secs_f64(), &self.attributes);
        }
    }
}

fn failure(outcome: CallOutcome) -> Option<String> {
    match outcome {
        CallOutcome::Ok | CallOutcome::InputRequired => None,
        CallOutcome::Error(code) => Some(code.to_string()),
        other => Some(other.word().to_owned()),
    }
}
