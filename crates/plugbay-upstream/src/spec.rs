//! How one server is started, and its timeouts: plain data, filled by the binary.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use plugbay_core::name::ServerName;

/// Everything that a server's actor needs to know. A reload restarts a server exactly when its spec has
/// changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    pub name: ServerName,
    pub transport: Transport,
    pub timeouts: Timeouts,
    /// The longest message accepted from the server, in bytes.
    pub message_limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    Stdio(StdioSpec),
    Http(HttpSpec),
}

/// A server behind a URL.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpSpec {
    pub url: String,
    /// Sent with every request.
    pub headers: BTreeMap<String, String>,
    pub flavour: HttpFlavour,
    /// A PEM file with certificates that are trusted besides those of the system.
    pub ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpFlavour {
    /// Streamable HTTP first, and SSE for a server that knows only this.
    #[default]
    Auto,
    Streamable,
    /// The transport of 2024-11-05.
    Sse,
}

/// A child process: argv only, never a shell.
#[derive(Clone, PartialEq, Eq)]
pub struct StdioSpec {
    pub command: String,
    pub args: Vec<String>,
    /// Added to the allow-listed part of our own environment.
    pub env: BTreeMap<String, String>,
    /// Patterns of further variables of our own environment; `env` holds those that are set.
    pub pass_env: Vec<String>,
    pub cwd: Option<PathBuf>,
    pub framing: Framing,
}

/// How messages to the server are delimited. Messages of the server are recognised either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Newlines first; after a start without any message of the server the other framing, and so on in turn.
    #[default]
    Auto,
    Newline,
    ContentLength,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From spawn to a complete list of tools.
    pub start: Duration,
    /// How long a call may go without progress.
    pub call: Duration,
    /// The most that a call may take, progress or not.
    pub call_max: Duration,
    /// How long an unused server is kept running; `None`: it is never stopped.
    pub idle: Option<Duration>,
    /// Between closing stdin and TERM, and again between TERM and KILL.
    pub shutdown: Duration,
}

/// Without the values of the headers and the secret parts of the URL.
impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        let mut url = self.url.split(['?', '#']).next().unwrap_or_default().to_owned();
        if let (Some(start), Some(end)) = (url.find("//"), url.rfind('@')) {
            url.replace_range(start + 2..=end, "");
        }
        f.debug_struct("HttpSpec").field("url", &url).field("headers", &headers).finish_non_exhaustive()
    }
}

/// Without the values of the environment, which are often secrets.
impl fmt::Debug for StdioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<&String> = self.env.keys().collect();
        f.debug_struct("StdioSpec").field("command", &self.command).field("env", &env).finish_non_exhaustive()
    }
}

pub const DEFAULT_MESSAGE_LIMIT: usize = plugbay_core::surface::DEFAULT_MESSAGE_LIMIT;

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            call: Duration::from_secs(120),
            call_max: Duration::from_secs(3600),
            idle: Some(Duration::from_secs(300)),
            shutdown: Duration::from_secs(2),
        }
    }
}
