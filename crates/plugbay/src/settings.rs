//! Turns the command line and environment variables into what commands work with: no other module reads them.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use plugbay_downstream::http::{Access, Address, Unguarded};
use plugbay_hosts::known;
use plugbay_upstream::process::is_inherited;

use crate::{
    app::Environment,
    config::{self, Editable, Paths, Settings, WrittenEntry},
    error::CommandError,
};

/// Where the configuration comes from; each reload reads it anew.
#[derive(Debug, Clone)]
pub struct Source {
    explicit: Option<PathBuf>,
    /// The name of the profile that every host gets.
    host: Option<String>,
    pub paths: Paths,
}

impl Source {
    pub fn new(explicit: Option<PathBuf>) -> Self {
        let start = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Self { explicit, host: None, paths: Paths::detect(&|name| env::var_os(name), start) }
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

    /// The absolute path of the configuration file, if the command line names it.
    pub fn explicit(&self) -> Option<PathBuf> {
        self.explicit.as_ref().map(|file| self.paths.start.join(file))
    }

    /// Reads every configuration file and leaves variables as they are written, so that no secret is shown.
    pub fn load_unexpanded(&self) -> Settings {
        config::load(self.explicit.as_deref(), &self.paths, &|name| Some(format!("${{{name}}}")))
    }

    /// Reads every configuration file.
    pub fn load(&self) -> Settings {
        let settings = config::load(self.explicit.as_deref(), &self.paths, &variable);
        let settings = settings.with_passed(env::vars_os());
        tracing::info!("loaded the configuration of {} servers", settings.servers.len());
        match self.host.as_ref().and_then(|host| settings.hosts.clone().forced(host).ok()) {
            Some(hosts) => Settings { hosts, ..settings },
            None => settings,
        }
    }

    /// The settings that a changed configuration file would give.
    pub fn preview(&self, changed: &Editable) -> Settings {
        config::preview(changed, &self.paths, &variable)
    }

    /// The entries of all configuration files that count, as they are written.
    pub fn entries(&self) -> Vec<WrittenEntry> {
        config::entries(self.explicit.as_deref(), &self.paths)
    }
}

/// The environment variables of this process by name. Values are kept of those only that hold no secrets.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    pub names: BTreeSet<String>,
    /// Those that every server gets.
    pub inherited: BTreeSet<String>,
    plain: BTreeMap<String, String>,
}

/// Switches of Claude Code that decide whether it defers tools.
const PLAIN: [&str; 2] = ["ENABLE_TOOL_SEARCH", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS"];

impl Variables {
    pub fn of(all: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut variables = Self::default();
        for (name, value) in all {
            if is_inherited(name.as_ref(), value.as_ref()) {
                variables.inherited.insert(name.clone());
            }
            if PLAIN.contains(&name.as_str()) {
                variables.plain.insert(name.clone(), value);
            }
            variables.names.insert(name);
        }
        variables
    }

    pub fn value(&self, name: &str) -> Option<&str> {
        self.plain.get(name).map(String::as_str)
    }
}

pub fn variables() -> Variables {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    Variables::of(env::vars_os().map(|(name, value)| (text(name), text(value))))
}

/// The columns of the output, if the user sets them.
pub fn columns() -> Option<usize> {
    env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}

pub fn home() -> Option<PathBuf> {
    absolute("HOME")
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The folders of Claude Code's project and of its user's settings, as its hooks get them in environment variables.
pub fn claude_code() -> (Option<PathBuf>, Option<PathBuf>) {
    let user = absolute("CLAUDE_CONFIG_DIR").or_else(|| Some(home()?.join(".claude")));
    (absolute("CLAUDE_PROJECT_DIR"), user)
}

/// Where hosts keep their files; `None` without a home folder.
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

/// The folders that the user has moved: a host may start plugbay without these variables.
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

/// The path under which users know this executable: that on the search path, which outlives an update, if it leads here.
pub fn own_program(executable: &Path) -> PathBuf {
    let real = executable.canonicalize().ok();
    let name = executable.file_name().and_then(|name| name.to_str());
    let known = name.and_then(find_program).filter(|found| found.canonicalize().ok() == real);
    known.unwrap_or_else(|| executable.to_owned())
}

/// The cache folder, the project and the executable of this process.
pub fn environment() -> std::io::Result<Environment> {
    let below_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(below_home)));
    let start = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    Ok(Environment {
        cache_folder: cache.map(|folder| folder.join("plugbay")),
        project: config::project_folder(&start).to_owned(),
        program: env::current_exe()?,
        logs: None,
    })
}

/// The options of `serve --http`.
#[derive(Debug)]
pub struct HttpFlags {
    pub address: Address,
    pub allow_host: Vec<String>,
    pub allow_origin: Vec<String>,
    pub token_file: Option<PathBuf>,
}

/// The address to serve at, and the hosts that may connect.
#[derive(Debug)]
pub struct Http {
    pub address: Address,
    pub access: Access,
}

const TOKEN: &str = "PLUGBAY_HTTP_TOKEN";

pub fn http(flags: HttpFlags) -> Result<Http, CommandError> {
    let HttpFlags { address, allow_host, allow_origin, token_file } = flags;
    let mut tokens = Vec::new();
    if let Ok(token) = env::var(TOKEN) {
        tokens.extend(checked(&token).map_err(|why| CommandError::usage(format!("{TOKEN} {why}")))?);
    }
    if let Some(file) = &token_file {
        tokens.extend(tokens_in(file)?);
    }
    let access = Access::new(&address, allow_host, allow_origin, &tokens).map_err(|Unguarded| {
        CommandError::usage(format!(
            "without a token, everyone who can reach {address} could use every server"
        ))
        .hint(format!("set {TOKEN} or give --token-file FILE; hosts then send the token"))
        .hint("or serve only this machine: --http 127.0.0.1:8080")
    })?;
    Ok(Http { address, access })
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
