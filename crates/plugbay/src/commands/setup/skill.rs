//! The skill for Claude Code, as a part of setup.

use std::{fs, path::PathBuf};

use super::{Context, plan::Edit, survey::read_text};
use crate::{commands::skill, settings, skill_text::SKILL};

/// The host that has skills.
pub const HOST: &str = "claude-code";

/// plugbay's copy of the skill, and the link to it in Claude Code's folder.
#[derive(Debug)]
pub struct Skill {
    pub copy: Edit,
    pub link: PathBuf,
}

impl Skill {
    /// `None` if there is nothing to install: the skill is there, or there is no folder for it.
    pub fn missing(context: &Context) -> Option<Self> {
        let link = settings::claude_code().1?.join(skill::BELOW_CLAUDE);
        let path = context.source.paths.user_file.as_ref()?.with_file_name(skill::FILE);
        let old = read_text(&path).ok()?;
        let linked = fs::read_link(&link).is_ok_and(|target| target == path);
        let copied = !link.is_symlink() && read_text(&link).ok().flatten().as_deref() == Some(SKILL);
        let copy = Edit { path, old, new: SKILL.to_owned() };
        (!copied && (!linked || copy.changes())).then_some(Self { copy, link })
    }
}
