//! Turns the command line and environment variables into the inputs of commands: no other module reads them.

mod named_variables;
mod process_variables;
mod program;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use plugbay_auth::keychain::SessionBus;
use plugbay_core::profile::Profiles;
use plugbay_downstream::http::{Access, Address, Unguarded};
use plugbay_hosts::known;
use plugbay_telemetry::OtlpSettings;
use plugbay_upstream::{
    process::{inherited, is_inherited},
    spec::Origin,
};

use crate::{
    app::Environment,
    authorization::CallerAuthorization,
    config::{self, AuthorizationSettings, Editable, Paths, Settings, WrittenEntry},
    error::CommandError,
    logins::LoginPlaces,
    token_store::{self, Follow},
};

pub use named_variables::{Variables, variables};
pub use process_variables::ProcessVariables;
pub use program::{built, note_program, program};

/// The source of the configuration; each reload reads it again.
#[derive(Debug, Clone)]
pub struct Source {
    explicit: Option<PathBuf>,
    /// The name of the profile that every host gets.
    host: Option<String>,
    /// The audit log that the command line names.
    audit: Option<PathBuf>,
    pub paths: Paths,
    variables: ProcessVariables,
    /// The environment and the folder for servers, if they differ from this process's.
    origin: Option<Origin>,
    /// The reason why this process serves alone although there should be a daemon.
    no_daemon: Option<NoDaemon>,
    /// Whether hosts connect over the network. They did not start this process, so its environment says
    /// nothing about them.
    far_hosts: bool,
}

/// The reason why a window is served without the daemon.
#[derive(Debug, Clone)]
enum NoDaemon {
    /// No daemon is possible.
    Trouble(String),
    /// The window is observed separately.
    Observed(String),
}

impl Source {
    pub fn new(explicit: Option<PathBuf>) -> Self {
        Self::of(explicit, ProcessVariables::own(), current_folder())
    }

    /// A source with these environment variables and this folder.
    fn of(explicit: Option<PathBuf>, variables: ProcessVariables, start: PathBuf) -> Self {
        let paths = Paths::detect(&|name| variables.get(name), start);
        Self {
            explicit,
            host: None,
            audit: None,
            paths,
            variables,
            origin: None,
            no_daemon: None,
            far_hosts: false,
        }
    }

    /// A source for a window at a daemon: servers start with the window's environment, in its folder.
    pub fn of_window(explicit: Option<PathBuf>, variables: ProcessVariables, start: PathBuf) -> Self {
        let origin = Origin::new(inherited(variables.all()), start.clone());
        Self { origin: Some(origin), ..Self::of(explicit, variables, start) }
    }

    /// Notes a problem because of which this process serves alone; users see it.
    #[must_use]
    pub fn without_daemon(self, reason: String) -> Self {
        Self { no_daemon: Some(NoDaemon::Trouble(reason)), ..self }
    }

    /// The same for a window that its user observes.
    #[must_use]
    pub fn observed(self, reason: String) -> Self {
        Self { no_daemon: Some(NoDaemon::Observed(reason)), ..self }
    }

    /// Notes that hosts connect over the network.
    #[must_use]
    pub fn with_far_hosts(self) -> Self {
        Self { far_hosts: true, ..self }
    }

    /// The reason why this process serves alone although there should be a daemon.
    pub fn no_daemon(&self) -> Option<&str> {
        match self.no_daemon.as_ref()? {
            NoDaemon::Trouble(reason) | NoDaemon::Observed(reason) => Some(reason),
        }
    }

    /// Gives every host the profile of this name.
    pub fn with_host(self, host: Option<String>) -> Result<Self, CommandError> {
        let Some(name) = host else { return Ok(self) };
        let known = self.load().hosts;
        if known.clone().forced(&name).is_err() {
            let names: Vec<&str> = known.iter().map(|profile| profile.name.as_str()).collect();
            let error = CommandError::usage(format!("there is no profile of a host {name:?}"));
            return Err(error.hint(format!("there are profiles of {}", names.join(", "))));
        }
        Ok(Self { host: Some(name), ..self })
    }

    /// Adds remotes at these addresses. Without any, those in `PLUGBAY_REMOTE` are used.
    #[must_use]
    pub fn with_remotes(self, remotes: &[String]) -> Self {
        if remotes.is_empty() {
            return self;
        }
        let variables = self.variables.with(config::REMOTE, &remotes.join(" "));
        Self { variables, ..self }
    }

