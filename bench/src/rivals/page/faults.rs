//! The table of faults.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Entry, figure};

type Cell = fn(&Value) -> String;

const COLUMNS: [(&str, Cell); 9] = [
    ("server ends in a call", crash),
    ("recovers", recovers),
    ("garbage on stdout", |faults| yes(&faults["garbage"]["answers"], "ok", "server lost")),
    ("hanging call: other calls", hang),
    ("cancellation", |faults| yes(&faults["cancel"]["reaches_the_server"], "forwarded", "lost")),
    ("ids 2^53+1, 2^64", ids),
    ("half a message from the host", malformed),
    ("50 MB result", large),
    ("servers left after kill -9, after close", left),
];

pub(super) fn section(entries: &[Entry<'_>]) -> String {
    let mut page =
        "## Faults\n\nEach in a process of its own. An answer is waited for 6 s, one that should come at once 3 s.\n\n| gateway |".to_owned();
    for (title, _) in COLUMNS {
        let _ = write!(page, " {title} |");
    }
    let _ = writeln!(page, "\n|---|{}", "---|".repeat(COLUMNS.len()));
    for entry in entries {
        let faults = &entry.value["parts"]["faults"];
        if faults.is_object() && faults["failed"].is_null() {
            let cells: Vec<String> = COLUMNS.iter().map(|(_, cell)| cell(faults)).collect();
            let _ = writeln!(page, "| {} | {} |", entry.title(), cells.join(" | "));
        }
    }
    page.push('\n');
    page
}

fn yes(value: &Value, yes: &str, no: &str) -> String {
    match value.as_bool() {
        Some(true) => yes.to_owned(),
        Some(false) => no.to_owned(),
        None => "–".to_owned(),
    }
}

fn crash(faults: &Value) -> String {
    let crash = &faults["crash"];
    if crash["failed"].is_string() {
        return "–".to_owned();
    }
    let answer = match crash["answered_ms"].as_f64() {
        Some(ms) => format!("answered in {} ms", figure(Some(ms))),
        None => "no answer".to_owned(),
    };
    if crash["others_answer"] == false { format!("{answer}; other servers stuck") } else { answer }
}

fn recovers(faults: &Value) -> String {
    let crash = &faults["crash"];
    match crash["recovers_ms"].as_f64() {
        Some(ms) => format!("{} ms", figure(Some(ms))),
        None if crash["failed"].is_string() => "–".to_owned(),
        None => "no".to_owned(),
    }
}

fn hang(faults: &Value) -> String {
    let hang = &faults["hang"];
    match (hang["same_server_answers"].as_bool(), hang["others_answer"].as_bool()) {
        (Some(true), Some(false)) => "other servers stuck".to_owned(),
        (Some(true), _) => "answered".to_owned(),
        (Some(false), Some(true)) => "same server stuck".to_owned(),
        (Some(false), _) => "all stuck".to_owned(),
        (None, _) => "–".to_owned(),
    }
}

fn ids(faults: &Value) -> String {
    let of = |id: &str| faults["ids"][id].as_str().unwrap_or("–").to_owned();
    format!("{}, {}", of("2^53+1"), of("2^64"))
}

fn malformed(faults: &Value) -> String {
    let malformed = &faults["malformed"];
    let answer = match malformed["answer"].as_str() {
        Some("none") => "no answer",
        Some(other) => other,
        None => return "–".to_owned(),
    };
    if malformed["goes_on"] == true { answer.to_owned() } else { format!("{answer}, then dead") }
}

fn large(faults: &Value) -> String {
    let large = &faults["large"];
    let peak = figure(large["peak_mb"].as_f64());
    match (large["arrives"].as_bool(), large["goes_on"].as_bool()) {
        (Some(true), _) => format!("arrives, {peak} MB at most"),
        (Some(false), Some(true)) => format!("refused, {peak} MB at most"),
        (Some(false), _) => "lost, then dead".to_owned(),
        (None, _) => "–".to_owned(),
    }
}

fn left(faults: &Value) -> String {
    let of = |end: &str| match faults[end]["left"].as_u64() {
        Some(left) => format!("{left} of {}", faults[end]["servers"]),
        None => "–".to_owned(),
    };
    format!("{}, {}", of("killed"), of("closed"))
}
