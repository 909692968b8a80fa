//! The faults of the stub, for the part of `rivals` that tests how gateways react to them.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::answer::envelope;
use crate::pump::unbuffered;

/// A call of this tool ends the stub's process.
pub(crate) const CRASH_TOOL: &str = "crash";
/// A call of this tool is never answered.
pub(crate) const HANG_TOOL: &str = "hang";

/// A call of this tool is answered after [`WAIT`], whatever else is called meanwhile.
pub(crate) const WAIT_TOOL: &str = "wait";
pub(crate) const WAIT: Duration = Duration::from_millis(50);

/// Long enough to be found as an orphan, but short enough to leave nothing behind after a run.
const STAY: Duration = Duration::from_secs(30);

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// Whether [`CRASH_TOOL`], [`HANG_TOOL`] and [`WAIT_TOOL`] are listed.
    pub(super) tools: bool,
    /// Whether lines that are not messages are written between the messages.
    pub(super) garbage: bool,
    /// Whether the process stays alive after the end of stdin.
    pub(super) stay: bool,
    /// The file to which received methods are written.
    pub(super) log: Option<PathBuf>,
}

impl Faults {
    pub(super) fn note(&self, message: &[u8]) -> io::Result<()> {
        let Some(path) = &self.log else { return Ok(()) };
        let fields = envelope(message).unwrap_or_default();
        let method = fields.get("method").map_or("answer", |method| method.get());
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        writeln!(file, "{method}")
    }

    pub(super) fn write_garbage(&self, out: &mut impl Write) -> io::Result<()> {
        if self.garbage { out.write_all(b"loading the model ... 42%\n\n[warn] {half\n") } else { Ok(()) }
    }

    pub(super) fn stay(&self) {
        if self.stay {
            thread::sleep(STAY);
        }
    }
}

/// Whether a call is one that is not answered at once: never, or later by another thread. A crash does not return.
#[expect(
    clippy::disallowed_methods,
    reason = "a process that ends in the middle of a call, without a farewell"
)]
pub(super) fn strikes(id: &str, params: Option<&RawValue>) -> bool {
    let fields = params.and_then(|params| envelope(params.get().as_bytes()).ok()).unwrap_or_default();
    match fields.get("name").map(|name| name.get().trim_matches('"')) {
        Some(CRASH_TOOL) => std::process::exit(1),
        Some(WAIT_TOOL) => {
            let id = id.to_owned();
            thread::spawn(move || answer_later(&id));
            true
        }
        name => name == Some(HANG_TOOL),
    }
}

/// Writes the whole line at once, so that it does not mix with others.
fn answer_later(id: &str) {
    thread::sleep(WAIT);
    let result = r#"{"content":[{"type":"text","text":"waited"}]}"#;
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
    if let Ok(mut out) = unbuffered(&io::stdout()) {
        let _ = out.write_all(line.as_bytes());
    }
}
