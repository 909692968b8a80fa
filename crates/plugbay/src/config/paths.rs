//! The places of files: the user's folders, and the project file nearest to the folder in which plugbay was
//! started.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::document;
use crate::files;

/// The names of project files; the first that exists in a folder is used.
const PROJECT_FILES: [&str; 4] = [PROJECT_FILE, "plugbay.jsonc", SWITCHBOARD_FILE, CLIENT_SIDE_FILE];

/// The name of a project's file that plugbay creates.
pub(super) const PROJECT_FILE: &str = ".plugbay.jsonc";

/// The name of Switchboard's configuration file.
const SWITCHBOARD_FILE: &str = "switchboard.config.json";

/// The name of a client-side proxy's file, but other programs may use it too.
const CLIENT_SIDE_FILE: &str = "servers-config.json";
/// The keys that only such a file has.
const CLIENT_SIDE_KEYS: [&str; 2] = ["\"localServers\"", "\"remoteTools\""];

/// The folders that loading depends on.
#[derive(Debug, Clone)]
pub struct Paths {
    /// The user's file; absent if no home folder is known.
    pub user_file: Option<PathBuf>,
    /// The folder for approvals; absent if no home folder is known.
    pub state_folder: Option<PathBuf>,
    /// The meaning of `~` in a file.
    pub home: Option<PathBuf>,
    /// The folder in which the search for a project file begins, and to which `--config` is relative.
    /// Absolute.
    pub start: PathBuf,
}

impl Paths {
    /// The platform's usual folders, according to the environment.
    pub fn detect(env: &dyn Fn(&str) -> Option<OsString>, start: PathBuf) -> Self {
        Self::on(Platform::THIS, env, start)
    }

    fn on(platform: Platform, env: &dyn Fn(&str) -> Option<OsString>, start: PathBuf) -> Self {
        // By the XDG specification, a relative path in these variables is ignored.
        let set = |name: &str| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = |below: &str| set("HOME").map(|home| home.join(below));
        let (config, state) = match platform {
            Platform::Unix => (home(".config"), home(".local/state")),
            Platform::Mac => (home("Library/Application Support"), home("Library/Application Support")),
            Platform::Windows => (set("APPDATA"), set("LOCALAPPDATA")),
        };
        let config = set("XDG_CONFIG_HOME").or(config);
        let state = set("XDG_STATE_HOME").or(state);
        Self {
            user_file: config.map(|folder| folder.join("plugbay").join("config.jsonc")),
            state_folder: state.map(|folder| folder.join("plugbay")),
            home: set("HOME"),
            start,
        }
    }

    /// The folder of the status files. It does not depend on `XDG_RUNTIME_DIR`, because hosts often start plugbay
    /// with a small environment.
    pub fn status_folder(&self) -> Option<PathBuf> {
        Some(self.state_folder.as_ref()?.join("running"))
    }

    /// The folder in which gateways keep the logs of their servers.
    pub fn log_folder(&self) -> Option<PathBuf> {
        Some(self.state_folder.as_ref()?.join("logs"))
    }

    pub(super) fn approvals(&self) -> Option<PathBuf> {
        Some(self.state_folder.as_ref()?.join("approved.json"))
    }
}

/// The effective project file for `start`, if there is one: in `start` itself or the nearest folder above, up
/// to the one that contains `.git`. Outside a repository only `start` is searched, so that a file in a shared
/// folder, such as the temporary one, is not used.
pub fn project_file(start: &Path) -> Option<PathBuf> {
    candidates(start).into_iter().find(|path| path.is_file() && !is_foreign(path))
}

/// Whether a file has the name of a client-side proxy's file but none of its keys.
pub(super) fn is_foreign(path: &Path) -> bool {
    if path.file_name().is_none_or(|name| name != CLIENT_SIDE_FILE) {
        return false;
    }
    let text = document::bytes(path).ok().flatten().unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    !CLIENT_SIDE_KEYS.iter().any(|key| text.contains(key))
}

pub(super) fn is_switchboard(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == SWITCHBOARD_FILE)
}

/// The folder of the project for `start`: the root of its repository, else `start` itself.
pub fn project_folder(start: &Path) -> &Path {
    start.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(start)
}

/// Checks whether plugbay may write a project's file. `Err` is the file outside the project, or the user's
/// own file, that a symbolic link points to: a link from a repository must not make plugbay write there.
pub fn within_project(file: &Path, project: &Path, paths: &Paths) -> Result<(), PathBuf> {
    let target = files::resolve(file).map_err(|_| file.to_owned())?;
    let user_file = paths.user_file.as_deref().and_then(|file| files::resolve(file).ok());
    let is_inside = files::resolve(project).is_ok_and(|project| target.starts_with(project));
    if is_inside && Some(&target) != user_file.as_ref() { Ok(()) } else { Err(target) }
}

/// All paths where the project file could be, the nearest first.
pub(super) fn candidates(start: &Path) -> Vec<PathBuf> {
    let project = project_folder(start);
    let folders = start.ancestors().take_while(|folder| folder.starts_with(project));
    folders.flat_map(|folder| PROJECT_FILES.map(|name| folder.join(name))).collect()
}

#[derive(Clone, Copy)]
enum Platform {
    Unix,
    Mac,
    Windows,
}

impl Platform {
    const THIS: Self = if cfg!(target_os = "macos") {
        Self::Mac
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Unix
    };
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[track_caller]
    fn check(platform: Platform, env: &[(&str, &str)], user_file: Option<&str>, state: Option<&str>) {
        let lookup = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        let paths = Paths::on(platform, &lookup, "/".into());
        assert_eq!(paths.user_file.as_deref(), user_file.map(Path::new));
        assert_eq!(paths.state_folder.as_deref(), state.map(Path::new));
    }

    #[test]
    fn the_platforms_folders() {
        let home = ("HOME", "/h");
        let unix = (Some("/h/.config/plugbay/config.jsonc"), Some("/h/.local/state/plugbay"));
        let mac = "/h/Library/Application Support/plugbay";
        let mac = (Some(format!("{mac}/config.jsonc")), Some(mac));
        let xdg = [home, ("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s")];
        check(Platform::Unix, &[home], unix.0, unix.1);
        check(Platform::Unix, &[home, ("XDG_CONFIG_HOME", "relative")], unix.0, unix.1);
        check(Platform::Unix, &xdg, Some("/c/plugbay/config.jsonc"), Some("/s/plugbay"));
        check(Platform::Mac, &[home], mac.0.as_deref(), mac.1);
        check(Platform::Windows, &[("APPDATA", "/r")], Some("/r/plugbay/config.jsonc"), None);
        check(Platform::Unix, &[], None, None);
    }

    #[test]
    fn the_nearest_project_file_inside_the_repository_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("repository/crate/src");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(root.path().join("plugbay.jsonc"), "").unwrap();
        assert_eq!(project_file(&inner), None);
        std::fs::write(root.path().join("repository/.git"), "").unwrap();
        assert_eq!(project_file(&inner), None, "the file above the repository has no say");

        for name in
            ["repository/plugbay.jsonc", "repository/crate/plugbay.jsonc", "repository/crate/.plugbay.jsonc"]
        {
            let file = root.path().join(name);
            std::fs::write(&file, "").unwrap();
            assert_eq!(project_file(&inner), Some(file));
        }
        assert_eq!(candidates(&inner).len(), 12);
    }
}
