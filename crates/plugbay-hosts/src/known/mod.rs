//! The known hosts and their files: data instead of code, because every host differs and all of them change.

mod place;
mod template;

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use serde::Deserialize;
use serde_json::{Map, Value};

pub use place::{HostFile, Places, Platform, Scope};
pub(crate) use template::Members;

/// A program with a model that keeps a file of MCP servers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Host {
    /// The id for the command line, such as `claude-code`.
    pub id: String,
    /// The name for users, such as `Claude Code`.
    pub name: String,
    pub format: Format,
    /// The key of the table of servers, such as `mcpServers`.
    pub container: String,
    /// The key of a table of projects, each with its own container.
    #[serde(default)]
    pub projects: Option<String>,
    /// An entry in this host's dialect, with placeholders `{command}`, `{args}`, `{commandLine}`, `{env}` and
    /// `{name}`.
    entry: Map<String, Value>,
    /// The variable forms that the host expands by itself.
    #[serde(default)]
    pub expands: Vec<Form>,
    /// The meaning of a bare `timeout` in an entry.
    #[serde(default)]
    pub timeout: Option<Timeout>,
    files: place::Patterns,
    /// The files with permission rules for tools.
    #[serde(default)]
    permissions: place::Patterns,
    /// The syntax of these rules.
    #[serde(default)]
    pub rules: Option<RuleSyntax>,
    /// The keys of a list of the only servers that the host may start, for users who have such a list.
    #[serde(default)]
    pub allowed: Vec<String>,
    /// Files and folders that show that the host is installed.
    signs: Vec<String>,
    /// How the user makes the host notice a changed file, as an instruction: "start a new session of …".
    pub restart: String,
    /// The host's own command for changing its file, for a host that may write the file itself at any time.
    #[serde(default)]
    pub command: Option<OwnCommand>,
}

/// The syntax of a host's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// JSON, with comments and trailing commas where a user wrote them.
    Json,
    Toml,
    Yaml,
}

/// A form of variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// `${VAR}`
    Braces,
    /// `${VAR:-default}`
    Default,
    /// `$VAR`
    Bare,
    /// `${env:VAR}`
    Env,
    /// `{env:VAR}`
    CurlyEnv,
    /// `${input:id}`
    Input,
}

/// The meaning of `timeout` in an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Timeout {
    pub unit: Unit,
    #[serde(default)]
    pub of: Phase,
    /// The value that the host uses, or writes, if the user has not chosen one.
    #[serde(default)]
    pub default: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Ms,
    S,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    #[default]
    Call,
    Start,
}

/// A host's syntax of permission rules for tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleSyntax {
    /// `mcp__server__tool` in the lists `permissions.allow`, `permissions.ask` and `permissions.deny`.
    Claude,
    /// `server_tool` as keys of `permission` and `tools`, for all agents or for one.
    Opencode,
}

/// A host's own command for adding and removing a server, without a shell.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnCommand {
    pub program: String,
    add: Vec<String>,
    remove: Vec<String>,
}

/// Every known host, the most used first.
pub fn all() -> &'static [Host] {
    static ALL: LazyLock<Vec<Host>> =
        LazyLock::new(|| serde_json::from_str(include_str!("hosts.json")).unwrap_or_default());
    &ALL
}

/// The host of this id.
pub fn by_id(id: &str) -> Option<&'static Host> {
    all().iter().find(|host| host.id.eq_ignore_ascii_case(id))
}

