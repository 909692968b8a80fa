//! Compares all output of a command with a file in `snapshots`, in 80 columns.
//!
//! `INSTA_UPDATE=always cargo test -p plugbay --test cli` rewrites the files; read the diff before you commit
//! it.

use std::fmt::Write;

use insta::{Settings, assert_snapshot};

use crate::harness::{Harness, Run, program};

const COLUMNS: &str = "80";

/// Runs the command, and compares its exit code, stdout and stderr with the snapshot of this name.
#[track_caller]
pub fn snapshot(harness: &Harness, name: &str, arguments: &[&str]) {
    snapshot_with(harness, name, arguments, str::to_owned);
}

/// The same for output that partly differs between runs; `settle` replaces those parts.
#[track_caller]
pub fn snapshot_with(harness: &Harness, name: &str, arguments: &[&str], settle: impl Fn(&str) -> String) {
    let mut command = harness.command(arguments);
    let run = Run::of(command.env("COLUMNS", COLUMNS).output().expect("plugbay runs"));
    check_run(harness, name, arguments, &run, settle);
}

/// Runs the command without and with `--json`, and compares both with snapshots: `name` and `name-json`.
#[track_caller]
pub fn snapshots(harness: &Harness, name: &str, arguments: &[&str]) {
    snapshot(harness, name, arguments);
    snapshot(harness, &format!("{name}-json"), &[arguments, &["--json"]].concat());
}

#[track_caller]
fn check_run(harness: &Harness, name: &str, arguments: &[&str], run: &Run, settle: impl Fn(&str) -> String) {
    let line: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
    let code = run.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
    let mut text = format!("$ plugbay {}\nexit code: {code}\n", line.join(" "));
    for (stream, printed) in [("stdout", &run.out), ("stderr", &run.err)] {
        if !printed.is_empty() {
            let _ = write!(text, "--- {stream}\n{printed}");
        }
    }
    let text = settle(&stable(harness, arguments, &text));
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| assert_snapshot!(name, text));
}

fn quoted(word: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "-_=.:/,".contains(char);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

/// The text without paths, times, process ids and versions; lines whose order varies are sorted.
fn stable(harness: &Harness, arguments: &[&str], text: &str) -> String {
    let home = harness.path().to_string_lossy().into_owned();
    let text = text.replace(&home, "[home]").replace(program(), "[plugbay]");
    let text = text.replace(env!("CARGO_PKG_VERSION"), "[version]");
    // The times of hosts are data.
    let settle = |line: &str| match arguments {
        ["hosts", ..] => line.to_owned(),
        _ => without_numbers(&without_random(line)),
    };
    let lines: Vec<String> = text.lines().map(settle).collect();
    let mut sorted = Vec::new();
    for group in lines.chunk_by(|one, other| is_start_line(one) && is_start_line(other)) {
        let mut group = group.to_vec();
        if is_start_line(&group[0]) {
            group.sort();
        }
        sorted.extend(group);
    }
    sorted.join("\n") + "\n"
}

/// Whether a line says that a server has started or failed: such lines come in any order.
fn is_start_line(line: &str) -> bool {
    line.starts_with("✓ ") || line.starts_with("✗ ")
}

/// Replaces numbers: `340 ms` → `[time]`, `gateway 4711` → `gateway [pid]`, and in JSON `"…_ms": 1.5` and
/// `"pid": 4711`.
fn without_numbers(line: &str) -> String {
    const UNITS: [&str; 6] = ["µs", "ms", "s", "min", "h", "days"];
    let is_number =
        |word: &str| !word.is_empty() && word.chars().all(|char| char.is_ascii_digit() || char == '.');
    let words: Vec<&str> = line.split(' ').collect();
    let mut stable: Vec<String> = Vec::new();
    let mut index = 0;
    while index < words.len() {
        let (word, next) = (words[index], words.get(index + 1).copied().unwrap_or_default());
        let (unit, end) = next.split_at(next.find([',', ')', ';']).unwrap_or(next.len()));
        let number = word.trim_end_matches(':').trim_end_matches(',');
        let before = stable.last().map(String::as_str).unwrap_or_default();
        if is_number(word) && UNITS.contains(&unit) {
            stable.push(format!("[time]{end}"));
            index += 1;
        } else if is_number(number)
            && (before.ends_with("_ms\":") || matches!(before, "gateway" | "\"pid\":" | "\"since\":"))
        {
            stable.push(word.replace(number, "[number]"));
        } else {
            stable.push(word.to_owned());
        }
        index += 1;
    }
    stable.join(" ")
}

/// Replaces the name of a temporary folder.
fn without_random(line: &str) -> String {
    const MARK: &str = "[home]/plugbay-";
    match line.split_once(MARK) {
        Some((before, after)) => {
            let rest = after.find('/').map_or("", |at| &after[at..]);
            format!("{before}{MARK}[random]{rest}")
        }
        None => line.to_owned(),
    }
}
