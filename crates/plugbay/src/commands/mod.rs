//! One file per command. A command produces data, and `output` shows it.

pub mod add;
pub mod approve;
pub mod auth;
pub mod call;
pub mod completions;
pub mod daemon;
pub mod demo;
pub mod doctor;
pub mod forget;
pub mod get;
pub mod hosts;
pub mod import;
pub mod init;
pub mod list;
pub mod logs;
pub mod man;
pub mod migrate;
pub mod permissions;
pub mod place;
pub mod plugin;
pub mod remove;
pub mod run;
pub mod schema;
pub mod search;
pub mod serve;
pub mod setup;
pub mod skill;
mod start;
pub mod status;
pub mod switch;
pub mod token;
pub mod tokens;
pub mod tools;

use std::path::PathBuf;

pub use crate::error::{CommandError, StartFailure};

use crate::{app::Environment, config::Settings, output::Output, settings::Source};

/// The means that every command works with.
#[derive(Debug)]
pub struct Context {
    pub source: Source,
    pub environment: Environment,
    pub output: Output,
}

impl Context {
    /// Loads the settings and shows all of their problems.
    fn settings(&self) -> Result<Settings, CommandError> {
        let settings = self.source.load();
        self.output.diagnostics(&settings.diagnostics);
        self.check(settings)
    }

    /// Loads the settings for a command that only mentions their problems, on one line.
    fn settings_in_passing(&self) -> Result<Settings, CommandError> {
        let settings = self.source.load();
        if settings.servers.is_empty() {
            self.output.diagnostics(&settings.diagnostics);
        } else if !settings.diagnostics.is_empty() {
            let count = settings.diagnostics.len();
            let problems = if count == 1 { "a problem" } else { "problems" };
            self.output.note(format!("the configuration has {problems}; `plugbay list` shows more"));
        }
        self.check(settings)
    }

    /// Notes the servers whose tools are unknown.
    fn note_unknown(&self, servers: &[String]) {
        if !servers.is_empty() {
            let these = servers.join(", ");
            self.output.note(format!("plugbay knows no tools of {these}; `plugbay list` shows why"));
        }
    }

    /// Fails if no server is configured.
    fn check(&self, settings: Settings) -> Result<Settings, CommandError> {
        if !settings.servers.is_empty() || !settings.disabled.is_empty() {
            return Ok(settings);
        }
        let file = settings.sources.iter().find(|path| path.is_file());
        Err(match file {
            _ if !settings.diagnostics.is_empty() => {
                CommandError::failed("no server can be used").hint("fix the problems above, then try again")
            }
            Some(file) => {
                let message = format!("{} contains no servers; an example:", file.display());
                CommandError::failed(message).example(EXAMPLE).hint(SETUP).hint(ADD)
            }
            None => self.not_configured(),
        })
    }

    fn not_configured(&self) -> CommandError {
        let looked = self.source.paths.user_file.clone().unwrap_or_else(|| PathBuf::from("config.jsonc"));
        CommandError::failed("there is no configuration file yet")
            .hint(format!("plugbay looked for {}", looked.display()))
            .hint(SETUP)
            .hint(ADD)
            .hint("`plugbay demo` shows plugbay with sample servers, and changes nothing")
    }
}

const SETUP: &str = "`plugbay setup` moves the servers of your hosts here";
const ADD: &str = "`plugbay add NAME -- COMMAND` adds one server";
const EXAMPLE: &str = r#"{
  "mcpServers": {
    "time": { "command": "uvx", "args": ["mcp-server-time"] }
  }
}"#;

/// `a`, `a or b`, `a, b or c`.
fn alternatives(names: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_offered_in_words() {
        assert_eq!(alternatives(&["a", "b", "c"]), "a, b or c");
        assert_eq!(alternatives(&["a"]), "a");
    }
}
