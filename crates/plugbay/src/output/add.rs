//! Output about added servers, and other changes of configuration files.

use plugbay_core::signature::first_sentence;

use super::{
    Style, View,
    approve::quote,
    clean::visible,
    explain::trouble,
    one_line,
    table::{Cell, Column, Table},
    units::{count, plural},
};
use crate::commands::{
    add::{Change, Offer, Report, Row},
    place::{FileChange, Verb},
};

/// More tools than this are not listed individually.
const MOST_TOOLS: usize = 20;

impl View for Report {
    fn human(&self, style: Style) -> String {
        let mut parts: Vec<String> = self.servers.iter().map(|row| row.human(style)).collect();
        parts.push(self.summary());
        parts.join("\n")
    }
}

impl Report {
    /// The result of writing, with the file.
    fn summary(&self) -> String {
        let file = visible(&self.file.to_string_lossy());
        let names = |wanted: Change| -> Vec<&str> {
            let rows = self.servers.iter().filter(|row| row.change == wanted);
            rows.map(|row| row.name.as_str()).collect()
        };
        let line = |change: Change, text: &dyn Fn(&str) -> String| match names(change).as_slice() {
            [] => String::new(),
            names => text(&names.join(", ")),
        };
        let failed = |names: &str| {
            format!(
                "not written to {file}: {names}\n--no-check writes an entry without starting its server\n"
            )
        };
        [
            line(Change::Added, &|names| format!("added {names} to {file}\n")),
            line(Change::Updated, &|names| format!("updated {names} in {file}\n")),
            reload(self.gateways),
            line(Change::Unchanged, &|names| format!("{names}: nothing to change in {file}\n")),
            line(Change::Failed, &failed),
        ]
        .concat()
    }
}

impl Row {
    fn human(&self, style: Style) -> String {
        let command: Vec<String> = self.launch.iter().map(|word| quote(word)).collect();
        let mut text = format!("{}: {}\n", style.bold(&one_line(&self.name)), command.join(" "));
        if let Some(diff) = &self.diff {
            text.extend(diff.lines().map(|line| format!("  {}\n", painted(line, style))));
        }
        if let Some(offer) = &self.offer {
            text.push_str(&offer.human(style));
        }
        if let Some(reason) = &self.trouble {
            text.push_str(&trouble(reason, 2, style));
        }
        text
    }
}

fn painted(line: &str, style: Style) -> String {
    match line.chars().next() {
        Some('+') => style.good(line),
        Some('-') => style.bad(line),
        _ => style.dim(line),
    }
}

impl Offer {
    fn human(&self, style: Style) -> String {
        if self.tools.is_empty() {
            return "  it works, and has no tools\n".to_owned();
        }
        let mut table =
            Table::new(vec![Column::left("TOOL"), Column::right("TOKENS"), Column::flexible("WHAT IT DOES")])
                .indented(2);
        for tool in self.tools.iter().take(MOST_TOOLS) {
            let purpose = one_line(&first_sentence(&tool.description));
            table.row(vec![one_line(&tool.name).into(), count(tool.tokens).into(), purpose.into()]);
        }
        let hidden = self.tools.len().saturating_sub(MOST_TOOLS);
        if hidden > 0 {
            let rest = self.tools.iter().skip(MOST_TOOLS).map(|tool| tool.tokens).sum();
            let more = format!("… {hidden} more");
            table.row(vec![Cell::painted(more, Style::dim), count(rest).into(), "".into()]);
        }
        let total = |text: String| Cell::painted(text, Style::bold);
        table.row(vec![total(plural(self.tools.len(), "tool")), total(count(self.tokens)), "".into()]);
        table.render(style)
    }
}

/// Notes that the running gateways need no restart.
fn reload(gateways: usize) -> String {
    match gateways {
        0 => String::new(),
        1 => "the running gateway reloads it\n".to_owned(),
        _ => format!("{gateways} running gateways reload it\n"),
    }
}

impl View for FileChange {
    fn human(&self, _: Style) -> String {
        let names = one_line(&self.servers.join(", "));
        let file = visible(&self.file.to_string_lossy());
        let line = match self.verb {
            Verb::Removed => format!("removed {names} from {file}\n"),
            Verb::Enabled => format!("enabled {names} in {file}\n"),
            Verb::Disabled => format!("disabled {names} in {file}\n"),
            Verb::AlreadyEnabled => format!("{names}: already enabled in {file}\n"),
            Verb::AlreadyDisabled => format!("{names}: already disabled in {file}\n"),
        };
        format!("{line}{}", reload(self.gateways))
    }
}

