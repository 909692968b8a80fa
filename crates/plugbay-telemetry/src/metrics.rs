//! Metrics for Prometheus: counters of calls, and the state of the gateway when the metrics are read.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use plugbay_core::observe::{CallEnd, CallOutcome, StartingCall};
use prometheus_client::{
    encoding::text::encode,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

/// How many pairs of server and tool get their own time series; further tools are counted as `other`.
const MOST_TOOLS: usize = 2000;
const OTHER: &str = "other";
/// Buckets in seconds: from a local tool to an agent's long work.
const BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0];

/// All metrics: name, labels and description. The documentation has the same table.
pub const METRICS: [(&str, &str, &str); 10] = [
    ("plugbay_calls_total", "server, tool, outcome", "calls that ended"),
    ("plugbay_call_duration_seconds", "server", "how long calls took, as a histogram"),
    ("plugbay_request_bytes_total", "server", "bytes of requests to servers"),
    ("plugbay_response_bytes_total", "server", "bytes of answers of servers"),
    ("plugbay_rate_limited_total", "caller", "calls refused because a limit was reached"),
    (
        "plugbay_share_refused_total",
        "",
        "requests and connections refused because their caller had used up its share",
    ),
    ("plugbay_sessions", "", "sessions that are open"),
    ("plugbay_connected_hosts", "", "hosts that are connected"),
    ("plugbay_server_state", "server, state", "1 for the state that the server is in"),
    (
        "plugbay_server_processes_total",
        "server",
        "processes of the server that were seen when metrics were read",
    ),
];

