//! Rule: the map in ARCHITECTURE.md names every crate and module, and nothing else.

use std::collections::BTreeSet;

use super::Tree;

const PAGE: &str = "ARCHITECTURE.md";

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let Some(text) = tree.text(PAGE) else { return vec![format!("{PAGE} is missing")] };
    let Some(map) = map(text) else {
        return vec![format!("{PAGE}: no map; it is the fenced block whose lines begin with `crates/`")];
    };
    let named = places(map);
    let existing: BTreeSet<String> = modules(tree).chain(crates(tree)).collect();
    let gone = named.iter().filter(|place| !exists(tree, place));
    let unnamed = existing.iter().filter(|place| !named.contains(*place));
    gone.map(|place| format!("{PAGE} names {place}, which does not exist; take the line out of the map"))
        .chain(unnamed.map(|place| format!("{PAGE} does not name {place}; give it a line in the map")))
        .collect()
}

/// The fenced block that lists the crates.
fn map(text: &str) -> Option<&str> {
    let blocks = text.split("```").skip(1).step_by(2);
    blocks.into_iter().find(|block| block.lines().any(|line| line.starts_with("crates/")))
}

/// The first word of each line: a crate's folder, or below it, indented, a module or a path of modules.
fn places(map: &str) -> BTreeSet<String> {
    let mut places = BTreeSet::new();
    let mut krate = "";
    // The rest of the fence's line names a language.
    for line in map.lines().skip(1) {
        let Some(word) = line.split_whitespace().next() else { continue };
        if line.starts_with(' ') {
            places.insert(format!("{krate}/src/{word}"));
        } else {
            krate = word;
            places.insert(word.to_owned());
        }
    }
    places
}

fn exists(tree: &Tree, place: &str) -> bool {
    tree.contains(place) || tree.contains(&format!("{place}.rs"))
}

/// `crates/x/src/name` for each top-level module of the crates.
fn modules(tree: &Tree) -> impl Iterator<Item = String> {
    tree.rust().filter_map(|(path, _)| {
        let [crates, krate, src, name] = path.splitn(5, '/').take(4).collect::<Vec<_>>().try_into().ok()?;
        let name = name.strip_suffix(".rs").unwrap_or(name);
        let is_module =
            crates == "crates" && src == "src" && !matches!(name, "lib" | "main" | "bin" | "tests");
        is_module.then(|| format!("crates/{krate}/src/{name}"))
    })
}

fn crates(tree: &Tree) -> impl Iterator<Item = String> {
    tree.paths().filter_map(|path| path.strip_suffix("/Cargo.toml")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_map(map: &str) -> Vec<String> {
        let page = format!("# Shape\n```sh\ncargo build\n```\n\n```\n{map}```\n");
        check(&Tree::of(&[
            (PAGE, &page),
            ("crates/x/Cargo.toml", ""),
            ("crates/x/src/lib.rs", "mod a; mod b;"),
            ("crates/x/src/a.rs", ""),
            ("crates/x/src/b/mod.rs", "mod c;"),
            ("crates/x/src/b/c.rs", ""),
            ("crates/x/src/bin/tool.rs", ""),
            ("crates/x/tests/it.rs", ""),
            ("xtask/Cargo.toml", ""),
            ("xtask/src/main.rs", "mod chores;"),
            ("xtask/src/chores.rs", ""),
        ]))
    }

    #[test]
    fn a_map_of_all_modules_is_right() {
        assert_eq!(
            check_map("crates/x    does\n    a       one\n    b       two\n\nxtask  chores\n"),
            [""; 0]
        );
        assert_eq!(check_map("crates/x\n  a\n  b\n  b/c  a part of it\nxtask\n"), [""; 0]);
    }

    #[test]
    fn what_is_missing_or_gone_is_named() {
        let problems = check_map("crates/x\n    a\n    gone\ncrates/y\n");
        let starts = [
            "ARCHITECTURE.md names crates/x/src/gone,",
            "ARCHITECTURE.md names crates/y,",
            "ARCHITECTURE.md does not name crates/x/src/b;",
            "ARCHITECTURE.md does not name xtask;",
        ];
        assert_eq!(problems.len(), starts.len(), "{problems:?}");
        for (problem, start) in problems.iter().zip(starts) {
            assert!(problem.starts_with(start), "{problem}");
        }
    }

    #[test]
    fn a_page_without_a_map_is_wrong() {
        assert_eq!(check(&Tree::of(&[(PAGE, "```\ncargo\n```\n")])).len(), 1);
        assert_eq!(check(&Tree::of(&[])), ["ARCHITECTURE.md is missing"]);
    }
}
