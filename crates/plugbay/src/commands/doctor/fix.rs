//! The fixes of `--fix`: values that are shown before they are applied.

use std::{
    fmt, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use plugbay_hosts::{jsonc, known::Host};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{
    commands::approve::Proposed,
    config::{self, Content, Paths, Position},
    files,
    journal::{Journal, Part, Target},
};

/// A change to a file, with everything needed to show it and to make it.
#[derive(Debug, Clone)]
pub enum Fix {
    /// Sets members of a JSON file; comments and the rest stay.
    Set {
        file: PathBuf,
        host: Option<&'static Host>,
        members: Vec<(Vec<String>, Value)>,
    },
    /// Removes a member of a JSON file.
    Remove {
        file: PathBuf,
        host: Option<&'static Host>,
        path: Vec<String>,
    },
    /// Moves a member of a JSON file.
    Move {
        file: PathBuf,
        from: Vec<String>,
        to: Vec<String>,
    },
    /// Corrects a key in place.
    RenameKey {
        file: PathBuf,
        at: Position,
        old: String,
        new: String,
    },
    MoveAside {
        file: PathBuf,
    },
    RemoveFile {
        file: PathBuf,
    },
    MakeExecutable {
        file: PathBuf,
    },
    /// Approves exactly the content that is shown.
    Approve(Proposed),
}

impl Fix {
    /// The order of fixes. Those that depend on places in a text come first, from the last place to the
    /// first; approvals last.
    pub fn rank(&self) -> impl Ord + use<> {
        match self {
            Self::RenameKey { at, .. } => (0, std::cmp::Reverse(Some(*at))),
            Self::Approve(_) => (2, std::cmp::Reverse(None)),
            _ => (1, std::cmp::Reverse(None)),
        }
    }

    /// Makes the change. The journal records how to undo every edit of a user's file.
    pub fn apply(&self, paths: &Paths, journal: &mut Journal) -> Result<(), String> {
        match self {
            Self::Approve(proposed) => {
                config::approve(paths, &proposed.contents).map_err(|error| error.to_string())
            }
            Self::MoveAside { file } => fs::rename(file, aside(file)).map_err(|error| of(file, &error)),
            Self::RemoveFile { file } => fs::remove_file(file).map_err(|error| of(file, &error)),
            Self::MakeExecutable { file } => make_executable(file).map_err(|error| of(file, &error)),
            Self::Set { file, .. }
            | Self::Remove { file, .. }
            | Self::Move { file, .. }
            | Self::RenameKey { file, .. } => self.edit_file(file, paths, journal),
        }
    }

    /// Whether the change is an edit that `plugbay setup --undo` can undo.
    pub fn is_edit(&self) -> bool {
        matches!(self, Self::Set { .. } | Self::Remove { .. } | Self::Move { .. } | Self::RenameKey { .. })
    }

    /// What was done, on one line.
    pub fn done(&self) -> String {
        let line = self.to_string();
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let verb = match verb {
            "write" => "wrote",
            "make" => "made",
            "remove" => "removed",
            "move" => "moved",
            "approve" => "approved",
            verb => verb,
        };
        format!("{verb} {rest}")
    }

    /// Edits a file. An approved file stays approved, because its user has just agreed to the change.
    fn edit_file(&self, file: &Path, paths: &Paths, journal: &mut Journal) -> Result<(), String> {
        let text = files::read_text(file).map_err(|error| of(file, &error))?;
        let approved = config::is_approved(paths, file, text.as_bytes());
        let edited = self.edit(&text).map_err(|error| of(file, &error))?;
        let target = self.target(file);
        journal.write(target, Some(text.as_bytes()), edited.as_bytes()).map_err(|error| error.to_string())?;
        if !approved {
            return Ok(());
        }
        let content = Content::of(file, edited.as_bytes());
        config::approve(paths, &[content]).map_err(|error| error.to_string())
    }

    fn target(&self, file: &Path) -> Target {
        let host = match self {
            Self::Set { host, .. } | Self::Remove { host, .. } => *host,
            _ => None,
        };
        let part = if host.is_some() { Part::Servers } else { Part::Configuration };
        let host = host.map(|host| host.id.clone());
        Target { command: "plugbay doctor", host, part, path: file.to_owned() }
    }

    /// The text of the file after the change.
    fn edit(&self, text: &str) -> Result<String, String> {
        let keys = |path: &[String]| path.to_vec();
        let failed = |error: jsonc::EditError| error.to_string();
        match self {
            Self::Set { members, .. } => members.iter().try_fold(text.to_owned(), |text, (path, value)| {
                jsonc::set(&text, &borrowed(path), jsonc::input(value)).map_err(failed)
            }),
            Self::Remove { path, .. } => {
                let edited = jsonc::remove(text, &borrowed(path)).map_err(failed)?;
                edited.ok_or_else(|| format!("there is no {}", path.join(".")))
            }
            Self::Move { from, to, .. } => {
                let (from, to) = (keys(from), keys(to));
                let value = jsonc::get(text, &borrowed(&from)).map_err(failed)?;
                let value = value.ok_or_else(|| format!("there is no {}", from.join(".")))?;
                let text = jsonc::set(text, &borrowed(&to), jsonc::input(&value)).map_err(failed)?;
                Ok(jsonc::remove(&text, &borrowed(&from)).map_err(failed)?.unwrap_or(text))
            }
            Self::RenameKey { at, old, new, .. } => renamed(text, *at, old, new),
            _ => Ok(text.to_owned()),
        }
    }
}

/// Shows the change on one line, without values that may be secrets.
impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set { file, members, .. } => {
                let set: Vec<String> =
                    members.iter().map(|(path, value)| format!("{} to {value}", path.join("."))).collect();
                write!(f, "set {} in {}", set.join(" and "), file.display())
            }
            Self::Remove { file, path, .. } => {
                write!(f, "remove {} from {}", path.join("."), file.display())
            }
            Self::Move { file, from, to } => {
                write!(f, "move {} to {} in {}", from.join("."), to.join("."), file.display())
            }
            Self::RenameKey { file, at, old, new } => {
                write!(f, "write \"{new}\" for \"{old}\" in line {} of {}", at.line, file.display())
            }
            Self::MoveAside { file } => write!(f, "move {} to {}", file.display(), aside(file).display()),
            Self::RemoveFile { file } => write!(f, "remove {}", file.display()),
            Self::MakeExecutable { file } => write!(f, "make {} executable", file.display()),
            Self::Approve(proposed) => write!(f, "approve {}", proposed.proposal.file.display()),
        }
    }
}

