//! Checks of the program that a server's entry names: whether it exists and can be started.

use std::path::Path;

use plugbay_upstream::process::SpawnError;
use serde_json::{Value, json};

use super::super::{
    examination::{EntryPlace, Examination, ServerFacts},
    finding::{Code, Finding},
    fix::Fix,
};

/// Programs that run servers, and how to install them.
const RUNTIMES: &[(&[&str], &str)] = &[
    (&["npx", "npm", "node"], "install Node.js (https://nodejs.org)"),
    (&["uvx", "uv"], "install uv (https://docs.astral.sh/uv)"),
    (&["docker"], "install Docker (https://docs.docker.com/get-docker)"),
    (&["podman"], "install Podman (https://podman.io)"),
    (&["python", "python3"], "install Python 3 (https://www.python.org)"),
    (&["pipx"], "install pipx (https://pipx.pypa.io)"),
    (&["bun", "bunx"], "install Bun (https://bun.sh)"),
    (&["deno"], "install Deno (https://deno.com)"),
    (&["pnpm"], "install pnpm (https://pnpm.io)"),
    (&["yarn"], "install Yarn (https://yarnpkg.com)"),
    (&["go"], "install Go (https://go.dev)"),
    (&["java"], "install a Java runtime (https://adoptium.net)"),
    (&["dotnet"], "install .NET (https://dotnet.microsoft.com)"),
    (&["ruby"], "install Ruby (https://www.ruby-lang.org)"),
];

/// Runtimes that need no other program on PATH, so that their full path is enough.
const SELF_CONTAINED: &[&str] = &["uvx", "uv", "docker", "podman", "bun", "bunx", "deno"];

pub fn check(examination: &Examination, facts: &ServerFacts) -> Option<Finding> {
    let error = facts.program.as_ref()?.as_ref().err()?;
    let entry = examination.entry(&facts.name);
    if let Some(finding) = command_line(facts, entry) {
        return Some(finding);
    }
    Some(match error {
        SpawnError::NotInPath { command } => not_in_path(command, facts, entry),
        SpawnError::NotExecutable { path } => {
            let message = format!("{} exists, but may not be executed.", path.display());
            let fix = Fix::MakeExecutable { file: path.clone() };
            Finding::of(Code::NotExecutable, &facts.name, message, error.remedy()).fixed_by(fix)
        }
        SpawnError::NoSuchFile { path } => {
            let message = format!("Its program {} does not exist.", path.display());
            let finding = Finding::of(Code::WrongPath, &facts.name, message, error.remedy());
            corrected(finding, facts, entry)
        }
        _ => Finding::of(
            Code::WrongPath,
            &facts.name,
            format!("{}.", capitalised(&error.to_string())),
            error.remedy(),
        ),
    })
}

/// A whole command line where only the program should be.
fn command_line(facts: &ServerFacts, entry: Option<&EntryPlace>) -> Option<Finding> {
    let stdio = facts.stdio()?;
    let mut words = split(&stdio.command)?.into_iter();
    let (program, rest) = (words.next()?, words.collect::<Vec<_>>());
    if rest.is_empty() {
        return None;
    }
    let message =
        "\"command\" holds a whole command line. plugbay uses no shell, so there is no such program.";
    let remedy = format!("write \"command\": \"{program}\" and the other words in \"args\"");
    let finding = Finding::of(Code::CommandLine, &facts.name, message, remedy).seen([stdio.command.clone()]);
    Some(finding.fixed_by(entry.and_then(separated)))
}

/// The words of the entry exactly as written, including variables.
fn separated(entry: &EntryPlace) -> Option<Fix> {
    let key = ["command", "cmd"].into_iter().find(|key| entry.text(key).is_some())?;
    let mut words = split(entry.text(key)?)?.into_iter();
    let program = words.next()?;
    let given = entry.value.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
    let args: Vec<Value> = words.map(Value::from).chain(given).collect();
    let members = vec![(entry.key(key), json!(program)), (entry.key("args"), Value::from(args))];
    Some(Fix::Set { file: entry.file.clone(), host: None, members })
}

