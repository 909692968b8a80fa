//! `plugbay serve`: all servers behind one MCP server, on stdin and stdout or over HTTP.

use std::{io, time::Duration};

use plugbay_downstream::{
    Gateway,
    http::{self, Limits, Listener},
    stdio,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{sleep, timeout},
};

use super::{CommandError, Context};
use crate::{
    app::{App, Outside},
    config::Settings,
    settings::{Http, Source},
    status_file::{self, Running, Transport},
    watch::Watch,
};

/// With a warm cache, servers are started when the host has its first list, or after this long:
/// starting many programs takes the machine's attention, and the host is waiting. Otherwise they are
/// started when the host has said what it can be asked, so that they need not be opened twice.
const START_DELAY: Duration = Duration::from_millis(100);
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// So much use may be forgotten when we are killed.
const REMEMBER: Duration = Duration::from_secs(15);

pub async fn serve(source: &Source, outside: Outside) -> io::Result<()> {
    let outcome = run(source, outside, Transport::Stdio, |gateway| {
        let (input, output) = stdio::standard();
        stdio::serve(gateway, input, output, told_to_stop())
    });
    // A host that has gone away is not an error of ours.
    let gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    outcome.await.or_else(|error| if gone(&error) { Ok(()) } else { Err(error) })
}

pub async fn serve_http(context: &Context, Http { address, access }: Http) -> Result<(), CommandError> {
    let listener = Listener::bind(&address).await.map_err(|error| {
        CommandError::failed(format!("cannot serve {address}: {error}"))
            .hint("choose another address, or port 0 for any that is free")
    })?;
    let address = listener.address()?.to_string();
    context.output.note(format!("serving MCP at {address}"));
    let limits = Limits::detect();
    let hosts = |gateway| http::serve(gateway, listener, access, limits, told_to_stop());
    Ok(run(&context.source, context.outside.clone(), Transport::Http { address }, hosts).await?)
}

/// Runs the servers for as long as `hosts` are there to be served.
async fn run<F>(
    source: &Source,
    outside: Outside,
    transport: Transport,
    hosts: impl FnOnce(Gateway) -> F,
) -> io::Result<()>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let running = Running::new(source, transport);
    let settings = source.load_and_log();
    let app = App::assemble(&settings, outside);
    let gateway = app.gateway();
    let (first_list, opened) = (gateway.first_list.clone(), gateway.opened.clone());
    // A task of its own: the runtime takes a longer way to wake what it blocks on.
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
            status_file::keep(running, source.paths.running(), &app),
            follow(source, watch, &app),
            remember(&app)
        );
    };
    let outcome = tokio::select! {
        outcome = hosts => outcome.unwrap_or_else(|panic| Err(io::Error::other(panic))),
        () = servers => Ok(()),
    };
    app.shut_down().await;
    outcome
}

/// Writes down from time to time what was used, because nobody is sure of a good end.
async fn remember(app: &App) {
    loop {
        sleep(REMEMBER).await;
        app.save_usage();
    }
}

/// Takes every change of the configuration.
async fn follow(source: &Source, mut watch: Watch, app: &App) {
    loop {
        watch.changed().await;
        while let Some(settings) = reloaded(source).await {
            let unwatched = watch.follow(&settings.sources, &settings.folders);
            app.reload(&settings).await;
            if !unwatched {
                break;
            }
        }
    }
}

/// The settings after a change; `None` if a file cannot be read as it stands, because then the servers
/// are better left alone. A file that is gone may be about to be replaced, so it gets a second look.
async fn reloaded(source: &Source) -> Option<Settings> {
    let gone = |settings: &Settings| settings.unreadable || settings.servers.is_empty();
    if gone(&source.load()) {
        sleep(SECOND_LOOK).await;
    }
    let settings = source.load_and_log();
    if settings.unreadable {
        tracing::error!("all servers are left as they were until the configuration can be read again");
        return None;
    }
    Some(settings)
}

async fn told_to_stop() {
    let wait = |kind| async move {
        match signal(kind) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = wait(SignalKind::terminate()) => {}
        () = wait(SignalKind::interrupt()) => {}
        () = wait(SignalKind::hangup()) => {}
    }
}
