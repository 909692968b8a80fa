//! The audit log: one line of JSON per call. A separate thread writes it, so a slow disk delays no call.

mod file;

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant, SystemTime},
};

use plugbay_core::observe::{CallEnd, CallOutcome, StartingCall, shape};
use serde_json::{Map, Value, json};

use self::file::RotatedFile;
use crate::timestamp::rfc3339;

/// How many lines may wait for the disk. Further ones are lost, and counted.
const WAITING: usize = 4096;
/// How long the program waits for the last lines when it ends.
const LAST_LINES: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The longest name of a tool or host in a line, in characters.
const LONGEST_NAME: usize = 128;

/// Where the audit log is and how much of it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    pub file: PathBuf,
    /// The size in bytes at which a file is put aside.
    pub rotate: u64,
    /// How many files that were put aside are kept.
    pub keep: usize,
}

/// A running audit log. Dropping it ends its thread after the waiting lines are written, without waiting for
/// that.
#[derive(Debug)]
pub struct Audit {
    settings: Arc<Mutex<AuditSettings>>,
    lines: Option<SyncSender<String>>,
    lost: Arc<AtomicU64>,
    writer: Option<JoinHandle<()>>,
}

/// The audit logs of this process. Two gateways with the same file have one writer.
// A std mutex: held only for a lookup.
static RUNNING: Mutex<Vec<Weak<Audit>>> = Mutex::new(Vec::new());

impl Audit {
    /// The audit log in this file; starts it if necessary. The latest settings apply.
    pub fn at(settings: AuditSettings) -> Arc<Self> {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|audit| audit.strong_count() > 0);
        let found =
            running.iter().filter_map(Weak::upgrade).find(|audit| audit.settings().file == settings.file);
        if let Some(audit) = found {
            *audit.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
            return audit;
        }
        let audit = Arc::new(Self::start(settings));
        running.push(Arc::downgrade(&audit));
        audit
    }

    fn start(settings: AuditSettings) -> Self {
        let settings = Arc::new(Mutex::new(settings));
        let (lines, inbox) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let file = RotatedFile::new(Arc::clone(&settings));
        let writer = {
            let lost = Arc::clone(&lost);
            std::thread::Builder::new().name("audit".to_owned()).spawn(move || write(&inbox, file, &lost))
        };
        let writer = writer.map_err(|error| tracing::error!("the audit log cannot be written: {error}")).ok();
        Self { settings, lines: Some(lines), lost, writer }
    }

    pub fn settings(&self) -> AuditSettings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn starts(self: Arc<Self>, call: &StartingCall<'_>) -> Entry {
        let cut = |text: &str| Value::from(text.chars().take(LONGEST_NAME).collect::<String>());
        let mut line = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                line.insert(key.to_owned(), value);
            }
        };
        put("at", Some(rfc3339(SystemTime::now()).into()));
        put("caller", call.caller.map(cut));
        put("client", call.client.map(cut));
        put("session", Some(call.session.to_string().into()));
        put("host", call.host.map(cut));
        put("method", Some(cut(call.method)));
        put("server", Some(call.server.as_str().into()));
        let name = if call.method == "prompts/get" { "prompt" } else { "tool" };
        put(name, call.name.map(cut));
        put("arguments", call.arguments.map(shape));
        put("bytesIn", Some(call.bytes.into()));
        Entry { audit: self, line, since: Instant::now() }
    }

    /// Waits until all lines are written, up to a limit, because the disk may hang. Other gateways that write
    /// the same log go on.
    pub fn finish(self: Arc<Self>) {
        let Some(Self { lines, writer, .. }) = Arc::into_inner(self) else { return };
        drop(lines);
        let since = Instant::now();
        while writer.as_ref().is_some_and(|writer| !writer.is_finished()) && since.elapsed() < LAST_LINES {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn write(&self, line: String) {
        let sent = self.lines.as_ref().is_some_and(|lines| lines.try_send(line).is_ok());
        if !sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The line of an unfinished call.
pub(crate) struct Entry {
    audit: Arc<Audit>,
    line: Map<String, Value>,
    since: Instant,
}

impl Entry {
    pub(crate) fn ends(mut self, end: CallEnd) {
        self.line.insert("outcome".to_owned(), end.outcome.word().into());
        if let CallOutcome::Error(code) = end.outcome {
            self.line.insert("code".to_owned(), code.into());
        }
        let micros = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.line.insert("micros".to_owned(), micros.into());
        self.line.insert("bytesOut".to_owned(), end.bytes.into());
        let line = Value::Object(self.line).to_string();
        self.audit.write(line);
    }
}

/// Writes lines until all senders are gone. The log itself also records how many lines were lost.
fn write(inbox: &Receiver<String>, mut file: RotatedFile, lost: &AtomicU64) {
    while let Ok(line) = inbox.recv() {
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            let note = json!({ "at": rfc3339(SystemTime::now()), "lost": missing }).to_string();
            if !file.write(&note) {
                lost.fetch_add(missing, Ordering::Relaxed);
            }
        }
        if !file.write(&line) {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
