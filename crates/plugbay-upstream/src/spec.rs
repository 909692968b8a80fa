//! How one server is started, and its timeouts: plain data, filled by the binary.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    hash::{Hash, Hasher},
    iter,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use plugbay_core::{
    credentials::CredentialSource,
    name::ServerName,
    secret::{HIDDEN, KnownSecrets},
};
use url::Url;

/// Everything that a server's actor needs to know. A reload restarts a server exactly when its spec has
/// changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    pub name: ServerName,
    pub transport: Transport,
    pub timeouts: Timeouts,
    /// The longest message accepted from the server, in bytes.
    pub message_limit: usize,
    /// Whether hidden characters are removed from its definitions.
    pub sanitize: bool,
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
    /// The source of further credentials.
    pub credentials: CredentialSource,
    pub flavour: HttpFlavour,
    /// A PEM file with certificates that are trusted in addition to those of the system.
    pub ca_file: Option<PathBuf>,
    /// A remote gateway: `url` is its base address, and requests carry the id of the hosts' session.
    pub remote: bool,
    /// The values of variables in its entry.
    pub references: KnownSecrets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HttpFlavour {
    /// Streamable HTTP first, then SSE for a server that supports only that.
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
    /// Added to the allow-listed part of plugbay's own environment.
    pub env: BTreeMap<String, String>,
    /// Patterns of further variables of plugbay's own environment; `env` holds those that are set.
    pub pass_env: Vec<String>,
    pub cwd: Option<PathBuf>,
    pub framing: Framing,
    /// The environment and folder in which it starts.
    pub origin: Origin,
    /// The values of variables in its entry.
    pub references: KnownSecrets,
}

/// The environment and the folder of the user's window that a server starts for. The default is this process.
#[derive(Clone, Default)]
pub struct Origin {
    variables: Option<Arc<BTreeMap<OsString, OsString>>>,
    /// Where a server without `cwd` starts.
    pub folder: Option<PathBuf>,
}

/// Variables with their values.
type Pairs<'a> = Vec<(&'a OsString, &'a OsString)>;

/// Variables that name a terminal or a login session. They differ between windows, but a server does the same
/// in each.
#[rustfmt::skip]
const OF_A_LOGIN: &[&str] = &[
    "TERM", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "XDG_SESSION_CLASS", "XDG_SESSION_DESKTOP", "XDG_SESSION_PATH",
    "XDG_SEAT", "XDG_SEAT_PATH", "XDG_VTNR", "XDG_ACTIVATION_TOKEN", "XDG_GREETER_DATA_DIR", "WSL_INTEROP",
];

impl Origin {
    /// `variables` are those that a server inherits, see [`crate::process::inherited`].
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>, folder: PathBuf) -> Self {
        Self { variables: Some(Arc::new(variables.into_iter().collect())), folder: Some(folder) }
    }

    /// The same origin with the home folder, for a server that belongs to no folder.
    #[must_use]
    pub(crate) fn at_home(&self) -> Self {
        let home = |all: &Arc<BTreeMap<OsString, OsString>>| all.get(OsStr::new("HOME")).map(PathBuf::from);
        Self { folder: self.variables.as_ref().and_then(home), variables: self.variables.clone() }
    }

    /// The environment of the window, or of this process.
    pub(crate) fn variables(&self) -> BTreeMap<OsString, OsString> {
        match &self.variables {
            Some(variables) => BTreeMap::clone(variables),
            None => std::env::vars_os().collect(),
        }
    }

    /// Everything that may affect a server.
    fn lasting(&self) -> (Option<&PathBuf>, Option<Pairs<'_>>) {
        let lasts = |name: &OsString| !OF_A_LOGIN.iter().any(|other| name == other);
        let variables =
            self.variables.as_ref().map(|all| all.iter().filter(|(name, _)| lasts(name)).collect());
        (self.folder.as_ref(), variables)
    }
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        self.lasting() == other.lasting()
    }
}

impl Eq for Origin {}

impl Hash for Origin {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.lasting().hash(state);
    }
}

/// Omits the variables, which may hold secrets.
impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The framing of messages to the server. Messages from the server are recognised in either framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Newlines, or the framing of the last opening. The other one is tried after silent starts.
    #[default]
    Auto,
    Newline,
    ContentLength,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the spawn to the first complete list of tools.
    pub start: Duration,
    /// How long a call may go without progress.
    pub call: Duration,
    /// The longest time for a call, with or without progress.
    pub call_max: Duration,
    /// How long an unused server is kept running; `None`: it is never stopped.
    pub idle: Option<Duration>,
    /// Time from closing stdin to TERM, and from TERM to KILL.
    pub shutdown: Duration,
}

