//! The work of a gateway while hosts use it: it starts its servers, follows its configuration, and shows its
//! status.

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

/// With a full cache, servers start after the host has got its first list, or after this time, because
/// starting many programs would slow that list down. Otherwise they start when the host has declared its
/// capabilities, so that no server needs a second handshake.
const START_DELAY: Duration = Duration::from_millis(100);
const SECOND_LOOK: Duration = Duration::from_secs(1);
/// How often the usage counts are saved: later counts are lost if the gateway is killed.
const SAVE_USAGE: Duration = Duration::from_secs(15);
/// How often plugbay looks for lists that have become stale.
const LOOK_FOR_STALE: Duration = Duration::from_secs(3600);

/// The configuration of a gateway, which can be read again.
pub trait Configuration {
    /// Reads all files.
    fn read(&self) -> impl Future<Output = Settings>;

    /// Called before the servers change to those of the last reading.
    fn changes(&self) {}

    /// Called when the servers are those of the last reading.
    fn has_changed(&self) {}
}

impl Configuration for Source {
    async fn read(&self) -> Settings {
        self.load()
    }
}

/// Looks after the servers until this future is dropped. `settings` are the app's current settings.
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

/// Regularly saves which tools were used, because a gateway may be killed.
async fn save_usage(app: &App) {
    loop {
        sleep(SAVE_USAGE).await;
        app.save_usage();
    }
}

/// Regularly lists servers again whose lists have become stale, because a gateway may run for weeks.
async fn keep_fresh(app: &App) {
    loop {
        sleep(LOOK_FOR_STALE).await;
        app.refresh_stale();
    }
}

/// Loads the configuration after each change, and applies it to the app.
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
        // If a file cannot be parsed, plugbay keeps the current servers.
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
        // A file in a folder that was not watched yet may have changed since it was read.
        if !has_new_folders {
            watch.changed().await;
        }
    }
}

/// The settings after a change. If a file is gone, it may be about to be replaced, so it is read again a
/// moment later.
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

/// Catches the signals that end a gateway, starting with this call; the future waits for the first one. The
/// second SIGTERM, or the second SIGINT, then ends the process at once, and the guard ends its servers.
pub fn stop_signal() -> impl Future<Output = ()> + Send + 'static {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
    let mut signals = kinds.map(|kind| signal(kind).ok());
    async move {
        let mut received = [0; 3];
        received[next(&mut signals).await] += 1;
        #[expect(clippy::disallowed_methods, reason = "as after `kill -9`, the guard ends the servers")]
        tokio::spawn(async move {
            while received[TERMINATE] < 2 && received[INTERRUPT] < 2 {
                received[next(&mut signals).await] += 1;
            }
            tracing::warn!("a second signal: plugbay ends at once");
            std::process::exit(128 + if received[TERMINATE] == 2 { 15 } else { 2 }); // as shells have it
        });
    }
}

const TERMINATE: usize = 0;
const INTERRUPT: usize = 1;

/// Waits for the next signal; returns which it was.
async fn next([terminate, interrupt, hangup]: &mut [Option<Signal>; 3]) -> usize {
    tokio::select! {
        () = received(terminate) => TERMINATE,
        () = received(interrupt) => INTERRUPT,
        () = received(hangup) => 2,
    }
}

/// Waits for a signal; for ever if it cannot be caught.
async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
