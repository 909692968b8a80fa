//! A gateway's process with a host connected to it.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

use crate::Outcome;
use crate::http::client::Endpoint;
use crate::process::Family;
use crate::rivals::description::{Description, Transport};
use crate::rivals::link::{Link, Reply};
use crate::sandbox::{Sandbox, Server};

const CLOSING_LIMIT: Duration = Duration::from_secs(3);

/// Number of stderr lines in an error, and of characters in them.
const LAST_LINES: usize = 3;
const LONGEST: usize = 400;

/// An installed gateway.
#[derive(Debug)]
pub(crate) struct Rival {
    pub(crate) about: Description,
    pub(crate) program: PathBuf,
    pub(crate) version: String,
}

impl Rival {
    /// The command to spawn, and the address where it will listen.
    pub(crate) fn command(
        &self,
        transport: Transport,
        sandbox: &Sandbox,
        servers: &[Server],
    ) -> Outcome<(Command, SocketAddr)> {
        let address = free_address()?;
        let command = self.about.command(&self.program, transport, address.port(), sandbox, servers)?;
        Ok((command, address))
    }

    /// Spawns it and opens a session with its usual transport.
    pub(crate) fn start<'a>(
        &'a self,
        sandbox: &Sandbox,
        servers: &[Server],
        limit: Duration,
    ) -> Outcome<Running<'a>> {
        let transport = self.about.usual_transport();
        let (mut command, address) = self.command(transport, sandbox, servers)?;
        let stderr = sandbox.path("stderr.txt");
        let first = servers.first().map_or("", |server| &server.name);
        let mut running = self.spawn(&mut command, transport, stderr, address, first)?;
        running.alone = servers.len() == 1;
        let opened = running.link.initialize(limit);
        running.opening = opened.map_err(|error| running.explain(&error.to_string()))?;
        Ok(running)
    }

    fn spawn(
        &self,
        command: &mut Command,
        transport: Transport,
        stderr: PathBuf,
        address: SocketAddr,
        server: &str,
    ) -> Outcome<Running<'_>> {
        let (input, output) = match transport {
            Transport::Stdio => (Stdio::piped(), Stdio::piped()),
            Transport::Http => (Stdio::null(), Stdio::null()),
        };
        // A separate group, so that a process that hangs can be ended with all that it started.
        command.stdin(input).stdout(output).stderr(File::create(&stderr)?).process_group(0);
        let mut child =
            command.spawn().map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let link = if let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) {
            Link::pipes(stdin, stdout)
        } else {
            let endpoint = Endpoint { address, path: self.about.path(server) };
            Link::http(endpoint, self.about.is_streamed())
        };
        Ok(Running { rival: self, link, child, stderr, opening: Value::Null, alone: false })
    }
}

pub(crate) struct Running<'a> {
    rival: &'a Rival,
    pub(crate) link: Link,
    child: Child,
    stderr: PathBuf,
    /// Its answer to `initialize`.
    pub(crate) opening: Value,
    /// Whether there is only one server behind it.
    alone: bool,
}

impl Running<'_> {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn family(&self) -> Family {
        Family::of(self.child.id())
    }

    /// The `params` of a call.
    pub(crate) fn params(&self, server: &str, tool: &str, arguments: &Value) -> Value {
        self.rival.about.call(server, tool, arguments, self.alone)
    }

    pub(crate) fn call(&mut self, server: &str, tool: &str, arguments: &Value, limit: Duration) -> Reply {
        let params = self.params(server, tool, arguments);
        self.link.request("tools/call", &params, limit)
    }

    /// Sends a call and returns its id.
    pub(crate) fn ask(&mut self, server: &str, tool: &str, arguments: &Value) -> Outcome<u64> {
        let params = self.params(server, tool, arguments);
        self.link.ask("tools/call", &params)
    }

    /// Repeats a call until it succeeds: a server may still be starting.
    pub(crate) fn call_until_good(
        &mut self,
        server: &str,
        tool: &str,
        arguments: &Value,
        limit: Duration,
    ) -> Outcome<()> {
        let until = Instant::now() + limit;
        let before = self.rival.about.before(server);
        loop {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            if let Some(params) = &before {
                self.link.request("tools/call", params, left);
            }
            let reply = self.call(server, tool, arguments, left);
            if reply.is_good() {
                return Ok(());
            }
            if Instant::now() > until || reply == Reply::Closed {
                let error = reply.good().map_or_else(|error| error.to_string(), |_| String::new());
                return Err(self.explain(&error).into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the gateway's first process without a warning.
    pub(crate) fn kill(&mut self) -> Outcome<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends it like a host: by the end of stdin, or by a signal if it listens on a port.
    pub(crate) fn close(&mut self) -> bool {
        self.link.close();
        if self.rival.about.usual_transport() == Transport::Http {
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
        let began = Instant::now();
        while began.elapsed() < CLOSING_LIMIT {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                _ => return true,
            }
        }
        false
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The error with the last lines of the gateway's output.
    fn explain(&self, error: &str) -> String {
        let written = fs::read(&self.stderr).unwrap_or_default();
        let written = String::from_utf8_lossy(&written);
        let lines: Vec<&str> = written.trim_end().lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ");
        let last: String = plain(&last).chars().take(LONGEST).collect();
        if last.is_empty() { error.to_owned() } else { format!("{error}; it wrote:\n  {last}") }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.close();
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Text without colour codes.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest);
    }
    plain + rest
}

/// A port that was free a moment ago: most gateways cannot choose one and report it.
pub(crate) fn free_address() -> Outcome<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_left_out() {
        assert_eq!(plain("\u{1b}[2mtime\u{1b}[0m \u{1b}[32m INFO\u{1b}[0m up"), "time  INFO up");
        assert_eq!(plain("as it is"), "as it is");
    }
}