    /// The remotes from the command line or the environment, without secrets.
    pub fn remotes(&self) -> Vec<String> {
        let urls = self.variables.text(config::REMOTE).unwrap_or_default();
        urls.split_whitespace().map(config::origin).collect()
    }

    /// The profile that every host gets.
    pub fn profile(&self) -> Option<String> {
        self.host.clone()
    }

    /// The environment variables with which the configuration is read.
    pub fn variables(&self) -> ProcessVariables {
        self.variables.clone()
    }

    /// Logs calls to this file, whatever the configuration says.
    #[must_use]
    pub fn with_audit(self, audit: Option<PathBuf>) -> Self {
        Self { audit: audit.map(|file| self.paths.start.join(file)), ..self }
    }

    /// The absolute path of the configuration file, if the command line names it.
    pub fn explicit(&self) -> Option<PathBuf> {
        self.explicit.as_ref().map(|file| self.paths.start.join(file))
    }

    /// Reads every configuration file without expanding variables, so that no secret is shown.
    pub fn load_unexpanded(&self) -> Settings {
        let unexpanded = |name: &str| match name {
            name if name == config::REMOTE || Profiles::default().variables().any(|one| one == name) => {
                self.variables.text(name)
            }
            _ => Some(format!("${{{name}}}")),
        };
        config::load(self.explicit.as_deref(), &self.paths, &unexpanded)
    }

    /// Reads every configuration file.
    pub fn load(&self) -> Settings {
        self.load_noting(&|_| {})
    }

    /// Reads every configuration file. Also returns the values of the window's variables that it used.
    pub fn load_with_values(&self) -> (Settings, BTreeMap<String, Option<String>>) {
        let names = RefCell::new(BTreeSet::new());
        let settings = self.load_noting(&|name| _ = names.borrow_mut().insert(name.to_owned()));
        let mut names = names.into_inner();
        names.extend(settings.passed());
        let value = |name: String| (name.clone(), self.variables.text(&name));
        (settings, names.into_iter().map(value).collect())
    }

    fn load_noting(&self, note: &dyn Fn(&str)) -> Settings {
        let variable = |name: &str| {
            note(name);
            self.variables.text(name)
        };
        let mut settings = config::load(self.explicit.as_deref(), &self.paths, &variable);
        settings = settings.with_passed(self.variables.all());
        if let Some(origin) = &self.origin {
            settings = settings.with_origin(origin);
        }
        if let Some(NoDaemon::Trouble(reason)) = &self.no_daemon {
            settings = settings.without_daemon(reason);
        }
        if let Some(file) = &self.audit {
            settings.audit = Some(config::audit_settings(file.clone()));
        }
        if self.far_hosts {
            settings.hosts = settings.hosts.in_environment(&|_| None);
        }
        tracing::info!("loaded the configuration of {} servers", settings.servers.len());
        match self.host.as_ref().and_then(|host| settings.hosts.clone().forced(host).ok()) {
            Some(hosts) => Settings { hosts, ..settings },
            None => settings,
        }
    }

    /// The settings that a changed configuration file would give.
    pub fn preview(&self, changed: &Editable) -> Settings {
        config::preview(changed, &self.paths, &|name| self.variables.text(name))
    }

    /// The effective entries of all configuration files, as written.
    pub fn entries(&self) -> Vec<WrittenEntry> {
        config::entries(self.explicit.as_deref(), &self.paths)
    }
}

