//! The table of tools.

use super::{
    Style, View, one_line,
    table::{Cell, Column, Table},
    units::{count, plural},
};
use crate::commands::tools::Tools;

impl View for Tools {
    fn human(&self, style: Style) -> String {
        let mut table =
            Table::new(vec![Column::left("TOOL"), Column::right("TOKENS"), Column::flexible("WHAT IT DOES")]);
        for entry in &self.entries {
            let description = entry.tool.description().unwrap_or_default();
            let name = one_line(&entry.tool.name);
            table.row(vec![name.into(), count(entry.tokens).into(), first_sentence(&description).into()]);
        }
        let tokens: usize = self.entries.iter().map(|entry| entry.tokens).sum();
        let total = plural(self.entries.len(), "tool");
        table.row(vec![
            Cell::painted(total, Style::bold),
            Cell::painted(count(tokens), Style::bold),
            "".into(),
        ]);
        table.render(style)
    }
}

/// The first sentence of a text, or its first paragraph if that has no end.
fn first_sentence(text: &str) -> String {
    let text = text.trim_start();
    let paragraph = one_line(text.split("\n\n").next().unwrap_or_default());
    let ends = paragraph.match_indices(['.', '!', '?']).map(|(at, mark)| at + mark.len());
    let end = ends.into_iter().find(|end| {
        let (before, behind) = paragraph.split_at(*end);
        let word = before.rsplit([' ', '(']).next().unwrap_or_default();
        behind.starts_with(' ') && !["e.g.", "i.e.", "etc.", "vs.", "cf."].contains(&word)
    });
    paragraph[..end.unwrap_or(paragraph.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use plugbay_core::{catalog::Tool, name::ServerName, tokens::Entry};

    use super::*;

    #[test]
    fn the_first_sentence_is_enough() {
        let cases = [
            ("One. Two.", "One."),
            ("\n  Wrapped over\n  lines! Then more.", "Wrapped over lines!"),
            ("Converts units, e.g. km to mi. Fast.", "Converts units, e.g. km to mi."),
            ("Reads v1.2 files", "Reads v1.2 files"),
            ("A title\n\nArgs:\n  x: a thing.", "A title"),
            ("\x1b[31mRed\u{202e}. x", "Red."),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(first_sentence(text), expected, "{text:?}");
        }
    }

    #[test]
    fn names_costs_and_purposes_line_up() {
        let entry = |definition: &'static str, tokens| Entry {
            server: ServerName::parse("s").unwrap(),
            tool: Tool::parse(definition.into()).unwrap(),
            tokens,
        };
        let tools = Tools {
            entries: vec![
                entry(r#"{"name":"s__a","description":"Does. More."}"#, 1500),
                entry(r#"{"name":"s__long"}"#, 7),
            ],
        };
        let expected = "\
TOOL     TOKENS  WHAT IT DOES
s__a      1,500  Does.
s__long       7
2 tools   1,507
";
        assert_eq!(tools.human(Style::PLAIN), expected);
        let json = "[\n  {\"name\":\"s__a\",\"description\":\"Does. More.\"},\n  {\"name\":\"s__long\"}\n]";
        assert_eq!(serde_json::to_string_pretty(&tools).unwrap(), json);
    }
}
