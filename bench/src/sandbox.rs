//! A temporary home for a gateway: without the user's settings, and removed at the end.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Map, Value, json};

use crate::Outcome;

const FOLDERS: [(&str, &str); 6] = [
    ("HOME", "home"),
    ("XDG_CONFIG_HOME", "config"),
    ("XDG_CACHE_HOME", "cache"),
    ("XDG_STATE_HOME", "state"),
    ("XDG_DATA_HOME", "data"),
    ("XDG_RUNTIME_DIR", "run"),
];

pub(crate) struct Sandbox {
    root: PathBuf,
}

/// A stub with its name in a gateway: started by the gateway, or running at an address.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) name: String,
    args: Vec<String>,
    url: Option<String>,
}

impl Server {
    pub(crate) fn new(name: impl Into<String>, args: impl IntoIterator<Item = String>) -> Self {
        Self { name: name.into(), args: args.into_iter().collect(), url: None }
    }

    pub(crate) fn at(name: impl Into<String>, url: String) -> Self {
        Self { name: name.into(), args: Vec::new(), url: Some(url) }
    }

    /// The server's entry in a config.
    fn entry(&self) -> Outcome<Value> {
        if let Some(url) = &self.url {
            return Ok(json!({ "type": "http", "url": url }));
        }
        let words = self.words()?;
        Ok(json!({ "command": words[0], "args": words[1..] }))
    }

    /// Program and arguments.
    pub(crate) fn words(&self) -> Outcome<Vec<String>> {
        let program = std::env::current_exe()?.to_str().ok_or("our own path is not UTF-8")?.to_owned();
        Ok([program, "stub".to_owned()].into_iter().chain(self.args.iter().cloned()).collect())
    }
}

impl Sandbox {
    pub(crate) fn new() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("plugbay-bench-{}-{number}", std::process::id()));
        // Private, because a runtime folder must be.
        DirBuilder::new().mode(0o700).create(&root)?;
        for (_, folder) in FOLDERS {
            DirBuilder::new().mode(0o700).create(root.join(folder))?;
        }
        Ok(Self { root })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a config with the servers, and plugbay's mode if given.
    pub(crate) fn config(&self, servers: &[Server], mode: Option<&str>) -> Outcome<PathBuf> {
        let mut entries = Map::new();
        for server in servers {
            entries.insert(server.name.clone(), server.entry()?);
        }
        // Results stay whole, also through `execute_tool`: every route carries the same bytes.
        let mut config = json!({ "mcpServers": entries, "defaults": { "results": { "threshold": false } } });
        if let Some(mode) = mode {
            config["mode"] = Value::from(mode);
        }
        let path = self.path("mcp.json");
        fs::write(&path, serde_json::to_string_pretty(&config)?)?;
        Ok(path)
    }

    pub(crate) fn confine(&self, command: &mut Command) {
        for (variable, folder) in FOLDERS {
            command.env(variable, self.root.join(folder));
        }
        for (variable, _) in std::env::vars_os() {
            if variable.as_encoded_bytes().starts_with(b"PLUGBAY_") {
                command.env_remove(variable);
            }
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        remove(&self.root);
    }
}

/// Removes the folder. A gateway that is just ending may still write to it; a second attempt is enough.
fn remove(root: &Path) {
    if fs::remove_dir_all(root).is_err() {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let _ = fs::remove_dir_all(root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_names_each_server_and_the_mode_only_where_asked() {
        let sandbox = Sandbox::new().unwrap();
        let servers = [Server::new("stub", ["--tools".to_owned(), "3".to_owned()])];
        let read = |mode| -> Value {
            serde_json::from_slice(&fs::read(sandbox.config(&servers, mode).unwrap()).unwrap()).unwrap()
        };
        assert_eq!(read(Some("all"))["mode"], "all");
        let plain = read(None);
        assert_eq!(plain["mode"], Value::Null);
        assert_eq!(plain["mcpServers"]["stub"]["args"], json!(["stub", "--tools", "3"]));
        let at = Server::at("stub", "http://localhost/".to_owned());
        assert_eq!(at.entry().unwrap(), json!({ "type": "http", "url": "http://localhost/" }));
    }
}
