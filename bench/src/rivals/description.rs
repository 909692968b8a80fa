//! The file that describes a gateway: how it is started, configured and called.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::sandbox::{Sandbox, Server};

/// The gateway under test: its binary is given by `--gateway`, and is not one of the installed ones.
const OURS: &str = "plugbay";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

impl Transport {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
        }
    }
}

/// One gateway. Words in braces are placeholders: see `bench/rivals/README.md`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// The name of the file, without its extension.
    #[serde(skip)]
    pub(crate) name: String,
    pub(crate) program: String,
    pub(crate) language: String,
    /// Its origin, for the page.
    pub(crate) source: String,
    /// The folder that it is installed in, if another description has the same program.
    #[serde(default)]
    installed: Option<String>,
    #[serde(default)]
    pub(crate) note: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, Template>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    stdio: Option<Vec<String>>,
    #[serde(default)]
    http: Option<Http>,
    /// Limit of servers that it can have.
    #[serde(default = "unlimited")]
    pub(crate) servers: usize,
    /// The number of listed tools: for each server, and in addition.
    pub(crate) listed: Listed,
    /// The `params` of a call of a server's tool.
    call: Value,
    /// The same if there is only one server and the call differs then.
    #[serde(default)]
    call_alone: Option<Value>,
    /// Calls that must succeed once for each server before its tools can be called.
    #[serde(default)]
    before: Option<Value>,
    #[serde(default)]
    pub(crate) search: Option<Search>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Template {
    text: Vec<String>,
    #[serde(default)]
    server: Vec<String>,
    #[serde(default)]
    between: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Http {
    command: Vec<String>,
    #[serde(default = "usual_path")]
    path: String,
    /// Whether it uses the transport of 2024-11-05.
    #[serde(default)]
    sse: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Listed {
    pub(crate) per_tool: usize,
    pub(crate) per_server: usize,
    pub(crate) once: usize,
}

impl Listed {
    /// The number of tools that a host sees with this many servers.
    pub(crate) fn with(self, servers: usize, tools_each: usize) -> usize {
        self.per_tool * servers * tools_each + self.per_server * servers + self.once
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    /// The `params` of a call that searches for `{query}`.
    pub(crate) call: Value,
    /// The form of a hit's name in the reply.
    pub(crate) hit: String,
}

impl Description {
    pub(crate) fn read(file: &Path) -> Outcome<Self> {
        let text = fs::read_to_string(file)?;
        let mut one: Self =
            serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
        let stem = file.file_stem().and_then(|stem| stem.to_str());
        stem.unwrap_or_default().clone_into(&mut one.name);
        if one.stdio.is_none() && one.http.is_none() {
            return Err(format!("{}: neither stdio nor http", file.display()).into());
        }
        Ok(one)
    }

    /// All files in a folder, sorted by name; plugbay's own comes first.
    pub(crate) fn read_all(folder: &Path) -> Outcome<Vec<Self>> {
        let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        let mut all = files.iter().map(|file| Self::read(file)).collect::<Outcome<Vec<_>>>()?;
        all.sort_by_key(|one| (!one.is_ours(), one.name.clone()));
        Ok(all)
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.program == OURS
    }

    /// The folder that it is installed in.
    pub(crate) fn home(&self) -> &str {
        self.installed.as_deref().unwrap_or(&self.name)
    }

    pub(crate) fn has(&self, transport: Transport) -> bool {
        match transport {
            Transport::Stdio => self.stdio.is_some(),
            Transport::Http => self.http.is_some(),
        }
    }

    /// The transport for everything except the calls.
    pub(crate) fn usual_transport(&self) -> Transport {
        if self.stdio.is_some() { Transport::Stdio } else { Transport::Http }
    }

    /// Whether its HTTP is the transport of 2024-11-05.
    pub(crate) fn is_streamed(&self) -> bool {
        self.http.as_ref().is_some_and(|http| http.sse)
    }

    /// The path of its endpoint.
    pub(crate) fn path(&self, server: &str) -> String {
        self.http.as_ref().map_or_else(usual_path, |http| http.path.replace("{server}", server))
    }

    /// The `params` of a call; `alone` if the server is the only one.
    pub(crate) fn call(&self, server: &str, tool: &str, arguments: &Value, alone: bool) -> Value {
        let template = self.call_alone.as_ref().filter(|_| alone).unwrap_or(&self.call);
        fill(template, &[("{server}", server), ("{tool}", tool)], arguments)
    }

    /// The `params` of a call that makes a server's tools callable.
    pub(crate) fn before(&self, server: &str) -> Option<Value> {
        Some(fill(self.before.as_ref()?, &[("{server}", server)], &Value::Null))
    }

    /// The command to spawn; its files are written.
    pub(crate) fn command(
        &self,
        program: &Path,
        transport: Transport,
        port: u16,
        sandbox: &Sandbox,
        servers: &[Server],
    ) -> Outcome<Command> {
        let home = sandbox.path("home");
        let (home_text, port) = (home.display().to_string(), port.to_string());
        let program = program.display().to_string();
        let values = [("{home}", &*home_text), ("{port}", &*port), ("{program}", &*program)];
        for (path, template) in &self.files {
            template.write(&home, path, servers, &values)?;
        }
        let words = match transport {
            Transport::Stdio => self.stdio.as_ref(),
            Transport::Http => self.http.as_ref().map(|http| &http.command),
        };
        let words = words.ok_or_else(|| format!("{} has no {}", self.name, transport.label()))?;
        let mut words = words.iter().map(|word| replace(word, &values));
        let mut command = Command::new(words.next().ok_or("an empty command")?);
        // Outside of any project with its own config file.
        command.args(words).current_dir(&home);
        sandbox.confine(&mut command);
        command.envs(self.environment.iter().map(|(key, value)| (key, replace(value, &values))));
        Ok(command)
    }
}

impl Template {
    /// Writes one file, or one for each server if the path contains the server's name.
    fn write(&self, home: &Path, path: &str, servers: &[Server], values: &[(&str, &str)]) -> Outcome<()> {
        let write = |path: &str, servers: &[Server]| -> Outcome<()> {
            let file = home.join(path);
            fs::create_dir_all(file.parent().unwrap_or(home))?;
            Ok(fs::write(file, replace(&self.render(servers)?, values))?)
        };
        if !path.contains("{server}") {
            return write(path, servers);
        }
        servers
            .iter()
            .try_for_each(|one| write(&path.replace("{server}", &one.name), std::slice::from_ref(one)))
    }

    fn render(&self, servers: &[Server]) -> Outcome<String> {
        let template = self.server.join("\n");
        let mut entries = Vec::new();
        for server in servers {
            let words = server.words()?;
            let (command, args) = (json!(words[0]).to_string(), json!(words[1..]).to_string());
            let line = json!(words.join(" ")).to_string();
            let values = [
                ("{server}", &*server.name),
                ("{command}", &*command),
                ("{args}", &*args),
                ("{line}", &*line),
            ];
            entries.push(replace(&template, &values));
        }
        Ok(self.text.join("\n").replace("{servers}", &entries.join(&self.between)))
    }
}

/// A template with its placeholders replaced. `{arguments}` alone stands for the whole object, and
/// `{arguments_text}` for its text.
pub(crate) fn fill(template: &Value, values: &[(&str, &str)], arguments: &Value) -> Value {
    match template {
        Value::String(text) if text == "{arguments}" => arguments.clone(),
        Value::String(text) if text == "{arguments_text}" => Value::from(arguments.to_string()),
        Value::String(text) => Value::from(replace(text, values)),
        Value::Array(items) => items.iter().map(|item| fill(item, values, arguments)).collect(),
        Value::Object(members) => {
            let filled =
                members.iter().map(|(key, value)| (replace(key, values), fill(value, values, arguments)));
            Value::Object(filled.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn replace(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.to_owned(), |text, (word, value)| text.replace(word, value))
}

fn usual_path() -> String {
    "/mcp".to_owned()
}

fn unlimited() -> usize {
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_description_of_the_repository_is_read() {
        let all = Description::read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("rivals")).unwrap();
        assert!(all.len() > 10 && all[0].is_ours());
    }

    #[test]
    fn a_template_takes_its_values() {
        let template =
            json!({ "name": "run", "arguments": { "tool": "{server}.{tool}", "args": "{arguments}" } });
        let filled = fill(&template, &[("{server}", "s"), ("{tool}", "t")], &json!({ "size": 1 }));
        assert_eq!(filled, json!({ "name": "run", "arguments": { "tool": "s.t", "args": { "size": 1 } } }));
    }

    #[test]
    fn a_file_has_an_entry_for_each_server() {
        let template = Template {
            text: vec!["[servers]".to_owned(), "{servers}".to_owned()],
            server: vec!["{server} = {args}".to_owned()],
            between: "\n".to_owned(),
        };
        let servers = [Server::new("a", ["--x".to_owned()]), Server::new("b", [])];
        let text = template.render(&servers).unwrap();
        assert_eq!(text, "[servers]\na = [\"stub\",\"--x\"]\nb = [\"stub\"]");
    }
}
