//! The table of servers.

use plugbay_core::era::Era;

use super::{
    Style, View, clean_line,
    explain::trouble,
    one_line,
    table::{Cell, Column, Table},
    units::{count, plural},
};
use crate::commands::list::{Detail, Overview, Row, ServerKind};

impl View for Overview {
    fn human(&self, style: Style) -> String {
        let mut parts = Vec::new();
        if !self.servers.is_empty() {
            parts.push(self.table(style));
        }
        parts.extend(self.servers.iter().filter_map(|row| row.explanation(style)));
        parts.extend(self.collisions.iter().map(|name| {
            format!("two tools want the name {}: plugbay shows neither; rename one\n", one_line(name))
        }));
        parts.extend(self.ambiguous.iter().map(|name| {
            let name = one_line(name);
            format!(
                "{name} is ambiguous without its server's name: plugbay shows it with that name in front\n"
            )
        }));
        parts.extend(self.shadowed.iter().map(|name| {
            let name = one_line(name);
            format!(
                "{name} is a local tool, or reads like one, and also a remote one: plugbay shows the remote one with its remote's name in front\n"
            )
        }));
        if !self.disabled.is_empty() {
            parts.push(format!("{}\n", style.dim(&format!("disabled: {}", self.disabled.join(", ")))));
        }
        parts.join("\n")
    }
}

impl View for Detail {
    fn human(&self, style: Style) -> String {
        let mut parts = vec![self.facts(style)];
        if let Some(reason) = self.row.trouble.as_ref().filter(|_| !self.row.was_shown) {
            parts.push(trouble(reason, 2, style));
            if self.row.tools > 0 {
                parts.push(style.dim(&self.row.last_run()));
            }
        }
        if !self.definitions.is_empty() {
            parts.push(self.tools(style));
        }
        parts.join("\n")
    }
}

impl Detail {
    fn facts(&self, style: Style) -> String {
        let row = &self.row;
        let mut table = Table::new(vec![Column::left(""), Column::flexible("")]).indented(2);
        let mut fact = |label: &str, value: String| {
            if !value.is_empty() {
                table.row(vec![Cell::painted(label, Style::dim), value.into()]);
            }
        };
        if let Some(launch) = &self.launch {
            if let Ok(words) = &launch.command {
                let is_url = words.len() == 1 && words[0].contains("://");
                fact(if is_url { "url" } else { "command" }, clean_line(&words.join(" ")));
            }
            fact("variables", one_line(&launch.variables.join(", ")));
            let folder = launch.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
            fact("folder", clean_line(&folder.unwrap_or_default()));
        }
        fact("server", self.info.as_deref().map(one_line).unwrap_or_default());
        fact("protocol", row.era.map(|era| row.protocol(era)).unwrap_or_default());
        let others = [(self.resources, "resource"), (self.prompts, "prompt")];
        let others =
            others.iter().filter(|(number, _)| *number > 0).map(|(number, what)| plural(*number, what));
        let offers = [plural(row.tools, "tool")].into_iter().chain(others).collect::<Vec<_>>().join(", ");
        fact("offers", if row.era.is_some() { offers } else { String::new() });
        let state = super::state(row.state).render(style);
        format!("{}  {state}\n{}", style.bold(&row.name), table.render(style))
    }

    fn tools(&self, style: Style) -> String {
        let columns = vec![Column::left("TOOL"), Column::right("TOKENS"), Column::flexible("WHAT IT DOES")];
        let mut table = Table::new(columns).indented(2);
        for tool in &self.definitions {
            table.row(vec![
                one_line(&tool.name).into(),
                count(tool.tokens).into(),
                one_line(&tool.purpose).into(),
            ]);
        }
        let total = |text: String| Cell::painted(text, Style::bold);
        let tools = plural(self.definitions.len(), "tool");
        table.row(vec![total(tools), total(count(self.row.tokens)), "".into()]);
        table.render(style)
    }
}