impl View for Vec<FileChange> {
    fn human(&self, style: Style) -> String {
        self.iter().map(|change| change.human(style)).collect()
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::era::Era;

    use super::*;
    use crate::{commands::add::ToolCost, error::StartFailure};

    const NARROW: Style = Style { colour: false, width: Some(80) };

    fn row(name: &str, change: Change) -> Row {
        let launch = vec!["npx".to_owned(), "-y".to_owned(), "it's".to_owned()];
        Row { name: name.to_owned(), change, launch, diff: None, offer: None, trouble: None }
    }

    fn offer(count: usize) -> Offer {
        let tool = |number: usize| ToolCost {
            name: format!("time__zone_{number}"),
            tokens: 40 + number,
            description: "Shows the time of a place that the caller names. More.".to_owned(),
        };
        let tools: Vec<ToolCost> = (1..=count).map(tool).collect();
        Offer { era: Era::Modern, tokens: tools.iter().map(|tool| tool.tokens).sum(), tools }
    }

    fn report(servers: Vec<Row>, gateways: usize) -> Report {
        Report { file: "/home/u/.config/plugbay/config.jsonc".into(), servers, gateways, notes: vec![] }
    }

    #[test]
    fn an_added_server_is_shown_with_its_tools_and_their_tokens() {
        let row = Row { offer: Some(offer(2)), ..row("time", Change::Added) };
        insta::assert_snapshot!(report(vec![row], 1).human(NARROW), @r"
        time: npx -y 'it'\''s'
          TOOL          TOKENS  WHAT IT DOES
          time__zone_1      41  Shows the time of a place that the caller names.
          time__zone_2      42  Shows the time of a place that the caller names.
          2 tools           83

        added time to /home/u/.config/plugbay/config.jsonc
        the running gateway reloads it
        ");
    }

    #[test]
    fn a_long_list_of_tools_is_cut_and_an_update_shows_its_difference() {
        let diff = Some("  args: [\"a\"]\n- env.A: …\n+ env.A: … (another value)\n".to_owned());
        let row = Row { offer: Some(offer(22)), diff, ..row("time", Change::Updated) };
        let text = report(vec![row], 0).human(NARROW);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!([&lines[..6], &lines[23..]].concat().join("\n"), @r#"
        time: npx -y 'it'\''s'
            args: ["a"]
          - env.A: …
          + env.A: … (another value)
          TOOL           TOKENS  WHAT IT DOES
          time__zone_1       41  Shows the time of a place that the caller names.
          time__zone_19      59  Shows the time of a place that the caller names.
          time__zone_20      60  Shows the time of a place that the caller names.
          … 2 more          123
          22 tools        1,133

        updated time in /home/u/.config/plugbay/config.jsonc
        "#);
    }

    #[test]
    fn a_server_that_does_not_start_is_shown_with_its_failure_and_is_not_written() {
        let trouble = Some(StartFailure {
            reason: "exit code 3 before it answered".to_owned(),
            stderr: vec!["cannot connect".to_owned()],
            remedy: Some("start the service that this server wants to reach".to_owned()),
            ..StartFailure::default()
        });
        let servers = vec![
            Row { trouble, ..row("bad", Change::Failed) },
            Row { offer: Some(offer(0)), ..row("empty", Change::Added) },
            row("old", Change::Unchanged),
        ];
        insta::assert_snapshot!(report(servers, 2).human(NARROW), @r"
        bad: npx -y 'it'\''s'
          exit code 3 before it answered
          stderr  cannot connect
          try     start the service that this server wants to reach

        empty: npx -y 'it'\''s'
          it works, and has no tools

        old: npx -y 'it'\''s'

        added empty to /home/u/.config/plugbay/config.jsonc
        2 running gateways reload it
        old: nothing to change in /home/u/.config/plugbay/config.jsonc
        not written to /home/u/.config/plugbay/config.jsonc: bad
        --no-check writes an entry without starting its server
        ");
    }

    #[test]
    fn changes_of_files_are_one_line_each() {
        let change = |verb, gateways| FileChange {
            verb,
            servers: vec!["a".to_owned(), "b".to_owned()],
            file: "/c.jsonc".into(),
            gateways,
        };
        let changes = vec![
            change(Verb::Removed, 0),
            change(Verb::Enabled, 1),
            change(Verb::Disabled, 2),
            change(Verb::AlreadyDisabled, 0),
        ];
        insta::assert_snapshot!(changes.human(NARROW), @"
        removed a, b from /c.jsonc
        enabled a, b in /c.jsonc
        the running gateway reloads it
        disabled a, b in /c.jsonc
        2 running gateways reload it
        a, b: already disabled in /c.jsonc
        ");
    }
}
