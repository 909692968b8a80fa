//! `plugbay daemon`: the process that holds the servers of all windows.

mod memory;

use std::{io, process::ExitCode, time::Duration};

use plugbay_core::server_state::ServerState;
use serde::Serialize;

use self::memory::Processes;
use super::{CommandError, Context};
use crate::{
    clock,
    daemon::{
        DaemonStatus, WindowStatus,
        hello::{self, Hello, Reply, Request},
        socket::Place,
        start,
    },
    status_file::ServerStatus,
};

/// How long a daemon may take to end its servers.
const STOP_TIME: Duration = Duration::from_secs(30);

/// Show, stop or restart the daemon that runs the servers.
///
/// `plugbay serve` starts the daemon when a host opens, and all windows of the user share its servers. It ends when no
/// window was open for 5 minutes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub struct DaemonArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Copy, clap::Subcommand)]
enum Action {
    /// Show the daemon, its windows and its servers.
    Status,
    /// End the daemon and its servers. The next message of a host starts it again.
    Stop,
    /// Let a new daemon take over, or start one. No window loses a call.
    Restart,
}

const EXAMPLES: &str = "\
Examples:
  plugbay daemon status
  plugbay daemon restart       also replaces a daemon of an older version
  plugbay daemon stop

Without a daemon: plugbay serve --no-daemon, or PLUGBAY_DAEMON=off.";

/// The result of the command.
#[derive(Debug, Serialize)]
pub struct DaemonReport {
    /// The action taken; absent for `status`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<Done>,
    /// How many calls had no answer when the daemon was stopped.
    pub cut: usize,
    /// The daemon that runs now.
    pub daemon: Option<Daemon>,
    /// In seconds since 1970.
    #[serde(skip)]
    pub now: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Done {
    Nothing,
    Stopped,
    /// There was none before.
    Started,
    Restarted,
}

/// A daemon that runs.
#[derive(Debug, Serialize)]
pub struct Daemon {
    pub pid: u32,
    pub version: String,
    /// In seconds since 1970.
    pub since: u64,
    /// Resident memory of the daemon without its servers, in bytes.
    pub memory: Option<u64>,
    pub windows: Vec<WindowStatus>,
    pub servers: Vec<DaemonServer>,
}

#[derive(Debug, Serialize)]
pub struct DaemonServer {
    #[serde(flatten)]
    pub status: ServerStatus,
    /// Resident memory of its process and the children of that, in bytes.
    pub memory: Option<u64>,
}

pub fn daemon(context: &Context, args: &DaemonArgs) -> Result<ExitCode, CommandError> {
    let place = Place::of(&context.source.paths).map_err(CommandError::failed)?;
    let (done, cut) = match args.action {
        Action::Status => (None, 0),
        Action::Stop => {
            let (done, cut) = stop(&place)?;
            (Some(done), cut)
        }
        Action::Restart => (Some(restart(&place)?), 0),
    };
    let daemon = if done == Some(Done::Stopped) { None } else { status(&place)? };
    let daemon = daemon.map(Daemon::new);
    context.output.show(&DaemonReport { done, cut, daemon, now: clock::now() });
    Ok(ExitCode::SUCCESS)
}

/// The daemon that runs, if there is one.
pub(super) fn status(place: &Place) -> Result<Option<DaemonStatus>, CommandError> {
    match start::ask(place, Request::Status) {
        Ok(Some(Reply::Status(status))) => Ok(Some(*status)),
        Ok(None) => Ok(None),
        Ok(Some(Reply::Refused { reason })) => Err(silent(&reason)),
        Ok(Some(_)) => Err(silent("its answer makes no sense")),
        // The daemon was just ending.
        Err(error) if ended(&error) => Ok(None),
        Err(error) => Err(does_not("tell its status", place, &error)),
    }
}

fn silent(reason: &str) -> CommandError {
    CommandError::failed(format!("the daemon does not tell its status: {reason}"))
        .hint("run `plugbay daemon restart`, which starts another")
}

fn ended(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

/// Stops the daemon; returns when it and its servers have ended, with the number of calls that were cut off.
fn stop(place: &Place) -> Result<(Done, usize), CommandError> {
    let failed = |error: io::Error| does_not("stop", place, &error);
    let stream = match place.connect() {
        Ok(stream) => stream,
        Err(error) if start::is_absent(&error) => return Ok((Done::Nothing, 0)),
        Err(error) => return Err(failed(error)),
    };
    let mut replies = match hello::converse(&stream, &Hello::new(Request::Stop), None) {
        Ok((_, replies)) => replies,
        Err(error) if ended(&error) => return Ok((Done::Stopped, 0)),
        Err(error) => return Err(failed(error)),
    };
    // The connection ends when the daemon does.
    stream.set_read_timeout(Some(STOP_TIME)).map_err(failed)?;
    let mut cut = 0;
    loop {
        match replies.next() {
            Ok(Reply::Stopped { cut: number }) => cut = number,
            Ok(_) => {}
            Err(error) if ended(&error) => return Ok((Done::Stopped, cut)),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// The error for a daemon that does not do what was asked.
fn does_not(what: &str, place: &Place, error: &io::Error) -> CommandError {
    let failed = CommandError::failed(format!("the daemon does not {what}: {error}"));
    let process = place.holder().filter(|_| error.kind() == io::ErrorKind::TimedOut);
    match process {
        Some(pid) => failed.hint(format!("end it with `kill -9 {pid}`; its servers end with it")),
        None => failed,
    }
}

/// Starts a new daemon, even if none is running.
fn restart(place: &Place) -> Result<Done, CommandError> {
    let failed = |error: io::Error| CommandError::failed(format!("no daemon can be started: {error}"));
    let done = match start::ask(place, Request::HandOver) {
        Err(error) if !ended(&error) => return Err(does_not("hand over", place, &error)),
        Ok(None) => Done::Started,
        _ => Done::Restarted,
    };
    start::connect_or_start(place).map_err(failed)?;
    Ok(done)
}

impl Daemon {
    fn new(DaemonStatus { pid, version, since, windows, servers }: DaemonStatus) -> Self {
        let processes = Processes::read();
        let server = |mut status: ServerStatus| {
            // Another gateway of the daemon may run a process of the server.
            if status.instances > 0 && status.state == ServerState::Idle {
                status.state = ServerState::Ready;
            }
            let pid = status.pid.and_then(|pid| u32::try_from(pid).ok());
            DaemonServer { memory: pid.and_then(|pid| processes.of_tree(pid)), status }
        };
        let servers = servers.into_iter().map(server).collect();
        Self { pid, version, since, memory: processes.of(pid), windows, servers }
    }
}