impl Overview {
    fn table(&self, style: Style) -> String {
        let mut table = Table::new(vec![
            Column::left("SERVER"),
            Column::left("STATE"),
            Column::right("TOOLS"),
            Column::right("TOKENS"),
            Column::left("ERA"),
        ]);
        for row in &self.servers {
            table.row(row.cells());
        }
        if self.servers.len() > 1 {
            let total = |text: String| Cell::painted(text, Style::bold);
            let (tools, tokens) = (count(self.tools), count(self.tokens));
            table.row(vec![total("total".to_owned()), "".into(), total(tools), total(tokens), "".into()]);
        }
        table.render(style)
    }
}

impl ServerKind {
    /// The text in place of the era, for a server that has never been opened.
    fn unknown(self) -> &'static str {
        if self == Self::Server { "–" } else { "remote" }
    }
}

impl Row {
    fn explanation(&self, style: Style) -> Option<String> {
        let reason = trouble(self.trouble.as_ref().filter(|_| !self.was_shown)?, 2, style);
        let cached = match self.tools {
            0 => String::new(),
            _ => style.dim(&self.last_run()),
        };
        Some(format!("{}\n{reason}{cached}", style.bad(&self.name)))
    }

    fn last_run(&self) -> String {
        format!("  hosts still see the {} of its last run\n", plural(self.tools, "tool"))
    }

    /// The era, transport and framing that plugbay uses for it.
    fn protocol(&self, era: Era) -> String {
        match self.kind {
            ServerKind::Server => super::era(era).to_owned(),
            ServerKind::Remote => format!("{}, remote", super::era(era)),
            ServerKind::PlainApi => "plain API, remote".to_owned(),
        }
    }

    fn cells(&self) -> Vec<Cell> {
        let known = |text: String| if self.era.is_some() { text } else { "–".to_owned() };
        let era = self.era.map_or_else(|| self.kind.unknown().to_owned(), |era| self.protocol(era));
        vec![
            self.name.clone().into(),
            super::state(self.state),
            known(count(self.tools)).into(),
            known(count(self.tokens)).into(),
            era.into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::server_state::ServerState;

    use super::*;
    use crate::error::StartFailure;

    #[test]
    fn the_server_list_shows_states_tokens_and_failures() {
        let row = |name: &str, state, tools, tokens, era| Row {
            name: name.to_owned(),
            state,
            tools,
            tokens,
            era,
            kind: ServerKind::Server,
            trouble: None,
            was_shown: false,
        };
        let reason = StartFailure {
            reason: "exited with code 1\x1b[2J".to_owned(),
            stderr: vec!["no port".to_owned()],
            stdout: vec![],
            remedy: Some("open it".to_owned()),
            ..StartFailure::default()
        };
        let broken = |name, tools, era| Row {
            trouble: Some(reason.clone()),
            ..row(name, ServerState::Error, tools, 12 * tools, era)
        };
        let overview = Overview {
            servers: vec![
                row("calc", ServerState::Ready, 6, 1200, Some(Era::Legacy)),
                broken("db", 0, None),
                broken("files", 2, Some(Era::Modern)),
                Row { kind: ServerKind::Remote, ..row("team", ServerState::Ready, 0, 0, Some(Era::Modern)) },
                Row { kind: ServerKind::PlainApi, ..row("web", ServerState::Ready, 0, 0, Some(Era::Legacy)) },
            ],
            tools: 8,
            tokens: 1224,
            disabled: vec!["github".to_owned()],
            collisions: vec![],
            ambiguous: vec![],
            shadowed: vec![],
        };
        let expected = "\
SERVER  STATE  TOOLS  TOKENS  ERA
calc    ready      6   1,200  legacy
db      error      –       –  –
files   error      2      24  modern
team    ready      0       0  modern, remote
web     ready      0       0  plain API, remote
total              8   1,224

db
  exited with code 1
  stderr  no port
  try     open it

files
  exited with code 1
  stderr  no port
  try     open it
  hosts still see the 2 tools of its last run

disabled: github
";
        assert_eq!(overview.human(Style::PLAIN), expected);
    }
}
