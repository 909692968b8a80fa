//! Follows the `mod` declarations of a crate from its root, except those of tests.

use proc_macro2::TokenStream;

use super::{
    Tree,
    tokens::{self, Child},
};

/// One library or binary.
pub(crate) struct Crate {
    /// The folder of its Cargo.toml.
    pub(crate) folder: String,
    /// The root (`lib.rs` or `main.rs`) first.
    pub(crate) modules: Vec<Module>,
}

/// A module of a crate, in its own file or inside that of another.
pub(crate) struct Module {
    /// Its names below the crate's root; empty for the root itself.
    pub(crate) path: Vec<String>,
    pub(crate) file: String,
    /// Its tokens without its children, and without items that only tests compile.
    pub(crate) tokens: TokenStream,
}

impl Crate {
    pub(crate) fn root(&self) -> &str {
        &self.modules[0].file
    }
}

pub(super) fn crates(tree: &Tree) -> Result<Vec<Crate>, String> {
    let folders = tree.paths().filter_map(|path| path.strip_suffix("/Cargo.toml"));
    let mut crates = Vec::new();
    for folder in folders {
        for root in tree.rust().map(|(path, _)| path).filter(|path| is_root(path, folder)) {
            let mut modules = Vec::new();
            read(tree, root, Vec::new(), &mut modules)?;
            crates.push(Crate { folder: folder.to_owned(), modules });
        }
    }
    Ok(crates)
}

/// A library, or a binary: `src/main.rs`, `src/bin/x.rs`, `src/bin/x/main.rs`.
fn is_root(path: &str, folder: &str) -> bool {
    let below = path.strip_prefix(folder).and_then(|path| path.strip_prefix("/src/")).unwrap_or_default();
    match below.strip_prefix("bin/") {
        None => below == "lib.rs" || below == "main.rs",
        Some(binary) => {
            !binary.contains('/') || binary.split_once('/').is_some_and(|(_, file)| file == "main.rs")
        }
    }
}

fn read(tree: &Tree, file: &str, path: Vec<String>, modules: &mut Vec<Module>) -> Result<(), String> {
    let text = tree.text(file).unwrap_or_default();
    let tokens = tokens::parse(text).map_err(|problem| format!("{file}:{problem}"))?;
    let folder = children_folder(file, path.is_empty()).to_owned();
    add(tree, Module { path, file: file.to_owned(), tokens }, &folder, modules)
}

/// Adds a module and all modules below it; the files of its children are in `folder`.
fn add(tree: &Tree, mut module: Module, folder: &str, modules: &mut Vec<Module>) -> Result<(), String> {
    let (own, children) = tokens::split_children(module.tokens);
    module.tokens = own;
    let (path, file) = (module.path.clone(), module.file.clone());
    modules.push(module);
    for Child { name, body } in children {
        let path = [path.as_slice(), std::slice::from_ref(&name)].concat();
        let place = format!("{folder}/{name}");
        if let Some(tokens) = body {
            add(tree, Module { path, file: file.clone(), tokens }, &place, modules)?;
        } else {
            let candidates = [format!("{place}.rs"), format!("{place}/mod.rs")];
            let found = candidates.iter().find(|file| tree.text(file).is_some());
            let found = found.ok_or_else(|| format!("{file}: no file for `mod {name}`"))?;
            read(tree, found, path, modules)?;
        }
    }
    Ok(())
}

/// The folder with the files of a module's children.
fn children_folder(file: &str, is_root: bool) -> &str {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    if is_root || name == "mod.rs" { folder } else { file.strip_suffix(".rs").unwrap_or(file) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(tree: &Tree) -> Vec<&str> {
        tree.crates[0].modules.iter().map(|module| module.file.as_str()).collect()
    }

    #[test]
    fn modules_are_followed_into_files_and_folders() {
        let tree = Tree::of(&[
            ("crates/x/Cargo.toml", ""),
            ("crates/x/src/lib.rs", "mod a; pub mod b { mod c; }"),
            ("crates/x/src/a.rs", "mod d;"),
            ("crates/x/src/a/d/mod.rs", "mod e;"),
            ("crates/x/src/a/d/e.rs", ""),
            ("crates/x/src/b/c.rs", ""),
            ("crates/x/src/stray.rs", ""),
        ]);
        let expected = ["lib.rs", "a.rs", "a/d/mod.rs", "a/d/e.rs", "lib.rs", "b/c.rs"];
        assert_eq!(files(&tree), expected.map(|file| format!("crates/x/src/{file}")));
        let paths = tree.crates[0].modules.iter().map(|module| module.path.join("::"));
        assert_eq!(paths.collect::<Vec<_>>(), ["", "a", "a::d", "a::d::e", "b", "b::c"]);
    }

    #[test]
    fn modules_of_tests_are_left_out() {
        let tree = Tree::of(&[
            ("x/Cargo.toml", ""),
            ("x/src/main.rs", "mod a;\n#[cfg(test)]\nmod harness;\n#[cfg(all(test, unix))] mod tests;"),
            ("x/src/a.rs", "#[cfg(test)]\nmod tests;"),
            ("x/src/a/tests.rs", ""),
            ("x/src/harness.rs", ""),
            ("x/src/tests.rs", ""),
        ]);
        assert_eq!(files(&tree), ["x/src/main.rs", "x/src/a.rs"]);
    }

    #[test]
    fn each_library_and_binary_is_a_crate() {
        let roots = ["src/lib.rs", "src/main.rs", "src/bin/one.rs", "src/bin/two/main.rs"];
        for root in roots {
            assert!(is_root(&format!("crates/x/{root}"), "crates/x"), "{root}");
        }
        for other in ["src/a.rs", "src/a/main.rs", "src/bin/two/a.rs", "tests/it/main.rs"] {
            assert!(!is_root(&format!("crates/x/{other}"), "crates/x"), "{other}");
        }
    }

    #[test]
    fn a_declared_module_without_a_file_is_an_error() {
        let mut tree = Tree::default();
        tree.paths.insert("x/Cargo.toml".to_owned());
        tree.texts.insert("x/src/lib.rs".to_owned(), "mod a;".to_owned());
        assert_eq!(crates(&tree).err().as_deref(), Some("x/src/lib.rs: no file for `mod a`"));
    }
}
