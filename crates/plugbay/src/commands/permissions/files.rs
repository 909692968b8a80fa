//! The files that contain Claude Code's permission rules.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::rules::{Rules, Weight};
use crate::files;

/// The managed settings: an organisation's rules for all users of this machine.
const MANAGED: &str =
    if cfg!(target_os = "macos") { "/Library/Application Support/ClaudeCode" } else { "/etc/claude-code" };

/// The places where Claude Code looks for its settings.
#[derive(Debug)]
pub struct Places {
    managed: PathBuf,
    /// The project that Claude Code was started in, if it says so; `cwd` may be anywhere below.
    project: Option<PathBuf>,
    /// The folder of its user's settings.
    user: Option<PathBuf>,
}

impl Places {
    pub fn new(project: Option<PathBuf>, user: Option<PathBuf>) -> Self {
        Self { managed: PathBuf::from(MANAGED), project, user }
    }

    /// The combined rules of all files, for a session in this folder.
    pub(super) fn rules(&self, cwd: &Path) -> Rules {
        let mut rules = Rules::default();
        for file in self.managed_files() {
            rules = with(rules, &file, Weight::All);
        }
        let weight = if rules.are_all() { Weight::Denials } else { Weight::All };
        for file in self.other_files(cwd) {
            rules = with(rules, &file, weight);
        }
        rules
    }

    fn managed_files(&self) -> Vec<PathBuf> {
        let fragments = fs::read_dir(self.managed.join("managed-settings.d")).into_iter().flatten().flatten();
        let fragments = fragments.map(|entry| entry.path());
        let mut files = vec![self.managed.join("managed-settings.json")];
        files.extend(fragments.filter(|file| file.extension().is_some_and(|end| end == "json")));
        files
    }

    fn other_files(&self, cwd: &Path) -> Vec<PathBuf> {
        let above = |folder: &Path, sign: &str| {
            folder.ancestors().find(|folder| folder.join(sign).exists()).map(Path::to_owned)
        };
        let project =
            self.project.clone().or_else(|| above(cwd, ".claude")).unwrap_or_else(|| cwd.to_owned());
        let mut files =
            vec![project.join(".claude/settings.json"), project.join(".claude/settings.local.json")];
        // Local settings are kept at the root of the repository.
        files.extend(above(&project, ".git").map(|root| root.join(".claude/settings.local.json")));
        files.extend(self.user.as_ref().map(|user| user.join("settings.json")));
        files
    }
}

/// Adds the rules of a file. One that exists but cannot be read may deny anything.
fn with(rules: Rules, file: &Path, weight: Weight) -> Rules {
    match files::read_text(file) {
        Ok(text) => rules.with(text, weight),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => rules,
        Err(_) => rules.with("", weight),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::rules::Decision, *};

    /// A user and a machine, with a project that has folders below it.
    fn world() -> (tempfile::TempDir, Places) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("repo/project/sub")).unwrap();
        let places = Places {
            managed: root.path().join("managed"),
            project: None,
            user: Some(root.path().join("home/.claude")),
        };
        (root, places)
    }

    fn write(root: &Path, file: &str, text: &str) {
        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn decide(places: &Places, cwd: &Path) -> Option<Decision> {
        places.rules(cwd).decide(&["mcp__notes__delete"]).map(|(decision, _)| decision)
    }

    const ALLOW: &str = r#"{"permissions":{"allow":["mcp__notes"]}}"#;
    const DENY: &str = r#"{"permissions":{"deny":["mcp__notes__delete"]}}"#;

    #[test]
    fn a_denial_in_any_file_wins() {
        for file in [
            "managed/managed-settings.json",
            "managed/managed-settings.d/10-mcp.json",
            "repo/project/.claude/settings.json",
            "repo/project/.claude/settings.local.json",
            "repo/.claude/settings.local.json",
            "home/.claude/settings.json",
        ] {
            for allowing in ["managed/managed-settings.json", "home/.claude/settings.json"] {
                let (root, places) = world();
                write(root.path(), "repo/.git", "");
                write(root.path(), "repo/project/.claude/other", "");
                write(root.path(), allowing, ALLOW);
                let sub = root.path().join("repo/project/sub");
                assert_eq!(decide(&places, &sub), Some(Decision::Allow), "{allowing}");
                if file != allowing {
                    write(root.path(), file, DENY);
                    assert_eq!(decide(&places, &sub), Some(Decision::Deny), "{file} {allowing}");
                }
            }
        }
    }

    #[test]
    fn the_project_is_what_claude_code_says() {
        let (root, places) = world();
        write(root.path(), "repo/project/.claude/settings.json", DENY);
        write(root.path(), "elsewhere/.claude/settings.json", ALLOW);
        let elsewhere = root.path().join("elsewhere");
        assert_eq!(decide(&places, &elsewhere), Some(Decision::Allow));
        let places = Places { project: Some(root.path().join("repo/project")), ..places };
        assert_eq!(decide(&places, &elsewhere), Some(Decision::Deny));
    }

    #[test]
    fn what_cannot_be_read_lets_nothing_pass() {
        let (root, places) = world();
        let project = root.path().join("repo/project");
        write(root.path(), "home/.claude/settings.json", ALLOW);
        write(root.path(), "repo/project/.claude/settings.json", "{ broken");
        assert_eq!(decide(&places, &project), Some(Decision::Ask));
    }

    #[test]
    fn an_organisation_may_keep_permissions_to_itself() {
        let (root, places) = world();
        let project = root.path().join("repo/project");
        write(root.path(), "home/.claude/settings.json", ALLOW);
        write(root.path(), "managed/managed-settings.json", r#"{"allowManagedPermissionRulesOnly":true}"#);
        assert_eq!(decide(&places, &project), None);
        write(root.path(), "repo/project/.claude/settings.json", DENY);
        assert_eq!(decide(&places, &project), Some(Decision::Deny));
    }
}