/// The environment variables that move hosts' folders, for [`Places::overrides`].
pub fn variables() -> Vec<&'static str> {
    let patterns = all().iter().flat_map(|host| {
        host.files.iter().chain(host.permissions.iter()).chain(&host.signs).map(String::as_str)
    });
    let mut names: Vec<_> = patterns.filter_map(place::override_of).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl Host {
    /// The files that may hold this host's servers: the user's, then the project's.
    pub fn files(&'static self, places: &Places) -> Vec<HostFile> {
        place::files(self, &self.files, places)
    }

    /// The files that may hold permission rules for tools; [`crate::permissions`] edits them.
    pub fn permission_files(&'static self, places: &Places) -> Vec<HostFile> {
        place::files(self, &self.permissions, places)
    }

    /// The user's file that gets plugbay's entry: the first that exists, or the one that the host would
    /// create.
    pub fn user_file(&'static self, places: &Places, exists: &dyn Fn(&Path) -> bool) -> Option<HostFile> {
        let files = self.files(places);
        let mut files = files.into_iter().filter(|file| file.scope == Scope::User);
        let first = files.next()?;
        if exists(&first.path) {
            return Some(first);
        }
        Some(files.find(|file| exists(&file.path)).unwrap_or(first))
    }

    /// Whether a file or folder of this host exists.
    pub fn installed(&self, places: &Places, exists: &dyn Fn(&Path) -> bool) -> bool {
        self.signs.iter().filter_map(|sign| places.resolve(sign)).any(|path| exists(&path))
    }

    /// Whether this path is one of the host's files, in any home folder or project.
    pub fn owns(&self, path: &Path) -> bool {
        let user = self.files.iter().map(|pattern| place::tail(pattern));
        let project = self.files.project().iter().map(PathBuf::from);
        user.chain(project).any(|tail| path.ends_with(tail))
    }

    /// Whether the host itself replaces variables of this form.
    pub fn expands(&self, form: Form) -> bool {
        self.expands.contains(&form)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_data_of_every_host_parses() {
        let hosts: Vec<Host> = serde_json::from_str(include_str!("hosts.json")).unwrap();
        let ids: BTreeSet<&str> = hosts.iter().map(|host| host.id.as_str()).collect();
        assert_eq!(ids.len(), hosts.len(), "an id occurs twice");
        for host in &hosts {
            assert!(host.id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", host.id);
            assert!(!host.signs.is_empty() && !host.restart.is_empty(), "{}", host.id);
        }
    }

    #[test]
    fn a_host_is_found_by_its_id() {
        assert_eq!(by_id("Claude-Code").unwrap().name, "Claude Code");
        assert_eq!(by_id("emacs"), None);
    }

    #[test]
    fn the_variables_that_move_a_hosts_folder_are_named() {
        assert_eq!(
            variables(),
            [
                "CLAUDE_CONFIG_DIR",
                "CODEX_HOME",
                "COPILOT_HOME",
                "GEMINI_CLI_HOME",
                "GROK_HOME",
                "KIMI_CODE_HOME"
            ]
        );
    }

    #[test]
    fn a_file_is_known_by_the_end_of_its_path() {
        let owner =
            |path: &str| all().iter().find(|host| host.owns(Path::new(path))).map(|host| host.id.as_str());
        assert_eq!(owner("/h/.claude.json"), Some("claude-code"));
        assert_eq!(owner("/h/.codex/config.toml"), Some("codex"));
        assert_eq!(owner("/backup/.config/goose/config.yaml"), Some("goose"));
        assert_eq!(owner("/p/.vscode/mcp.json"), Some("vscode"));
        assert_eq!(owner("/p/mcp.json"), None);
        assert_eq!(owner("/p/config.toml"), None);
    }

    #[test]
    fn the_wired_file_of_a_host_is_one_that_exists() {
        let places = Places::new("/home/u");
        let opencode = by_id("opencode").unwrap();
        let wired = |existing: &str| {
            let existing = PathBuf::from(existing);
            opencode.user_file(&places, &|path| path == existing).unwrap().path
        };
        assert!(wired("/home/u/.config/opencode/opencode.json").ends_with("opencode.json"));
        assert!(wired("/elsewhere").ends_with("opencode.jsonc"));
        assert!(opencode.installed(&places, &|path| path.ends_with(".config/opencode")));
        assert!(!opencode.installed(&places, &|_| false));
    }
}
