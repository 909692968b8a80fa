//! A home folder of its own, a configuration with the samples, and `plugbay serve` on it.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{CommandError, Host, milliseconds};
use crate::sample;

/// The samples and how long each takes to start, in milliseconds.
const SAMPLES: [(&str, u64); 6] =
    [(sample::BROKEN, 20), ("calc", 300), ("clock", 150), ("issues", 600), ("notes", 450), ("shop", 250)];

pub(super) struct Sandbox {
    folder: TempDir,
    program: PathBuf,
}

/// The opening of `serve`: the time from its spawn to its answers, and the tools that it listed.
#[derive(Debug, Serialize)]
pub struct Opening {
    pub mode: &'static str,
    #[serde(rename = "initialized_ms", serialize_with = "milliseconds")]
    pub initialized: Duration,
    #[serde(rename = "listed_ms", serialize_with = "milliseconds")]
    pub listed: Duration,
    #[serde(serialize_with = "count")]
    pub tools: Vec<Value>,
}

impl Sandbox {
    pub(super) fn new(program: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("plugbay-demo-").tempdir()?;
        Ok(Self { folder, program: program.into() })
    }

    /// Writes a configuration in which hosts get the tools in `mode`.
    pub(super) fn config(&self, mode: &str) -> io::Result<PathBuf> {
        let entry = |(name, pause): &(&str, u64)| {
            let args = [sample::COMMAND, name, &pause.to_string()].map(Value::from);
            ((*name).to_owned(), json!({ "command": self.program, "args": args }))
        };
        let servers: Map<String, Value> = SAMPLES.iter().map(entry).collect();
        let path = self.folder.path().join("config.jsonc");
        fs::write(&path, json!({ "mode": mode, "mcpServers": servers }).to_string())?;
        Ok(path)
    }

    /// Starts `plugbay serve` and reads the list of tools, as hosts do first.
    pub(super) fn serve(&self, mode: &'static str) -> Result<(Host, Opening), CommandError> {
        let config = self.config(mode)?;
        let mut host = self.spawn(|command| command.arg("serve").arg("--config").arg(config))?;
        let initialized = host.age();
        let list = host.request("tools/list", &json!({}))?;
        let tools = list["tools"].as_array().cloned().unwrap_or_default();
        let listed = host.age();
        Ok((host, Opening { mode, initialized, listed, tools }))
    }

    /// Starts a sample with no gateway in between.
    pub(super) fn sample(&self, name: &str) -> Result<Host, CommandError> {
        self.spawn(|command| command.arg(sample::COMMAND).arg(name))
    }

    /// Spawns plugbay without the user's own home, configuration or cache.
    fn spawn(&self, arguments: impl FnOnce(&mut Command) -> &mut Command) -> Result<Host, CommandError> {
        let home = self.folder.path();
        let mut command = Command::new(&self.program);
        arguments(&mut command).env_clear().current_dir(home).env("HOME", home).env("TMPDIR", home);
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        // A demo leaves nothing running.
        command.env("PLUGBAY_DAEMON", "off");
        let mut host = Host::spawn(&mut command, home)?;
        host.initialize()?;
        Ok(host)
    }
}

/// Serializes only the number of tools.
fn count<S: serde::Serializer>(tools: &[Value], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(tools.len() as u64)
}
