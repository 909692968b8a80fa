//! Rule: core does no input, output or waiting, and reads no clock or environment.

use super::{Tree, tree::tokens::paths};

const CORE: &str = "crates/plugbay-core";

/// Forbidden paths. Time comes in as an argument.
const BANNED: [&[&str]; 8] = [
    &["std", "fs"],
    &["std", "net"],
    &["std", "env"],
    &["std", "process"],
    &["std", "io"],
    &["std", "thread"],
    &["Instant", "now"],
    &["SystemTime"],
];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let core = tree.crates.iter().filter(|krate| krate.folder == CORE);
    let mut problems = Vec::new();
    for module in core.flat_map(|krate| &krate.modules) {
        for path in paths(&module.tokens, &module.path) {
            let found = |banned: &&&[&str]| path.segments.windows(banned.len()).any(|part| part == **banned);
            if let Some(banned) = BANNED.iter().find(found) {
                let banned = banned.join("::");
                problems.push(format!(
                    "{}:{}: core must not use {banned}; let the caller do it and pass the value in",
                    module.file, path.line
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(krate: &str, text: &str) -> usize {
        let (manifest, root) = (format!("crates/{krate}/Cargo.toml"), format!("crates/{krate}/src/lib.rs"));
        check(&Tree::of(&[(&manifest, ""), (&root, text)])).len()
    }

    #[test]
    fn input_output_and_clocks_are_found_in_any_spelling() {
        for text in [
            "use std::fs;",
            "use std::{fmt, io::{self as io, Read}};",
            "fn f() { std::thread::sleep(x) }",
            "fn f() { let now = Instant::now(); }",
            "use std::time::SystemTime;",
        ] {
            assert!(problems("plugbay-core", text) > 0, "{text}");
        }
    }

    #[test]
    fn durations_tests_and_other_crates_are_free() {
        assert_eq!(problems("plugbay-core", "use std::time::{Duration, Instant}; // std::fs"), 0);
        assert_eq!(problems("plugbay-core", "#[cfg(test)] mod tests { use std::fs; }"), 0);
        assert_eq!(problems("plugbay-model", "use std::fs;"), 0);
    }
}
