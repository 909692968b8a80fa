//! The steps before the first message is read.

use std::{
    hint::black_box,
    io::{self, Write},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    thread,
    time::Duration,
};

use signal_hook::{consts::SIGTERM, flag};

use crate::{
    script::{Noise, Script},
    sleeper,
};

/// Acts out the start. With an exit code, the process ends before it serves anything.
pub(crate) fn run(script: &Script, argument: &str) -> Option<ExitCode> {
    if script.ignore_term {
        // A handler that only sets a flag replaces the default action, and nobody reads the flag.
        flag::register(SIGTERM, Arc::new(AtomicBool::new(false))).expect("SIGTERM handler");
    }
    match &script.stderr {
        Some(Noise::Lines(lines)) => lines.iter().for_each(|line| say(line)),
        Some(Noise::Mebibytes(count)) => flood(*count),
        None => {}
    }
    if let Some(exit) = &script.exit {
        exit.stderr.iter().for_each(|line| say(line));
        return Some(ExitCode::from(u8::try_from(exit.code).unwrap_or(1)));
    }
    sleeper::spawn(script.children, argument);
    thread::sleep(Duration::from_millis(script.start_delay_ms));
    while script.start_after.as_ref().is_some_and(|file| !file.exists()) {
        thread::sleep(Duration::from_millis(10));
    }
    (0..script.start_work).for_each(|_| work());
    while script.work_until.as_ref().is_some_and(|file| !file.exists()) {
        work();
    }
    None
}

/// Uses the processor for a million steps.
fn work() {
    let mix = |sum: u64, step: u64| (sum ^ step).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    black_box((0..1_000_000_u64).fold(black_box(1), mix));
}

/// Writes a line on stderr. Ignores that nobody may be reading it.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn flood(mebibytes: usize) {
    let line = "stderr flood ".repeat(79) + "\n";
    for _ in 0..mebibytes * 1024 {
        let _ = io::stderr().write_all(line.as_bytes());
    }
}
