//! Rule: a Rust file is short enough to be read in one go.

use super::Tree;

const LINES: usize = 500;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let counted = tree.rust().map(|(path, text)| (path, text.lines().count()));
    let long = counted.filter(|(_, lines)| *lines > LINES);
    long.map(|(path, lines)| format!("{path}: {lines} lines; split it by concept, at most {LINES} each"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_the_limit_is_named() {
        let (just, over) = ("\n".repeat(LINES), "\n".repeat(LINES + 1));
        let problems = check(&Tree::of(&[("just.rs", &just), ("over.rs", &over), ("over.md", &over)]));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("over.rs: 501 lines"), "{problems:?}");
    }
}
