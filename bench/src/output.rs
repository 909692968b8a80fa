//! The only place that prints: results to stdout, progress and errors to stderr.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's results are its output")]

pub(crate) fn show(text: &str) {
    println!("{text}");
}

pub(crate) fn progress(text: &str) {
    eprintln!("{text}");
}

pub(crate) fn complain(text: &str) {
    eprintln!("plugbay-bench: {text}");
}
