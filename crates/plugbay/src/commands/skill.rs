//! `plugbay skill` and `plugbay plugin`: write a skill and a plugin that teach Claude Code to use the gateway.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::{Value, json};

use super::{CommandError, Context};
use crate::settings;

const SKILL: &str = include_str!("../../assets/SKILL.md");
const README: &str = include_str!("../../assets/plugin/README.md");
/// The prefixes that Claude Code gives to tools of a configured server, and of a plugin's server.
const PREFIX: &str = "mcp__plugbay__";
const PLUGIN_PREFIX: &str = "mcp__plugin_plugbay_plugbay__";
/// Where Claude Code looks for skills, below the home folder.
const SKILLS: &str = ".claude/skills/plugbay";
const FILE: &str = "SKILL.md";
const PLUGIN: &str = "plugbay";
const MANIFEST: &str = ".claude-plugin/plugin.json";

/// Print or install the skill that teaches Claude Code the gateway.
#[derive(Debug, clap::Args)]
pub struct SkillArgs {
    /// Install it as a link in Claude Code's folder of skills.
    #[arg(long)]
    install: bool,
    /// Install it as a copy.
    #[arg(long)]
    copy: bool,
}

/// Write a plugin for Claude Code: the skill, and plugbay as server.
#[derive(Debug, clap::Args)]
pub struct PluginArgs {
    /// The folder to write the plugin to.
    folder: PathBuf,
}

pub fn skill(context: &Context, args: &SkillArgs) -> Result<ExitCode, CommandError> {
    if !args.install && !args.copy {
        context.output.raw(SKILL);
        return Ok(ExitCode::SUCCESS);
    }
    let home = settings::home()
        .ok_or_else(|| CommandError::failed("there is no home folder to install the skill in"))?;
    let place = home.join(SKILLS).join(FILE);
    let user_file = context.source.paths.user_file.as_deref();
    let own = user_file.unwrap_or(&home).with_file_name(FILE);
    // Linked, so that a newer plugbay only has to write its own copy.
    if args.copy {
        remove_link(&place)?;
        write(&place, SKILL)?;
        context.output.note(format!("wrote {}", place.display()));
    } else {
        write(&own, SKILL)?;
        link(&own, &place)?;
        context.output.note(format!("{} is a link to {}", place.display(), own.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a plugin for Claude Code: the skill, and plugbay as its MCP server.
pub fn plugin(context: &Context, args: &PluginArgs) -> Result<ExitCode, CommandError> {
    let folder = &args.folder;
    let manifest = json!({
        "name": PLUGIN,
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "version": env!("CARGO_PKG_VERSION"),
        "author": { "name": "plugbay" },
        "license": env!("CARGO_PKG_LICENSE"),
    });
    if !is_free(folder) {
        let what = format!("{} contains something else than a plugin of plugbay", folder.display());
        return Err(CommandError::failed(what).hint("give an empty folder, or one that does not exist yet"));
    }
    let servers = json!({ "mcpServers": { "plugbay": { "command": "plugbay", "args": ["serve"] } } });
    write(&folder.join(MANIFEST), &format!("{manifest:#}\n"))?;
    write(&folder.join(".mcp.json"), &format!("{servers:#}\n"))?;
    write(&folder.join("README.md"), README)?;
    write(&folder.join("skills/plugbay").join(FILE), &SKILL.replace(PREFIX, PLUGIN_PREFIX))?;
    context
        .output
        .note(format!("wrote a plugin to {}; try `claude plugin validate` on it", folder.display()));
    Ok(ExitCode::SUCCESS)
}

/// Empty, absent, or an earlier plugin of plugbay: a project's own `.mcp.json` is never overwritten.
fn is_free(folder: &Path) -> bool {
    let empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
    let manifest = fs::read(folder.join(MANIFEST)).unwrap_or_default();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap_or_default();
    empty || manifest["name"] == PLUGIN
}

fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    let parent = file.parent().map(Path::to_path_buf).unwrap_or_default();
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(file, text));
    written.map_err(|error| failed(file, &error))
}

/// Over whatever stands there: an older link, or a copy.
fn link(own: &Path, place: &Path) -> Result<(), CommandError> {
    let parent: PathBuf = place.parent().map(Path::to_path_buf).unwrap_or_default();
    fs::create_dir_all(parent).map_err(|error| failed(place, &error))?;
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(place, &error)),
        _ => {}
    }
    symlink(own, place).map_err(|error| failed(place, &error))
}

/// A copy must not be written through a link into what it points to.
fn remove_link(place: &Path) -> Result<(), CommandError> {
    if fs::symlink_metadata(place).is_ok_and(|found| found.is_symlink()) {
        fs::remove_file(place).map_err(|error| failed(place, &error))?;
    }
    Ok(())
}

fn failed(file: &Path, error: &io::Error) -> CommandError {
    CommandError::failed(format!("cannot write {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_written_over_nothing_but_itself() {
        let folder = tempfile::tempdir().unwrap();
        let within = |name: &str| folder.path().join(name);
        assert!(is_free(&within("new")) && is_free(folder.path()));
        write(&within("own").join(MANIFEST), r#"{"name":"plugbay"}"#).unwrap();
        assert!(is_free(&within("own")));
        write(&within("project/.mcp.json"), "{}").unwrap();
        assert!(!is_free(&within("project")));
    }
}
