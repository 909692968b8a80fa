//! What a gateway does while hosts use it: warms its servers up, follows its configuration, shows its status.

use std::time::Duration;

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{sleep, timeout},
};

use crate::{
    app::App,
    config::{Paths, Settings},
    settings::Source,
    status_file::{self, GatewayStatus},
    watch::Watch,
};

/// With a full cache, servers start when the host has its first list, or after this time: starting many programs
/// would slow that list down. Otherwise they start when the host has declared its capabilities, so that no server
/// needs a second handshake.
const START_DELAY: Duration = Duration::from_millis(100);
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// How often the counted uses of tools are saved: those since then are lost when the gateway is killed.
const SAVE_USAGE: Duration = Duration::from_secs(15);
/// How often plugbay looks for lists that have become stale.
const LOOK_FOR_STALE: Duration = Duration::from_secs(3600);

/// How a gateway reads its configuration again.
pub trait Configuration {
    /// Reads all files.
    fn read(&self) -> impl Future<Output = Settings>;

    /// The servers are about to become those of the last reading.
    fn changes(&self) {}

    /// The servers are those of the last reading.
    fn has_changed(&self) {}
}

impl Configuration for Source {
    async fn read(&self) -> Settings {
        self.load()
    }
}

/// Looks after the servers until this future is dropped. `settings` are those of the app.
pub async fn look_after(
    app: &App,
    status: GatewayStatus,
    settings: &Settings,
    paths: &Paths,
    configuration: &impl Configuration,
) {
    let watch = Watch::new(&settings.sources, &settings.folders);
    warm_up(app).await;
    tokio::join!(
        status_file::keep(status, paths.status_folder(), app),
        follow(paths, configuration, watch, app, settings),
        save_usage(app),
        keep_fresh(app)
    );
}

async fn warm_up(app: &App) {
    let gateway = app.gateway();
    if app.snapshots().borrow().settled {
        let _ = timeout(START_DELAY, gateway.host_events.first_list.notified()).await;
    } else {
        let _ = timeout(START_DELAY, gateway.host_events.opened.notified()).await;
    }
    app.refresh();
}

/// Saves from time to time which tools were used: a gateway may be killed.
async fn save_usage(app: &App) {
    loop {
        sleep(SAVE_USAGE).await;
        app.save_usage();
    }
}

/// Lists again what has become stale: a gateway may run for weeks.
async fn keep_fresh(app: &App) {
    loop {
        sleep(LOOK_FOR_STALE).await;
        app.refresh_stale();
    }
}

/// Loads the configuration once after each change, and gives it to the app.
async fn follow(
    paths: &Paths,
    configuration: &impl Configuration,
    mut watch: Watch,
    app: &App,
    first: &Settings,
) {
    let mut current = first.clone();
    // A file may have changed after it was read and before it was watched.
    if current.is_current(paths) {
        watch.changed().await;
    }
    loop {
        let read = reloaded(configuration).await;
        // If a file cannot be parsed, plugbay keeps the servers as they are.
        let keeps = read.unreadable;
        let next = if keeps { current.kept_despite(&read) } else { read };
        let has_new_folders = watch.follow(&next.sources, &next.folders);
        if keeps {
            app.reload(&current, &next).await;
        } else {
            configuration.changes();
            app.reload(&current, &next).await;
            configuration.has_changed();
        }
        current = next;
        // A file in a folder that was not watched may have changed since it was read.
        if !has_new_folders {
            watch.changed().await;
        }
    }
}

/// The settings after a change. A file that is gone may be about to be replaced: it is read again a moment later.
async fn reloaded(configuration: &impl Configuration) -> Settings {
    let mut settings = configuration.read().await;
    if settings.unreadable || settings.servers.is_empty() {
        sleep(SECOND_LOOK).await;
        settings = configuration.read().await;
    }
    settings.log_problems();
    if settings.unreadable {
        tracing::error!("the configuration cannot be read: all servers stay as they were");
    }
    settings
}

/// Catches the signals that end a gateway, from this call on; the future waits for the first of them.
pub fn stop_signal() -> impl Future<Output = ()> + Send + 'static {
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