/// The width of the output, if the user sets it.
pub fn columns() -> Option<usize> {
    env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

pub fn home() -> Option<PathBuf> {
    absolute("HOME")
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folders of Claude Code's project and user settings, which its hooks get in environment variables.
pub fn claude_code() -> (Option<PathBuf>, Option<PathBuf>) {
    let user = absolute("CLAUDE_CONFIG_DIR").or_else(|| Some(home()?.join(".claude")));
    (absolute("CLAUDE_PROJECT_DIR"), user)
}

/// The places of hosts' files; `None` without a home folder.
pub fn host_places(project: &Path) -> Option<known::Places> {
    let mut places = known::Places::new(home()?);
    places.config = absolute("XDG_CONFIG_HOME").unwrap_or(places.config);
    // In the home folder, a file of the user would look like one of a project.
    places.project = (project != places.home).then(|| project.to_owned());
    let moved = known::variables().into_iter().filter_map(|name| Some((name.to_owned(), absolute(name)?)));
    places.overrides = moved.collect();
    Some(places)
}

/// The value of an environment variable, for the expansion of variables in entries.
pub fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// The folders that the user has moved by variables, because a host may start plugbay without these.
pub fn moved_folders() -> BTreeMap<String, String> {
    let names = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];
    let moved =
        names.into_iter().filter_map(|name| Some((name.to_owned(), absolute(name)?.to_str()?.to_owned())));
    moved.collect()
}

/// The first program of this name on the search path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// The path by which users know this executable: the one on the search path, if it leads here, because it
/// survives updates.
pub fn own_program(executable: &Path) -> PathBuf {
    let real = executable.canonicalize().ok();
    let name = executable.file_name().and_then(|name| name.to_str());
    let known = name.and_then(find_program).filter(|found| found.canonicalize().ok() == real);
    known.unwrap_or_else(|| executable.to_owned())
}

/// The folder in which this process was started.
pub fn current_folder() -> PathBuf {
    env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
}

/// The cache folder, the project and the executable of this process.
pub fn environment() -> std::io::Result<Environment> {
    environment_of(&ProcessVariables::own(), &current_folder())
}

/// The same for a window with these variables and this folder.
pub fn environment_of(variables: &ProcessVariables, start: &Path) -> std::io::Result<Environment> {
    let below_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let cache =
        variables.folder("XDG_CACHE_HOME").or_else(|| Some(variables.folder("HOME")?.join(below_home)));
    Ok(Environment {
        cache_folder: cache.map(|folder| folder.join("plugbay")),
        project: config::project_folder(start).to_owned(),
        folder: start.to_owned(),
        program: program()?,
        logs: None,
        logins: login_places(variables, start),
        telemetry: None,
    })
}

fn login_places(variables: &ProcessVariables, start: &Path) -> Option<LoginPlaces> {
    let paths = Paths::detect(&|name| variables.get(name), start.to_owned());
    let mcp_remote = variables
        .folder("MCP_REMOTE_CONFIG_DIR")
        .or_else(|| Some(variables.folder("HOME")?.join(".mcp-auth")));
    let bus = SessionBus {
        address: variables.text("DBUS_SESSION_BUS_ADDRESS"),
        runtime_folder: variables.folder("XDG_RUNTIME_DIR"),
    };
    Some(LoginPlaces { folder: paths.state_folder?.join("auth"), mcp_remote, bus })
}

/// Programs that open an address in the user's browser, the best first. Empty if there is no screen.
pub fn browsers() -> Vec<Vec<String>> {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let chosen = env::var("BROWSER").unwrap_or_default();
    let mut browsers: Vec<Vec<String>> =
        chosen.split(':').map(words).filter(|words| !words.is_empty()).collect();
    let has_screen =
        ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"].iter().any(|name| env::var_os(name).is_some());
    if cfg!(target_os = "macos") {
        browsers.push(words("open"));
    } else if cfg!(windows) {
        browsers.push(words("rundll32 url.dll,FileProtocolHandler"));
    } else if has_screen {
        browsers.extend([words("xdg-open"), words("wslview")]);
    }
    browsers
}

/// The signals that OpenTelemetry's standard variables turn on; `None` if none.
pub fn otlp() -> Option<OtlpSettings> {
    let set = |name: &str| env::var(name).is_ok_and(|value| !value.trim().is_empty());
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value.trim() == wanted);
    let signal = |signal: &str| {
        let place =
            set("OTEL_EXPORTER_OTLP_ENDPOINT") || set(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"));
        place && !is(&format!("OTEL_{signal}_EXPORTER"), "none")
    };
    let named = |name: &str| env::var(name).is_ok_and(|value| value.contains("service.name="));
    let settings = OtlpSettings {
        traces: signal("TRACES"),
        metrics: signal("METRICS"),
        unnamed: !set("OTEL_SERVICE_NAME") && !named("OTEL_RESOURCE_ATTRIBUTES"),
    };
    let on = (settings.traces || settings.metrics) && !is("OTEL_SDK_DISABLED", "true");
    if on && is("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc") {
        tracing::warn!(
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc has no effect: plugbay exports over HTTP, as protobuf"
        );
    }
    on.then_some(settings)
}

/// Whether the environment allows `plugbay serve` to use a daemon.
pub fn daemon_allowed() -> bool {
    !env::var("PLUGBAY_DAEMON").is_ok_and(|word| matches!(word.as_str(), "off" | "0" | "false" | "no"))
}

/// How long a daemon without windows goes on, if the user sets it.
pub fn daemon_idle() -> Option<std::time::Duration> {
    let text = env::var("PLUGBAY_DAEMON_IDLE").ok()?;
    let parsed = config::parse_duration(&text);
    if let Err(why) = &parsed {
        tracing::warn!("PLUGBAY_DAEMON_IDLE={text} has no effect: {why}");
    }
    parsed.ok()
}

/// How long a window is served alone before the daemon is tried again, if the user sets it.
pub fn daemon_return() -> Option<std::time::Duration> {
    config::parse_duration(&env::var("PLUGBAY_DAEMON_RETURN").ok()?).ok()
}

/// The variables for the daemon's own process: folders, proxies and certificates, but no secret of the window
/// that starts it.
pub fn daemon_variables() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let own = ["PLUGBAY_BUILT", "PLUGBAY_DAEMON_IDLE", "RUST_BACKTRACE"];
    let wanted = |name: &std::ffi::OsStr, value: &std::ffi::OsStr| {
        is_inherited(name, value) || own.iter().any(|own| name == *own)
    };
    env::vars_os().filter(|(name, value)| wanted(name, value)).collect()
}

