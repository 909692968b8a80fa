//! Plugins of Claude Code: `.mcp.json`, or `mcpServers` in `.claude-plugin/plugin.json`.

use std::path::Path;

use plugbay_hosts::{jsonc, known::Places, read};
use serde_json::{Value, json};

use super::{Layout, Plugin, claude_folder, fill, set_variables};
use crate::{files, import::source::Reading};

const MANIFEST: &str = ".claude-plugin/plugin.json";
const SERVERS: &str = ".mcp.json";
const ROOT: &str = "CLAUDE_PLUGIN_ROOT";
const DATA: &str = "CLAUDE_PLUGIN_DATA";

/// The plugins in Claude Code's list of installed plugins, for the user and for this project.
pub(super) fn installed(places: &Places) -> Vec<Plugin> {
    let folder = claude_folder(places);
    let list = parse(&folder.join("plugins/installed_plugins.json"));
    let settings = parse(&folder.join("settings.json"));
    let plugins = list.get("plugins").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut found = Vec::new();
    for (id, installs) in &plugins {
        // Older lists have one installation per plugin.
        let installs = installs.as_array().cloned().unwrap_or_else(|| vec![installs.clone()]);
        let disabled = settings["enabledPlugins"].get(id) == Some(&Value::Bool(false));
        for install in &installs {
            let Some(root) = install.get("installPath").and_then(Value::as_str) else { continue };
            let project = install.get("projectPath").and_then(Value::as_str).map(Into::into);
            if project.is_some() && project != places.project {
                continue;
            }
            let name = id.split('@').next().unwrap_or(id);
            let plugin = Plugin { project, disabled, ..plugin(name, Path::new(root), &folder) };
            if !found.contains(&plugin) {
                found.push(plugin);
            }
        }
    }
    found
}

/// The plugin in a folder that the user names.
pub(super) fn at(root: &Path, places: &Places) -> Option<Plugin> {
    let manifest = root.join(MANIFEST);
    if !manifest.is_file() {
        return None;
    }
    let name = parse(&manifest).get("name").and_then(Value::as_str).map(str::to_owned);
    let folder = || root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Some(plugin(&name.unwrap_or_else(folder), root, &claude_folder(places)))
}

fn plugin(name: &str, root: &Path, folder: &Path) -> Plugin {
    let (data, layout) = (folder.join("plugins/data").join(name), Layout::ClaudeCode);
    Plugin { name: name.to_owned(), root: root.to_owned(), data, project: None, disabled: false, layout }
}

pub(super) fn read(plugin: &Plugin, reading: &mut Reading) {
    let manifest = plugin.root.join(MANIFEST);
    let declared = parse(&manifest).get("mcpServers").cloned();
    let declared = match declared {
        None => vec![SERVERS.into()],
        Some(Value::Array(parts)) => parts,
        Some(part) => vec![part],
    };
    for part in declared {
        match part {
            Value::String(path) => {
                let file = plugin.root.join(path.trim_start_matches("./"));
                if let Some(text) = reading.text(&file) {
                    reading.take(&plugin.source(&file), read::read_any(&file, &text));
                }
            }
            servers => {
                let text = json!({ "mcpServers": servers }).to_string();
                reading.take(&plugin.source(&manifest), read::read_any(&manifest, &text));
            }
        }
    }
    let (root, data) = (plugin.root.to_string_lossy(), plugin.data.to_string_lossy());
    for found in &mut reading.found {
        let replace =
            |text: &str| text.replace(&format!("${{{ROOT}}}"), &root).replace(&format!("${{{DATA}}}"), &data);
        fill(&mut found.entry, replace);
        set_variables(&mut found.entry, &[(ROOT, &plugin.root)]);
    }
}

/// Reads a JSON file; null if it cannot be read, because the import need not report a broken file of Claude
/// Code.
fn parse(file: &Path) -> Value {
    let text = files::read_text(file).unwrap_or_default();
    jsonc::get(&text, &[]).ok().flatten().unwrap_or_default()
}
