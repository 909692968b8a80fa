//! Finds the daemon, or starts one and waits until it is ready.

use std::{
    io::{self, Read as _},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, poll};

use super::{
    hello::{self, Hello, Reply, Request, WindowHello},
    main::{COMMAND, READY, START, TAKEN},
    pipes::{self, PipeEnd},
    socket::Place,
};
use crate::settings;

/// How long a daemon may take to start.
const START_TIME: Duration = Duration::from_secs(10);
/// How long a process waits for another process that is starting a daemon.
const OTHER_STARTS: Duration = Duration::from_secs(5);
/// How many times a daemon may end between the connection and its answer.
const ATTEMPTS: usize = 8;
/// Interval of checks for a daemon that another process is starting.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A session at a daemon.
#[derive(Debug)]
pub struct Opened {
    pub pipes: PipeEnd,
    /// Part of the method of each control message.
    pub token: String,
    /// The longest message that the daemon accepts from the host.
    pub limit: usize,
}

/// Opens a session for a window, at the running daemon or at a new one. `Err` is the reason, for the user.
pub fn open(place: &Place, window: &WindowHello) -> Result<Opened, String> {
    let hello = Hello::new(Request::Window(Box::new(window.clone())));
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let stream = connect_or_start(place).map_err(|error| error.to_string())?;
        let [pipes, theirs] = pipes::pair().map_err(|error| error.to_string())?;
        match hello::ask(&stream, &hello, Some(&theirs)) {
            Ok(Reply::Accepted { token, limit }) => return Ok(Opened { pipes, token, limit }),
            // It has made room, so the next attempt starts a daemon of this build.
            Ok(Reply::HandedOver) => {}
            Ok(Reply::Refused { reason }) => return Err(format!("it refuses: {reason}")),
            Ok(_) => return Err("its answer makes no sense".to_owned()),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(error.to_string()),
            // The daemon was just ending.
            Err(error) => last = error.to_string(),
        }
    }
    Err(format!("it ends before it answers: {last}"))
}

/// Asks the running daemon; `None` if there is none.
pub fn ask(place: &Place, request: Request) -> io::Result<Option<Reply>> {
    match place.connect() {
        Ok(stream) => hello::ask(&stream, &Hello::new(request), None).map(Some),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A connection to the daemon. If many processes find none, only one starts it.
pub fn connect_or_start(place: &Place) -> io::Result<UnixStream> {
    let patience = Instant::now() + OTHER_STARTS;
    loop {
        match place.connect() {
            Err(error) if is_absent(&error) => {}
            connected => return connected,
        }
        let only = place.try_lock_start()?;
        if only.is_some() || Instant::now() >= patience {
            // The lock only avoids extra processes. If its holder does not continue, `Place::claim` decides
            // between two daemons.
            return match place.connect() {
                Err(error) if is_absent(&error) => start(place),
                connected => connected,
            };
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Whether the error of a connection means that no daemon is running.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn start(place: &Place) -> io::Result<UnixStream> {
    let deadline = Instant::now() + START_TIME;
    let said = launch(place, deadline)?;
    match said.trim_ascii_end() {
        said if said == READY.trim_ascii_end() => place.connect(),
        said if said == TAKEN.trim_ascii_end() => await_other(place, deadline),
        said => Err(io::Error::other(format!("it does not start: {}", String::from_utf8_lossy(said)))),
    }
}

/// Starts a process that starts the daemon and ends at once, so that the daemon is not a child of this
/// process. Returns the line that the daemon writes when it is ready.
fn launch(place: &Place, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut launcher = Command::new(settings::program()?)
        .args([COMMAND, START])
        .arg(place.folder())
        .env_clear()
        .envs(settings::daemon_variables())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut said = Vec::new();
    if let Some(mut output) = launcher.stdout.take() {
        let mut buffer = [0; 1024];
        while !said.ends_with(b"\n") {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = rustix::event::Timespec::try_from(left).map_err(io::Error::other)?;
            if poll(&mut [PollFd::new(&output, PollFlags::IN)], Some(&left))? == 0 {
                let text = format!("it is not ready after {} s", START_TIME.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            match output.read(&mut buffer)? {
                0 => break,
                count => said.extend_from_slice(&buffer[..count]),
            }
        }
    }
    launcher.wait()?;
    Ok(said)
}

/// Waits for another daemon, which has the lock and is about to listen.
fn await_other(place: &Place, deadline: Instant) -> io::Result<UnixStream> {
    loop {
        match place.connect() {
            Err(error) if is_absent(&error) && Instant::now() < deadline => thread::sleep(LOOK_AGAIN),
            connected => return connected,
        }
    }
}
