//! A minimal host: spawns a server, initializes it, lists its tools, and answers its requests.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::answer::envelope;
use crate::lines::Lines;
use crate::watchdog::guarded;
use crate::{Outcome, sandbox::Sandbox};

/// Longer than the limit of any gateway for a server that does not start.
const INITIALIZE_LIMIT: Duration = Duration::from_secs(60);
const CLOSING_LIMIT: Duration = Duration::from_secs(3);

pub(crate) struct Host {
    child: Child,
    group: Pid,
    /// Taken when closing: a server ends when its stdin does.
    to_server: Option<ChildStdin>,
    from_server: Lines<ChildStdout>,
    next_id: u64,
    stderr: PathBuf,
}

impl Host {
    pub(crate) fn spawn(command: &mut Command, sandbox: &Sandbox) -> Outcome<Self> {
        let stderr = sandbox.path("stderr.txt");
        let program = command.get_program().to_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr)?)
            // A separate group, so that a process that hangs can be ended with all that it started.
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let from_server = child.stdout.take().ok_or("no stdout")?;
        let to_server = child.stdin.take();
        let group = Pid::from_child(&child);
        Ok(Self { child, group, to_server, from_server: Lines::new(from_server), next_id: 1, stderr })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn group(&self) -> Pid {
        self.group
    }

    pub(crate) fn initialize(&mut self) -> Outcome<()> {
        self.request(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "plugbay-bench", "version": env!("CARGO_PKG_VERSION") },
            }),
        )?;
        self.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
    }

    /// The names on all pages of the list.
    pub(crate) fn tools(&mut self) -> Outcome<Vec<String>> {
        let mut names = Vec::new();
        let mut params = json!({});
        loop {
            let page = self.request("tools/list", &params)?;
            let tools = page["tools"].as_array().ok_or("tools/list without tools")?;
            names.extend(tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)));
            match &page["nextCursor"] {
                Value::String(cursor) => params = json!({ "cursor": cursor }),
                _ => return Ok(names),
            }
        }
    }

    /// Lists repeatedly until at least `count` tools are listed, as a host does after a list change.
    pub(crate) fn tools_until(&mut self, count: usize, limit: Duration) -> Outcome<Vec<String>> {
        let began = Instant::now();
        loop {
            let names = self.tools()?;
            if names.len() >= count {
                return Ok(names);
            }
            if began.elapsed() > limit {
                let shown = names.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
                let got = names.len();
                return Err(format!("lists {got} of {count} tools after {limit:?}: {shown} …").into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Repeats a call until it succeeds: a server may still be starting.
    pub(crate) fn call_until_result(&mut self, params: &Value, limit: Duration) -> Outcome<()> {
        let began = Instant::now();
        loop {
            let result = self.request("tools/call", params);
            match result {
                Ok(result) if result["isError"] != true => return Ok(()),
                Ok(result) if began.elapsed() > limit => return Err(format!("tools/call: {result}").into()),
                Err(error) if began.elapsed() > limit => return Err(error),
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    pub(crate) fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    pub(crate) fn send(&mut self, line: &[u8]) -> Outcome<()> {
        let sent = self.to_server.as_mut().ok_or("already closed")?.write_all(line);
        sent.or_else(|_| self.ended())
    }

    pub(crate) fn receive(&mut self) -> Outcome<&[u8]> {
        // By its range, because a borrowed line would keep `ended` from looking at the child.
        match self.from_server.next_range()? {
            Some(line) => Ok(self.from_server.get(line)),
            None => self.ended(),
        }
    }

    /// Answers a request of the server; notifications are ignored.
    pub(crate) fn answer(&mut self, line: &[u8]) -> Outcome<()> {
        let fields = envelope(line)?;
        let Some(id) = fields.get("id") else { return Ok(()) };
        let answer = match fields.get("method").map(|method| method.get()) {
            Some("\"ping\"") => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n"),
            _ => format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32601,\"message\":\"not here\"}}}}\n"
            ),
        };
        self.send(answer.as_bytes())
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Outcome<Value> {
        let id = self.take_id();
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let answer = guarded(self.group, INITIALIZE_LIMIT, || {
            self.send(format!("{request}\n").as_bytes())?;
            loop {
                let line = self.receive()?.to_vec();
                let message: Value = serde_json::from_slice(&line)?;
                if message["method"].is_string() {
                    self.answer(&line)?;
                } else if message["id"] == id {
                    return Ok(message);
                }
            }
        });
        let mut answer = answer.map_err(|error| format!("{method}: {error}"))?;
        match answer["result"].take() {
            Value::Null => Err(format!("{method} failed: {}", answer["error"]).into()),
            result => Ok(result),
        }
    }

    /// The time from the request until the whole answer has arrived, and its length. The answer is not
    /// parsed.
    pub(crate) fn timed(&mut self, method: &str, params: &Value) -> Outcome<(Duration, usize)> {
        let id = self.take_id();
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},");
        guarded(self.group, INITIALIZE_LIMIT, || {
            let began = Instant::now();
            self.send(format!("{request}\n").as_bytes())?;
            loop {
                let line = self.receive()?;
                if line.starts_with(head.as_bytes()) {
                    return Ok((began.elapsed(), line.len()));
                }
            }
        })
    }

    /// The error that nothing more can be read or written.
    fn ended<T>(&mut self) -> Outcome<T> {
        let status = self.wait(Duration::from_millis(500));
        let status = status.map_or_else(|| "still running".to_owned(), |status| status.to_string());
        let written = std::fs::read(&self.stderr).unwrap_or_default();
        let written = String::from_utf8_lossy(&written);
        let lines: Vec<&str> = written.trim_end().lines().collect();
        let last = lines[lines.len().saturating_sub(10)..].join("\n  ");
        let separator = if last.is_empty() { "" } else { "; it wrote:\n  " };
        Err(format!("the process closed its stdout ({status}){separator}{last}").into())
    }

    fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        while began.elapsed() < limit {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(1)),
                Ok(status) => return status,
                Err(_) => return None,
            }
        }
        None
    }
}

/// Closes like a host, by ending stdin; a process that does not end then is killed.
impl Drop for Host {
    fn drop(&mut self) {
        self.to_server = None;
        if self.wait(CLOSING_LIMIT).is_none() {
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
