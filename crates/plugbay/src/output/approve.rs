//! Output of the effects that an approval would have.

use super::{
    Style, View,
    clean::visible,
    one_line,
    table::{Cell, Column, Table},
};
use crate::commands::approve::{Launch, Proposal};

impl View for Proposal {
    fn human(&self, style: Style) -> String {
        let file = visible(&self.file.to_string_lossy());
        let found = self.found.iter().map(|file| file.to_string_lossy());
        let rest = [listed("It also", &self.besides), listed("It includes", found)].concat();
        if self.servers.is_empty() {
            return format!("{file} starts nothing\n{rest}");
        }
        let mut table = Table::new(vec![Column::left(""), Column::left("")]).indented(2);
        for launch in &self.servers {
            table.row(vec![Cell::painted(&launch.name, Style::bold), launch.line().into()]);
        }
        format!("{file} would start\n{}{rest}", table.render(style))
    }
}

/// A title with lines; empty if there are no lines.
fn listed(title: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let lines = lines.into_iter().map(|line| format!("  {}\n", visible(line.as_ref())));
    let lines = lines.collect::<Vec<_>>().concat();
    if lines.is_empty() { lines } else { format!("{title}\n{lines}") }
}

impl Launch {
    fn line(&self) -> String {
        let words = match &self.command {
            Ok(words) => words,
            Err(reason) => return format!("nothing: {}", one_line(reason)),
        };
        let command: Vec<String> = words.iter().map(|word| quote(word)).collect();
        let variables = match self.variables.as_slice() {
            [] => String::new(),
            names => format!("  (with {})", visible(&names.join(", "))),
        };
        let folder =
            self.folder.as_ref().map(|folder| format!("  (in {})", visible(&folder.to_string_lossy())));
        format!("{}{variables}{}", command.join(" "), folder.unwrap_or_default())
    }
}

/// A word quoted as in a shell, for reading: no part of it may stay hidden.
pub(super) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=+./:,@%^${}".contains(c);
    let word = visible(word);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_can_be_read() {
        let launch = |name: &str, command: Result<&[&str], &str>| Launch {
            name: name.to_owned(),
            command: command
                .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
                .map_err(str::to_owned),
            variables: vec![],
            folder: None,
        };
        let proposal = Proposal {
            file: "/p/plugbay.jsonc".into(),
            servers: vec![
                Launch {
                    variables: vec!["TOKEN".into()],
                    ..launch("a", Ok(&["npx", "-y", "it's", "${KEY}"]))
                },
                launch("long", Ok(&["sh", "-c", "rm -rf /\x1b[2K"])),
                launch("odd", Err("no `command`")),
            ],
            besides: vec!["lets something happen".into()],
            found: vec!["/p/a/.mcp.json".into()],
        };
        let expected = "\
/p/plugbay.jsonc would start
  a     npx -y 'it'\\''s' ${KEY}  (with TOKEN)
  long  sh -c 'rm -rf /\\u{1b}[2K'
  odd   nothing: no `command`
It also
  lets something happen
It includes
  /p/a/.mcp.json
";
        assert_eq!(proposal.human(Style::PLAIN), expected);
    }
}
