//! Parses the command line; a mistake in it is explained as text or, with `--json`, as JSON.

use std::{env, ffi::OsString, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, error::ErrorKind};

use super::{Args, help};
use crate::{
    commands,
    error::CommandError,
    output::{Color, Output},
    settings,
};

/// Parses the arguments. `Err` is the exit code after a help text, the version or a mistake.
pub(super) fn parse() -> Result<Args, ExitCode> {
    let words = commands::add::canonical(help::command, env::args_os().collect());
    let color = color(&words);
    let parse = |command: clap::Command| {
        let matches = command.color(color.into()).try_get_matches_from(&words)?;
        Args::from_arg_matches(&matches)
    };
    // The help text takes longer to make than everything else here, so it is made only when it is shown.
    let args = parse(Args::command())
        .or_else(|error| if is_text(error.kind()) { parse(help::command()) } else { Err(error) });
    args.map_err(|error| {
        if is_text(error.kind()) || !wants_json(&words) {
            let _ = error.print();
        } else {
            Output::new(color, true, settings::columns()).error(&mistake(&error));
        }
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

/// Whether this "error" shows a text: one that the user wants, or the help text because there is no command.
fn is_text(kind: ErrorKind) -> bool {
    use ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    matches!(kind, DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand)
}

/// The error of a wrong command line. Its first paragraph says what is wrong; the lines after it are hints.
fn mistake(error: &clap::Error) -> CommandError {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (message, hints) = text.split_once("\n\n").unwrap_or((text, ""));
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let hints = hints.lines().map(str::trim).filter(|line| !line.is_empty());
    hints.fold(CommandError::usage(message), CommandError::hint)
}

/// The options in a command line that cannot be parsed, to find out how to print its mistakes.
fn options(words: &[OsString]) -> impl Iterator<Item = &str> {
    words.iter().skip(1).filter_map(|word| word.to_str()).take_while(|word| *word != "--")
}

fn wants_json(words: &[OsString]) -> bool {
    options(words).any(|word| word == "--json")
}

fn color(words: &[OsString]) -> Color {
    let separate = options(words).skip_while(|word| *word != "--color").nth(1);
    let joined = options(words).find_map(|word| word.strip_prefix("--color="));
    let wanted = joined.or(separate).unwrap_or_default();
    clap::ValueEnum::from_str(wanted, false).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_of_a_command_line_with_a_mistake_still_count() {
        assert!(wants_json(&words("plugbay lst --json")));
        assert!(!wants_json(&words("plugbay call a.b -- --json")));
        assert_eq!(color(&words("plugbay lst --color never")), Color::Never);
        assert_eq!(color(&words("plugbay --color=always lst")), Color::Always);
        assert_eq!(color(&words("plugbay lst --color")), Color::Auto);
    }

    #[test]
    fn a_mistake_in_the_command_line_has_a_message_and_hints() {
        let error = help::command().try_get_matches_from(["plugbay", "lst"]).unwrap_err();
        let mistake = mistake(&error);
        assert_eq!(mistake.message, "unrecognized subcommand 'lst'");
        assert_eq!(mistake.details.len(), 3, "{mistake:?}");
    }
}
