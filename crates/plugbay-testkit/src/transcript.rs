//! All messages that a host has received, and a way to wait for one of them.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Read},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use crate::{
    deadline::patience,
    message::{Framing, RawMessage},
};

const STDERR_PATIENCE: Duration = Duration::from_secs(5);

/// The messages, added by reader threads and taken by the test.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Each message, and whether the test has taken it.
    messages: Vec<(RawMessage, bool)>,
    stderr: String,
    ended: bool,
    stderr_ended: bool,
}

impl Transcript {
    /// Reads messages until the stream ends. Accepts both framings at any time.
    pub(crate) fn read_messages(self: &Arc<Self>, stream: impl Read) {
        let mut input = BufReader::with_capacity(1 << 16, stream);
        while let Some(message) = read_message(&mut input) {
            self.lock().messages.push((message, false));
            self.bell.notify_all();
        }
        self.lock().ended = true;
        self.bell.notify_all();
    }

    pub(crate) fn read_stderr(self: &Arc<Self>, stream: impl Read) {
        let mut input = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(input.read_until(b'\n', &mut line), Ok(count) if count > 0) {
            self.lock().stderr.push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
        self.lock().stderr_ended = true;
        self.bell.notify_all();
    }

    /// Takes the first fitting message that was not taken yet; panics with the whole transcript after `time`.
    #[track_caller]
    pub(crate) fn take(&self, what: &str, time: Duration, fits: impl Fn(&RawMessage) -> bool) -> RawMessage {
        let found = self.wait(time, |state| {
            let (message, taken) = state.messages.iter_mut().find(|(m, taken)| !taken && fits(m))?;
            *taken = true;
            Some(message.clone())
        });
        found.unwrap_or_else(|| panic!("no {what} within {time:?}\n{}", self.tell()))
    }

    /// Takes the first fitting message if it has already arrived.
    pub(crate) fn take_now(&self, fits: impl Fn(&RawMessage) -> bool) -> Option<RawMessage> {
        self.wait(Duration::ZERO, |state| {
            let (message, taken) = state.messages.iter_mut().find(|(m, taken)| !taken && fits(m))?;
            *taken = true;
            Some(message.clone())
        })
    }

    /// Every message so far, taken or not.
    pub(crate) fn all(&self) -> Vec<RawMessage> {
        self.lock().messages.iter().map(|(message, _)| message.clone()).collect()
    }

    /// Drops the messages that were taken.
    pub(crate) fn forget(&self) {
        self.lock().messages.retain(|(_, taken)| !taken);
    }

    pub(crate) fn stderr(&self) -> String {
        self.lock().stderr.clone()
    }

    #[track_caller]
    pub(crate) fn wait_for_end(&self, time: Duration) {
        let ended = self.wait(time, |state| state.ended.then_some(()));
        assert!(ended.is_some(), "the output did not end within {time:?}\n{}", self.tell());
        // A grandchild may hold stderr open; its further output is no reason to fail.
        let _ = self.wait(STDERR_PATIENCE, |state| state.stderr_ended.then_some(()));
    }

    /// The last messages and the end of stderr, for a failed test.
    pub(crate) fn tell(&self) -> String {
        let state = self.lock();
        let shown = 30;
        let mut text = format!("--- the last {shown} of {} messages (* not taken)", state.messages.len());
        for (message, taken) in state.messages.iter().rev().take(shown).rev() {
            let mark = if *taken { ' ' } else { '*' };
            let _ = write!(text, "\n{mark} {}", message.brief());
        }
        let tail: Vec<&str> = state.stderr.lines().rev().take(40).collect();
        let _ = write!(text, "\n--- stderr");
        for line in tail.iter().rev() {
            let _ = write!(text, "\n  {line}");
        }
        if state.ended {
            text.push_str("\n--- the output has ended");
        }
        text
    }

    fn wait<T>(&self, time: Duration, mut look: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + patience(time);
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Some(found);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            (state, _) = self.bell.wait_timeout(state, left).expect("transcript");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("transcript")
    }
}

/// The next message, or the next line that is not one; `None` at the end.
fn read_message(input: &mut impl BufRead) -> Option<RawMessage> {
    let line = read_line(input)?;
    let length =
        line.to_ascii_lowercase().strip_prefix("content-length:").and_then(|v| v.trim().parse().ok());
    let Some(length) = length else { return Some(RawMessage::new(line, Framing::Newline)) };
    while !read_line(input)?.is_empty() {}
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some(RawMessage::new(String::from_utf8_lossy(&body).into_owned(), Framing::ContentLength))
}

/// A line without its line break.
fn read_line(input: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let count = input.read_until(b'\n', &mut line).ok()?;
    if count == 0 {
        return None;
    }
    while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
        line.pop();
    }
    Some(String::from_utf8_lossy(&line).into_owned())
}