type Labels = Vec<(&'static str, String)>;

/// The part of a gateway's state that metrics show.
#[derive(Debug, Clone, Default)]
pub struct GatewayState {
    /// How often callers were refused something since the start because their shares were used up.
    pub refused: u64,
    pub sessions: usize,
    pub hosts: usize,
    pub servers: Vec<ServerGauge>,
}

#[derive(Debug, Clone)]
pub struct ServerGauge {
    pub name: String,
    pub state: &'static str,
    /// Its processes, including those of sessions.
    pub pids: Vec<i32>,
}

/// Counts calls, and asks for the state of the gateway when the metrics are read.
pub struct Metrics {
    registry: Registry,
    calls: Family<Labels, Counter>,
    durations: Family<Labels, Histogram>,
    request_bytes: Family<Labels, Counter>,
    response_bytes: Family<Labels, Counter>,
    limited: Family<Labels, Counter>,
    refused: Counter,
    sessions: Gauge,
    hosts: Gauge,
    states: Family<Labels, Gauge>,
    processes: Family<Labels, Counter>,
    // Std mutexes: held only for a lookup, never across an await.
    tools: Mutex<BTreeSet<(String, String)>>,
    /// The processes that existed when the metrics were last read.
    pids: Mutex<BTreeSet<(String, i32)>>,
    state: Mutex<Option<Box<dyn Fn() -> GatewayState + Send>>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let durations = Family::<Labels, Histogram>::new_with_constructor(|| Histogram::new(BUCKETS));
        let metrics = Self {
            calls: Family::default(),
            durations,
            request_bytes: Family::default(),
            response_bytes: Family::default(),
            limited: Family::default(),
            refused: Counter::default(),
            sessions: Gauge::default(),
            hosts: Gauge::default(),
            states: Family::default(),
            processes: Family::default(),
            tools: Mutex::default(),
            pids: Mutex::default(),
            state: Mutex::default(),
            registry: Registry::default(),
        };
        let help =
            |name: &str| METRICS.iter().find(|(known, ..)| *known == name).map_or("", |(.., help)| help);
        // The registry itself appends `_total` to the names of counters.
        registry.register("plugbay_calls", help("plugbay_calls_total"), metrics.calls.clone());
        let durations = "plugbay_call_duration_seconds";
        registry.register(durations, help(durations), metrics.durations.clone());
        registry.register(
            "plugbay_request_bytes",
            help("plugbay_request_bytes_total"),
            metrics.request_bytes.clone(),
        );
        registry.register(
            "plugbay_response_bytes",
            help("plugbay_response_bytes_total"),
            metrics.response_bytes.clone(),
        );
        registry.register(
            "plugbay_rate_limited",
            help("plugbay_rate_limited_total"),
            metrics.limited.clone(),
        );
        registry.register(
            "plugbay_share_refused",
            help("plugbay_share_refused_total"),
            metrics.refused.clone(),
        );
        registry.register("plugbay_sessions", help("plugbay_sessions"), metrics.sessions.clone());
        registry.register("plugbay_connected_hosts", help("plugbay_connected_hosts"), metrics.hosts.clone());
        registry.register("plugbay_server_state", help("plugbay_server_state"), metrics.states.clone());
        registry.register(
            "plugbay_server_processes",
            help("plugbay_server_processes_total"),
            metrics.processes.clone(),
        );
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Sets the function that returns the state of the gateway.
    pub fn show(&self, state: impl Fn() -> GatewayState + Send + 'static) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(state));
    }

    /// All metrics as text.
    pub fn page(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state.as_ref().map(|state| state()).unwrap_or_default();
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        self.refused.inc_by(state.refused.saturating_sub(self.refused.get()));
        self.sessions.set(count(state.sessions));
        self.hosts.set(count(state.hosts));
        self.states.clear();
        let mut now = BTreeSet::new();
        for ServerGauge { name, state, pids } in state.servers {
            self.states.get_or_create(&vec![("server", name.clone()), ("state", state.to_owned())]).set(1);
            now.extend(pids.into_iter().map(|pid| (name.clone(), pid)));
        }
        let mut before = self.pids.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, _) in now.difference(&before) {
            self.processes.get_or_create(&vec![("server", name.clone())]).inc();
        }
        *before = now;
        drop(before);
        let mut text = String::new();
        let _ = encode(&mut text, &self.registry);
        text
    }

    pub(crate) fn starts(self: &Arc<Self>, call: &StartingCall<'_>) -> Measured {
        let server = call.server.as_str().to_owned();
        let tool = call.name.filter(|_| call.is_listed).map_or(OTHER, |name| name);
        Measured {
            tool: self.bounded(&server, tool),
            server,
            caller: call.caller.unwrap_or_default().to_owned(),
            bytes: call.bytes,
            since: Instant::now(),
            metrics: Arc::clone(self),
        }
    }

    /// The tool's name, or `other` if there are too many time series already.
    fn bounded(&self, server: &str, tool: &str) -> String {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (server.to_owned(), tool.to_owned());
        if tools.contains(&pair) {
            return pair.1;
        }
        if tools.len() >= MOST_TOOLS {
            return OTHER.to_owned();
        }
        tools.insert(pair.clone());
        pair.1
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// A call that is being measured.
pub(crate) struct Measured {
    metrics: Arc<Metrics>,
    server: String,
    tool: String,
    caller: String,
    bytes: usize,
    since: Instant,
}

impl Measured {
    pub(crate) fn ends(self, end: CallEnd) {
        let Self { metrics, server, tool, caller, bytes, since } = self;
        if end.outcome == CallOutcome::RateLimited {
            metrics.limited.get_or_create(&vec![("caller", caller)]).inc();
        } else {
            let of_server = vec![("server", server.clone())];
            metrics.durations.get_or_create(&of_server).observe(since.elapsed().as_secs_f64());
            metrics.request_bytes.get_or_create(&of_server).inc_by(bytes as u64);
            metrics.response_bytes.get_or_create(&of_server).inc_by(end.bytes as u64);
        }
        let outcome = end.outcome.word().to_owned();
        metrics.calls.get_or_create(&vec![("server", server), ("tool", tool), ("outcome", outcome)]).inc();
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::{era::Era, name::ServerName, observe::SessionMark};

    use super::*;

    fn call(metrics: &Arc<Metrics>, tool: &str, is_listed: bool, outcome: CallOutcome) {
        let server = ServerName::parse("git").unwrap();
        let starting = StartingCall {
            method: "tools/call",
            server: &server,
            name: Some(tool),
            is_listed,
            arguments: None,
            caller: Some("ci"),
            client: None,
            session: SessionMark::default(),
            host: None,
            era: Era::Legacy,
            bytes: 70,
            trace_parent: None,
            trace_state: None,
        };
        metrics.starts(&starting).ends(CallEnd { outcome, bytes: 900 });
    }

    #[test]
    fn calls_are_counted_by_server_tool_and_outcome() {
        let metrics = Arc::new(Metrics::default());
        metrics.show(|| GatewayState {
            refused: 7,
            sessions: 3,
            hosts: 2,
            servers: vec![ServerGauge { name: "git".to_owned(), state: "ready", pids: vec![1] }],
        });
        call(&metrics, "log", true, CallOutcome::Ok);
        call(&metrics, "log", true, CallOutcome::Ok);
        call(&metrics, "made up by a model", false, CallOutcome::Error(-32602));
        call(&metrics, "log", true, CallOutcome::RateLimited);
        metrics.page();
        let page = metrics.page();
        for line in [
            r#"plugbay_calls_total{server="git",tool="log",outcome="ok"} 2"#,
            r#"plugbay_calls_total{server="git",tool="other",outcome="error"} 1"#,
            r#"plugbay_rate_limited_total{caller="ci"} 1"#,
            r#"plugbay_call_duration_seconds_count{server="git"} 3"#,
            r#"plugbay_response_bytes_total{server="git"} 2700"#,
            "plugbay_share_refused_total 7",
            "plugbay_sessions 3",
            r#"plugbay_server_state{server="git",state="ready"} 1"#,
        ] {
            assert!(page.lines().any(|shown| shown == line), "{line}\n{page}");
        }
        assert!(!page.contains("made up"), "{page}");
    }

    #[test]
    fn each_process_of_a_server_is_counted_once() {
        let (metrics, running) = (Metrics::default(), Arc::new(Mutex::new(vec![1, 2])));
        let shown = Arc::clone(&running);
        metrics.show(move || GatewayState {
            servers: vec![ServerGauge {
                name: "git".to_owned(),
                state: "ready",
                pids: shown.lock().unwrap().clone(),
            }],
            ..GatewayState::default()
        });
        metrics.page();
        *running.lock().unwrap() = vec![2, 3];
        metrics.page();
        let page = metrics.page();
        assert!(page.contains(r#"plugbay_server_processes_total{server="git"} 3"#), "{page}");
    }

    #[test]
    fn time_series_of_tools_are_bounded() {
        let metrics = Arc::new(Metrics::default());
        for number in 0..MOST_TOOLS + 100 {
            call(&metrics, &format!("tool{number}"), true, CallOutcome::Ok);
        }
        let series = metrics.page().lines().filter(|line| line.starts_with("plugbay_calls_total")).count();
        assert_eq!(series, MOST_TOOLS + 1);
    }

    #[test]
    fn every_metric_has_a_name_in_the_table() {
        let metrics = Arc::new(Metrics::default());
        metrics.show(|| GatewayState {
            servers: vec![ServerGauge { name: "git".to_owned(), state: "ready", pids: vec![1] }],
            ..GatewayState::default()
        });
        call(&metrics, "log", true, CallOutcome::Ok);
        call(&metrics, "log", true, CallOutcome::RateLimited);
        let page = metrics.page();
        let types = page
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE "))
            .map(|line| line.split_whitespace().next().unwrap());
        let mut written: Vec<&str> = types.collect();
        let mut known: Vec<&str> = METRICS.iter().map(|(name, ..)| name.trim_end_matches("_total")).collect();
        written.sort_unstable();
        known.sort_unstable();
        assert_eq!(written, known);
    }
}
