//! From the command line and the environment to what the commands work with: nothing behind this
//! reads either.

use std::{env, path::PathBuf};

use crate::{
    config::{self, Paths, Settings, Severity},
    panel::Outside,
};

/// Where the configuration comes from; read anew at each reload.
#[derive(Debug, Clone)]
pub struct Source {
    explicit: Option<PathBuf>,
    pub paths: Paths,
}

impl Source {
    pub fn new(explicit: Option<PathBuf>) -> Self {
        let start = env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        Self { explicit, paths: Paths::detect(&|name| env::var_os(name), start) }
    }

    pub fn load(&self) -> Settings {
        config::load(self.explicit.as_deref(), &self.paths, &|name| env::var(name).ok())
    }

    /// For a program without a reader: what is wrong goes to the log.
    pub fn load_and_log(&self) -> Settings {
        let settings = self.load();
        for problem in &settings.diagnostics {
            match problem.severity {
                Severity::Error => tracing::error!("{}", problem.one_line()),
                Severity::Warning => tracing::warn!("{}", problem.one_line()),
            }
        }
        settings
    }
}

/// The cache folder and our own program, as the environment gives them.
pub fn outside() -> std::io::Result<Outside> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let below_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(below_home)));
    Ok(Outside { cache_folder: cache.map(|folder| folder.join("plugbay")), program: env::current_exe()? })
}
