//! Finds the files that match a pattern, and the places where more of them could appear.
//!
//! A pattern is walked step by step, so that a folder is listed only if a step there is a wildcard.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use globset::{GlobBuilder, GlobMatcher};
use jsonc_parser::{ast::Value, common::Ranged};
use schemars::{JsonSchema, Schema, SchemaGenerator};

use super::{read::Read, report::Report};

/// Limit of folders that are listed, so that the search for servers takes no noticeable time.
const MOST_FOLDERS: usize = 2_000;

/// Folders that `**` skips: they hold other people's files, and far too many.
const PASSED_OVER: [&str; 2] = [".git", "node_modules"];

#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// Whether matching files are excluded.
    pub(super) excludes: bool,
    /// Whether it begins in the home folder.
    at_home: bool,
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Name(String),
    Any(GlobMatcher),
    /// `**`: any number of folders, including none.
    Deep,
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (excludes, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let (at_home, text) = text.strip_prefix("~/").map_or((false, text), |rest| (true, rest));
        let mut steps = Vec::new();
        if text.starts_with('/') {
            steps.push(Step::Name("/".into()));
        }
        for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
            match Step::parse(part)? {
                Step::Deep if matches!(steps.last(), Some(Step::Deep)) => {}
                step => steps.push(step),
            }
        }
        match steps.last() {
            None => Err("it does not name a file".into()),
            Some(Step::Deep) => Err("it ends with `**`, which stands for folders".into()),
            Some(_) => Ok(Self { excludes, at_home, steps }),
        }
    }
}

impl Step {
    fn parse(part: &str) -> Result<Self, String> {
        if part == "**" {
            return Ok(Self::Deep);
        }
        if !part.contains(['*', '?', '[', '{']) {
            return Ok(Self::Name(part.into()));
        }
        let glob = GlobBuilder::new(part).literal_separator(true).build();
        glob.map(|glob| Self::Any(glob.compile_matcher())).map_err(|error| error.kind().to_string())
    }
}

/// The files that match a pattern, sorted.
#[derive(Debug, Default)]
pub(super) struct Matches {
    pub(super) files: BTreeSet<PathBuf>,
    /// Paths that do not exist, and would be followed if they did.
    pub(super) absent: BTreeSet<PathBuf>,
    /// Folders in which new or removed files may matter.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Whether there was more to search than the limit allows.
    pub(super) cut: bool,
    /// How many folders may still be listed.
    left: usize,
}

impl Matches {
    pub(super) fn of(pattern: &Pattern, base: &Path, home: Option<&Path>) -> Self {
        Self::within(MOST_FOLDERS, pattern, base, home)
    }

    fn within(limit: usize, pattern: &Pattern, base: &Path, home: Option<&Path>) -> Self {
        let mut matches = Self { left: limit, ..Self::default() };
        let start = if pattern.at_home { home } else { Some(base) };
        if let Some(start) = start {
            matches.walk(start, &pattern.steps);
        }
        matches
    }

    fn walk(&mut self, at: &Path, steps: &[Step]) {
        let Some((step, rest)) = steps.split_first() else {
            if at.is_file() {
                self.files.insert(at.to_owned());
            }
            return;
        };
        match step {
            Step::Name(name) => {
                let next = at.join(name);
                if next.exists() {
                    self.walk(&next, rest);
                } else if at.is_dir() && !self.folders.contains(at) {
                    self.absent.insert(next);
                }
            }
            Step::Any(pattern) => {
                for (name, _) in self.list(at).iter().filter(|(name, _)| pattern.is_match(name)) {
                    self.walk(&at.join(name), rest);
                }
            }
            Step::Deep => {
                // Listed first: a missing path in a listed folder need not be watched separately.
                let children = self.list(at);
                self.walk(at, rest);
                // Links are not followed here, because they may form cycles.
                let folders = children.iter().filter(|(_, is_folder)| *is_folder);
                for (name, _) in folders.filter(|(name, _)| !PASSED_OVER.contains(&name.as_str())) {
                    self.walk(&at.join(name), steps);
                }
            }
        }
    }

