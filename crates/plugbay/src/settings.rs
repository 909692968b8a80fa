//! Turns the command line and environment variables into what commands work with: no other module reads them.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use plugbay_downstream::http::{Access, Address, Unguarded};

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

    /// Reads every configuration file.
    pub fn load(&self) -> Settings {
        let settings = config::load(self.explicit.as_deref(), &self.paths, &variable);
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

/// What the environment holds for `${VAR}`.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok()
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

/// The cache folder, the project and the executable of this process.
pub fn environment() -> std::io::Result<Environment> {
    let below_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(below_home)));
    let start = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let project = start.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&start);
    Ok(Environment {
        cache_folder: cache.map(|folder| folder.join("plugbay")),
        project: project.to_owned(),
        program: env::current_exe()?,
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
