//! The repository as the rules see it: texts, paths, and the modules of each crate.

mod modules;
pub(super) mod tokens;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

pub(super) use modules::{Crate, Module};

/// Folders without files of ours.
const FOREIGN: [&str; 3] = [".git", "target", "node_modules"];

/// The repository. All paths are relative to its root and written with `/`.
#[derive(Default)]
pub(super) struct Tree {
    /// The texts of Rust and Markdown files.
    texts: BTreeMap<String, String>,
    /// Every file and folder.
    paths: BTreeSet<String>,
    /// All libraries and binaries, without code that only tests compile.
    pub(super) crates: Vec<Crate>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut tree = Self::default();
        tree.walk(root, "").map_err(|error| format!("cannot read the repository: {error}"))?;
        tree.crates = modules::crates(&tree)?;
        Ok(tree)
    }

    /// The Rust files with their texts.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ending_in(".rs")
    }

    /// The Markdown files with their texts.
    pub(super) fn markdown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.ending_in(".md")
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Whether there is a file or folder at `path`; the root is the empty path.
    pub(super) fn contains(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    fn ending_in(&self, suffix: &str) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.texts.iter().filter(move |(path, _)| path.ends_with(suffix));
        texts.map(|(path, text)| (path.as_str(), text.as_str()))
    }

    fn walk(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if FOREIGN.contains(&name.as_str()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.walk(&entry.path(), &format!("{path}/"))?;
            } else if is_text(&path) {
                self.texts.insert(path.clone(), fs::read_to_string(entry.path())?);
            }
            self.paths.insert(path);
        }
        Ok(())
    }
}

fn is_text(path: &str) -> bool {
    let extension = Path::new(path).extension();
    extension.is_some_and(|extension| extension == "rs" || extension == "md")
}

#[cfg(test)]
impl Tree {
    /// A repository that has only these files.
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            let folders = path.match_indices('/').map(|(end, _)| path[..end].to_owned());
            tree.paths.extend(folders.chain([(*path).to_owned()]));
            if is_text(path) {
                tree.texts.insert((*path).to_owned(), (*text).to_owned());
            }
        }
        tree.crates = modules::crates(&tree).expect("the files are a crate");
        tree
    }
}
