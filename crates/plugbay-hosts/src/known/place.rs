//! The places of hosts' files on this machine.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::Host;

/// The folders in which hosts' files are searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`, or `~/.config` on every platform.
    pub config: PathBuf,
    /// The root of the project, if the working folder is in one.
    pub project: Option<PathBuf>,
    pub platform: Platform,
    /// Values of the environment variables that [`super::variables`] names.
    pub overrides: BTreeMap<String, PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    Linux,
    MacOs,
    Windows,
}

/// A file that may hold servers of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostFile {
    pub host: &'static Host,
    pub scope: Scope,
    pub path: PathBuf,
}

/// Whether a file applies to all projects of a user, or to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    User,
    Project,
}

/// Paths that begin with `~`, `${config}`, `${data}` or `${VARIABLE:-default}`; paths for a project are
/// relative to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Patterns {
    #[serde(default)]
    user: Vec<String>,
    /// Replaces `user` on macOS.
    #[serde(default)]
    macos: Option<Vec<String>>,
    /// Replaces `user` on Windows.
    #[serde(default)]
    windows: Option<Vec<String>>,
    #[serde(default)]
    project: Vec<String>,
}

impl Places {
    /// The places of the user with this home folder, on the current platform.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        let config = home.join(".config");
        Self { home, config, project: None, platform: Platform::CURRENT, overrides: BTreeMap::new() }
    }

    /// The folder for programs' data, in which Electron programs keep their settings.
    pub fn data(&self) -> PathBuf {
        match self.platform {
            Platform::Linux => self.config.clone(),
            Platform::MacOs => self.home.join("Library/Application Support"),
            Platform::Windows => {
                let moved = self.overrides.get("APPDATA").cloned();
                moved.unwrap_or_else(|| self.home.join("AppData/Roaming"))
            }
        }
    }

    /// The path that a user pattern stands for.
    pub(super) fn resolve(&self, pattern: &str) -> Option<PathBuf> {
        if let Some(rest) = pattern.strip_prefix('~') {
            return Some(below(&self.home, rest));
        }
        let (reference, rest) = pattern.strip_prefix("${")?.split_once('}')?;
        match reference.split_once(":-") {
            Some((variable, default)) => match self.overrides.get(variable) {
                Some(moved) => Some(below(moved, rest)),
                None => self.resolve(default).map(|folder| below(&folder, rest)),
            },
            None if reference == "config" => Some(below(&self.config, rest)),
            None if reference == "data" => Some(below(&self.data(), rest)),
            None => None,
        }
    }
}

impl Platform {
    pub const CURRENT: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Linux
    };
}

impl Patterns {
    pub(super) fn iter(&self) -> impl Iterator<Item = &String> {
        let others = self.macos.iter().chain(&self.windows).flatten();
        self.user.iter().chain(others)
    }

    pub(super) fn project(&self) -> &[String] {
        &self.project
    }

    pub(super) fn user(&self, platform: Platform) -> &[String] {
        let own = match platform {
            Platform::Linux => None,
            Platform::MacOs => self.macos.as_ref(),
            Platform::Windows => self.windows.as_ref(),
        };
        own.unwrap_or(&self.user)
    }
}

pub(super) fn files(host: &'static Host, patterns: &Patterns, places: &Places) -> Vec<HostFile> {
    let user = patterns.user(places.platform).iter().filter_map(|pattern| places.resolve(pattern));
    let mut files: Vec<_> = user.map(|path| HostFile { host, scope: Scope::User, path }).collect();
    if let Some(project) = &places.project {
        let paths = patterns.project().iter().map(|path| project.join(path));
        files.extend(paths.map(|path| HostFile { host, scope: Scope::Project, path }));
    }
    files
}

/// The environment variable at the beginning of a pattern.
pub(super) fn override_of(pattern: &str) -> Option<&str> {
    let (reference, _) = pattern.strip_prefix("${")?.split_once('}')?;
    reference.split_once(":-").map(|(variable, _)| variable)
}

/// The part of a pattern that is the same in every home folder: `.codex/config.toml`.
pub(super) fn tail(pattern: &str) -> PathBuf {
    let (reference, rest) =
        pattern.strip_prefix("${").and_then(|rest| rest.split_once('}')).unwrap_or(("", pattern));
    let default = reference.split_once(":-").map_or("", |(_, default)| default);
    below(Path::new(default.trim_start_matches(['~', '/'])), rest.trim_start_matches('~'))
}

fn below(folder: &Path, rest: &str) -> PathBuf {
    match rest.trim_start_matches('/') {
        "" => folder.to_owned(),
        rest => folder.join(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known;

    fn user_files(places: &Places, id: &str) -> Vec<String> {
        let files = known::by_id(id).unwrap().files(places);
        files.iter().map(|file| file.path.display().to_string()).collect()
    }

    #[test]
    fn a_hosts_files_depend_on_the_platform() {
        let mut places = Places { platform: Platform::Linux, ..Places::new("/u") };
        assert_eq!(user_files(&places, "vscode"), ["/u/.config/Code/User/mcp.json"]);
        places.platform = Platform::MacOs;
        assert_eq!(user_files(&places, "vscode"), ["/u/Library/Application Support/Code/User/mcp.json"]);
        assert_eq!(user_files(&places, "goose"), ["/u/.config/goose/config.yaml"]);
        places.platform = Platform::Windows;
        assert_eq!(user_files(&places, "goose"), ["/u/AppData/Roaming/Block/goose/config/config.yaml"]);
    }

    #[test]
    fn a_hosts_folder_moves_with_its_variable() {
        let mut places = Places::new("/u");
        assert_eq!(user_files(&places, "claude-code"), ["/u/.claude.json"]);
        places.overrides.insert("CLAUDE_CONFIG_DIR".into(), "/c".into());
        assert_eq!(user_files(&places, "claude-code"), ["/c/.claude.json"]);
        let settings = known::by_id("claude-code").unwrap().permission_files(&places);
        assert_eq!(settings[0].path, Path::new("/c/settings.json"));
    }

    #[test]
    fn a_projects_files_come_after_the_users() {
        let places = Places { project: Some("/p".into()), ..Places::new("/u") };
        assert_eq!(user_files(&places, "cursor"), ["/u/.cursor/mcp.json", "/p/.cursor/mcp.json"]);
    }

    #[test]
    fn every_pattern_of_every_host_resolves() {
        let places = Places::new("/u");
        for host in known::all() {
            for pattern in host.files.iter().chain(host.permissions.iter()).chain(&host.signs) {
                assert!(places.resolve(pattern).is_some(), "{}: {pattern}", host.id);
            }
        }
    }
}
