//! The hidden command that starts the daemon, and the daemon's process.

use std::{
    ffi::OsStr,
    io::{self, Write as _},
    os::fd::AsFd as _,
    process::{Command, ExitCode, Stdio},
};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

use super::{server, socket::Place};
use crate::{
    app::Environment,
    log_files::{FileLayer, LogFiles},
    settings::{self, Source},
};

/// The hidden command.
pub const COMMAND: &str = "__daemon";
/// The argument of a process that starts the daemon and then ends.
pub(super) const START: &str = "start";
/// Written by the daemon to stdout once it accepts connections.
pub(super) const READY: &[u8] = b"ready\n";
/// Written if another daemon is running.
pub(super) const TAKEN: &[u8] = b"taken\n";

/// Starts the daemon, or runs as the daemon.
pub fn main(word: &OsStr, place: &OsStr) -> ExitCode {
    // With a session of its own, it is not reached by a terminal or by a signal to the host's process group.
    let _ = rustix::process::setsid();
    let outcome = if word == START { start(place) } else { run() };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = io::stdout().write_all(format!("{error}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// Starts the daemon. The process that waits for it reads its stdout. The place is an argument only to be
/// seen in process lists.
fn start(place: &OsStr) -> io::Result<()> {
    let mut daemon = Command::new(settings::program()?);
    daemon.args([COMMAND, "run"]).arg(place).stdin(Stdio::null()).spawn().map(drop)
}

fn run() -> io::Result<()> {
    let source = Source::new(None);
    let place = Place::of(&source.paths).map_err(io::Error::other)?;
    let Some((claim, listener)) = place.claim()? else { return say(TAKEN) };
    plugbay_downstream::descriptors::raise_limit();
    let logs = source.paths.log_folder().map(LogFiles::new);
    let levels = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("plugbay_downstream::host_view", LevelFilter::INFO)
        .with_target("plugbay::daemon", LevelFilter::INFO);
    tracing_subscriber::registry().with(levels).with(logs.clone().map(FileLayer)).init();
    let environment = Environment { logs: logs.clone(), ..settings::environment()? };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(async {
        let daemon = server::Daemon::new(&environment)?;
        say(READY)?;
        daemon.serve(claim, listener).await
    });
    if let Some(logs) = logs {
        logs.finish();
    }
    outcome
}

/// Reports to the process that started the daemon, and closes the stream.
fn say(word: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout();
    let told = stdout.write_all(word).and_then(|()| stdout.flush());
    let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nowhere.as_fd())?;
    // The process that started it may be gone; the daemon serves others.
    let _ = told;
    Ok(())
}
