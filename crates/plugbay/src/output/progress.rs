//! The lines that appear on stderr while servers start.

use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use super::{
    Output, Style,
    units::{plural, time},
};

/// The outcome of a server's start.
#[derive(Debug, Clone, Copy)]
pub enum Started {
    Ready { tools: usize },
    NeedsLogin,
    Failed,
}

/// One line per server, printed as its start ends. In a terminal, the last line names the servers still
/// awaited.
pub struct StartLines {
    output: Output,
    waiting: Vec<String>,
    all: usize,
    name_width: usize,
}

impl StartLines {
    pub fn new(output: Output, names: Vec<String>) -> Self {
        let name_width = names.iter().map(|name| name.width()).max().unwrap_or_default();
        let lines = Self { output, all: names.len(), waiting: names, name_width };
        lines.show_waiting();
        lines
    }

    pub fn settled(&mut self, name: &str, outcome: Started, after: Duration) {
        self.waiting.retain(|other| other != name);
        if self.output.is_json() {
            return;
        }
        self.output.progress_done();
        self.output.tell(&line(name, self.name_width, outcome, after, self.output.err));
        self.show_waiting();
    }

    /// Ends the lines. In a terminal, a blank line separates them from the result.
    pub fn finish(self) {
        self.output.progress_done();
        if self.output.watched {
            self.output.tell("\n");
        }
    }

    fn show_waiting(&self) {
        let done = self.all - self.waiting.len();
        match self.waiting.as_slice() {
            [] => self.output.progress("counting tokens"),
            names => {
                self.output.progress(&format!("{done} of {}, waiting for {}", self.all, names.join(", ")));
            }
        }
    }
}

/// `✓ github  26 tools  1.20 s`.
fn line(name: &str, width: usize, outcome: Started, after: Duration, style: Style) -> String {
    let (mark, what) = match outcome {
        Started::Ready { tools } => (style.good("✓"), plural(tools, "tool")),
        Started::NeedsLogin => (style.warn("!"), "needs login".to_owned()),
        Started::Failed => (style.bad("✗"), "failed".to_owned()),
    };
    let blank = " ".repeat(width.saturating_sub(name.width()));
    format!("{mark} {name}{blank}  {what:>8}  {}\n", style.dim(&time(after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_starts_has_a_line_with_tools_and_time() {
        let line =
            |name, outcome, millis| line(name, 6, outcome, Duration::from_millis(millis), Style::PLAIN);
        assert_eq!(line("github", Started::Ready { tools: 26 }, 1200), "✓ github  26 tools  1.20 s\n");
        assert_eq!(line("time", Started::Ready { tools: 1 }, 90), "✓ time      1 tool  90 ms\n");
        assert_eq!(line("db", Started::Failed, 300), "✗ db        failed  300 ms\n");
    }
}
