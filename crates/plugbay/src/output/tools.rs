//! The table of tools, and their signatures.

use plugbay_core::signature::first_sentence;

use super::{
    Style, View, one_line,
    table::{Cell, Column, Table},
    units::{count, plural},
};
use crate::commands::tools::{Signatures, Tools};

impl View for Tools {
    fn human(&self, style: Style) -> String {
        let mut table =
            Table::new(vec![Column::left("TOOL"), Column::right("TOKENS"), Column::flexible("WHAT IT DOES")]);
        for entry in &self.entries {
            let description = entry.tool.description().unwrap_or_default();
            let name = one_line(&entry.tool.name);
            table.row(vec![
                name.into(),
                count(entry.tokens).into(),
                one_line(&first_sentence(&description)).into(),
            ]);
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

impl View for Signatures {
    fn human(&self, _: Style) -> String {
        self.0.iter().flat_map(|line| [one_line(line), "\n".to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::catalog::Tool;

    use super::*;
    use crate::commands::tools::Shown;

    #[test]
    fn names_costs_and_purposes_line_up() {
        let entry = |definition: &'static str, tokens| Shown {
            server: None,
            tool: Tool::parse(definition.into()).unwrap(),
            tokens,
        };
        let tools = Tools {
            entries: vec![
                entry(r#"{"name":"s__a","description":"\u001b[31mDoes\u202e. More."}"#, 1500),
                entry(r#"{"name":"s__long"}"#, 7),
            ],
        };
        let expected = "\
TOOL     TOKENS  WHAT IT DOES
s__a      1,500  Does\\u{202e}.
s__long       7
2 tools   1,507
";
        assert_eq!(tools.human(Style::PLAIN), expected);
        let json = "[\n  {\"name\":\"s__a\",\"description\":\"\\u001b[31mDoes\\u202e. More.\"},\n  {\"name\":\"s__long\"}\n]";
        assert_eq!(serde_json::to_string_pretty(&tools).unwrap(), json);
    }
}
