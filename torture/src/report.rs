//! The verdicts as lines, as JSON, and as a table for the documentation.

use std::{fmt::Write as _, fs, time::Duration};

use serde_json::json;

use crate::{
    args::{Format, Settings},
    scenario::{Outcome, Scenario, Verdict},
};

/// Longest reason in a line, in characters.
const REASON: usize = 500;

pub(crate) struct Row {
    name: &'static str,
    rule: &'static str,
    pub(crate) verdict: Verdict,
    figure: String,
    reason: String,
    took: Duration,
}

impl Row {
    pub(crate) fn new(scenario: Scenario, outcome: Outcome, took: Duration) -> Self {
        let verdict = outcome.verdict();
        let reasons = outcome.faults.into_iter().chain(outcome.not_run).chain(outcome.not_judged);
        let reasons: Vec<String> = reasons.collect();
        let reason: String = reasons.join("; ").split_whitespace().collect::<Vec<_>>().join(" ");
        let reason = reason.chars().take(REASON).collect();
        Self { name: scenario.name, rule: scenario.rule, verdict, figure: outcome.figure, reason, took }
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Broken => "broken",
            Self::NotJudged => "not judged (short form)",
            Self::NotRun => "not run",
        }
    }
}

pub(crate) fn line(row: &Row) -> String {
    let Row { name, verdict, figure, reason, took, .. } = row;
    let mut line = format!("{:10.10} {name:20} {:5.1} s  {figure}", verdict.word(), took.as_secs_f64());
    if !reason.is_empty() {
        let _ = write!(line, "\n           {reason}");
    }
    line
}

pub(crate) fn render(rows: &[Row], settings: &Settings) -> String {
    match settings.format {
        Format::Text => summary(rows),
        Format::Json => {
            let all: Vec<_> = rows
                .iter()
                .map(|row| {
                    json!({ "name": row.name, "rule": row.rule, "verdict": row.verdict.word(),
                        "figure": row.figure, "reason": row.reason, "seconds": row.took.as_secs_f64() })
                })
                .collect();
            let form = if settings.quick { "short" } else { "long" };
            let whole = json!({ "date": today(), "machine": machine(), "form": form, "seed": settings.seed, "scenarios": all });
            format!("{whole:#}")
        }
        Format::Markdown => markdown(rows, settings),
    }
}

fn markdown(rows: &[Row], settings: &Settings) -> String {
    let form = if settings.quick { "short" } else { "long" };
    let mut page =
        format!("{}, {}, {form} form, seed {}. {}\n\n", today(), machine(), settings.seed, summary(rows));
    page += "| scenario | rule | verdict | figure |\n|---|---|---|---|\n";
    for row in rows {
        let figure = [row.figure.as_str(), row.reason.as_str()].join(" ").replace('|', "\\|");
        let _ =
            writeln!(page, "| `{}` | {} | {} | {} |", row.name, row.rule, row.verdict.word(), figure.trim());
    }
    page
}

fn summary(rows: &[Row]) -> String {
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let (kept, broken) = (count(Verdict::Kept), count(Verdict::Broken));
    let (not_judged, not_run) = (count(Verdict::NotJudged), count(Verdict::NotRun));
    format!("{kept} of {} kept, {broken} broken, {not_judged} not judged, {not_run} not run", rows.len())
}

/// Today's date from the system's `date`, because nothing here needs its own calendar.
fn today() -> String {
    let output = std::process::Command::new("date").arg("+%Y-%m-%d").output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches([' ', '\t', ':']);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores ({model}), Linux {}", kernel.trim())
}