impl Serialize for Fix {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn borrowed(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn aside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".corrupt");
    file.with_file_name(name)
}

fn of(file: &Path, problem: &impl fmt::Display) -> String {
    format!("{}: {problem}", file.display())
}

fn make_executable(file: &Path) -> std::io::Result<()> {
    let mut permissions = fs::metadata(file)?.permissions();
    permissions.set_mode(permissions.mode() | 0o100);
    fs::set_permissions(file, permissions)
}

/// The text with the key at this place renamed.
fn renamed(text: &str, at: Position, old: &str, new: &str) -> Result<String, String> {
    let moved = || format!("line {} has changed meanwhile", at.line);
    let bom = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let line_start: usize =
        text[bom..].split_inclusive('\n').take(at.line - 1).map(str::len).sum::<usize>() + bom;
    let line = text.get(line_start..).ok_or_else(moved)?;
    let offset = line.char_indices().nth(at.column - 1).ok_or_else(moved)?.0;
    let quoted = Value::from(old).to_string();
    let rest = line[offset..].strip_prefix(&quoted).ok_or_else(moved)?;
    Ok(format!("{}{}{rest}", &text[..line_start + offset], Value::from(new)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_renamed_in_its_place_only() {
        let text = "{\n  // \"a\"\n  \"é\": 1, \"a\": \"a\"\n}";
        let at = Position { line: 3, column: 11 };
        assert_eq!(renamed(text, at, "a", "b").unwrap(), "{\n  // \"a\"\n  \"é\": 1, \"b\": \"a\"\n}");
        assert!(renamed(text, Position { line: 2, column: 3 }, "a", "b").is_err());
        assert!(renamed(text, Position { line: 9, column: 1 }, "a", "b").is_err());
    }

    #[test]
    fn a_moved_member_keeps_its_value_and_the_comments() {
        let path = |path: &[&str]| path.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let fix =
            Fix::Move { file: "f".into(), from: path(&["a", "allow"]), to: path(&["a", "plugbay", "allow"]) };
        let edited = fix.edit("{ // mine\n  \"a\": { \"allow\": [\"x\"] }\n}").unwrap();
        assert!(edited.starts_with("{ // mine\n"), "{edited}");
        assert_eq!(
            jsonc::get(&edited, &["a"]).unwrap(),
            Some(serde_json::json!({ "plugbay": { "allow": ["x"] } }))
        );
    }
}