    /// The names in a folder, and whether each is a real folder. Names that are not UTF-8 match nothing.
    fn list(&mut self, folder: &Path) -> Vec<(String, bool)> {
        let Some(left) = self.left.checked_sub(1) else {
            self.cut = true;
            return Vec::new();
        };
        self.left = left;
        let Ok(entries) = fs::read_dir(folder) else {
            return Vec::new();
        };
        self.folders.insert(folder.to_owned());
        let named = entries.flatten().filter_map(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            Some((entry.file_name().into_string().ok()?, is_folder))
        });
        let mut named: Vec<_> = named.collect();
        named.sort();
        named
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const FILES: [&str; 8] = [
        ".switchboard/mcps/a/.mcp.json",
        ".switchboard/mcps/b/.mcp.json",
        ".switchboard/mcps/b/original/.mcp.json",
        ".switchboard/mcps/readme",
        "deep/one/two/.mcp.json",
        "deep/node_modules/x/.mcp.json",
        "deep/.git/.mcp.json",
        "home/mine/.mcp.json",
    ];

    fn place() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in FILES.map(|file| root.path().join(file)) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        symlink("..", root.path().join("deep/one/circle")).unwrap();
        symlink(root.path().join("deep/one"), root.path().join(".switchboard/mcps/linked")).unwrap();
        root
    }

    fn below(root: &Path, paths: &BTreeSet<PathBuf>) -> Vec<String> {
        paths.iter().map(|path| path.strip_prefix(root).unwrap().to_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn check(pattern: &str, files: &[&str], absent: &[&str]) {
        let root = place();
        let pattern = Pattern::parse(pattern).unwrap();
        let matches = Matches::of(&pattern, root.path(), Some(&root.path().join("home")));
        assert_eq!(below(root.path(), &matches.files), files);
        assert_eq!(below(root.path(), &matches.absent), absent);
        assert!(!matches.cut);
    }

    #[test]
    fn patterns_match_hidden_names_and_end_in_circles_too() {
        check(
            ".switchboard/mcps/*/.mcp.json",
            &[".switchboard/mcps/a/.mcp.json", ".switchboard/mcps/b/.mcp.json"],
            &[".switchboard/mcps/linked/.mcp.json"],
        );
        check("./*/mcps/{b,c}/.mcp.json", &[".switchboard/mcps/b/.mcp.json"], &["deep/mcps", "home/mcps"]);
        check("deep/**/.mcp.json", &["deep/one/two/.mcp.json"], &[]);
        check("deep/**/**/t?o/.mcp*", &["deep/one/two/.mcp.json"], &[]);
        check(".switchboard/mcps/linked/two/.mcp.json", &[".switchboard/mcps/linked/two/.mcp.json"], &[]);
        check("~/mine/.mcp.json", &["home/mine/.mcp.json"], &[]);
        check("nowhere/*/.mcp.json", &[], &["nowhere"]);
    }

    #[test]
    fn a_pattern_that_leads_everywhere_is_given_up() {
        let root = place();
        let pattern = Pattern::parse("**/.mcp.json").unwrap();
        let matches = Matches::within(4, &pattern, root.path(), None);
        assert!(matches.cut);
        let seen_until_then = [".switchboard/mcps/a/.mcp.json", ".switchboard/mcps/b/.mcp.json"];
        assert_eq!(below(root.path(), &matches.files), seen_until_then);
    }

    #[test]
    fn a_pattern_that_cannot_match_is_refused() {
        for (pattern, reason) in [
            ("", "it does not name a file"),
            ("./", "it does not name a file"),
            ("a/**", "it ends with `**`, which stands for folders"),
            ("a/[b", "unclosed character class; missing ']'"),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap_err(), reason, "{pattern}");
        }
    }
}

/// Files by a pattern.
#[derive(Debug, Clone)]
pub(super) struct Pathname(pub(super) Pattern);

impl Read for Pathname {
    fn read(value: &Value<'_>, report: &mut Report<'_>) -> Option<Self> {
        match Pattern::parse(&String::read(value, report)?) {
            Ok(pattern) => Some(Self(pattern)),
            Err(reason) => {
                let help = "write a path with `*` for any characters: \"mcps/*/.mcp.json\"";
                report.invalid(value.range(), &format!("not a valid pattern: {reason}"), help);
                None
            }
        }
    }
}

impl JsonSchema for Pathname {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Pathname".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
