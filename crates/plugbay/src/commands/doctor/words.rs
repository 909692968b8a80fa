//! Words of a command line: which of them are paths that do not exist, and where a program may be instead.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::examination::DeadPath;

/// Folders below the home folder in which programs are installed and which a host's PATH often lacks.
const HOME_FOLDERS: [&str; 8] = [
    ".local/bin",
    ".cargo/bin",
    ".bun/bin",
    ".deno/bin",
    ".volta/bin",
    ".asdf/shims",
    ".local/share/mise/shims",
    "bin",
];
const FOLDERS: [&str; 3] = ["/opt/homebrew/bin", "/usr/local/bin", "/snap/bin"];
const SCRIPTS: [&str; 8] = [".js", ".mjs", ".cjs", ".ts", ".py", ".sh", ".jar", ".rb"];

/// Programs of this name in the usual folders.
pub fn elsewhere(command: &str, home: Option<&Path>) -> Vec<PathBuf> {
    if command.contains('/') || command.is_empty() {
        return Vec::new();
    }
    let below_home = home.into_iter().flat_map(|home| HOME_FOLDERS.map(|folder| home.join(folder)));
    let nvm =
        home.map(|home| home.join(".nvm/versions/node")).map(|folder| children(&folder)).unwrap_or_default();
    let nvm = nvm.into_iter().map(|version| version.join("bin"));
    let folders = below_home.chain(FOLDERS.map(PathBuf::from)).chain(nvm);
    folders.map(|folder| folder.join(command)).filter(|file| file.is_file()).collect()
}

/// Another program that does the same.
pub fn substitute(command: &str) -> Option<&'static str> {
    match command {
        "python" => Some("python3"),
        "python3" => Some("python"),
        "docker" => Some("podman"),
        _ => None,
    }
}

/// The words that look like paths but do not exist, relative to this folder.
pub fn dead_paths<'a>(
    words: impl Iterator<Item = &'a String>,
    folder: &Path,
    home: Option<&Path>,
) -> Vec<DeadPath> {
    let dead = words.filter(|word| is_path(word)).filter_map(|word| dead_path(word, folder, home));
    dead.collect()
}

fn dead_path(word: &str, folder: &Path, home: Option<&Path>) -> Option<DeadPath> {
    if folder.join(word).exists() {
        return None;
    }
    let at_home = word.strip_prefix("~/").and_then(|rest| Some(home?.join(rest)));
    let near = match at_home {
        Some(path) if path.exists() => vec![path],
        Some(path) => near(&path),
        None => near(&folder.join(word)),
    };
    Some(DeadPath { word: word.to_owned(), near })
}

/// Whether the word is an absolute path, one relative to here or home, or a script. A bare `a/b` is usually a
/// package.
fn is_path(word: &str) -> bool {
    let begins = ["/", "./", "../", "~/"].iter().any(|start| word.starts_with(start));
    let script = SCRIPTS.iter().any(|end| word.ends_with(end)) && !word.starts_with(['-', '@']);
    (begins || script) && !word.contains("://") && !word.contains(char::is_whitespace)
}

/// Existing files whose path differs slightly in one name.
fn near(path: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let name = name.to_string_lossy();
    if parent.is_dir() {
        return children(parent).into_iter().filter(|file| file.is_file() && is_like(file, &name)).collect();
    }
    let (Some(above), Some(folder)) = (parent.parent(), parent.file_name()) else { return Vec::new() };
    let folder = folder.to_string_lossy();
    let folders = children(above).into_iter().filter(|other| is_like(other, &folder) || is_build(other));
    folders.map(|other| other.join(&*name)).filter(|file| file.is_file()).collect()
}

/// Folders that builds write to.
fn is_build(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| ["dist", "build", "out", "lib"].iter().any(|usual| name == *usual))
}

fn is_like(path: &Path, name: &str) -> bool {
    let Some(other) = path.file_name().map(|other| other.to_string_lossy()) else { return false };
    let stem = |name: &str| name.rsplit_once('.').map_or(name.to_owned(), |(stem, _)| stem.to_owned());
    let distance = strsim::damerau_levenshtein(&other.to_lowercase(), &name.to_lowercase());
    distance <= (name.len() / 4).clamp(1, 2) || stem(&other) == stem(name)
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_told_from_packages_flags_and_addresses() {
        for path in ["/srv/x", "./a", "../b", "~/notes", "dist/index.js", "server.py"] {
            assert!(is_path(path), "{path}");
        }
        for other in ["@scope/server", "a/b", "-y", "--port", "http://x/y.js", "print('a/b')", "stdio"] {
            assert!(!is_path(other), "{other}");
        }
    }

    #[test]
    fn a_near_file_is_found_beside_in_a_build_folder_and_at_home() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::create_dir(file("build")).unwrap();
        for name in ["server.mjs", "build/index.js", "notes.txt"] {
            fs::write(file(name), "").unwrap();
        }
        let found = |word: &str| {
            let word = word.to_owned();
            let dead = dead_paths(std::iter::once(&word), folder.path(), Some(folder.path()));
            dead.into_iter().next().map(|dead| dead.near)
        };
        assert_eq!(found("./server.mjs"), None);
        assert_eq!(found("./server.js"), Some(vec![file("./server.mjs")]));
        assert_eq!(found("./dist/index.js"), Some(vec![file("./build/index.js")]));
        assert_eq!(found("~/notes.txt"), Some(vec![file("notes.txt")]));
        assert_eq!(found("./other.rb"), Some(vec![]));
    }
}
