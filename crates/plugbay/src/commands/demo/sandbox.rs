//! A home folder of its own, a configuration with the samples, and `plugbay serve` on it.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde::Serialize;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CommandError, Host, milliseconds};
use crate::sample;

/// The samples and how long each pretends to start, in milliseconds.
pub(super) const SAMPLES: [(&str, u64); 3] = [("calc", 450), ("clock", 150), ("notes", 300)];

pub(super) struct Stage {
    folder: TempDir,
    program: PathBuf,
}

/// How `serve` opened: from its spawn to its answers.
#[derive(Debug, Serialize)]
pub struct Opening {
    #[serde(rename = "initialized_ms", serialize_with = "milliseconds")]
    pub initialized: Duration,
    #[serde(rename = "listed_ms", serialize_with = "milliseconds")]
    pub listed: Duration,
    pub tools: usize,
}

impl Stage {
    pub(super) fn build(program: &Path) -> io::Result<Self> {
        let stage = Self {
            folder: tempfile::Builder::new().prefix("plugbay-demo-").tempdir()?,
            program: program.into(),
        };
        let entry = |name: &str, pause: u64| json!({ "command": program, "args": [sample::COMMAND, name, pause.to_string()] });
        let mut servers: serde_json::Map<String, Value> =
            SAMPLES.iter().map(|(name, pause)| ((*name).to_owned(), entry(name, *pause))).collect();
        servers.insert(sample::BROKEN.to_owned(), entry(sample::BROKEN, 20));
        let config = json!({ "mode": "all", "mcpServers": servers });
        fs::write(stage.config(), format!("{config:#}\n"))?;
        Ok(stage)
    }

    pub(super) fn config(&self) -> PathBuf {
        self.folder.path().join("config.jsonc")
    }

    /// Starts `plugbay serve` and reads the list of tools, as a host does first of all.
    pub(super) fn open(&self) -> Result<(Host, Opening, Value), CommandError> {
        let mut command = Command::new(&self.program);
        command.arg("serve").arg("--config").arg(self.config());
        let mut host = Host::spawn(self.dress(&mut command), self.folder.path())?;
        host.initialize()?;
        let initialized = host.age();
        let mut list = host.request("tools/list", &json!({}))?;
        let listed = host.age();
        let list = list["tools"].take();
        let tools = list.as_array().map_or(0, Vec::len);
        Ok((host, Opening { initialized, listed, tools }, list))
    }

    /// Starts a sample with nobody in between.
    pub(super) fn open_sample(&self, name: &str) -> Result<Host, CommandError> {
        let mut command = Command::new(&self.program);
        command.arg(sample::COMMAND).arg(name);
        let mut host = Host::spawn(self.dress(&mut command), self.folder.path())?;
        host.initialize()?;
        Ok(host)
    }

    /// Nothing of the user's own: not the home, not the configuration, not the cache.
    fn dress<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let home = self.folder.path();
        command.env_clear().current_dir(home).env("HOME", home).env("TMPDIR", home);
        command.env("PATH", env::var_os("PATH").unwrap_or_default())
    }
}
