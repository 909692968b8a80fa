//! A host on pipes: it sends one request at a time and waits for the answer.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread,
    time::{Duration, Instant},
};

use plugbay_core::wire::write;
use serde_json::{Value, json};

use super::CommandError;

/// A peer that runs longer than this in total is stopped.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Host {
    // Shared with the watchdog; a std mutex, held for a signal or a wait.
    child: Arc<Mutex<Child>>,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    spawned: Instant,
    last_id: u64,
    log: PathBuf,
    /// The watchdog ends when this is dropped.
    _watched: mpsc::Sender<()>,
}

impl Host {
    pub(super) fn spawn(command: &mut Command, folder: &Path) -> Result<Self, CommandError> {
        let log = folder.join("stderr.log");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let spawned = Instant::now();
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(|| CommandError::failed("no pipe to the server"))?;
        let child = Arc::new(Mutex::new(child));
        let watched = watch(Arc::clone(&child));
        let output = BufReader::new(output);
        Ok(Self { child, input, output, spawned, last_id: 0, log, _watched: watched })
    }

    /// Time since the spawn.
    pub(super) fn age(&self) -> Duration {
        self.spawned.elapsed()
    }

    pub(super) fn initialize(&mut self) -> Result<(), CommandError> {
        let client = json!({ "name": "plugbay-demo", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        self.request("initialize", &params)?;
        self.send(&write::notification("notifications/initialized", None))
    }

    /// The result, or the error's message as an error.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Value, CommandError> {
        let (mut answer, _) = self.exchange(method, params)?;
        match answer["error"]["message"].as_str() {
            Some(message) => Err(CommandError::failed(format!("{method}: {message}"))),
            None => Ok(answer["result"].take()),
        }
    }

    /// Sends a request; returns the whole answer, and the number of notifications before it.
    pub(super) fn exchange(&mut self, method: &str, params: &Value) -> Result<(Value, usize), CommandError> {
        let (line, notifications) = self.exchange_line(method, params)?;
        let answer = serde_json::from_str(&line);
        let answer = answer.map_err(|error| CommandError::failed(format!("{method}: {error}")))?;
        Ok((answer, notifications))
    }

    /// The same without parsing the answer: for measuring.
    pub(super) fn exchange_line(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<(String, usize), CommandError> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&write::request(id.to_string().as_bytes(), method, params.to_string().as_bytes()))?;
        let mut line = String::new();
        let mut notifications = 0;
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                return Err(self.gone());
            }
            // Only notifications can come between a request and its answer.
            if !line.contains("\"method\":") || line.contains(&format!("\"id\":{id},")) {
                return Ok((line, notifications));
            }
            notifications += 1;
        }
    }

    /// Closes the pipe and waits until the program has ended by itself.
    pub(super) fn finish(mut self) -> Result<(), CommandError> {
        self.input = None;
        // Unlock while waiting: a watchdog that stopped the program may need the lock.
        let ended = loop {
            if let Some(status) = self.lock().try_wait()? {
                break status;
            }
            thread::sleep(Duration::from_millis(1));
        };
        if ended.success() { Ok(()) } else { Err(self.gone()) }
    }

    fn send(&mut self, message: &[u8]) -> Result<(), CommandError> {
        let input = self.input.as_mut().ok_or_else(|| CommandError::failed("the pipe is closed"))?;
        input.write_all(&[message, b"\n"].concat()).map_err(|_| self.gone())
    }

    fn gone(&self) -> CommandError {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let error = CommandError::failed("a part of the demo ended unexpectedly");
        log.lines().rev().take(5).fold(error, CommandError::hint)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Host {
    /// After an error the program may still run.
    fn drop(&mut self) {
        self.input = None;
        let mut child = self.lock();
        if !matches!(child.try_wait(), Ok(Some(_))) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn watch(child: Arc<Mutex<Child>>) -> mpsc::Sender<()> {
    let (watched, over) = mpsc::channel();
    thread::spawn(move || {
        if over.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = child.lock().unwrap_or_else(PoisonError::into_inner).kill();
        }
    });
    watched
}
