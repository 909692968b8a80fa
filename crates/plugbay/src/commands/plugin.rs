//! `plugbay plugin`: writes a plugin that contains the skill, and plugbay as an MCP server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{CommandError, Context, skill::write};
use crate::skill_text::{SKILL, with_fields};

const README: &str = include_str!("../../assets/plugin/README.md");
/// The prefix that Claude Code gives to tools of a configured server, and the one for tools of a plugin's
/// server.
const PREFIX: &str = "mcp__plugbay__";
const PLUGIN_PREFIX: &str = "mcp__plugin_plugbay_plugbay__";
const NAME: &str = "plugbay";

/// Write a plugin for a host: the skill, and plugbay as server.
#[derive(Debug, clap::Args)]
pub struct PluginArgs {
    /// The layout of the plugin's files.
    #[arg(long, value_enum, default_value_t = Layout::ClaudeCode)]
    layout: Layout,
    /// The folder to write the plugin to.
    folder: PathBuf,
}

/// How a plugin's files are named and what they contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Layout {
    /// For Claude Code.
    ClaudeCode,
    /// Agent Plugins 1.0, for hosts such as VS Code, Cursor, Copilot and Codex.
    AgentPlugins,
}

pub fn plugin(context: &Context, args: &PluginArgs) -> Result<ExitCode, CommandError> {
    let PluginArgs { layout, folder } = args;
    if !layout.is_free(folder) {
        let what = format!("{} contains something else than a plugin of plugbay", folder.display());
        return Err(CommandError::failed(what).hint("give an empty folder, or one that does not exist yet"));
    }
    for (file, text) in layout.files() {
        write(&folder.join(file), &text)?;
    }
    let mut note = format!("wrote a plugin to {}", folder.display());
    if *layout == Layout::ClaudeCode {
        note.push_str("; try `claude plugin validate` on it");
    }
    context.output.note(note);
    Ok(ExitCode::SUCCESS)
}

impl Layout {
    fn files(self) -> [(&'static str, String); 4] {
        [
            (self.manifest_file(), format!("{:#}\n", self.manifest())),
            (self.servers_file(), format!("{:#}\n", self.servers())),
            ("README.md", self.readme()),
            ("skills/plugbay/SKILL.md", self.skill()),
        ]
    }

    fn manifest_file(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".claude-plugin/plugin.json",
            Self::AgentPlugins => "plugin.json",
        }
    }

    fn servers_file(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".mcp.json",
            Self::AgentPlugins => "mcp.json",
        }
    }

    /// The manifest fields that both layouts share. Agent Plugins rejects any others, and requires the
    /// schema.
    fn manifest(self) -> Value {
        let mut manifest = json!({
            "name": NAME,
            "description": env!("CARGO_PKG_DESCRIPTION"),
            "version": env!("CARGO_PKG_VERSION"),
            "author": { "name": NAME },
            "license": env!("CARGO_PKG_LICENSE"),
        });
        if self == Self::AgentPlugins {
            manifest["$schema"] = schema("plugin").into();
        }
        manifest
    }

    fn servers(self) -> Value {
        let args = ["serve"];
        match self {
            Self::ClaudeCode => json!({ "mcpServers": { NAME: { "command": NAME, "args": args } } }),
            Self::AgentPlugins => json!({
                "$schema": schema("mcp"),
                "mcpServers": { NAME: { "type": "stdio", "command": NAME, "args": args } },
            }),
        }
    }

    fn readme(self) -> String {
        let option = match self {
            Self::ClaudeCode => "",
            Self::AgentPlugins => "--layout agent-plugins ",
        };
        README.replace("plugbay plugin FOLDER", &format!("plugbay plugin {option}FOLDER"))
    }

    fn skill(self) -> String {
        match self {
            Self::ClaudeCode => SKILL.replace(PREFIX, PLUGIN_PREFIX),
            Self::AgentPlugins => portable_skill(),
        }
    }

    /// Whether the folder is empty, absent, or an earlier plugin of plugbay: a project's own `.mcp.json` is
    /// never overwritten.
    fn is_free(self, folder: &Path) -> bool {
        let empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
        let manifest = fs::read(folder.join(self.manifest_file())).unwrap_or_default();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap_or_default();
        empty || manifest["name"] == NAME
    }
}

/// The name of an Agent Plugins schema. Hosts compare it as text and do not download it.
fn schema(of: &str) -> String {
    format!("https://agent-plugins.org/schemas/1.0.0/{of}.schema.json")
}

/// The skill with only the fields that Agent Skills allows. It allows no tools in advance, because their
/// names differ between hosts.
fn portable_skill() -> String {
    let added =
        [("license", env!("CARGO_PKG_LICENSE")), ("compatibility", "Needs the program plugbay on the PATH.")];
    with_fields(&["name: ", "description: "], &added)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_written_over_nothing_but_a_plugin_of_the_same_layout() {
        let folder = tempfile::tempdir().unwrap();
        let within = |name: &str| folder.path().join(name);
        for layout in [Layout::ClaudeCode, Layout::AgentPlugins] {
            assert!(layout.is_free(&within("new")));
            let own = within(layout.manifest_file().trim_end_matches("/plugin.json"));
            write(&own.join(layout.manifest_file()), r#"{"name":"plugbay"}"#).unwrap();
            assert!(layout.is_free(&own));
            write(&own.join(layout.manifest_file()), r#"{"name":"other"}"#).unwrap();
            assert!(!layout.is_free(&own));
        }
        write(&within("project/.mcp.json"), "{}").unwrap();
        assert!(!Layout::ClaudeCode.is_free(&within("project")));
        write(&within("other/plugin.json"), r#"{"name":"plugbay"}"#).unwrap();
        assert!(!Layout::ClaudeCode.is_free(&within("other")));
    }

    #[test]
    fn a_portable_skill_has_the_fields_of_agent_skills_and_the_whole_body() {
        let skill = portable_skill();
        let (fields, body) = skill.strip_prefix("---\n").unwrap().split_once("---\n").unwrap();
        let names: Vec<&str> = fields.lines().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(names, ["name", "description", "license", "compatibility"]);
        assert!(SKILL.ends_with(&format!("---\n{body}")) && body.len() > 1000, "{body}");
    }
}
