//! Output of the demo, part by part.

use serde_json::{Map, Value};

use super::{
    Style, View, clean_line,
    explain::trouble,
    one_line,
    table::{Cell, Column, Table, wrap},
    units::{count, percent, plural, time},
};
use crate::commands::demo::{
    Call, Calls, Costs, Event, Failed, Failures, Intro, Latencies, Next, Opening, Restart,
};

/// The column at which answers begin: after an indent of two, a time and a gap.
const ANSWER_INDENT: usize = 11;

const NOTICE: &str = "  mode all lists gateway_status, too: it says which server fails, and why\n";

impl View for Intro {
    fn human(&self, style: Style) -> String {
        let title = style.bold("Six servers start");
        format!("{title}: five samples that take their time, and one that is broken\n")
    }
}

impl View for Event {
    fn human(&self, style: Style) -> String {
        let state = match self.state {
            "ready" => style.good("ready"),
            "error" => style.bad("error"),
            other => style.dim(other),
        };
        format!("  {:>7}  {:<6}  {state}\n", time(self.after), self.server)
    }
}

impl View for Failures {
    fn human(&self, style: Style) -> String {
        let one = |failed: &Failed| {
            let title = style.bold(&format!("Why {} does not work", failed.server));
            format!("\n{title}\n{}", trouble(&failed.trouble, 2, style))
        };
        self.0.iter().map(one).collect()
    }
}

impl View for Costs {
    fn human(&self, style: Style) -> String {
        let bold = |text: &str| Cell::painted(text, Style::bold);
        let mut servers = numbers("SERVER", ["TOOLS", "TOKENS"]);
        for cost in &self.servers {
            servers.row(vec![(&cost.server).into(), count(cost.tools).into(), count(cost.tokens).into()]);
        }
        servers.row(vec![bold("total"), bold(&count(self.tools)), bold(&count(self.tokens))]);
        let mut modes = numbers("MODE", ["TOOLS", "TOKENS", "OF ALL"]);
        let all = self.modes.first().map_or(0, |mode| mode.total);
        for mode in &self.modes {
            modes.row(vec![
                (&mode.seen).into(),
                count(mode.tools).into(),
                count(mode.total).into(),
                percent(mode.total, all).into(),
            ]);
        }
        // In addition to the servers' tools, a host gets one that explains why others are missing.
        let has_notice = self.modes.first().is_some_and(|mode| mode.tools > self.tools);
        let notice = if has_notice { style.dim(NOTICE) } else { String::new() };
        format!(
            "\n{} (o200k tokens)\n{}\n{}\n{}{notice}",
            style.bold("What the tools cost in a model's context"),
            servers.render(style),
            style.bold("What is left of it in each mode of plugbay, with the instructions"),
            modes.render(style)
        )
    }
}

impl View for Opening {
    fn human(&self, style: Style) -> String {
        let title = style.bold(&format!("A host connects to `plugbay serve` in mode {}", self.mode));
        format!("\n{title}: {} listed after {}\n", plural(self.tools.len(), "tool"), time(self.listed))
    }
}

impl View for Calls {
    fn human(&self, style: Style) -> String {
        let calls: String = self.calls.iter().map(|call| transcript(call, style)).collect();
        format!("{calls}  {}\n", style.dim(self.remark))
    }
}

impl View for Latencies {
    fn human(&self, style: Style) -> String {
        let mut table = numbers("TOOL", ["DIRECT", "PLUGBAY", "ADDED"]);
        for latency in &self.medians {
            let times =
                [latency.direct, latency.through, latency.added].map(|duration| time(duration).into());
            table.row([Cell::from(&latency.tool)].into_iter().chain(times).collect());
        }
        let title = style.bold("What plugbay adds to the time of a call");
        format!("\n{title} (median of {} each)\n{}", self.calls_each, table.render(style))
    }
}

impl View for Restart {
    fn human(&self, style: Style) -> String {
        let title = style.bold("`plugbay serve` starts again with its cache");
        let tools = plural(self.opening.tools.len(), "tool");
        let same = if self.same_tools { "the same " } else { "" };
        format!("\n{title}: {same}{tools} after {}\n", time(self.opening.listed))
    }
}

impl View for Next {
    fn human(&self, style: Style) -> String {
        let title = style.bold("Next: one command moves the servers of your hosts behind plugbay");
        format!("\n{title}\n  {}\n", self.command)
    }
}

/// A call on one line, the time that it took and its answer on the next.
fn transcript(call: &Call, style: Style) -> String {
    let paint = if call.failed { Style::bad } else { Style::good };
    let mut answer = one_line(call.answer.lines().next().unwrap_or_default());
    if call.progress > 0 {
        answer = format!("{answer} (after {})", plural(call.progress, "progress notification"));
    }
    let width = style.width.map_or(usize::MAX, |width| width.saturating_sub(ANSWER_INDENT));
    let lines: Vec<String> = wrap(&answer, width).iter().map(|line| paint(style, line)).collect();
    let answer = lines.join(&format!("\n{:ANSWER_INDENT$}", ""));
    let arguments = style.dim(&pairs(&call.arguments));
    format!("  {} {arguments}\n  {:>7}  {answer}\n", call.tool, time(call.duration))
}

/// A table of names and numbers.
fn numbers<const N: usize>(name: &'static str, numbers: [&'static str; N]) -> Table {
    let columns = [Column::left(name)].into_iter().chain(numbers.map(Column::right));
    Table::new(columns.collect()).indented(2)
}

/// Arguments in the form that `plugbay call` accepts.
fn pairs(arguments: &Map<String, Value>) -> String {
    let pair = |(key, value): (&String, &Value)| match value {
        Value::String(text) if !text.contains(' ') => format!("{key}={text}"),
        Value::String(text) => format!("{key}='{text}'"),
        Value::Object(_) | Value::Array(_) => format!("{key}='{value}'"),
        other => format!("{key}={other}"),
    };
    clean_line(&arguments.iter().map(pair).collect::<Vec<_>>().join(" "))
}
