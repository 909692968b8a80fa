//! The first line in each direction on the daemon's socket. A window passes two pipes with it, for plain MCP.

use std::{
    cmp::Ordering,
    io::{self, BufRead as _, BufReader, Read as _, Take, Write as _},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};

use plugbay_core::version::numbers;
use plugbay_downstream::ConnectedHost;
use serde::{Deserialize, Serialize};

use super::{pipes::PipeEnd, socket::or_silent};
use crate::{
    settings::{self, ProcessVariables},
    status_file::ServerStatus,
};

/// The protocol version. It changes when an older daemon cannot serve a newer bridge, or the other way round.
pub const PROTOCOL: u32 = 1;
/// Limit of a line: more than any environment needs.
pub const LONGEST: usize = 8 * 1024 * 1024;
/// How long one side waits for the line of the other.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The first line of a process that has connected.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub build: Build,
    pub request: Request,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// A bridge wants a session for its host.
    Window(Box<WindowHello>),
    Status,
    /// End the daemon, because the user wants it.
    Stop,
    /// Make room for another daemon, because the user wants it.
    HandOver,
}

/// Everything that shapes the session of a window.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WindowHello {
    /// The name of the session, which stays the same at the next daemon.
    pub session: String,
    pub pid: u32,
    pub folder: PathBuf,
    /// The configuration file that the command line names.
    pub config: Option<PathBuf>,
    /// The profile that the command line names.
    pub host: Option<String>,
    pub variables: ProcessVariables,
    /// The state of the session at the last daemon.
    #[serde(default)]
    pub state: Option<String>,
}

/// The daemon's answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    Accepted {
        /// Part of the method of each control message.
        token: String,
        /// The longest message that the daemon accepts from the host.
        limit: usize,
    },
    /// The daemon has made room for a daemon of the asking build.
    HandedOver,
    Refused {
        reason: String,
    },
    Status(Box<DaemonStatus>),
    /// The daemon is ending. Another answer follows when it has ended.
    Stopping,
    Stopped {
        /// How many calls had no answer.
        cut: usize,
    },
}

/// The status of one daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {
    pub pid: u32,
    pub version: String,
    /// In seconds since 1970.
    pub since: u64,
    pub windows: Vec<WindowStatus>,
    #[serde(default)]
    pub servers: Vec<ServerStatus>,
}

/// One window at a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowStatus {
    /// The process of its bridge.
    pub pid: u32,
    pub since: u64,
    pub folder: PathBuf,
    pub config: Option<PathBuf>,
    /// The host, once it has opened its session.
    pub host: Option<ConnectedHost>,
}

/// The build of a program: a later version, or a later file of the same version, is newer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Build {
    pub version: String,
    /// In nanoseconds since 1970.
    pub built: u64,
}

impl Build {
    pub fn own() -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), built: settings::built() }
    }

    pub fn is_newer_than(&self, other: &Self) -> bool {
        let order = numbers(&self.version).cmp(&numbers(&other.version));
        order.then(self.built.cmp(&other.built)) == Ordering::Greater
    }
}

impl Hello {
    pub fn new(request: Request) -> Self {
        Self { protocol: PROTOCOL, build: Build::own(), request }
    }
}

/// Sends a hello on a new connection and waits for the answer. A window also passes the daemon's end of its
/// pipes.
pub fn ask(stream: &UnixStream, hello: &Hello, pipes: Option<&PipeEnd>) -> io::Result<Reply> {
    converse(stream, hello, pipes).map(|(reply, _)| reply)
}

/// The same, for a request that gets several answers.
pub fn converse<'a>(
    mut stream: &'a UnixStream,
    hello: &Hello,
    pipes: Option<&PipeEnd>,
) -> io::Result<(Reply, Replies<'a>)> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let line = line(hello)?;
    let sent = pipes.map_or(Ok(0), |pipes| pipes.send_with(stream, &line)).map_err(or_silent)?;
    stream.write_all(&line[sent..]).map_err(or_silent)?;
    let mut replies = Replies(BufReader::new(stream.take(LONGEST as u64)));
    let reply = replies.next().map_err(or_silent)?;
    Ok((reply, replies))
}

/// The daemon's answers on one connection.
#[derive(Debug)]
pub struct Replies<'a>(BufReader<Take<&'a UnixStream>>);

impl Replies<'_> {
    pub fn next(&mut self) -> io::Result<Reply> {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        serde_json::from_slice(&line).map_err(io::Error::other)
    }
}

pub fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// 128 random bits in hexadecimal digits.
pub fn random_token() -> io::Result<String> {
    Ok(format!("{:032x}", u128::from_le_bytes(random()?)))
}

pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_newer_by_its_version_and_then_by_its_file() {
        let build = |version: &str, built| Build { version: version.to_owned(), built };
        assert!(build("0.10.0", 1).is_newer_than(&build("0.9.9", 2)));
        assert!(build("0.1.0", 2).is_newer_than(&build("0.1.0", 1)));
        assert!(!build("0.1.0", 1).is_newer_than(&build("0.1.0", 1)));
        assert!(!build("0.1.0", 1).is_newer_than(&build("0.1.0", 2)));
    }

    #[test]
    fn tokens_of_control_messages_are_random() {
        let [one, two] = [random_token().unwrap(), random_token().unwrap()];
        assert_eq!((one.len(), one != two), (32, true));
    }
}
