//! The project's chores: `cargo xtask test` runs all checks of CI, `cargo xtask tidy` those of the
//! architecture, and `cargo xtask pictures` draws the pictures of the documentation.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for developers")]

mod pictures;
mod steps;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    let outcome = match command.as_deref() {
        Some("test") => steps::test(),
        Some("tidy") => tidy::check(),
        Some("pictures") => pictures::make(),
        _ => Err("usage: cargo xtask test | tidy | pictures".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}
