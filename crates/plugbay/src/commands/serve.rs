//! `plugbay serve`: all servers behind one MCP server on stdin and stdout.

use std::{io, time::Duration};

use plugbay_downstream::stdio;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::timeout,
};

use crate::{
    panel::{Outside, Panel},
    settings::Source,
    watch::Watch,
};

/// With a warm cache, servers are started when the host has its first list, or after this long:
/// starting many programs takes the machine's attention, and the host is waiting.
const START_DELAY: Duration = Duration::from_millis(100);

pub async fn serve(source: &Source, outside: Outside) -> io::Result<()> {
    let settings = source.load_and_log();
    let panel = Panel::assemble(&settings, outside);
    let gateway = panel.gateway();
    let first_list = gateway.first_list.clone();
    let (input, output) = stdio::standard();
    // A task of its own: the runtime takes a longer way to wake what it blocks on.
    let host = tokio::spawn(stdio::serve(gateway, input, output));
    let servers = async {
        if panel.snapshots().borrow().settled {
            let _ = timeout(START_DELAY, first_list.notified()).await;
        }
        panel.refresh();
        let mut watch = Watch::new(&settings.sources);
        loop {
            watch.changed().await;
            let settings = source.load_and_log();
            watch.follow(&settings.sources);
            panel.reload(&settings).await;
        }
    };
    let outcome = tokio::select! {
        outcome = host => outcome.unwrap_or_else(|panic| Err(io::Error::other(panic))),
        () = servers => Ok(()),
        () = told_to_stop() => Ok(()),
    };
    panel.shut_down().await;
    // A host that has gone away is not an error of ours.
    outcome.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })
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
