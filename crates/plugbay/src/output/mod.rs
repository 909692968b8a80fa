//! The output of commands: the only module that writes to stdout and stderr. Commands produce data; this module
//! turns it into text or JSON.

mod add;
mod approve;
mod call;
mod clean;
mod demo;
mod explain;
mod get;
mod hosts;
mod json;
mod list;
mod search;
mod status;
mod style;
mod table;
mod tokens;
mod tools;
mod units;

use std::{
    env,
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use plugbay_core::{era::Era, server_state::ServerState};
use serde::Serialize;

pub use clean::{clean, clean_line, one_line};
pub use style::Style;

use self::table::Cell;
use crate::{config::Diagnostic, error::CommandError};

/// The output of a command, and what the terminal can show.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    out: Style,
    err: Style,
    /// A person is watching: progress may be shown on stderr.
    watched: bool,
}

/// The result of a command, as text for people or as JSON for programs.
pub trait View: Serialize {
    fn human(&self, style: Style) -> String;
}

impl Output {
    pub fn detect() -> Self {
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        let watched = io::stderr().is_terminal() && !dumb;
        Self { out: Style::of(&io::stdout()), err: Style::of(&io::stderr()), watched }
    }

    pub fn coloured_log(&self) -> bool {
        self.err.colour
    }

    pub fn show(&self, view: &impl View, as_json: bool) {
        if as_json {
            self.json(view);
        } else {
            self.raw(view.human(self.out));
        }
    }

    pub fn json(&self, value: &impl Serialize) {
        self.raw(format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default()));
    }

    /// Exactly these bytes, on stdout.
    #[expect(clippy::unused_self, reason = "only a holder of the output prints")]
    pub fn raw(&self, text: impl AsRef<[u8]>) {
        write(io::stdout(), text.as_ref());
    }

    /// Prints a note beside the result, on stderr.
    pub fn note(&self, text: impl Display) {
        let label = self.err.dim("note:");
        self.tell(&format!("{label} {text}\n"));
    }

    pub fn diagnostics(&self, diagnostics: &[Diagnostic]) {
        for diagnostic in diagnostics {
            self.tell(&format!("{}\n\n", explain::diagnostic(diagnostic, self.err)));
        }
    }

    pub fn error(&self, error: &CommandError) {
        self.tell(&explain::error(error, self.err));
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

    /// Asks on stderr, so that the question is seen when stdout is redirected; `None` without a terminal.
    pub fn ask(&self, question: &str) -> Option<bool> {
        if !io::stderr().is_terminal() || !io::stdin().is_terminal() {
            return None;
        }
        self.tell(&format!("{question} [y/N] "));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    #[expect(clippy::unused_self, reason = "only a holder of the output prints")]
    fn tell(&self, text: &str) {
        write(io::stderr(), text.as_bytes());
    }
}

/// A reader that has gone away (`| head`) is no error.
fn write(mut to: impl Write, bytes: &[u8]) {
    let _ = to.write_all(bytes).and_then(|()| to.flush());
}

/// The state of a server in a table.
fn state(state: ServerState) -> Cell {
    let paint = match state {
        ServerState::Idle => Style::dim,
        ServerState::Warming => Style::warn,
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
