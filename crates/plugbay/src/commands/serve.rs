//! `plugbay serve`: all servers behind one MCP server, on stdin and stdout or over HTTP.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::{self, ExitCode},
    str::FromStr,
    sync::{Arc, OnceLock},
    thread::{self, JoinHandle},
};

use super::{CommandError, Context};
use crate::{
    app::{self, App, Environment},
    authorization::GuardedConfiguration,
    bridge::{self, AloneSession},
    config::Settings,
    daemon::{
        hello::{self, WindowHello},
        socket::Place,
    },
    gateway_run::{self, Configuration, stop_signal},
    log::Logs,
    settings::{self, Http, HttpFlags, Source},
    status_file::{GatewayStatus, Transport},
    telemetry::{self, AbortOnDrop, MetricsPlace},
};
use plugbay_downstream::{
    Gateway, descriptors,
    http::{self, Address, Limits, Listener, MetricsPage},
    stdio::{self, UnreadLimit, Window},
};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

/// Serve all servers as one MCP server, on stdio or over HTTP.
///
/// On stdio it serves one host, over HTTP many.
/// Hosts start `plugbay serve` themselves. The log says which mode each host got and why; `plugbay logs` shows it. A
/// process that runs the servers itself writes it to stderr, too.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ServeArgs {
    /// Serve over HTTP at this address: 127.0.0.1:8080, a port, or unix:PATH. Port 0 picks a free port.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<Address>,
    /// Also accept this name in the Host header of requests, with or without a port.
    #[arg(long, value_name = "NAME", requires = "http")]
    allow_host: Vec<String>,
    /// Accept requests of web pages from this origin, such as `https://example.com`.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// A file of tokens, one per line; each host must send one of them, or that in `PLUGBAY_HTTP_TOKEN`.
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// The store of `plugbay token`, if it is not the usual one; plugbay notices changes at once.
    #[arg(long, value_name = "FILE", requires = "http")]
    token_store: Option<PathBuf>,
    /// Log every call to this file, one line of JSON each, without any value of its arguments.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// Serve metrics for Prometheus at this address, at `/metrics`; without one beside MCP, behind the token.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = telemetry::BESIDE)]
    metrics: Option<MetricsPlace>,
    /// Run the servers in this process. Otherwise one daemon per user runs them for all windows; `PLUGBAY_DAEMON=off`
    /// does the same as this option, and so do `--audit`, `--metrics` and an OTLP endpoint in the environment.
    #[arg(long, conflicts_with = "http")]
    no_daemon: bool,
    /// Give every host this profile, whatever name it sends; `plugbay hosts` lists the profiles.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Add the tools of a remote gateway at this address; may be given several times.
    ///
    /// The remote is another plugbay, or a server with `GET /tools` and `POST /tools/call`. Without this option the
    /// addresses in `PLUGBAY_REMOTE` count. `PLUGBAY_REMOTE_TOKEN` is the bearer token for them.
    #[arg(long, value_name = "URL")]
    remote: Vec<RemoteUrl>,
}

/// The address of a remote gateway.
#[derive(Debug, Clone)]
struct RemoteUrl(String);

