//! Small MCP servers that live in the binary, started as real processes: three that work and one
//! that is broken on purpose. The demo and the tests need nothing else on a machine.

mod arguments;
mod calc;
mod calendar;
mod clock;
mod notes;
mod server;

use std::{
    io::{self, Write},
    process::ExitCode,
    thread,
    time::Duration,
};

use server::Server;

/// The hidden command that runs a sample: `__sample NAME [MILLISECONDS]`.
pub const COMMAND: &str = "__sample";

/// The one that fails, and what it says before it does.
pub const BROKEN: &str = "broken";
const LAST_WORDS: &str = "broken: reading the settings\n\
    broken: cannot connect to the database at 127.0.0.1:5433: ECONNREFUSED\n";

/// Runs the sample called `name` until its input ends. It waits `pause` first, because programs that
/// need an interpreter and a network do so too.
pub fn main(name: &str, pause: Option<u64>) -> ExitCode {
    thread::sleep(Duration::from_millis(pause.unwrap_or(0)));
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    let outcome = match name {
        "clock" => Server::new(clock::ABOUT, clock::tools(), ()).run(input, output),
        "notes" => Server::new(notes::ABOUT, notes::tools(), notes::Notebook::default()).run(input, output),
        "calc" => Server::new(calc::ABOUT, calc::tools(), ()).run(input, output),
        BROKEN => return fail(LAST_WORDS, 3),
        _ => return fail("the samples are clock, notes, calc and broken\n", 2),
    };
    // A host that has gone away is the usual end.
    if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn fail(words: &str, code: u8) -> ExitCode {
    let _ = io::stderr().write_all(words.as_bytes());
    ExitCode::from(code)
}