fn not_in_path(command: &str, facts: &ServerFacts, entry: Option<&EntryPlace>) -> Finding {
    let install = RUNTIMES.iter().find(|(names, _)| names.contains(&command)).map(|(_, install)| *install);
    let code = if install.is_some() { Code::MissingRuntime } else { Code::CommandNotFound };
    let message = format!("`{command}` is in none of the folders of PATH.");
    let set = |program: &str| {
        let entry = entry.filter(|entry| entry.text("command") == Some(command))?;
        Some(Fix::Set {
            file: entry.file.clone(),
            host: None,
            members: vec![(entry.key("command"), json!(program))],
        })
    };
    if let Some(other) = facts.substitute {
        let remedy = format!("write \"command\": \"{other}\", which is there");
        return Finding::of(code, &facts.name, message, remedy).fixed_by(set(other));
    }
    if let Some(path) = facts.elsewhere.first() {
        let folder = path.parent().unwrap_or(Path::new("")).display();
        let remedy =
            format!("add {folder} to PATH where plugbay is started, or write the full path in \"command\"");
        let whole = SELF_CONTAINED.contains(&command) || install.is_none();
        let fix = whole.then(|| set(&path.to_string_lossy())).flatten();
        let seen = format!("it is installed as {}", path.display());
        return Finding::of(code, &facts.name, message, remedy).seen([seen]).fixed_by(fix);
    }
    let remedy = match install {
        Some(install) => install.to_owned(),
        None => "install it, or write its full path in \"command\"".to_owned(),
    };
    Finding::of(code, &facts.name, message, remedy)
}

/// Adds the correct file, if there is exactly one candidate, with a fix that writes it.
pub fn corrected(finding: Finding, facts: &ServerFacts, entry: Option<&EntryPlace>) -> Finding {
    let [dead] = facts.dead_paths.as_slice() else { return finding };
    let [near] = dead.near.as_slice() else { return finding };
    let near = near.to_string_lossy();
    let fix = entry.and_then(|entry| replaced(entry, &dead.word, &near));
    let remedy = format!("write {near}, which exists");
    Finding { remedy, ..finding }.fixed_by(fix)
}

/// A fix that replaces one word of the entry's command line.
fn replaced(entry: &EntryPlace, word: &str, new: &str) -> Option<Fix> {
    let set = |key: &str, value: Value| Fix::Set {
        file: entry.file.clone(),
        host: None,
        members: vec![(entry.key(key), value)],
    };
    if entry.text("command") == Some(word) {
        return Some(set("command", new.into()));
    }
    let key = ["args", "command"].into_iter().find(|key| {
        entry
            .value
            .get(key)
            .and_then(Value::as_array)
            .is_some_and(|words| words.iter().any(|other| other == word))
    })?;
    let words = entry.value.get(key)?.as_array()?.iter();
    let words = words.map(|other| if other == word { new.into() } else { other.clone() });
    Some(set(key, words.collect()))
}

/// The words of a command line as a shell would split it; `None` if quotes are open.
fn split(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match (char, quote) {
            ('\'' | '"', None) => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (_, Some(open)) if char == open => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().push(chars.next()?),
            (_, None) if char.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_runtime_has_its_way_to_be_installed() {
        let install = |command: &str| {
            let facts = ServerFacts {
                name: "it".to_owned(),
                spec: Err(String::new()),
                program: None,
                elsewhere: vec![],
                substitute: None,
                dead_paths: vec![],
                start: None,
            };
            let finding = not_in_path(command, &facts, None);
            (finding.code, finding.remedy)
        };
        for command in ["npx", "node", "uvx", "docker", "python", "python3", "bunx", "deno"] {
            let (code, remedy) = install(command);
            assert!(code == Code::MissingRuntime && remedy.starts_with("install "), "{command}: {remedy}");
        }
        assert_eq!(install("my-server").0, Code::CommandNotFound);
    }

    #[test]
    fn a_command_line_is_split_as_a_shell_does() {
        let words = |line| split(line).unwrap_or_default();
        assert_eq!(words("npx  -y pkg"), ["npx", "-y", "pkg"]);
        assert_eq!(words(r#"node "/a b/c.js" 'it''s' x\ y """#), ["node", "/a b/c.js", "its", "x y", ""]);
        assert_eq!(split("node 'open"), None);
    }
}
