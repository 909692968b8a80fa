//! The findings of `doctor`, grouped by server, host and file.

use std::time::Duration;

use super::{
    Style, View, one_line, table,
    units::{plural, time},
};
use crate::commands::doctor::{Checked, Diagnosis, Finding, Fix, Plan, SandboxState, Severity, Subject};

/// Line width if the terminal does not report one.
const WIDTH: usize = 80;
const LABEL_WIDTH: usize = 9;
const INDENT: usize = 2;

impl View for Diagnosis {
    fn human(&self, style: Style) -> String {
        let mut text = self.done(style);
        let mut last = None;
        for finding in &self.findings {
            if last != Some(&finding.about) {
                text.push_str(&heading(&finding.about, style));
                last = Some(&finding.about);
            }
            text.push_str(&finding.human(style));
            text.push('\n');
        }
        text + &self.closing(style)
    }
}

impl View for Plan<'_> {
    fn human(&self, style: Style) -> String {
        let mut text = format!("{}\n", style.bold("plugbay would"));
        for fix in &self.fixes {
            text.push_str(&labelled("-", &fix.to_string(), 2, style));
            text.push_str(&proposal(fix, style));
        }
        text
    }
}

/// The content that an approval would cover.
fn proposal(fix: &Fix, style: Style) -> String {
    let Fix::Approve(proposed) = fix else { return String::new() };
    let lines = proposed.proposal.human(style);
    lines.lines().flat_map(|line| ["      ", line, "\n"]).collect()
}

impl Diagnosis {
    /// The fixes that were made, and how to undo them.
    fn done(&self, style: Style) -> String {
        if self.fixed.is_empty() {
            return String::new();
        }
        let mut text = format!("{}\n", style.bold("plugbay has"));
        for fix in &self.fixed {
            text.push_str(&labelled("-", &fix.done(), 2, style));
            text.push_str(&proposal(fix, style));
        }
        if self.fixed.iter().any(Fix::is_edit) {
            text.push_str(
                "`plugbay setup --show` lists these changes, and `--undo` takes all changes back.\n",
            );
        }
        text + "\n"
    }

    fn closing(&self, style: Style) -> String {
        let working: Vec<&Checked> = self.servers.iter().filter(|server| server.works).collect();
        let failing = self.servers.len() - working.len();
        let tools = working.iter().map(|server| server.tools).sum();
        let mut lines = Vec::new();
        match (working.as_slice(), failing) {
            ([], 0 | 1) => {}
            ([server], 0) => lines.push(server.line()),
            (working, 0) => {
                lines.push(format!("All {} servers work: {}.", working.len(), plural(tools, "tool")));
            }
            (working, failing) => {
                let all = working.len() + failing;
                lines.push(format!("{} of {all} servers work: {}.", working.len(), plural(tools, "tool")));
            }
        }
        lines.extend(self.sandbox.as_ref().map(SandboxState::line));
        lines.push(self.counts(style));
        lines.push(String::new());
        lines.join("\n")
    }

    fn counts(&self, style: Style) -> String {
        let summary = self.summary;
        let counted = [(summary.errors, "error"), (summary.warnings, "warning"), (summary.notes, "note")];
        let found: Vec<String> = counted
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| plural(*count, word))
            .collect();
        if found.is_empty() {
            return style.good("Nothing is wrong.");
        }
        let mends = match summary.fixable {
            0 => String::new(),
            count => format!(" `plugbay doctor --fix` mends {count} of them."),
        };
        format!("{}.{mends}", found.join(", "))
    }
}

impl Checked {
    fn line(&self) -> String {
        let took = self.milliseconds.and_then(|took| u64::try_from(took).ok()).unwrap_or_default();
        let took = Duration::from_millis(took);
        format!("{} works: {}, started in {}.", self.name, plural(self.tools, "tool"), time(took))
    }
}

fn heading(about: &Subject, style: Style) -> String {
    let (kind, name) = match about {
        Subject::Server(name) => ("server", one_line(name)),
        Subject::Host(name) => ("host", one_line(name)),
        Subject::File(file) => ("file", one_line(&file.to_string_lossy())),
    };
    format!("{} {}\n", style.dim(kind), style.bold(&name))
}

impl Finding {
    fn human(&self, style: Style) -> String {
        let word = self.severity.as_str();
        let message = format!("{} [{}]", self.message, self.code.as_str());
        let mut text = labelled(word, &message, LABEL_WIDTH, style);
        let painted = match self.severity {
            Severity::Error => style.bad(word),
            Severity::Warning => style.warn(word),
            Severity::Note => style.dim(word),
        };
        text = text.replacen(word, &painted, 1);
        for line in &self.evidence {
            text.push_str(&labelled("seen", line, LABEL_WIDTH, style));
        }
        text.push_str(&labelled("try", &self.remedy, LABEL_WIDTH, style));
        if let Some(fix) = &self.fix {
            text.push_str(&labelled("--fix", &fix.to_string(), LABEL_WIDTH, style));
        }
        text
    }
}

/// A label with a text beside it, wrapped between words.
fn labelled(label: &str, text: &str, width: usize, style: Style) -> String {
    let room = style.width.unwrap_or(WIDTH).saturating_sub(INDENT + width).max(40);
    let lines = table::wrap(&one_line(text), room);
    let margin = format!("\n{}", " ".repeat(INDENT + width));
    format!("{:INDENT$}{label:width$}{}\n", "", lines.join(&margin))
}
