//! Plugins of the Agent Plugins 1.0 layout: `plugin.json` and `mcp.json` in the root of the plugin.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use plugbay_hosts::{Entry, Launch, jsonc, known::Places, read};
use serde_json::{Value, json};

use super::{Layout, Plugin, fill, set_variables};
use crate::{files, import::source::Reading};

const MANIFEST: &str = "plugin.json";
const SERVERS: &str = "mcp.json";
const SCHEMAS: &str = "https://agent-plugins.org/schemas/";
const VERSION: &str = "1.0.0";
const ROOT: &str = "PLUGIN_ROOT";
const DATA: &str = "PLUGIN_DATA";

/// The plugins in the folder that hosts share, the user's and the project's. The specification names no
/// folder; this is the one in its examples.
pub(super) fn installed(places: &Places) -> Vec<Plugin> {
    let project = places.project.clone();
    let roots = [(Some(places.home.clone()), None), (project.clone(), project)];
    let mut found = Vec::new();
    for (above, project) in roots {
        let Some(folder) = above.map(|above| above.join(".agents/plugins")) else { continue };
        let mut roots: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        roots.sort();
        let plugins = roots.iter().filter_map(|root| at(root, places));
        found.extend(plugins.map(|plugin| Plugin { project: project.clone(), ..plugin }));
    }
    found
}

/// The plugin in this folder.
pub(super) fn at(root: &Path, places: &Places) -> Option<Plugin> {
    let manifest = parse(&root.join(MANIFEST)).ok()?;
    schema(&manifest)?;
    let name = manifest.get("name")?.as_str()?.to_owned();
    let (root, data) = (root.to_owned(), places.home.join(".agents/plugins/data").join(&name));
    Some(Plugin { name, root, data, project: None, disabled: false, layout: Layout::AgentPlugins })
}

/// Adds the servers. An invalid entry affects only itself, an invalid file all servers of the plugin.
pub(super) fn read(plugin: &Plugin, reading: &mut Reading) {
    let file = plugin.root.join(SERVERS);
    if !file.exists() {
        return;
    }
    let servers = match servers(plugin, &file) {
        Ok(servers) => servers,
        Err(reason) => return reading.problem(&file, None, reason),
    };
    for (name, server) in servers.as_object().into_iter().flatten() {
        match entry(plugin, name, server) {
            Ok(entry) => reading.server(&plugin.source(&file), entry, None),
            Err(reason) => reading.problem(&file, Some(name.clone()), reason),
        }
    }
    reading.files.push(file);
}

fn servers(plugin: &Plugin, file: &Path) -> Result<Value, String> {
    let manifest = parse(&plugin.root.join(MANIFEST))?;
    let config = parse(file)?;
    for (document, kind) in [(&manifest, "plugin"), (&config, "mcp")] {
        let expected = format!("{SCHEMAS}{VERSION}/{kind}.schema.json");
        if schema(document) != Some(&expected) {
            return Err(format!(
                "plugbay knows Agent Plugins {VERSION}: `$schema` of {kind}.json is not {expected}"
            ));
        }
    }
    let servers = config.get("mcpServers").filter(|servers| servers.is_object());
    servers.cloned().ok_or_else(|| "`mcpServers` is not an object".to_owned())
}

/// A valid entry with its placeholders replaced. Reasons complete "`NAME` …".
fn entry(plugin: &Plugin, name: &str, server: &Value) -> Result<Entry, String> {
    let kind = server.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("stdio" | "streamable-http" | "sse")) {
        return Err("has no `type` of stdio, streamable-http or sse".to_owned());
    }
    let text = json!({ "mcpServers": { name: server } }).to_string();
    let read = read::read_any(Path::new(SERVERS), &text).map_err(|error| error.to_string())?;
    let mut entry = match (read.found.into_iter().next(), read.problems.into_iter().next()) {
        (Some(found), _) => found.entry,
        (None, problem) => return Err(problem.map(|problem| problem.reason).unwrap_or_default()),
    };
    match (&mut entry.launch, kind == Some("stdio")) {
        (Launch::Process { command, cwd, env, .. }, true) => {
            *command = plugin.command(command)?;
            *cwd = Some(plugin.working_folder(cwd.as_deref())?);
            if env.contains_key(ROOT) || env.contains_key(DATA) {
                return Err(format!("sets {ROOT} or {DATA}, which belong to the host"));
            }
        }
        (Launch::Remote(_), false) => return Ok(entry),
        _ => return Err("has fields of another `type`".to_owned()),
    }
    let program = |entry: &Entry| match &entry.launch {
        Launch::Process { command, .. } => command.clone(),
        Launch::Remote(_) => String::new(),
    };
    let unfilled = program(&entry);
    fill(&mut entry, |text| plugin.filled(text));
    if let Launch::Process { command, .. } = &mut entry.launch {
        *command = unfilled; // placeholders have no meaning in it
    }
    set_variables(&mut entry, &[(ROOT, &plugin.root), (DATA, &plugin.data)]);
    entry.notes.push(format!("create its folder for data: {}", plugin.data.display()));
    Ok(entry)
}

impl Plugin {
    /// A bare name, or a path in the plugin.
    fn command(&self, command: &str) -> Result<String, String> {
        if command.starts_with("./") {
            return Ok(inside(&self.root, &self.root.join(command))?.to_string_lossy().into_owned());
        }
        let bare = !command.contains(['/', '\\']);
        bare.then(|| command.to_owned())
            .ok_or_else(|| "has a `command` that is neither a bare name nor begins with `./`".to_owned())
    }

    fn working_folder(&self, cwd: Option<&str>) -> Result<String, String> {
        let folder = match cwd {
            None => self.root.clone(),
            Some(cwd) if cwd.starts_with("./") => inside(&self.root, &self.root.join(cwd))?,
            Some(cwd) if is_below(cwd, ROOT) => inside(&self.root, Path::new(&self.filled(cwd)))?,
            Some(cwd) if is_below(cwd, DATA) => inside(&self.data, Path::new(&self.filled(cwd)))?,
            Some(_) => return Err("has a `cwd` outside the plugin".to_owned()),
        };
        Ok(folder.to_string_lossy().into_owned())
    }

    fn filled(&self, text: &str) -> String {
        let root = format!("${{{ROOT}}}");
        let parts = text.split(&root);
        let data = |part: &str| part.replace(&format!("${{{DATA}}}"), &self.data.to_string_lossy());
        // Replaced values are not searched for further placeholders.
        parts.map(data).collect::<Vec<_>>().join(&self.root.to_string_lossy())
    }
}

/// The path without `.` and `..`, if it is inside the folder even with all links resolved.
fn inside(folder: &Path, path: &Path) -> Result<PathBuf, String> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let leads_in = plain.starts_with(folder) && (!plain.exists() || real(&plain).starts_with(real(folder)));
    leads_in.then_some(plain).ok_or_else(|| "leads out of the plugin".to_owned())
}

/// `${NAME}` itself, or a path that begins with it.
fn is_below(path: &str, name: &str) -> bool {
    let rest = path.strip_prefix(&format!("${{{name}}}"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn schema(document: &Value) -> Option<&str> {
    document.get("$schema")?.as_str().filter(|schema| schema.starts_with(SCHEMAS))
}

fn parse(file: &Path) -> Result<Value, String> {
    let text = files::read_text(file).map_err(|error| format!("cannot be read: {error}"))?;
    jsonc::get(&text, &[]).map_err(|error| error.to_string())?.ok_or_else(|| "is empty".to_owned())
}
