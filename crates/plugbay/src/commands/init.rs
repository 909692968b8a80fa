//! `plugbay init`: the first configuration, imported from hosts or typed in. Never changes a file that exists.

use std::{collections::BTreeMap, path::Path, process::ExitCode};

use plugbay_hosts::{Entry, Launch, Remote, RemoteKind};

use super::{
    CommandError, Context, EXAMPLE,
    import::{self, Consent, no_home},
    setup::open_journal,
};
use crate::{
    import::{Found, Origin, Reading, Sources, user_change},
    journal::{Part, Target},
    settings,
};

/// Create the first configuration: import servers, or ask for them.
///
/// A file that exists is never changed. Without a terminal, the command writes an example, or imports with --yes.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Import the servers of every host without asking.
    #[arg(long, short)]
    yes: bool,
}

pub fn init(context: &Context, args: &InitArgs) -> Result<ExitCode, CommandError> {
    let paths = &context.source.paths;
    let file = context.source.explicit().or_else(|| paths.user_file.clone()).ok_or_else(no_home)?;
    if file.exists() {
        context.output.note(format!("{} exists, so nothing was changed", file.display()));
        context.output.note("more servers: plugbay import, or plugbay add NAME -- COMMAND");
        return Ok(ExitCode::SUCCESS);
    }
    let places = settings::host_places(&context.environment.project).ok_or_else(no_home)?;
    let reading = Sources { places: &places, paths }.all();
    let asks = context.output.can_ask();
    if !reading.found.is_empty() && (args.yes || asks) {
        return import::run(context, reading, COMMAND, Consent { dry_run: false, yes: args.yes });
    }
    if !reading.found.is_empty() {
        context.output.note("hosts on this machine have servers; `plugbay import` copies them");
    }
    let typed = if asks { typed(&mut |question| context.output.prompt(question)) } else { Vec::new() };
    if typed.is_empty() {
        return write(context, &file, &example());
    }
    let origin = Origin { host: "init".to_owned(), file: file.clone(), project: None };
    let found = typed.into_iter().map(|entry| Found { entry, origin: origin.clone() }).collect();
    let change = user_change(found, &Reading::default().settings, Some(file.clone()), paths);
    let change = change.map_err(|error| CommandError::failed(error.to_string()))?;
    write(context, &file, &change.after)
}

const COMMAND: &str = "plugbay init";

fn write(context: &Context, file: &Path, text: &str) -> Result<ExitCode, CommandError> {
    let target = Target { command: COMMAND, host: None, part: Part::Configuration, path: file.to_owned() };
    let written = open_journal(context)?.write(target, None, text.as_bytes());
    written.map_err(|error| CommandError::failed(error.to_string()))?;
    context.output.note(format!("wrote {}", file.display()));
    context.output.note("`plugbay list` tries every server; `plugbay add NAME -- COMMAND` adds one");
    Ok(ExitCode::SUCCESS)
}

/// A configuration without servers that shows how one is written.
fn example() -> String {
    let example = EXAMPLE.replace('\n', "\n// ");
    format!(
        "// The configuration of plugbay; `plugbay schema` prints its JSON Schema. An example:\n// {example}\n{{\n  \"mcpServers\": {{}}\n}}\n"
    )
}

/// Asks for servers until the user enters no name.
fn typed(ask: &mut dyn FnMut(&str) -> Option<String>) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some(name) = ask("Name of a server (empty when done):").filter(|name| !name.is_empty()) {
        let Some(line) = ask("Its command line or URL:").filter(|line| !line.is_empty()) else { continue };
        let Some(mut entry) = launched(&name, &line) else { continue };
        if let Launch::Process { env, .. } = &mut entry.launch {
            let variables = ask("Variables to pass on (names, empty for none):").unwrap_or_default();
            let names = variables.split([' ', ',']).filter(|name| !name.is_empty());
            env.extend(names.map(|name| (name.to_owned(), format!("${{{name}}}"))));
        }
        entries.push(entry);
    }
    entries
}

fn launched(name: &str, line: &str) -> Option<Entry> {
    if line.starts_with("http://") || line.starts_with("https://") {
        let remote = Remote { url: line.to_owned(), kind: RemoteKind::Unsaid, ..Remote::default() };
        return Some(Entry::new(name, Launch::Remote(remote)));
    }
    let mut words = words(line).into_iter();
    let command = words.next()?;
    let launch = Launch::Process { command, args: words.collect(), env: BTreeMap::new(), cwd: None };
    Some(Entry::new(name, launch))
}

/// The words of a command line; quotes keep spaces together.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut open, mut quote) = (false, None);
    for char in line.chars() {
        match (quote, char) {
            (Some(mark), _) if mark == char => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                if !open {
                    words.push(String::new());
                    open = true;
                }
            }
            (None, ' ' | '\t') => open = false,
            _ if open => words.last_mut().into_iter().for_each(|word| word.push(char)),
            _ => {
                words.push(char.to_string());
                open = true;
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_asked_for_until_no_name_is_given() {
        let answers = [
            "time",
            "uvx 'mcp server' --zone \"a b\"c",
            "KEY, TOKEN",
            "docs",
            "https://d.example/mcp",
            "",
            "never",
        ];
        let mut answers = answers.into_iter().map(str::to_owned);
        let entries = typed(&mut |_| answers.next());
        let Launch::Process { command, args, env, .. } = &entries[0].launch else { panic!("{entries:?}") };
        assert_eq!((command.as_str(), args.join("|")), ("uvx", "mcp server|--zone|a bc".to_owned()));
        assert_eq!(env["TOKEN"], "${TOKEN}");
        assert!(
            matches!(&entries[1].launch, Launch::Remote(remote) if remote.url == "https://d.example/mcp")
        );
        assert_eq!((entries.len(), answers.next()), (2, Some("never".to_owned())));
    }

    #[test]
    fn the_example_is_a_configuration_without_problems() {
        assert!(
            plugbay_hosts::jsonc::get(&example(), &["mcpServers"])
                .unwrap()
                .is_some_and(|servers| servers.is_object())
        );
    }
}
