//! The servers of installed plugins, in the layouts of Claude Code and of Agent Plugins 1.0.
//!
//! A host goes on starting the servers of its plugins, and an update moves a plugin to another folder. So an
//! import only names plugins, and copies their servers only if the user asks for it.

mod agent;
mod claude;

use std::path::{Path, PathBuf};

use plugbay_hosts::{Entry, Launch, known::Places};

use super::source::{Reading, Source};

/// A plugin on this machine that may have servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plugin {
    pub(super) name: String,
    root: PathBuf,
    /// The folder for the plugin's data.
    data: PathBuf,
    /// The project that the plugin is installed for.
    project: Option<PathBuf>,
    disabled: bool,
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    ClaudeCode,
    AgentPlugins,
}

/// The installed plugins that have servers: Claude Code's, and those in `~/.agents/plugins`.
pub(super) fn installed(places: &Places) -> Vec<Plugin> {
    let mut plugins = claude::installed(places);
    plugins.extend(agent::installed(places));
    plugins.retain(Plugin::has_servers);
    plugins
}

/// The plugin in this folder.
pub(super) fn at(root: &Path, places: &Places) -> Option<Plugin> {
    agent::at(root, places).or_else(|| claude::at(root, places))
}

/// Claude Code's folder.
pub(super) fn claude_folder(places: &Places) -> PathBuf {
    places.overrides.get("CLAUDE_CONFIG_DIR").cloned().unwrap_or_else(|| places.home.join(".claude"))
}

impl Plugin {
    /// Adds the servers of this plugin.
    pub(super) fn read(&self, reading: &mut Reading) {
        let mut own = Reading::default();
        match self.layout {
            Layout::ClaudeCode => claude::read(self, &mut own),
            Layout::AgentPlugins => agent::read(self, &mut own),
        }
        for found in &mut own.found {
            found.entry.disabled |= self.disabled;
            found
                .entry
                .notes
                .push(format!("it runs in {}, which an update of the plugin may move", self.root.display()));
        }
        reading.found.append(&mut own.found);
        reading.problems.append(&mut own.problems);
        reading.files.append(&mut own.files);
    }

    fn has_servers(&self) -> bool {
        let mut own = Reading::default();
        self.read(&mut own);
        !own.found.is_empty()
    }

    fn source<'a>(&'a self, file: &'a Path) -> Source<'a> {
        Source { project: self.project.clone(), ..Source::of(&self.name, file) }
    }
}

/// Changes every text in an entry's launch that may contain a placeholder.
fn fill(entry: &mut Entry, replace: impl Fn(&str) -> String) {
    let each = |text: &mut String| *text = replace(text);
    match &mut entry.launch {
        Launch::Process { command, args, env, cwd } => {
            each(command);
            args.iter_mut().chain(env.values_mut()).chain(cwd).for_each(each);
        }
        Launch::Remote(remote) => remote.change_texts(each),
    }
}

/// Sets variables of a process.
fn set_variables(entry: &mut Entry, variables: &[(&str, &Path)]) {
    if let Launch::Process { env, .. } = &mut entry.launch {
        let values =
            variables.iter().map(|(name, path)| ((*name).to_owned(), path.to_string_lossy().into_owned()));
        env.extend(values);
    }
}
