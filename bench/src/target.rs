//! The routes from the driver to the stub that are compared.

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use crate::args::Settings;
use crate::host::Host;
use crate::sandbox::{Sandbox, Server};
use crate::{Outcome, gateway};

#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    route: Route,
}

#[derive(Debug)]
enum Route {
    Direct,
    Pump,
    Plugbay {
        binary: PathBuf,
        mode: Option<String>,
    },
    /// The same behind a pump, to show the cost of any process between host and gateway.
    Pumped {
        binary: PathBuf,
    },
    /// The same through the daemon.
    Daemon {
        binary: PathBuf,
    },
}

impl Target {
    /// All routes that the settings include, in the order of the report.
    pub(crate) fn all(settings: &Settings) -> Outcome<Vec<Self>> {
        let mut targets = Vec::new();
        if settings.wants("direct") {
            targets.push(Self::direct());
        }
        if settings.wants("pump") {
            targets.push(Self::pump());
        }
        targets.extend(Self::gateways(settings)?);
        Ok(targets)
    }

    /// Only the routes that can have many servers.
    pub(crate) fn gateways(settings: &Settings) -> Outcome<Vec<Self>> {
        let mut targets = Vec::new();
        if settings.wants("plugbay") {
            let binary = gateway::find(settings.gateway.as_deref())?;
            targets.push(Self::plugbay("plugbay", binary, settings.mode.clone()));
        }
        Ok(targets)
    }

    pub(crate) fn direct() -> Self {
        Self { name: "direct".to_owned(), route: Route::Direct }
    }

    pub(crate) fn pump() -> Self {
        Self { name: "pump".to_owned(), route: Route::Pump }
    }

    /// plugbay with `mode` in its configuration.
    pub(crate) fn plugbay(name: &str, binary: PathBuf, mode: Option<String>) -> Self {
        Self { name: name.to_owned(), route: Route::Plugbay { binary, mode } }
    }

    /// plugbay in mode `all`, behind a pump.
    pub(crate) fn pumped(name: &str, binary: PathBuf) -> Self {
        Self { name: name.to_owned(), route: Route::Pumped { binary } }
    }

    /// plugbay in mode `all`, through its daemon.
    pub(crate) fn daemon(name: &str, binary: PathBuf) -> Self {
        Self { name: name.to_owned(), route: Route::Daemon { binary } }
    }

    /// Whether a daemon stands between driver and stub.
    pub(crate) fn has_daemon(&self) -> bool {
        matches!(self.route, Route::Daemon { .. })
    }

    /// Spawns the process and initializes the session.
    pub(crate) fn open(&self, sandbox: &Sandbox, servers: &[Server]) -> Outcome<Host> {
        let hint = match self.route {
            Route::Plugbay { .. } => "\n(has this binary `serve`? --only direct,pump measures without it)",
            _ => "",
        };
        let opened = || -> Outcome<Host> {
            let mut host = Host::spawn(&mut self.command(sandbox, servers)?, sandbox)?;
            host.initialize()?;
            Ok(host)
        };
        opened().map_err(|error| format!("{error}{hint}").into())
    }

    /// The error with the name of the route that failed.
    pub(crate) fn failed(&self, error: &dyn Error) -> Box<dyn Error> {
        format!("{}: {error}", self.name).into()
    }

    /// The command to spawn. Its config is already written, so that this is not part of the measured start.
    pub(crate) fn command(&self, sandbox: &Sandbox, servers: &[Server]) -> Outcome<Command> {
        let first = || servers.first().ok_or("no server to run")?.words();
        let mut command = match &self.route {
            Route::Direct => command(&first()?),
            Route::Pump => {
                let server = first()?;
                let mut pump = Command::new(&server[0]);
                pump.arg("pump").args(server);
                pump
            }
            Route::Plugbay { binary, mode } => {
                let mut serve = Command::new(binary);
                serve
                    .args(["serve", "--no-daemon", "--config"])
                    .arg(sandbox.config(servers, mode.as_deref())?);
                at_home(serve, sandbox)
            }
            Route::Pumped { binary } => {
                let mut pump = Command::new(std::env::current_exe()?);
                pump.arg("pump").arg(binary);
                pump.args(["serve", "--no-daemon", "--config"]).arg(sandbox.config(servers, Some("all"))?);
                at_home(pump, sandbox)
            }
            Route::Daemon { binary } => {
                let mut serve = Command::new(binary);
                serve.args(["serve", "--config"]).arg(sandbox.config(servers, Some("all"))?);
                at_home(serve, sandbox)
            }
        };
        sandbox.confine(&mut command);
        Ok(command)
    }
}

/// Runs outside of any project with its own config file.
fn at_home(mut command: Command, sandbox: &Sandbox) -> Command {
    command.current_dir(sandbox.path("home"));
    command
}

/// The gateway's name for `tool` of `server`: our own form, or any name that contains both.
pub(crate) fn exposed<'a>(listed: &'a [String], server: &str, tool: &str) -> Option<&'a str> {
    let ours = format!("{server}__{tool}");
    let exact = |name: &&String| **name == ours || *name == tool;
    let similar = |name: &&String| name.starts_with(server) && name.ends_with(tool);
    listed.iter().find(exact).or_else(|| listed.iter().find(similar)).map(String::as_str)
}

fn command(words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_found_under_the_name_a_gateway_gives_it() {
        let listed = ["s1__fetch", "s2_1mcp_fetch"].map(str::to_owned);
        assert_eq!(exposed(&listed, "s1", "fetch"), Some("s1__fetch"));
        assert_eq!(exposed(&listed, "s2", "fetch"), Some("s2_1mcp_fetch"));
        assert_eq!(exposed(&listed, "s3", "fetch"), None);
        assert_eq!(exposed(&["fetch".to_owned()], "stub", "fetch"), Some("fetch"));
    }
}
