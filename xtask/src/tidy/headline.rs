//! Rule: the first line of every Rust file says what the file is for.

use super::Tree;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let without = tree.rust().filter(|(_, text)| !text.starts_with("//! "));
    without
        .map(|(path, _)| format!("{path}:1: write a `//!` line on top that says what the file is for"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_headline_is_named() {
        let tree = Tree::of(&[("a.rs", "//! Adds.\nfn a() {}"), ("b.rs", "fn b() {}")]);
        let problems = check(&tree);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("b.rs:1:"), "{problems:?}");
    }
}
