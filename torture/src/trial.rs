//! The gateway under test, and how scenarios start it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use plugbay_testkit::{Config, DEADLINE, Host, HttpGateway, Script, Workspace, wait_until};
use serde_json::{Value, json};

use crate::{http, neighbour, stub};

/// How long a scenario waits for an answer that must come.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Trial {
    pub(crate) gateway: PathBuf,
    pub(crate) quick: bool,
    pub(crate) seed: u64,
}

/// The binary under test: the given one; otherwise plugbay is built, in the dev profile if this program is,
/// else in release.
pub(crate) fn gateway(given: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(given) = given {
        return given.canonicalize().map_err(|error| format!("{}: {error}", given.display()));
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = own.parent().ok_or("this program has no folder")?;
    let is_dev = folder.ends_with("debug");
    let profile = if is_dev { "dev" } else { "release" };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status =
        Command::new(cargo).args(["build", "--quiet", "-p", "plugbay", "--profile", profile]).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err("plugbay cannot be built; name a binary with --gateway".to_owned());
    }
    Ok(if is_dev { folder.to_owned() } else { folder.with_file_name("release") }.join("plugbay"))
}

impl Trial {
    /// The number of repetitions in the short form or the long one.
    pub(crate) fn times(&self, short: usize, long: usize) -> usize {
        if self.quick { short } else { long }
    }

    /// Starts `plugbay serve` on stdio and waits for these tools.
    pub(crate) fn open(&self, workspace: &Workspace, config: &Config, tools: &[&str]) -> Host {
        workspace.write_config(config);
        let host = workspace.serve(&self.gateway).with_deadline(PATIENCE);
        host.initialize();
        host.await_tools(tools);
        host
    }

    /// Starts `plugbay serve --http` and waits for the good server.
    pub(crate) fn serve_http(&self, workspace: &Workspace, config: &Config, options: &[&str]) -> HttpGateway {
        self.serve_http_as(workspace, config, options, &[])
    }

    /// Like `serve_http`, with headers for the calls that wait for the good server.
    pub(crate) fn serve_http_as(
        &self,
        workspace: &Workspace,
        config: &Config,
        options: &[&str],
        headers: &[(&str, &str)],
    ) -> HttpGateway {
        workspace.write_config(config);
        let gateway = HttpGateway::start(workspace.command(&self.gateway).args(options));
        wait_until("the good server", DEADLINE, || {
            let reply = http::call(&mut gateway.connect(), "fast__echo", "{}", headers);
            reply.body.contains("\"content\"").then_some(())
        });
        gateway
    }

    /// Runs a plugbay command to its end. Returns its stdout and stderr.
    pub(crate) fn command(&self, workspace: &Workspace, args: &[&str]) -> String {
        self.command_with(workspace, args, &[])
    }

    /// Like `command`, with these variables in its environment.
    pub(crate) fn command_with(
        &self,
        workspace: &Workspace,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> String {
        let mut command = Command::new(&self.gateway);
        command.args(args).args(["--config"]).arg(workspace.config_path());
        command.current_dir(workspace.path()).env_clear().envs(workspace.environment());
        command.envs(variables.iter().copied());
        let output = command.output().expect("plugbay runs");
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }
}

/// A config with the good server, which all sessions share, and others.
pub(crate) fn config(workspace: &Workspace, others: &[(&str, Script)]) -> Config {
    let servers: Vec<(&str, Script)> =
        [(neighbour::SERVER, Script::friendly())].into_iter().chain(others.iter().cloned()).collect();
    workspace.config(&servers).top("defaults", json!({ "scope": "shared" }))
}

/// The config entry of a stub: a hostile server that does what the files in its folder say.
pub(crate) fn stub(workspace: &Workspace, name: &str, files: &[(&str, &str)]) -> Value {
    let folder = workspace.path().join(name);
    stub::write(&folder, files);
    let own = std::env::current_exe().expect("own path");
    json!({ "command": own, "args": [stub::FLAG, folder] })
}

/// Whether a text has one of these words, in any case.
pub(crate) fn mentions(text: &str, words: &[&str]) -> bool {
    let text = text.to_lowercase();
    words.iter().any(|word| text.contains(word))
}
