//! The report of an agent run: the model's text, and a record of every call.

use std::{fmt::Write, time::Duration};

use plugbay_core::{
    model::ModelError,
    text::{on_one_line, word},
};
use serde_json::{json, value::RawValue};

use super::outcome::Outcome;

/// Arguments and reasons are reported up to this length, in characters.
const LONGEST: usize = 500;
/// Limit of images, files and other blocks for the user that are passed on, in bytes.
const SHOWN: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Report {
    lines: Vec<Line>,
    shown: Vec<Box<RawValue>>,
    left_out: usize,
    end: Option<Result<String, RunError>>,
}

#[derive(Debug)]
struct Line {
    tool: String,
    arguments: String,
    status: CallStatus,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallStatus {
    Planned,
    Running,
    Done,
    Failed(String),
    /// The call never reached a server.
    Refused(String),
}

/// Why an agent run ended before it was done.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("the limit of {0} calls is reached")]
    Calls(usize),
    #[error("the model has been asked {0} times, which is the limit")]
    Turns(usize),
    #[error("the limit of {0} tokens is reached")]
    Tokens(u64),
    #[error("the limit of {} s is reached", .0.as_secs_f64())]
    Time(Duration),
    #[error("the model cannot go on: {0}")]
    Model(ModelError),
}

impl Report {
    /// Adds a call that is about to be made; returns the number of its line.
    pub(super) fn planned(&mut self, tool: &str, arguments: &str) -> usize {
        let (tool, arguments) = (tool.to_owned(), arguments.to_owned());
        self.lines.push(Line { tool, arguments, status: CallStatus::Planned });
        self.lines.len() - 1
    }

    pub(super) fn begun(&mut self, line: usize) {
        self.lines[line].status = CallStatus::Running;
    }

    /// Keeps the blocks that the user should see, and returns the rest of the outcome.
    pub(super) fn done(&mut self, line: usize, mut outcome: Outcome) -> Outcome {
        self.lines[line].status = outcome.status.clone();
        for block in std::mem::take(&mut outcome.shown) {
            let held: usize = self.shown.iter().map(|block| block.get().len()).sum();
            if held + block.get().len() > SHOWN {
                self.left_out += 1;
            } else {
                self.shown.push(block);
            }
        }
        outcome
    }

    pub(super) fn ended(&mut self, end: Result<String, RunError>) {
        self.end = Some(end);
    }

    pub(super) fn has_failed(&self) -> bool {
        !matches!(self.end, Some(Ok(_)))
    }

    /// The model's text, the record, and the blocks for the user: a raw list of blocks.
    pub(super) fn content(&self) -> String {
        let text = |text: &str| json!({ "type": "text", "text": text }).to_string();
        let shown = self.shown.iter().map(|block| block.get().to_owned());
        let blocks: Vec<String> =
            [text(&self.words()), text(&self.record())].into_iter().chain(shown).collect();
        format!("[{}]", blocks.join(","))
    }

    fn words(&self) -> String {
        match &self.end {
            Some(Ok(words)) if words.trim().is_empty() => "The model said nothing.".to_owned(),
            Some(Ok(words)) => words.clone(),
            Some(Err(error)) => format!("Not finished: {error}."),
            None => "Not finished.".to_owned(),
        }
    }

    fn record(&self) -> String {
        if self.lines.is_empty() {
            return "No tool was called.".to_owned();
        }
        let mut record = "Calls:".to_owned();
        for (number, Line { tool, arguments, status }) in (1..).zip(&self.lines) {
            let (tool, arguments) = (word(tool), beginning(arguments));
            let _ = write!(record, "\n{number}. {tool} {arguments}: {}", status.describe());
        }
        if self.left_out > 0 {
            let _ = write!(record, "\n{} images or files were too large to be shown here.", self.left_out);
        }
        record
    }
}

impl CallStatus {
    fn describe(&self) -> String {
        match self {
            Self::Planned => "not made: it was too late".to_owned(),
            Self::Running => "cancelled; it may have been done all the same".to_owned(),
            Self::Done => "done".to_owned(),
            Self::Failed(why) => format!("failed: {}", beginning(why)),
            Self::Refused(why) => format!("not made: {}", beginning(why)),
        }
    }
}

/// The beginning of a text, on one line.
fn beginning(text: &str) -> String {
    let line = on_one_line(text);
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(size: usize) -> Outcome {
        let data = "A".repeat(size);
        Outcome::read(format!(r#"{{"content":[{{"type":"image","data":"{data}"}}]}}"#).as_bytes())
    }

    #[test]
    fn every_tool_call_is_in_the_report() {
        let mut report = Report::default();
        assert_eq!(report.record(), "No tool was called.");
        let first = report.planned("s__read", "{\n\"n\":1.0}");
        report.done(first, Outcome::read(b"{}"));
        let second = report.planned("s__read", "{}");
        report.done(second, Outcome::failed(&"x".repeat(LONGEST + 1)));
        let third = report.planned("s__write", "{}");
        report.done(third, Outcome::refused("no"));
        let fourth = report.planned("s__slow", "{}");
        report.begun(fourth);
        report.planned("s__late", "{}");
        let expected = format!(
            "Calls:\n1. s__read {{ \"n\":1.0}}: done\n2. s__read {{}}: failed: {}…\n3. s__write {{}}: not made: no\n\
             4. s__slow {{}}: cancelled; it may have been done all the same\n5. s__late {{}}: not made: it was too late",
            "x".repeat(LONGEST)
        );
        assert_eq!(report.record(), expected);
    }

    #[test]
    fn content_blocks_that_fit_are_in_the_report() {
        let mut report = Report::default();
        for size in [10, SHOWN, 20] {
            let line = report.planned("s__draw", "{}");
            report.done(line, image(size));
        }
        report.ended(Ok("Drawn.".to_owned()));
        assert!(!report.has_failed());
        let content: serde_json::Value = serde_json::from_str(&report.content()).unwrap();
        let kinds: Vec<_> = content.as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
        assert_eq!(kinds, ["text", "text", "image", "image"]);
        assert_eq!(content[0]["text"], "Drawn.");
        assert!(
            content[1]["text"]
                .as_str()
                .unwrap()
                .ends_with("\n1 images or files were too large to be shown here.")
        );
    }

    #[test]
    fn run_errors_name_their_limit() {
        for (error, expected) in [
            (RunError::Calls(8), "Not finished: the limit of 8 calls is reached."),
            (RunError::Turns(3), "Not finished: the model has been asked 3 times, which is the limit."),
            (RunError::Tokens(9), "Not finished: the limit of 9 tokens is reached."),
            (RunError::Time(Duration::from_millis(1500)), "Not finished: the limit of 1.5 s is reached."),
        ] {
            let mut report = Report::default();
            report.ended(Err(error));
            assert!(report.has_failed());
            assert_eq!(report.words(), expected);
        }
    }
}