impl FromStr for RemoteUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = ["http://", "https://"].iter().find_map(|start| text.strip_prefix(start));
        match rest {
            Some(rest) if !rest.is_empty() && !text.contains(char::is_whitespace) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err("not the address of an HTTP server: write it as https://HOST"),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  plugbay serve                           for one host, on stdin and stdout
  plugbay serve --no-daemon               the same, with servers of its own
  plugbay serve --http 127.0.0.1:8080     for many hosts, at that address
  plugbay serve --remote https://team.example  with that gateway's tools too";

fn addresses(remotes: &[RemoteUrl]) -> Vec<String> {
    remotes.iter().map(|url| url.0.clone()).collect()
}

/// Serves the host on stdio through the daemon, without a runtime. `Err` says why there is no daemon; then
/// this process serves alone.
pub fn serve_through_daemon(
    source: &Source,
    args: &ServeArgs,
    start_logs: impl Fn() -> Logs + Send + Sync + 'static,
) -> Result<(), String> {
    let place = Place::of(&source.paths)?;
    let source = source.clone().with_remotes(&addresses(&args.remote));
    let window = WindowHello {
        session: hello::random_token().map_err(|error| error.to_string())?,
        pid: process::id(),
        folder: source.paths.start.clone(),
        config: source.explicit(),
        host: args.host.clone(),
        variables: source.variables(),
        state: None,
    };
    let host = args.host.clone();
    let owner = Sha256::digest(&window.session).into();
    let logs = OnceLock::new();
    let alone = move |session| {
        let source =
            source.clone().with_host(host.clone()).map_err(|error| io::Error::other(error.message))?;
        serve_alone(source, logs.get_or_init(&start_logs).clone(), owner, session)
    };
    bridge::serve(place, window, Box::new(alone))
}

/// Serves a host in this process, in a separate thread, while no daemon is available.
fn serve_alone(
    source: Source,
    logs: Logs,
    owner: [u8; 32],
    session: AloneSession,
) -> io::Result<JoinHandle<()>> {
    let AloneSession { pipes, token, state, reason } = session;
    let source = source.without_daemon(reason);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // For the audit log in its configuration.
    let observed = telemetry::start(false, None);
    let environment = Environment {
        logs: logs.files.clone(),
        telemetry: Some(Arc::clone(&observed)),
        ..settings::environment()?
    };
    let (_, controls) = mpsc::unbounded_channel();
    let (unread, cut) = (UnreadLimit::default(), Arc::default());
    let window = Window { owner, token, state, unread, controls, cut };
    thread::Builder::new().spawn(move || {
        let hosts = |gateway| async move {
            let (input, output) = pipes.into_tokio()?;
            stdio::serve_window(gateway, input, output, window, std::future::pending()).await
        };
        let start = Start { source: &source, settings: source.load(), environment };
        let served = runtime.block_on(run(start, Transport::Stdio, &source, hosts));
        runtime.block_on(telemetry::finish(observed));
        if let Err(error) = served {
            tracing::warn!("the host's session has ended: {error}");
        }
        logs.finish();
    })
}

impl ServeArgs {
    /// Whether the user allows a daemon to serve the host.
    pub fn may_use_daemon(&self) -> bool {
        self.http.is_none() && !self.no_daemon && settings::daemon_allowed()
    }

    /// The reason why this host still needs its own process: it is observed separately.
    pub fn observed(&self) -> Option<String> {
        let why = if self.audit.is_some() {
            "`--audit` logs the calls of this window alone; the key `audit` of the configuration logs those of all \
             windows, at the daemon"
        } else if self.metrics.is_some() {
            "`--metrics` shows the metrics of this window alone"
        } else if settings::otlp().is_some() {
            "an OTEL_EXPORTER_OTLP_… variable makes it export traces or metrics; with OTEL_SDK_DISABLED=true it uses \
             the daemon and exports nothing"
        } else {
            return None;
        };
        Some(why.to_owned())
    }
}

pub async fn serve(context: Context, args: ServeArgs) -> Result<ExitCode, CommandError> {
    if let Some(reason) = args.observed().filter(|_| args.may_use_daemon()) {
        tracing::warn!("plugbay serves this host without its daemon: {reason}");
    }
    let ServeArgs {
        http,
        allow_host,
        allow_origin,
        token_file,
        token_store,
        audit,
        metrics,
        host,
        remote,
        ..
    } = args;
    let remotes = addresses(&remote);
    let mut source = context.source.with_remotes(&remotes).with_host(host)?.with_audit(audit);
    if http.is_some() {
        source = source.with_far_hosts();
    }
    let mut context = Context { source, ..context };
    if metrics == Some(MetricsPlace::Beside) && http.is_none() {
        return Err(CommandError::usage("--metrics needs an address, or --http to stand beside")
            .hint("give one: --metrics 127.0.0.1:9464"));
    }
    let telemetry = telemetry::start(metrics.is_some(), settings::otlp());
    context.environment.telemetry = Some(Arc::clone(&telemetry));
    let (apart, beside) = match (metrics, telemetry::page(&telemetry)) {
        (Some(MetricsPlace::At(address)), Some(page)) => {
            let page = telemetry::serve_page(&address, allow_host.clone(), page).await?;
            context.output.note(format!("serving metrics at {}", page.address));
            (Some(page), None)
        }
        (_, page) => (None, page),
    };
    let served = serve_hosts(&context, http, beside, |address| HttpFlags {
        address,
        allow_host,
        allow_origin,
        token_file,
        token_store,
    });
    let served = served.await;
    drop(apart);
    telemetry::finish(telemetry).await;
    served
}

async fn serve_hosts(
    context: &Context,
    http: Option<Address>,
    metrics: Option<MetricsPage>,
    flags: impl FnOnce(Address) -> HttpFlags,
) -> Result<ExitCode, CommandError> {
    if let Some(address) = http {
        serve_http(context, flags(address), metrics).await?;
    } else {
        if io::stdin().is_terminal() {
            let people = "people use plugbay list, tools or call";
            context
                .output
                .note(format!("`plugbay serve` speaks MCP on stdin and stdout, for hosts; {people}"));
        }
        serve_stdio(&context.source, context.environment.clone()).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve_stdio(source: &Source, environment: Environment) -> io::Result<()> {
    let start = Start { source, settings: source.load(), environment };
    let outcome = run(start, Transport::Stdio, source, |gateway| {
        let (input, output) = stdio::standard();
        stdio::serve(gateway, input, output, stop_signal())
    });
    // If a host closes its pipes, the session ends; that is no error.
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    outcome.await.or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })
}

async fn serve_http(
    context: &Context,
    flags: HttpFlags,
    metrics: Option<MetricsPage>,
) -> Result<(), CommandError> {
    let settings = context.source.load();
    let http = settings::http(flags, &context.source.paths, &settings.authorization);
    let Http { address, access, follow, authorization } = http.inspect_err(|_| settings.log_problems())?;
    let listener = Listener::bind(&address).await.map_err(|error| {
        CommandError::failed(format!("cannot listen at {address}: {error}"))
            .hint("choose another address, or port 0 for any free port")
    })?;
    let address = listener.address()?.to_string();
    let limits = Limits::detect();
    // Before the address is known, so that a signal from a reader of the address cannot come too early.
    let stop = stop_signal();
    context.output.note(format!("serving MCP at {address}"));
    let _following = follow.map(|follow| AbortOnDrop(tokio::spawn(follow.run())));
    let hosts = |gateway| http::serve(gateway, listener, access, limits, metrics, stop);
    let start = Start { source: &context.source, settings, environment: context.environment.clone() };
    let configuration = GuardedConfiguration::new(&context.source, &authorization);
    Ok(run(start, Transport::Http { address }, &configuration, hosts).await?)
}

/// The inputs for starting a gateway.
struct Start<'a> {
    source: &'a Source,
    /// The current settings of the source.
    settings: Settings,
    environment: Environment,
}

/// Runs the servers for as long as `hosts` runs.
async fn run<F>(
    start: Start<'_>,
    transport: Transport,
    configuration: &impl Configuration,
    hosts: impl FnOnce(Gateway) -> F,
) -> io::Result<()>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let Start { source, settings, environment } = start;
    descriptors::raise_limit();
    let status = GatewayStatus::new(source, transport);
    settings.log_problems();
    let metrics = environment.telemetry.as_ref().and_then(|telemetry| telemetry.prometheus().cloned());
    let app = match &status.transport {
        Transport::Stdio => App::assemble(&settings, environment),
        Transport::Http { .. } | Transport::Daemon => {
            let instances = app::instances(&environment);
            App::sharing(&settings, environment, &instances)
        }
    };
    if let Some(metrics) = metrics {
        metrics.show(app.state());
    }
    // A separate task, because the runtime takes longer to wake the future that it blocks on.
    let hosts = tokio::spawn(hosts(app.gateway()));
    let servers = gateway_run::look_after(&app, status, &settings, &source.paths, configuration);
    let outcome = tokio::select! {
        outcome = hosts => outcome.unwrap_or_else(|panic| Err(io::Error::other(panic))),
        () = servers => Ok(()),
    };
    app.shut_down().await;
    outcome
}
