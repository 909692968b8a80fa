//! The demo as it goes along.

use serde_json::{Map, Value};

use super::{
    Style, View, clean_line,
    explain::trouble,
    one_line,
    table::{Cell, Column, Table},
    units::{count, plural, time},
};
use crate::commands::demo::{
    Calls, Costs, Event, Failed, Failures, Intro, Latencies, Next, Opening, Restart,
};

impl View for Intro {
    fn human(&self, style: Style) -> String {
        let title = style.bold("Four servers start");
        format!("{title}: three samples that take their time, as real ones do, and one that is broken\n")
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
        self.failures.iter().map(one).collect()
    }
}

impl View for Opening {
    fn human(&self, style: Style) -> String {
        let title = style.bold("A host talks to `plugbay serve`");
        let tools = plural(self.tools, "tool");
        format!("\n{title}: {tools} listed {} after the start\n", time(self.listed))
    }
}

impl View for Calls {
    fn human(&self, style: Style) -> String {
        let mut table =
            Table::new(vec![Column::left(""), Column::left(""), Column::flexible("")]).indented(2);
        for call in &self.calls {
            let paint = if call.failed { Style::bad } else { Style::good };
            let answer = Cell::painted(one_line(&call.answer), paint);
            table.row(vec![call.tool.into(), Cell::painted(pairs(&call.arguments), Style::dim), answer]);
        }
        table.render(style)
    }
}

impl View for Costs {
    fn human(&self, style: Style) -> String {
        let mut table =
            Table::new(vec![Column::left("SERVER"), Column::right("TOOLS"), Column::right("TOKENS")]);
        for cost in &self.servers {
            table.row(vec![(&cost.server).into(), count(cost.tools).into(), count(cost.tokens).into()]);
        }
        let total = |text: String| Cell::painted(text, Style::bold);
        table.row(vec![total("total".to_owned()), total(count(self.tools)), total(count(self.tokens))]);
        let title = style.bold("What the definitions cost in a host's context");
        let mut modes =
            Table::new(vec![Column::left("MODE"), Column::right("TOOLS"), Column::right("TOKENS")]);
        for mode in &self.modes {
            modes.row(vec![(&mode.seen).into(), count(mode.tools).into(), count(mode.tokens).into()]);
        }
        let seen = style.bold("What a host sees of them");
        format!(
            "\n{title} (o200k tokens)\n{}\n{seen}\n{}",
            table.indented(2).render(style),
            modes.indented(2).render(style)
        )
    }
}

impl View for Latencies {
    fn human(&self, style: Style) -> String {
        let columns = ["DIRECT", "PLUGBAY", "RATIO"].map(Column::right);
        let mut table = Table::new([Column::left("TOOL")].into_iter().chain(columns).collect()).indented(2);
        for latency in &self.medians {
            let ratio = format!("{:.1}×", latency.ratio());
            table.row(vec![
                (&latency.tool).into(),
                time(latency.direct).into(),
                time(latency.through).into(),
                ratio.into(),
            ]);
        }
        let title = style.bold("What the way through plugbay costs a call");
        format!("\n{title} (median of {} each)\n{}", self.calls_each, table.render(style))
    }
}

impl View for Restart {
    fn human(&self, style: Style) -> String {
        let title = style.bold("Started again, from the cache");
        let tools = plural(self.opening.tools, "tool");
        let same = if self.same_tools { "the same " } else { "" };
        format!("\n{title}: {same}{tools} listed {} after the start\n", time(self.opening.listed))
    }
}

impl View for Next {
    fn human(&self, style: Style) -> String {
        let file = self.config.as_ref().map_or("your configuration".into(), |path| path.to_string_lossy());
        format!(
            "\n{}\n  put your servers into   {}\n  add plugbay to a host   claude mcp add plugbay -- plugbay serve\n",
            style.bold("Next"),
            clean_line(&file),
        )
    }
}

/// Arguments as `plugbay call` takes them.
fn pairs(arguments: &Map<String, Value>) -> String {
    let pair = |(key, value): (&String, &Value)| match value {
        Value::String(text) if !text.contains(' ') => format!("{key}={text}"),
        Value::String(text) => format!("{key}='{text}'"),
        other => format!("{key}='{other}'"),
    };
    clean_line(&arguments.iter().map(pair).collect::<Vec<_>>().join(" "))
}