/// The options of `serve --http`.
#[derive(Debug)]
pub struct HttpFlags {
    pub address: Address,
    pub allow_host: Vec<String>,
    pub allow_origin: Vec<String>,
    pub token_file: Option<PathBuf>,
    pub token_store: Option<PathBuf>,
}

/// The address to serve at, and the hosts that may connect.
#[derive(Debug)]
pub struct Http {
    pub address: Address,
    pub access: Access,
    /// Follows the store of named tokens, if its path is known. The file need not exist yet.
    pub follow: Option<Follow>,
    pub authorization: CallerAuthorization,
}

const TOKEN: &str = "PLUGBAY_HTTP_TOKEN";

pub fn http(
    flags: HttpFlags,
    paths: &Paths,
    authorization: &AuthorizationSettings,
) -> Result<Http, CommandError> {
    let HttpFlags { address, allow_host, allow_origin, token_file, token_store } = flags;
    let mut tokens = Vec::new();
    if let Ok(token) = env::var(TOKEN) {
        tokens.extend(checked(&token).map_err(|why| CommandError::usage(format!("{TOKEN} {why}")))?);
    }
    if let Some(file) = &token_file {
        tokens.extend(tokens_in(file)?);
    }
    let guarded = token_store.is_some() || *authorization != AuthorizationSettings::Off;
    let store = token_store.or_else(|| token_store::usual(paths));
    let authorization = CallerAuthorization::new(authorization, store.clone())?;
    let follow = store.map(Follow::new).transpose()?;
    let named = follow.as_ref().map(Follow::tokens);
    let access = Access::with_callers(&address, allow_host, allow_origin, &tokens, named, guarded);
    let access = access.map_err(|Unguarded| {
        CommandError::usage(format!(
            "without a token, everyone who can reach {address} could use every server"
        ))
        .hint("`plugbay token create NAME` makes a token; hosts then send it")
        .hint(format!("or set {TOKEN}, or give --token-file FILE"))
        .hint("or name an authorization server: the key `authorization` of the configuration")
        .hint("or serve only this machine: --http 127.0.0.1:8080")
    })?;
    let access = access.authorized_by(authorization.terms());
    Ok(Http { address, access, follow, authorization })
}

fn tokens_in(file: &Path) -> Result<Vec<String>, CommandError> {
    let problem = |why: String| CommandError::usage(format!("{} {why}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| problem(format!("cannot be read: {error}")))?;
    checked(&text).map_err(|why| problem(why.to_owned()))
}

/// An empty token would let everyone in, so it is an error.
fn checked(text: &str) -> Result<Vec<String>, &'static str> {
    let tokens: Vec<String> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect();
    let plain = |token: &String| token.bytes().all(|byte| byte.is_ascii_graphic());
    match tokens.len() {
        0 => Err("holds no token"),
        _ if tokens.iter().all(plain) => Ok(tokens),
        _ => Err("holds a token with characters that no header can carry"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_lines_of_visible_ascii() {
        assert_eq!(checked(" one \r\n\ntwo\n"), Ok(vec!["one".to_owned(), "two".to_owned()]));
        for text in ["", " \n", "with space", "é"] {
            assert!(checked(text).is_err(), "{text:?}");
        }
    }
}
