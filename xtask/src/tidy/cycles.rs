//! Rule: import cycles among the top-level modules of a crate are small.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Tree,
    tree::{Crate, tokens::paths},
};

const MODULES: usize = 4;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    tree.crates.iter().flat_map(problems).collect()
}

fn problems(krate: &Crate) -> Vec<String> {
    let imports = Imports::of(krate);
    let components = imports.components().into_iter().filter(|component| component.len() > MODULES);
    components.map(|component| imports.report(krate.root(), &component)).collect()
}

/// For each module the modules that it imports, each with a file that does.
struct Imports<'a>(BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>);

impl<'a> Imports<'a> {
    fn of(krate: &'a Crate) -> Self {
        let top: BTreeSet<&str> =
            krate.modules.iter().filter_map(|module| Some(module.path.first()?.as_str())).collect();
        let exports = exports(krate, &top);
        let mut imports: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
        for module in &krate.modules {
            let Some(from) = module.path.first() else { continue };
            for path in paths(&module.tokens, &module.path) {
                let [root, name, ..] = path.segments.as_slice() else { continue };
                if root != "crate" {
                    continue;
                }
                let Some(to) = top.get(name.as_str()).or_else(|| exports.get(name)).copied() else {
                    continue;
                };
                if to != from {
                    imports.entry(from).or_default().entry(to).or_insert(&module.file);
                }
            }
        }
        Self(imports)
    }

    /// The strongly connected components, largest first: sets of modules that all reach each other.
    fn components(&self) -> Vec<BTreeSet<&'a str>> {
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            self.0.keys().map(|from| (*from, self.reachable(from))).collect();
        let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|reached| reached.contains(to));
        let component = |one: &&'a str| -> BTreeSet<&'a str> {
            reach.keys().copied().filter(|other| reaches(one, other) && reaches(other, one)).collect()
        };
        let components: BTreeSet<_> =
            reach.keys().map(component).filter(|component| component.len() > 1).collect();
        let mut components: Vec<_> = components.into_iter().collect();
        components.sort_by_key(|component| std::cmp::Reverse(component.len()));
        components
    }

    fn reachable(&self, from: &str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for to in self.0.get(module).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(*to) {
                    open.push(to);
                }
            }
        }
        reached
    }

    fn report(&self, root: &str, component: &BTreeSet<&str>) -> String {
        let names = component.iter().copied().collect::<Vec<_>>().join(", ");
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let short = |file: &'a str| file.strip_prefix(folder).unwrap_or(file).trim_start_matches('/');
        let edges = component.iter().map(|from| {
            let inside = self.0[from].iter().filter(|(to, _)| component.contains(*to));
            let edges: Vec<String> = inside.map(|(to, file)| format!("{to} ({})", short(file))).collect();
            format!("\n      {from} → {}", edges.join(", "))
        });
        format!(
            "{root}: {} modules import each other in a cycle, at most {MODULES} may ({names}); \
             move what two of them share into a module below both{}",
            component.len(),
            edges.collect::<String>()
        )
    }
}

/// The names that the root re-exports, and their modules: `crate::Name` imports that module.
fn exports<'a>(krate: &Crate, top: &BTreeSet<&'a str>) -> BTreeMap<String, &'a str> {
    let root = &krate.modules[0];
    let imported = paths(&root.tokens, &root.path).into_iter().filter_map(|path| {
        let name = path.imported_as?;
        let first = path.segments.iter().find(|segment| *segment != "crate")?;
        Some((name, *top.get(first.as_str())?))
    });
    imported.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate whose modules have these texts.
    fn tree(root: &str, modules: &[(&str, &str)]) -> Tree {
        let top = modules.iter().filter(|(name, _)| !name.contains('/'));
        let declared: Vec<String> = top.map(|(name, _)| format!("mod {name};")).collect();
        let declared = declared.concat();
        let root = format!("{root}{declared}");
        let files: Vec<(String, &str)> =
            modules.iter().map(|(name, text)| (format!("crates/x/src/{name}.rs"), *text)).collect();
        let mut all = vec![("crates/x/Cargo.toml", ""), ("crates/x/src/lib.rs", &root)];
        all.extend(files.iter().map(|(file, text)| (file.as_str(), *text)));
        Tree::of(&all)
    }

    fn components(root: &str, modules: &[(&str, &str)]) -> Vec<String> {
        let tree = tree(root, modules);
        let components = Imports::of(&tree.crates[0]).components();
        components.into_iter().map(|component| component.into_iter().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn a_chain_is_no_cycle() {
        assert_eq!(
            components("", &[("a", "use crate::b::X;"), ("b", "use crate::c::X;"), ("c", "")]),
            [""; 0]
        );
    }

    #[test]
    fn cycles_are_found_through_every_kind_of_path() {
        let back = [
            "use crate::a::X;",
            "pub use crate::{c::Y, a::{X, Z}};",
            "fn f() { crate::a::f() }",
            "use super::a::X;",
            "mod inner { use super::super::a::X; }",
            "fn f() { m!(crate::a::f()) }",
        ];
        for text in back {
            assert_eq!(
                components("", &[("a", "use crate::b::X;"), ("b", text), ("c", "")]),
                ["a b"],
                "{text}"
            );
        }
    }

    #[test]
    fn files_below_a_module_belong_to_it() {
        let modules =
            [("a", "use crate::b::X;"), ("b", "mod c;"), ("b/c", "use super::super::a::X; use super::Y;")];
        assert_eq!(components("", &modules), ["a b"]);
    }

    #[test]
    fn a_name_that_the_root_re_exports_leads_to_its_module() {
        let modules = [("a", "use crate::b::X;"), ("b", "use crate::Renamed;")];
        assert_eq!(components("pub use a::{Y, Z as Renamed};", &modules), ["a b"]);
        assert_eq!(components("pub struct Renamed; fn f() { a::Renamed }", &modules), [""; 0]);
    }

    #[test]
    fn tests_and_comments_import_nothing() {
        let text = "// crate::a::X\n/// [`crate::a::X`]\nconst S: &str = \"crate::a::X\";\n#[cfg(test)] mod tests { use crate::a::X; }\n#[test] fn t() { crate::a::f() }";
        assert_eq!(components("", &[("a", "use crate::b::X;"), ("b", text)]), [""; 0]);
    }

    #[test]
    fn components_are_separate_and_the_largest_is_first() {
        let modules = [
            ("a", "use crate::b::X;"),
            ("b", "use crate::{a::X, c::X};"),
            ("c", "use crate::d::X;"),
            ("d", "use crate::e::X;"),
            ("e", "use crate::c::X;"),
        ];
        assert_eq!(components("", &modules), ["c d e", "a b"]);
    }

    #[test]
    fn a_cycle_of_five_is_reported_with_a_file_for_each_edge() {
        let ring = |size: usize| {
            let names = &["a", "b", "c", "d", "e"][..size];
            let texts: Vec<String> =
                (0..size).map(|n| format!("use crate::{}::X;", names[(n + 1) % size])).collect();
            let modules: Vec<(&str, &str)> =
                names.iter().copied().zip(texts.iter().map(String::as_str)).collect();
            check(&tree("", &modules))
        };
        assert_eq!(ring(4), [""; 0]);
        let report = ring(5).concat();
        assert!(report.starts_with("crates/x/src/lib.rs: 5 modules"), "{report}");
        assert!(report.contains("(a, b, c, d, e)") && report.contains("e → a (e.rs)"), "{report}");
    }
}
