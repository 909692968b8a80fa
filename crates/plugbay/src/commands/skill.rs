//! `plugbay skill`: writes a skill that teaches Claude Code to use the gateway.

use std::{
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{CommandError, Context};
use crate::{settings, skill_text::SKILL};

/// Where Claude Code looks for skills, below the home folder.
const SKILLS: &str = ".claude/skills/plugbay";
/// The skill's place below Claude Code's folder.
pub const BELOW_CLAUDE: &str = "skills/plugbay/SKILL.md";
pub const FILE: &str = "SKILL.md";

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
    // Linked, so that a newer plugbay only needs to write its own copy.
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

pub(super) fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    let parent = file.parent().map(Path::to_path_buf).unwrap_or_default();
    let written = fs::create_dir_all(parent).and_then(|()| fs::write(file, text));
    written.map_err(|error| failed(file, &error))
}

/// Creates the link, replacing an older link or copy.
fn link(own: &Path, place: &Path) -> Result<(), CommandError> {
    let parent: PathBuf = place.parent().map(Path::to_path_buf).unwrap_or_default();
    fs::create_dir_all(parent).map_err(|error| failed(place, &error))?;
    match fs::remove_file(place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(place, &error)),
        _ => {}
    }
    symlink(own, place).map_err(|error| failed(place, &error))
}

/// Removes a link: a copy must not be written through it into its target.
fn remove_link(place: &Path) -> Result<(), CommandError> {
    if fs::symlink_metadata(place).is_ok_and(|found| found.is_symlink()) {
        fs::remove_file(place).map_err(|error| failed(place, &error))?;
    }
    Ok(())
}

fn failed(file: &Path, error: &io::Error) -> CommandError {
    CommandError::failed(format!("cannot write {}: {error}", file.display()))
}
