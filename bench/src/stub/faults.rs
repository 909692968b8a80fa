//! The faults that the stub can have, for the part of `rivals` that looks at what gateways do then.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::answer::envelope;
use crate::pump::unbuffered;

/// The stub's process ends in the middle of a call of this tool.
pub(crate) const CRASH_TOOL: &str = "crash";
/// A call of this tool is never answered.
pub(crate) const HANG_TOOL: &str = "hang";

/// A call of this tool is answered after [`WAIT`], whatever else is called meanwhile.
pub(crate) const WAIT_TOOL: &str = "wait";
pub(crate) const WAIT: Duration = Duration::from_millis(50);

/// Long enough to be found as an orphan, short enough to leave no trace of a run.
const STAY: Duration = Duration::from_secs(30);

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    /// Lists [`CRASH_TOOL`], [`HANG_TOOL`] and [`WAIT_TOOL`].
    pub(super) tools: bool,
    /// Writes lines that are no messages between the messages.
    pub(super) garbage: bool,
    /// Lives on when stdin has ended.
    pub(super) stay: bool,
    /// Where the methods that came are noted.
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

/// One write for the whole line, so that it does not mix with others.
fn answer_later(id: &str) {
    thread::sleep(WAIT);
    let result = r#"{"content":[{"type":"text","text":"waited"}]}"#;
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
    if let Ok(mut out) = unbuffered(&io::stdout()) {
        let _ = out.write_all(line.as_bytes());
    }
}
