//! Small MCP servers that live in the binary and run as real processes, for the demo and the tests.
//! Their tools and answers are data (`servers.json`); one of them is broken on purpose.

mod server;
mod tool;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    process::ExitCode,
    thread,
    time::Duration,
};

use server::Server;

/// The hidden command that runs a sample: `__sample NAME [MILLISECONDS]`.
pub const COMMAND: &str = "__sample";
/// The sample that exits before it answers.
pub const BROKEN: &str = "broken";
const CRASHED: u8 = 3;

/// Runs the sample called `name` until its input ends. It first sleeps for `pause` milliseconds, like
/// programs that start an interpreter or connect to a service.
pub fn main(name: &str, pause: Option<u64>) -> ExitCode {
    thread::sleep(Duration::from_millis(pause.unwrap_or(0)));
    let servers = servers();
    let Some(server) = servers.get(name) else {
        let names: Vec<&str> = servers.keys().map(String::as_str).collect();
        return fail(&format!("the samples are {}", names.join(", ")), 2);
    };
    match server.run(name, io::stdin().lock(), io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string(), CRASHED),
    }
}

fn servers() -> BTreeMap<String, Server> {
    serde_json::from_str(include_str!("servers.json")).expect("a test reads every sample")
}

fn fail(words: &str, code: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "{words}");
    ExitCode::from(code)
}