/// Omits the values of the headers, and all of the URL but its origin.
impl fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.headers.keys().collect();
        let url = Url::parse(&self.url).map(|url| url.origin().ascii_serialization()).ok();
        f.debug_struct("HttpSpec").field("url", &url).field("headers", &headers).finish_non_exhaustive()
    }
}

/// Omits the values of the environment, which are often secrets.
impl fmt::Debug for StdioSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<&String> = self.env.keys().collect();
        let command = self.references.hide(&self.command);
        f.debug_struct("StdioSpec").field("command", &command).field("env", &env).finish_non_exhaustive()
    }
}

pub const DEFAULT_MESSAGE_LIMIT: usize = plugbay_core::surface::DEFAULT_MESSAGE_LIMIT;

impl ServerSpec {
    /// Whether it is a remote gateway.
    pub fn is_remote(&self) -> bool {
        matches!(&self.transport, Transport::Http(http) if http.remote)
    }

    /// Values that no text about the server may show.
    pub fn secrets(&self) -> KnownSecrets {
        match &self.transport {
            Transport::Stdio(stdio) => stdio.secrets(),
            Transport::Http(http) => http.secrets(),
        }
    }
}

impl StdioSpec {
    /// The values of its variables, of which texts show only the names.
    pub fn secrets(&self) -> KnownSecrets {
        let variable = |(name, value): (&String, &'_ String)| (value.clone().into(), format!("${{{name}}}"));
        self.references.and_likely(self.env.iter().map(variable))
    }
}

impl HttpSpec {
    /// The values of its headers, and the parts of its address that may hold a key. Each is hidden as a whole
    /// and word by word, because a header is `Bearer TOKEN`.
    pub fn secrets(&self) -> KnownSecrets {
        let is_plain = |name: &str| PLAIN_HEADERS.iter().any(|plain| name.eq_ignore_ascii_case(plain));
        let headers = self.headers.iter().filter(|(name, _)| !is_plain(name));
        let words = headers.flat_map(|(_, value)| iter::once(value.as_str()).chain(value.split_whitespace()));
        let url = Url::parse(&self.url).ok();
        let parts = url.iter().flat_map(secret_parts);
        let parts = words.map(Cow::Borrowed).chain(parts);
        self.references.and_likely(parts.map(|value| (value, HIDDEN.to_owned())))
    }
}

/// Headers whose values are plain words of HTTP.
const PLAIN_HEADERS: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];
/// Least length of a path segment that may be a key. Many hosted servers have the key in the path, and no
/// other segment is as long.
const LONG_SEGMENT: usize = 16;

/// The user, the password, the values of the query and long parts of the path, both as sent and decoded.
fn secret_parts(url: &Url) -> Vec<Cow<'_, str>> {
    let raw = url.query().into_iter().flat_map(|query| query.split('&'));
    let raw = raw.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value));
    let segments = url.path_segments().into_iter().flatten().filter(|part| part.len() >= LONG_SEGMENT);
    let sent = [url.username(), url.password().unwrap_or_default()].into_iter().chain(segments).chain(raw);
    let basic = BASE64.encode(format!("{}:{}", url.username(), url.password().unwrap_or_default()));
    sent.map(Cow::Borrowed).chain(url.query_pairs().map(|(_, value)| value)).chain([basic.into()]).collect()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_of_a_terminal_does_not_keep_two_windows_apart() {
        let origin = |variables: &[(&str, &str)], folder: &str| {
            Origin::new(variables.iter().map(|(name, value)| (name.into(), value.into())), folder.into())
        };
        let one = origin(&[("PATH", "/bin"), ("TERM", "xterm")], "/a");
        assert_eq!(one, origin(&[("PATH", "/bin"), ("TERM", "dumb"), ("XDG_VTNR", "1")], "/a"));
        assert_ne!(one, origin(&[("PATH", "/opt/bin"), ("TERM", "xterm")], "/a"));
        assert_ne!(one, origin(&[("PATH", "/bin"), ("TERM", "xterm")], "/b"));
        assert_ne!(one, Origin::default());
        assert!(!format!("{one:?}").contains("xterm"));
    }

    #[test]
    fn windows_in_two_folders_share_the_environment_of_a_server_at_home() {
        let origin =
            |folder: &str| Origin::new([("HOME".into(), "/home/ann".into())], folder.into()).at_home();
        assert_eq!(origin("/a"), origin("/b"));
        assert_eq!(origin("/a").folder, Some("/home/ann".into()));
        assert_eq!(Origin::default().at_home(), Origin::default());
    }
}
