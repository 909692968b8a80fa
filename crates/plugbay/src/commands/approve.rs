//! `plugbay approve`: lets a project's configuration file start programs and use addresses.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use plugbay_upstream::spec::Transport;
use serde::Serialize;

use super::{CommandError, Context};
use crate::config::{self, ServerSettings};

/// What an approval would allow.
#[derive(Debug, Serialize)]
pub struct Proposal {
    pub file: PathBuf,
    pub servers: Vec<Launch>,
    /// The files that it leads to.
    pub found: Vec<PathBuf>,
}

/// One server of the file: its command or address as written there, or why it cannot be used.
#[derive(Debug, Serialize)]
pub struct Launch {
    pub name: String,
    pub command: Result<Vec<String>, String>,
    /// Of the environment, or headers. Names only: values may be secrets.
    pub variables: Vec<String>,
    pub folder: Option<PathBuf>,
}

pub fn approve(context: &Context, path: Option<&Path>, yes: bool) -> Result<ExitCode, CommandError> {
    let paths = &context.source.paths;
    let file = match path {
        Some(path) => paths.start.join(path),
        None => config::project_file(&paths.start).ok_or_else(no_project_file)?,
    };
    // Variables stay as they are written: nobody's secrets are shown.
    let settings = config::load(Some(&file), paths, &|name| Some(format!("${{{name}}}")));
    context.output.diagnostics(&settings.diagnostics);
    let mut found = settings.contents.iter().map(|content| content.file.clone());
    if found.next().is_none() {
        return Err(CommandError::failed(format!("{}: there is nothing to approve", file.display())));
    }
    let found = found.collect();
    let servers = settings.servers.iter().map(Launch::of).collect();
    context.output.show(&Proposal { file: file.clone(), servers, found }, false);

    if !yes {
        match context.output.ask("Approve it?") {
            Some(true) => {}
            Some(false) => return Err(CommandError::failed("not approved")),
            None => {
                return Err(CommandError::failed("not approved: there is no terminal to ask at")
                    .hint("if you have read the file and trust it: plugbay approve --yes"));
            }
        }
    }
    // What was shown is approved, and nothing that has taken its place meanwhile.
    config::approve(paths, &settings.contents).map_err(|error| CommandError::failed(error.to_string()))?;
    context.output.note(match settings.contents.len() {
        1 => format!("approved {}, as long as it stays as it is", file.display()),
        _ => format!("approved {} and what it leads to, as long as they stay as they are", file.display()),
    });
    Ok(ExitCode::SUCCESS)
}

fn no_project_file() -> CommandError {
    CommandError::failed("there is no project file here, nor above in this repository")
        .hint("it is called .plugbay.jsonc, plugbay.jsonc or switchboard.config.json; give its path if it is elsewhere")
}

impl Launch {
    fn of(server: &ServerSettings) -> Self {
        let name = server.name.to_string();
        let spec = match &server.spec {
            Ok(spec) => spec,
            Err(reason) => {
                return Self { name, command: Err(reason.clone()), variables: Vec::new(), folder: None };
            }
        };
        let (command, variables, folder) = match &spec.transport {
            Transport::Stdio(stdio) => {
                ([vec![stdio.command.clone()], stdio.args.clone()].concat(), &stdio.env, stdio.cwd.clone())
            }
            Transport::Http(http) => (vec![http.url.clone()], &http.headers, None),
        };
        Self { name, command: Ok(command), variables: variables.keys().cloned().collect(), folder }
    }
}
