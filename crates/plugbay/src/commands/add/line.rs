//! Normalises the command line of `add`, in all forms that other programs accept, to the one form that clap
//! parses.
//!
//! Hosts disagree on their own `mcp add`: where options may stand, whether `--` is needed, how many values an
//! option takes. Their rules are combined here, so that a line written for any of them works:
//!
//! - Options may stand anywhere before `--`; everything after it is literal.
//! - `-e` and `-H` take further values for as long as these look like one (`A=1 B=2`, `"K: V"`).
//! - After the program, an unknown option is one of its arguments. A program that runs containers gets all of
//!   them.

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, Command};

/// Options that stay plugbay's own even after the program: those that hosts accept there, and those about
/// writing.
const ALSO_BEHIND_THE_PROGRAM: [&str; 15] = [
    "scope",
    "transport",
    "env",
    "header",
    "client-id",
    "client-secret",
    "callback-port",
    "timeout",
    "trust",
    "description",
    "include-tools",
    "exclude-tools",
    "no-check",
    "update",
    "bearer-token-env-var",
];
/// Programs that run containers: their own `-e`, `-t` and `--env` mean something else.
const CONTAINER_PROGRAMS: [&str; 4] = ["docker", "podman", "nerdctl", "container"];
/// Commands that may also be written after `mcp`, as hosts do.
const BEHIND_MCP: [&str; 7] = ["add", "add-json", "remove", "get", "list", "enable", "disable"];

/// The words of the whole command line, with those of `add` rewritten to `add OPTIONS -- NAME LAUNCH…`. Other
/// commands stay unchanged, except that a preceding `mcp` is dropped.
pub fn canonical(command: impl FnOnce() -> Command, mut words: Vec<OsString>) -> Vec<OsString> {
    if !words.iter().any(|word| word == "add" || word == "mcp") {
        return words; // the usual case, in which clap's definitions need not be built twice
    }
    let mut command = command();
    command.build();
    let Some(mut at) = subcommand(&command, &words) else { return words };
    let next = words.get(at + 1).and_then(|word| word.to_str());
    if words[at] == "mcp" && next.is_some_and(|next| BEHIND_MCP.contains(&next)) {
        words.remove(at);
    }
    if words[at] != "add" {
        return words;
    }
    let Some(add) = command.find_subcommand("add") else { return words };
    at += 1;
    let mut line = Line { add, options: Vec::new(), positional: Vec::new() };
    line.read(words.split_off(at).into_iter());
    words.append(&mut line.options);
    words.push("--".into());
    words.append(&mut line.positional);
    words
}

/// The index of the subcommand's name.
fn subcommand(command: &Command, words: &[OsString]) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = words.get(at)?.to_str()?;
        if !word.starts_with('-') {
            return Some(at);
        }
        let found = find(command, word);
        at += if found.is_some_and(|found| found.value.is_none() && takes_value(found.arg)) { 2 } else { 1 };
    }
}

struct Line<'c> {
    add: &'c Command,
    options: Vec<OsString>,
    /// The name, then the address or the program and its arguments.
    positional: Vec<OsString>,
}

impl Line<'_> {
    fn read(&mut self, words: impl Iterator<Item = OsString>) {
        let mut words = words.peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                self.positional.extend(words);
                return;
            }
            let text = word.to_str().unwrap_or_default();
            let is_option = text.len() > 1 && text.starts_with('-');
            match find(self.add, text).filter(|found| is_option && self.is_ours(found.arg)) {
                Some(Found { arg, .. }) if !takes_value(arg) => self.options.push(word),
                Some(Found { arg, value }) => {
                    let value = value.map(OsString::from).or_else(|| words.next_if(|next| next != "--"));
                    self.option(arg, value);
                    while let Some(more) = words.next_if(|next| self.is_further_value(arg, next)) {
                        self.option(arg, Some(more));
                    }
                }
                None if is_option && !self.has_program() => self.options.push(word), // for clap to reject
                None => self.positional.push(word),
            }
        }
    }

    /// Adds an option in a form in which its value may begin with `-`.
    fn option(&mut self, arg: &Arg, value: Option<OsString>) {
        let mut word = OsString::from(format!("--{}", name(arg)));
        if let Some(value) = value {
            word.push("=");
            word.push(value);
        }
        self.options.push(word);
    }

    fn is_ours(&self, arg: &Arg) -> bool {
        match self.program() {
            None => true,
            Some(program) if CONTAINER_PROGRAMS.contains(&program) => false,
            Some(_) => ALSO_BEHIND_THE_PROGRAM.contains(&name(arg)),
        }
    }

    fn is_further_value(&self, arg: &Arg, word: &OsStr) -> bool {
        let Some(word) = word.to_str() else { return false };
        match name(arg) {
            "env" => is_assignment(word),
            "header" => is_header(word),
            // Gemini CLI takes several words here. Before the program is known, they would be taken for the
            // name.
            "include-tools" | "exclude-tools" => self.has_program() && !word.starts_with('-'),
            _ => false,
        }
    }

    fn has_program(&self) -> bool {
        self.program().is_some()
    }

    /// The program's name without its folder; `None` for a server behind a URL.
    fn program(&self) -> Option<&str> {
        let program = self.positional.get(1)?.to_str().unwrap_or_default();
        (!is_url(program)).then(|| program.rsplit('/').next().unwrap_or_default())
    }
}

pub(super) fn is_url(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// Whether the word is `NAME=…`, with a valid variable name.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    })
}

/// Whether the word is `Name: value`, and no address.
fn is_header(word: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    !is_url(word)
        && word.split_once(':').is_some_and(|(name, _)| !name.is_empty() && name.chars().all(is_plain))
}

/// An option that a word names, with the value in the same word.
struct Found<'c, 'w> {
    arg: &'c Arg,
    value: Option<&'w str>,
}

fn find<'c, 'w>(command: &'c Command, word: &'w str) -> Option<Found<'c, 'w>> {
    if let Some(long) = word.strip_prefix("--") {
        let (long, value) = long.split_once('=').map_or((long, None), |(long, value)| (long, Some(value)));
        let is_meant = |arg: &&Arg| {
            arg.get_long() == Some(long) || arg.get_all_aliases().unwrap_or_default().contains(&long)
        };
        return Some(Found { arg: command.get_arguments().find(is_meant)?, value });
    }
    let mut rest = word.strip_prefix('-')?.chars();
    let short = rest.next()?;
    let arg = command.get_arguments().find(|arg| arg.get_short() == Some(short))?;
    let value = Some(rest.as_str()).filter(|value| !value.is_empty());
    if value.is_some() && !takes_value(arg) {
        return Some(Found { arg, value: None }); // several short flags in one word
    }
    Some(Found { arg, value: value.map(|value| value.strip_prefix('=').unwrap_or(value)) })
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn name(arg: &Arg) -> &str {
    arg.get_long().unwrap_or_else(|| arg.get_id().as_str())
}
