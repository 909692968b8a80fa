//! `plugbay approve`: lets a project's configuration file start programs and use addresses.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use plugbay_core::surface::Effect;
use plugbay_upstream::spec::Transport;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{CommandError, Context};
use crate::config::{
    self, Content, Diagnostic, Kind, ModelSource, Paths, ServerSettings, Settings, WrittenEntry,
    masked::masked_words,
};

/// A proposal with the content of its files: an approval is valid for exactly this content.
#[derive(Debug, Clone)]
pub struct Proposed {
    pub proposal: Proposal,
    pub contents: Vec<Content>,
    diagnostics: Vec<Diagnostic>,
}

impl Proposed {
    /// What an approval of this file would allow; `None` if the file has no content. Variables are not
    /// expanded, so that no secret is shown.
    pub fn of(file: &Path, paths: &Paths) -> Option<Self> {
        let settings = config::load(Some(file), paths, &|name| Some(format!("${{{name}}}")));
        let mut found = settings.contents.iter().map(|content| content.file.clone());
        found.next()?;
        let proposal = Proposal {
            file: file.to_owned(),
            servers: settings.servers.iter().map(Launch::of).collect(),
            besides: [credentials(&config::entries(Some(file), paths)), besides(&settings)].concat(),
            found: found.collect(),
        };
        // The remotes are not set by this file.
        let mut diagnostics = settings.diagnostics;
        diagnostics.retain(|problem| problem.kind != Kind::NoRemote);
        Some(Self { proposal, contents: settings.contents, diagnostics })
    }
}

/// Allow a project's configuration file to start its servers.
///
/// Shows what the file, and the files that it leads to, would start, and asks. A file that changes must be
/// approved again.
#[derive(Debug, clap::Args)]
pub struct ApproveArgs {
    /// The configuration file. Default: the project file of this folder.
    path: Option<PathBuf>,
    /// Approve without asking.
    #[arg(long)]
    yes: bool,
}

impl ApproveArgs {
    /// Approves this file after asking.
    pub fn of(file: &Path) -> Self {
        Self { path: Some(file.to_owned()), yes: false }
    }
}

/// What an approval would allow.
#[derive(Debug, Clone, Serialize)]
pub struct Proposal {
    pub file: PathBuf,
    pub servers: Vec<Launch>,
    /// Its other effects, one line each.
    pub besides: Vec<String>,
    /// The files that it includes.
    pub found: Vec<PathBuf>,
}

/// One server of the file: its command or address as written there, or why it cannot be used.
#[derive(Debug, Clone, Serialize)]
pub struct Launch {
    pub name: String,
    #[serde(flatten, serialize_with = "command_or_problem")]
    pub command: Result<Vec<String>, String>,
    /// Variables of the environment, or headers. Names only: values may be secrets.
    pub variables: Vec<String>,
    pub folder: Option<PathBuf>,
}

pub fn approve(context: &Context, args: &ApproveArgs) -> Result<ExitCode, CommandError> {
    let paths = &context.source.paths;
    let file = match &args.path {
        Some(path) => paths.start.join(path),
        None => config::project_file(&paths.start).ok_or_else(no_project_file)?,
    };
    let proposed = Proposed::of(&file, paths)
        .ok_or_else(|| CommandError::failed(format!("{} contains nothing to approve", file.display())))?;
    context.output.diagnostics(&proposed.diagnostics);
    context.output.show(&proposed.proposal);

    if !args.yes {
        match context.output.ask("Approve it?") {
            Some(true) => {}
            Some(false) => return Err(CommandError::failed("not approved")),
            None => {
                return Err(CommandError::failed("not approved: plugbay can ask only in a terminal")
                    .hint("if you have read the file and trust it: plugbay approve --yes"));
            }
        }
    }
    // Approves exactly the content that was shown, even if a file has changed meanwhile.
    config::approve(paths, &proposed.contents).map_err(|error| CommandError::failed(error.to_string()))?;
    context.output.note(match proposed.contents.len() {
        1 => format!("approved {} with its present content", file.display()),
        _ => {
            format!("approved {} and the files that it includes, with their present content", file.display())
        }
    });
    Ok(ExitCode::SUCCESS)
}

/// The programs that run for headers, and the secret files that servers or their logins get.
fn credentials(entries: &[WrittenEntry]) -> Vec<String> {
    let of = |entry: &WrittenEntry| {
        let name = &entry.name;
        let command = entry.headers_command.join(" ");
        let command = (!command.is_empty()).then(|| format!("runs {command} for the headers of {name}"));
        let file = entry.headers_file.iter().map(|file| format!("sends the headers in {file} to {name}"));
        let secrets = entry
            .oauth
            .iter()
            .flat_map(files)
            .map(|file| format!("uses the secret in {file} to log in to {name}"));
        command.into_iter().chain(file).chain(secrets).collect::<Vec<_>>()
    };
    entries.iter().filter(|entry| !entry.disabled).flat_map(of).collect()
}

