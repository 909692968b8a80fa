//! Checks that the code has the shape that ARCHITECTURE.md says it has.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Crates that do input, output or waiting, none of which core may do.
const NOT_IN_CORE: [&str; 8] = ["tokio", "mio", "rustix", "libc", "socket2", "hyper", "reqwest", "tracing"];
/// The same in the standard library. A clock is read outside and passed in.
const NOT_SAID_IN_CORE: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::io",
    "std::thread",
    "Instant::now",
    "SystemTime",
];

pub(crate) fn check() -> Result<(), String> {
    let mut problems = Vec::new();
    let sources = sources(Path::new("."));
    problems.extend(sources.iter().filter_map(|path| headline(path)));
    problems.extend(sources.iter().filter_map(|path| purity(path)));
    problems.extend(map(&sources));
    problems.extend(dependencies());
    if problems.is_empty() { Ok(()) } else { Err(format!("not tidy:\n  {}", problems.join("\n  "))) }
}

/// Every file says on its first line what it is for.
fn headline(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    (!text.starts_with("//! ")).then(|| format!("{}: the first line is not a `//!` headline", path.display()))
}

/// Core knows no clock and no outside.
fn purity(path: &Path) -> Option<String> {
    if !path.starts_with("./crates/plugbay-core") {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let word = NOT_SAID_IN_CORE.into_iter().find(|word| code.contains(word))?;
    Some(format!("{}: core must not use {word}", path.display()))
}

/// The map in ARCHITECTURE.md names every module, and only modules that exist.
fn map(sources: &[PathBuf]) -> Vec<String> {
    let Ok(text) = fs::read_to_string("ARCHITECTURE.md") else {
        return vec!["ARCHITECTURE.md is missing".to_owned()];
    };
    let Some(block) = text.split("```").nth(1) else {
        return vec!["ARCHITECTURE.md: no map (the first fenced block)".to_owned()];
    };
    let mut problems = Vec::new();
    let mut named = Vec::new();
    let mut krate = PathBuf::new();
    for line in block.lines().skip(1).filter(|line| !line.trim().is_empty()) {
        let word = line.split_whitespace().next().unwrap_or_default();
        if line.starts_with(' ') {
            named.push(krate.join("src").join(word));
        } else {
            krate = Path::new(".").join(word);
            if !krate.exists() {
                problems.push(format!("ARCHITECTURE.md names {word}, which does not exist"));
            }
        }
    }
    let existing: Vec<PathBuf> = sources.iter().filter_map(|path| module(path)).collect();
    for path in &named {
        if !existing.contains(path) && !path.exists() {
            problems.push(format!("ARCHITECTURE.md names {}, which does not exist", path.display()));
        }
    }
    for path in &existing {
        if !named.contains(path) {
            problems.push(format!("ARCHITECTURE.md does not name {}", path.display()));
        }
    }
    problems
}

/// `./crates/x/src/name` for the files of a top-level module of one of the crates.
fn module(path: &Path) -> Option<PathBuf> {
    let parts: Vec<_> = path.components().collect();
    let in_crate = path.starts_with("./crates") && parts.get(3).is_some_and(|part| part.as_os_str() == "src");
    let name = Path::new(parts.get(4)?.as_os_str()).with_extension("");
    let named = !matches!(name.to_str(), Some("lib" | "main" | "bin"));
    (in_crate && named).then(|| parts[..4].iter().collect::<PathBuf>().join(name))
}

/// The dependency rule, as cargo sees it.
fn dependencies() -> Vec<String> {
    let forbidden = |krate: &str, banned: &[&str]| -> Vec<String> {
        let tree = Command::new("cargo")
            .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--package", krate])
            .output();
        let Ok(tree) = tree else { return vec!["cargo tree does not run".to_owned()] };
        let tree = String::from_utf8_lossy(&tree.stdout);
        let names: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
        if names.is_empty() {
            return vec![format!("cargo tree knows no {krate}")];
        }
        let found = banned.iter().filter(|banned| names.contains(banned));
        found.map(|banned| format!("{krate} must not depend on {banned}")).collect()
    };
    [
        forbidden("plugbay-core", &NOT_IN_CORE),
        forbidden("plugbay-upstream", &["plugbay-downstream", "plugbay-model", "clap"]),
        forbidden("plugbay-downstream", &["plugbay-upstream", "plugbay-model", "reqwest", "clap"]),
        forbidden("plugbay-model", &["plugbay-upstream", "plugbay-downstream", "clap"]),
    ]
    .concat()
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "node_modules" {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}
