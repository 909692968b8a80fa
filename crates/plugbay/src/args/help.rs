//! The help text: the commands in groups, and the notes that apply to all of them.

use std::fmt::Write;

use clap::CommandFactory;

use super::Args;
use crate::output::wrap;

/// Longest line of a help text, in columns.
pub(super) const WIDTH: usize = 80;

/// The groups of commands. Each command is in one group, in the order in which people need them.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Servers",
        &[
            "setup", "import", "add", "add-json", "get", "remove", "enable", "disable", "list", "tools",
            "search", "forget", "call", "run", "auth", "approve",
        ],
    ),
    (
        "Hosts",
        &["wire", "unwire", "init", "migrate", "serve", "token", "hosts", "permissions", "skill", "plugin"],
    ),
    ("Diagnosis", &["doctor", "status", "daemon", "logs", "tokens"]),
    ("Other", &["demo", "schema", "completions", "man", "help"]),
];

const TEMPLATE_START: &str = "{about}\n\n{usage-heading} {usage}\n";

const AFTER: &str = "\
New here? Run `plugbay demo`: it shows everything and changes nothing.
`plugbay help COMMAND` explains a command, with examples.";

const AFTER_LONG: &str = "\
Exit codes:
  0  success
  1  failure: a server, a tool or a file does not work, or nothing was found
  2  mistake in the command line

Environment:
  PLUGBAY_HTTP_TOKEN    a token that hosts must send to `plugbay serve --http`
  PLUGBAY_REMOTE        addresses of remote gateways, separated by spaces
  PLUGBAY_REMOTE_TOKEN  the bearer token for these, and for `--remote`
  PLUGBAY_DAEMON        off: `plugbay serve` runs the servers itself
  PLUGBAY_DAEMON_IDLE   how long a daemon without windows goes on, such as 5m
  NO_COLOR              no colour; --color goes before
  COLUMNS               columns of the output; default: those of the terminal

New here? Run `plugbay demo`: it shows everything and changes nothing.
`plugbay help COMMAND` explains a command, with examples.";

/// The command line with its help text.
pub(super) fn command() -> clap::Command {
    let command = Args::command();
    let (groups, header) = (groups(&command), command.get_styles().get_header());
    let template = format!("{TEMPLATE_START}{groups}\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    command.help_template(template).after_help(AFTER).after_long_help(AFTER_LONG)
}

fn groups(command: &clap::Command) -> String {
    let about = |name: &str| match name {
        "help" => Some("Explain a command".to_owned()),
        _ => Some(command.find_subcommand(name)?.get_about()?.to_string()),
    };
    let column = 2 + command.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0) + 2;
    let header = command.get_styles().get_header();
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _ = write!(text, "\n{header}{title}:{header:#}\n");
        for (name, about) in names.iter().filter_map(|name| Some((name, about(name)?))) {
            let lines = wrap(&about, WIDTH - column).join(&format!("\n{:column$}", ""));
            let literal = command.get_styles().get_literal();
            let blank = " ".repeat(column - 2 - name.len());
            let _ = writeln!(text, "  {literal}{name}{literal:#}{blank}{lines}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_command_stands_in_one_group_of_the_help() {
        for sub in command().get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&sub.get_name()));
            assert_eq!(groups.count(), 1, "{}", sub.get_name());
        }
    }

    #[test]
    fn the_help_of_every_command_fits_80_columns() {
        let mut command = command();
        command.build();
        let check = |sub: &mut clap::Command| {
            for text in [sub.render_help(), sub.render_long_help()] {
                let text = text.to_string();
                let wide = text.lines().find(|line| line.chars().count() > WIDTH);
                assert_eq!(wide, None, "{}", sub.get_name());
            }
        };
        check(&mut command);
        command.get_subcommands_mut().for_each(check);
    }

    #[test]
    fn no_example_of_a_command_is_broken_by_the_width_of_the_help() {
        for sub in command().get_subcommands() {
            for text in [sub.get_after_help(), sub.get_after_long_help()].into_iter().flatten() {
                let text = text.to_string();
                let wide = text.lines().find(|line| line.chars().count() > WIDTH);
                assert_eq!(wide, None, "{}", sub.get_name());
            }
        }
    }

    #[test]
    fn every_command_has_a_section_in_the_docs() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
        let text = fs::read_to_string(file).unwrap();
        for sub in command().get_subcommands() {
            let name = sub.get_name();
            assert!(text.contains(&format!("`plugbay {name}`")), "docs/commands.md does not name {name}");
        }
    }
}