/// The files named in the settings of a login.
fn files(oauth: &Value) -> Vec<String> {
    let members = oauth.as_object().into_iter().flatten();
    let named = members.flat_map(|(key, value)| match value {
        Value::String(file) if key.ends_with("File") => vec![file.clone()],
        inner => files(inner),
    });
    named.collect()
}

/// Which models get which data, with which key, and which calls will need no consent.
fn besides(settings: &Settings) -> Vec<String> {
    let sends = |source: &ModelSource, what: &str| match source {
        ModelSource::Remote(endpoint) => {
            let key = match &endpoint.key {
                Some(key) if key.starts_something() => format!(", with the key that {} prints", key.from()),
                Some(key) => format!(", with the key in {}", key.from()),
                None => String::new(),
            };
            Some(format!("sends {what} to {}{key}", endpoint.address()))
        }
        ModelSource::Host => None,
    };
    let (search, agents) = (settings.search.model.as_ref(), settings.natural_language.as_ref());
    let unasked = match settings.unasked {
        Effect::Reads => None,
        Effect::Writes => Some("lets natural_language add things without asking".to_owned()),
        Effect::Destroys => Some("lets natural_language change and delete things without asking".to_owned()),
    };
    let search = search.and_then(|model| sends(&model.source, "search queries"));
    let agents = agents.and_then(|agents| sends(&agents.model, "what natural_language reads"));
    [search, agents, unasked].into_iter().flatten().collect()
}

/// Serializes the words as `command`, or an error as `problem`.
fn command_or_problem<S: Serializer>(
    command: &Result<Vec<String>, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match command {
        Ok(words) => serializer.collect_map([("command", words)]),
        Err(reason) => serializer.collect_map([("problem", reason)]),
    }
}

fn no_project_file() -> CommandError {
    CommandError::failed("there is no project file in this folder or above it in the repository")
        .hint("plugbay looks for .plugbay.jsonc, plugbay.jsonc, switchboard.config.json and servers-config.json; give the path of another file")
}

impl Launch {
    pub fn of(server: &ServerSettings) -> Self {
        let name = server.name.to_string();
        let spec = match &server.spec {
            Ok(spec) => spec,
            Err(reason) => {
                return Self { name, command: Err(reason.clone()), variables: Vec::new(), folder: None };
            }
        };
        let (command, variables, folder) = match &spec.transport {
            Transport::Stdio(stdio) => {
                let variables = stdio.env.keys().chain(&stdio.pass_env).cloned();
                (
                    [vec![stdio.command.clone()], stdio.args.clone()].concat(),
                    variables.collect(),
                    stdio.cwd.clone(),
                )
            }
            Transport::Http(http) => (vec![http.url.clone()], http.headers.keys().cloned().collect(), None),
        };
        Self { name, command: Ok(command), variables, folder }
    }

    /// The same without possible secrets: arguments that look like secrets, and the user, path and query of a
    /// URL.
    #[must_use]
    pub fn masked(mut self) -> Self {
        self.command = self.command.map(|words| match &*words {
            [url] if url.contains("://") => vec![config::origin(url)],
            words => masked_words(words),
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_names_the_programs_and_files_of_credentials() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.json");
        let text = r#"{"mcpServers": {
            "a": {"url": "https://a.example", "headersCommand": ["./h.sh", "${KEY}"]},
            "b": {"url": "https://b.example", "headersFile": "~/h"},
            "c": {"url": "https://c.example", "oauth": {"clientId": "x", "clientSecretFile": "${HOME}/s", "privateKeyFile": "k.pem"}},
            "d": {"url": "https://d.example", "headersFile": "d", "disabled": true}}}"#;
        std::fs::write(&file, text).unwrap();
        let paths =
            Paths { user_file: None, state_folder: None, home: None, start: folder.path().to_owned() };
        let proposed = Proposed::of(&file, &paths).unwrap();
        assert!(proposed.diagnostics.is_empty(), "{:?}", proposed.diagnostics);
        let expected = [
            "runs ./h.sh ${KEY} for the headers of a",
            "sends the headers in ~/h to b",
            "uses the secret in ${HOME}/s to log in to c",
            "uses the secret in k.pem to log in to c",
        ];
        assert_eq!(proposed.proposal.besides, expected);
    }

    #[test]
    fn a_masked_url_has_no_user_path_or_query() {
        let launch = |words: &[&str]| Launch {
            name: "a".to_owned(),
            command: Ok(words.iter().map(|word| (*word).to_owned()).collect()),
            variables: Vec::new(),
            folder: None,
        };
        let masked = |words: &[&str]| launch(words).masked().command.unwrap();
        assert_eq!(
            masked(&["https://me:pw@mcp.example.com:8443/k/1?key=2"]),
            ["https://mcp.example.com:8443"]
        );
        assert_eq!(masked(&["npx", "http://x/y"]), ["npx", "http://x/y"]);
    }
}
