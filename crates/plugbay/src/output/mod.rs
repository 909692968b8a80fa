//! The output of commands: the only module that writes to stdout and stderr. Commands produce data; this module
//! turns it into text or JSON.

mod add;
mod approve;
mod auth;
mod call;
mod clean;
mod daemon;
mod demo;
mod diff;
mod doctor;
mod explain;
mod get;
mod hosts;
mod import;
mod json;
mod list;
mod logs;
mod progress;
mod search;
mod setup;
mod status;
mod style;
mod table;
mod token;
mod tokens;
mod tools;
mod units;

use std::{
    collections::BTreeMap,
    env,
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use plugbay_core::{era::Era, server_state::ServerState, text::escaped_json};
use serde::Serialize;

pub use clean::{clean, clean_line, one_line};
pub use progress::{StartLines, Started};
pub use style::{Color, Style};
pub use table::wrap;

use self::table::Cell;
use crate::{config::Diagnostic, error::CommandError};

/// The label of a note, with the blank after it.
const NOTE: &str = "note: ";

/// The output of a command, and what the terminal can show.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    out: Style,
    err: Style,
    /// Whether a person is watching, so that progress may be shown on stderr.
    watched: bool,
    json: bool,
}

/// The result of a command, as text for people or as JSON for programs.
pub trait View: Serialize {
    fn human(&self, style: Style) -> String;
}

impl Output {
    /// The output. With `columns` it has that width instead of the terminal's.
    pub fn new(color: Color, json: bool, columns: Option<usize>) -> Self {
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let watched = io::stderr().is_terminal() && !dumb && !json;
        let (out, err) = (Style::of(&io::stdout(), color), Style::of(&io::stderr(), color));
        Self { out: out.within(columns), err: err.within(columns), watched, json }
    }

    pub fn coloured_log(&self) -> bool {
        self.err.colour
    }

    /// Whether the user wants JSON.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Prints a command's result, as text or as JSON.
    pub fn show(&self, view: &impl View) {
        if self.json {
            self.json(view);
        } else {
            self.raw(view.human(self.out));
        }
    }

    /// Prints a result that replaces the previous one: a terminal shows only the last. In JSON each is one
    /// line.
    pub fn show_again(&self, view: &impl View) {
        if self.json {
            self.raw(json_line(view));
        } else if io::stdout().is_terminal() {
            self.raw(format!("\x1b[H\x1b[2J\x1b[3J{}", view.human(self.out)));
        } else {
            self.raw(format!("{}\n", view.human(self.out)));
        }
    }

    pub fn json(&self, value: &impl Serialize) {
        let json = serde_json::to_string_pretty(value).unwrap_or_default();
        self.raw(format!("{}\n", escaped_json(&json)));
    }

    /// Prints exactly these bytes to stdout.
    #[expect(clippy::unused_self, reason = "only a holder of the output prints")]
    pub fn raw(&self, text: impl AsRef<[u8]>) {
        write(io::stdout(), text.as_ref());
    }

    /// Prints a note to stderr, in addition to the result.
    pub fn note(&self, text: impl Display) {
        if self.json {
            return self.tell_json("note", &text.to_string());
        }
        let label = self.err.dim("note:");
        let width = self.err.width.unwrap_or(usize::MAX).saturating_sub(NOTE.len());
        let lines = wrap(&text.to_string(), width).join(&format!("\n{:indent$}", "", indent = NOTE.len()));
        self.tell(&format!("{label} {lines}\n"));
    }

    pub fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            if self.json {
                self.tell_json("diagnostic", &explain::diagnostic_json(diagnostic));
            } else {
                self.tell(&format!("{}\n\n", explain::diagnostic(diagnostic, self.err)));
            }
        }
    }

    pub fn error(&self, error: &CommandError) {
        if self.json {
            self.tell_json("error", &explain::error_json(error));
        } else {
            self.tell(&explain::error(error, self.err));
        }
    }

    /// Replaces the progress line. Without a terminal, nothing is shown.
    pub fn progress(&self, text: &str) {
        if self.watched {
            let width = self.err.width.unwrap_or(80).saturating_sub(1);
            self.tell(&format!("\r\x1b[2K{}", self.err.dim(&table::cut(&one_line(text), width))));
        }
    }

    pub fn progress_done(&self) {
        if self.watched {
            self.tell("\r\x1b[2K");
        }
    }

    /// Whether a person can answer a question.
    pub fn can_ask(&self) -> bool {
        !self.json && io::stderr().is_terminal() && io::stdin().is_terminal()
    }

    /// Asks on stderr, so that the question is visible if stdout is redirected; `None` without a terminal.
    pub fn ask(&self, question: &str) -> Option<bool> {
        let answer = self.prompt(&format!("{question} [y/N]"))?;
        Some(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
    }

    /// Asks for a line of text; `None` without a terminal, and at the end of the input.
    pub fn prompt(&self, question: &str) -> Option<String> {
        if !self.can_ask() {
            return None;
        }
        self.tell(&format!("{question} "));
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer).ok()?;
        (read > 0).then(|| answer.trim().to_owned())
    }

    /// Prints one object on one line of stderr, so that a program can parse every line.
    fn tell_json(&self, kind: &'static str, content: &impl Serialize) {
        let object = BTreeMap::from([(kind, content)]);
        self.tell(&json_line(&object));
    }

    #[expect(clippy::unused_self, reason = "only a holder of the output prints")]
    fn tell(&self, text: &str) {
        write(io::stderr(), text.as_bytes());
    }
}

/// One line of JSON, in which hidden characters are escaped.
fn json_line(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    format!("{}\n", escaped_json(&json))
}

/// Writes to a stream. It is no error if the reader is gone (`| head`).
fn write(mut to: impl Write, bytes: &[u8]) {
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}

/// The state of a server in a table.
fn state(state: ServerState) -> Cell {
    let paint = match state {
        ServerState::Idle => Style::dim,
        ServerState::Warming | ServerState::NeedsLogin => Style::warn,
        ServerState::Ready | ServerState::Active => Style::good,
        ServerState::Error => Style::bad,
    };
    Cell::painted(state.as_str(), paint)
}

fn era(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}
