//! `plugbay serve`: all servers behind one MCP server, on stdin and stdout or over HTTP.

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use plugbay_downstream::{
    Gateway,
    http::{self, Address, Limits, Listener},
    stdio,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{sleep, timeout},
};

use super::{CommandError, Context};
use crate::{
    app::{App, Environment},
    config::Settings,
    settings::{self, Http, HttpFlags, Source},
    status_file::{self, GatewayStatus, Transport},
    watch::Watch,
};

/// With a full cache, servers start when the host has its first list, or after this time: starting many programs
/// would slow that list down. Otherwise they start when the host has declared its capabilities, so that no server
/// needs a second handshake.
const START_DELAY: Duration = Duration::from_millis(100);
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// How often the counted uses of tools are saved: those since then are lost when the gateway is killed.
const SAVE_USAGE: Duration = Duration::from_secs(15);

/// Serve all servers as one MCP server, on stdio or over HTTP.
///
/// On stdio it serves one host, over HTTP many.
/// Hosts start `plugbay serve` themselves. The log goes to stderr, and says which mode each host got and why.
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
    /// Give every host this profile, whatever name it sends; `plugbay hosts` lists the profiles.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  plugbay serve                           for one host, on stdin and stdout
  plugbay serve --http 127.0.0.1:8080     for many hosts, at that address";

pub async fn serve(context: Context, args: ServeArgs) -> Result<ExitCode, CommandError> {
    let ServeArgs { http, allow_host, allow_origin, token_file, host } = args;
    let context = Context { source: context.source.with_host(host)?, ..context };
    if let Some(address) = http {
        let flags = HttpFlags { address, allow_host, allow_origin, token_file };
        serve_http(&context, settings::http(flags)?).await?;
    } else {
        if io::stdin().is_terminal() {
            let people = "people use plugbay list, tools or call";
            context
                .output
                .note(format!("`plugbay serve` speaks MCP on stdin and stdout, for hosts; {people}"));
        }
        serve_stdio(&context.source, context.environment).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn serve_stdio(source: &Source, environment: Environment) -> io::Result<()> {
    let outcome = run(source, environment, Transport::Stdio, |gateway| {
        let (input, output) = stdio::standard();
        stdio::serve(gateway, input, output, stop_signal())
    });
    // A host that closes its pipes ends the session; that is no error.
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    outcome.await.or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })
}

async fn serve_http(context: &Context, Http { address, access }: Http) -> Result<(), CommandError> {
    let listener = Listener::bind(&address).await.map_err(|error| {
        CommandError::failed(format!("cannot listen at {address}: {error}"))
            .hint("choose another address, or port 0 for any free port")
    })?;
    let address = listener.address()?.to_string();
    let limits = Limits::detect();
    // Before the address is known, so that no signal of a reader of the address comes too early.
    let stop = stop_signal();
    context.output.note(format!("serving MCP at {address}"));
    let hosts = |gateway| http::serve(gateway, listener, access, limits, stop);
    Ok(run(&context.source, context.environment.clone(), Transport::Http { address }, hosts).await?)
}

/// Runs the servers for as long as `hosts` are served.
async fn run<F>(
    source: &Source,
    environment: Environment,
    transport: Transport,
    hosts: impl FnOnce(Gateway) -> F,
) -> io::Result<()>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let status = GatewayStatus::new(source, transport);
    let settings = source.load();
    settings.log_problems();
    let app = App::assemble(&settings, environment);
    let gateway = app.gateway();
    let (first_list, opened) = (gateway.first_list.clone(), gateway.opened.clone());
    // A spawned task: the runtime takes longer to wake the future that it blocks on.
    let hosts = tokio::spawn(hosts(gateway));
    let watch = Watch::new(&settings.sources, &settings.folders);
    let servers = async {
        if app.snapshots().borrow().settled {
            let _ = timeout(START_DELAY, first_list.notified()).await;
        } else {
            let _ = timeout(START_DELAY, opened.notified()).await;
        }
        app.refresh();
        tokio::join!(
            status_file::keep(status, source.paths.status_folder(), &app),
            follow(source, watch, &app, &settings),
            save_usage(&app)
        );
    };
    let outcome = tokio::select! {
        outcome = hosts => outcome.unwrap_or_else(|panic| Err(io::Error::other(panic))),
        () = servers => Ok(()),
    };
    app.shut_down().await;
    outcome
}

/// Saves from time to time which tools were used: a gateway may be killed.
async fn save_usage(app: &App) {
    loop {
        sleep(SAVE_USAGE).await;
        app.save_usage();
    }
}

/// Loads the configuration once after each change, and gives it to the app.
async fn follow(source: &Source, mut watch: Watch, app: &App, first: &Settings) {
    let mut current = first.clone();
    // A file may have changed after it was read and before it was watched.
    if current.is_current(&source.paths) {
        watch.changed().await;
    }
    loop {
        let read = reloaded(source).await;
        // If a file cannot be parsed, plugbay keeps the servers as they are.
        let next = if read.unreadable { current.kept_despite(&read) } else { read };
        let has_new_folders = watch.follow(&next.sources, &next.folders);
        app.reload(&current, &next).await;
        current = next;
        // A file in a folder that was not watched may have changed since it was read.
        if !has_new_folders {
            watch.changed().await;
        }
    }
}

/// The settings after a change. A file that is gone may be about to be replaced: it is read again a moment later.
async fn reloaded(source: &Source) -> Settings {
    let mut settings = source.load();
    if settings.unreadable || settings.servers.is_empty() {
        sleep(SECOND_LOOK).await;
        settings = source.load();
    }
    settings.log_problems();
    if settings.unreadable {
        tracing::error!("the configuration cannot be read: all servers stay as they were");
    }
    settings
}

/// Catches the signals that end a gateway, from this call on; the future waits for the first of them.
fn stop_signal() -> impl Future<Output = ()> + Send + 'static {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let [terminate, interrupt, hangup] = kinds.map(|kind| signal(kind).ok());
    async move {
        tokio::select! {
            () = received(terminate) => {}
            () = received(interrupt) => {}
            () = received(hangup) => {}
        }
    }
}

/// Waits for ever if the signal cannot be caught.
async fn received(signal: Option<Signal>) {
    match signal {
        Some(mut signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
