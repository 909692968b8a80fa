//! The only place that prints.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

pub(crate) fn show(text: &str) {
    println!("{text}");
}

/// Progress and problems, beside the result.
pub(crate) fn complain(text: &str) {
    eprintln!("{text}");
}
