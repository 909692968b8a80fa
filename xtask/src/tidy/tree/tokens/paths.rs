//! The paths that a file names: in `use` trees, one for each leaf, and inline.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::{comma_separated, group, is_ident, is_punct};

/// A path `a::b::C`. A relative one (`self`, `super`) is written from `crate`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
    /// The name that a `use` gives it: its last segment, or what follows `as`.
    pub(crate) imported_as: Option<String>,
}

/// All paths of two segments or more among the tokens of the module at `module`.
pub(crate) fn paths(tokens: &TokenStream, module: &[String]) -> Vec<Path> {
    let mut found = Vec::new();
    scan(tokens, module, &mut found);
    found
}

fn scan(tokens: &TokenStream, module: &[String], found: &mut Vec<Path>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut rest = tokens.as_slice();
    let mut importing = false;
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            TokenTree::Ident(word) if word == "use" => importing = true,
            TokenTree::Ident(_) => {
                let mut branch = Branch { module, importing, found };
                rest = branch.read(&[], first, after);
            }
            TokenTree::Group(group) => scan(&group.stream(), module, found),
            TokenTree::Punct(end) if end.as_char() == ';' => importing = false,
            _ => {}
        }
    }
}

/// Reads a path or a branch of a `use` tree.
struct Branch<'a> {
    module: &'a [String],
    importing: bool,
    found: &'a mut Vec<Path>,
}

impl Branch<'_> {
    /// Reads on from `first`, which follows `prefix`. Returns the tokens after the path.
    fn read<'t>(
        &mut self,
        prefix: &[String],
        first: &TokenTree,
        mut rest: &'t [TokenTree],
    ) -> &'t [TokenTree] {
        let mut segments = [prefix, &[first.to_string()]].concat();
        while let [colon, second, next, after @ ..] = rest
            && is_punct(colon, ':')
            && is_punct(second, ':')
        {
            if let Some(tree) = group(next, Delimiter::Brace) {
                let tree: Vec<TokenTree> = tree.stream().into_iter().collect();
                for leaf in comma_separated(&tree) {
                    self.read(&segments, &leaf[0], &leaf[1..]);
                }
                return after;
            }
            if !matches!(next, TokenTree::Ident(_)) && !is_punct(next, '*') {
                break;
            }
            segments.push(next.to_string());
            rest = after;
        }
        if segments.len() > 1 {
            let imported_as =
                self.importing.then(|| alias(rest).unwrap_or_else(|| segments[segments.len() - 1].clone()));
            let line = first.span().start().line;
            self.found.push(Path { segments: self.absolute(&segments), line, imported_as });
        }
        rest
    }

    fn absolute(&self, segments: &[String]) -> Vec<String> {
        let here = || [&["crate".to_owned()], self.module].concat();
        let mut path = Vec::new();
        for (place, segment) in segments.iter().enumerate() {
            match segment.as_str() {
                "self" if place == 0 => path = here(),
                "super" => {
                    if place == 0 {
                        path = here();
                    }
                    path.pop();
                }
                "self" => {}
                _ => path.push(segment.clone()),
            }
        }
        path
    }
}

fn alias(rest: &[TokenTree]) -> Option<String> {
    match rest {
        [keyword, name, ..] if is_ident(keyword, "as") => Some(name.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    fn check(text: &str, expected: &[&str]) {
        let module = ["a".to_owned(), "b".to_owned()];
        let found = super::paths(&parse(text).unwrap(), &module);
        let found: Vec<String> = found.iter().map(|path| path.segments.join("::")).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_use_tree_has_a_path_for_each_leaf() {
        check("use crate::x::Y;", &["crate::x::Y"]);
        check(
            "pub(crate) use crate::{a::X, b::{Y, c::Z as W, self}, d::*};",
            &["crate::a::X", "crate::b::Y", "crate::b::c::Z", "crate::b", "crate::d::*"],
        );
        check("use std::{fs, io::{self, Read}};", &["std::fs", "std::io", "std::io::Read"]);
    }

    #[test]
    fn inline_paths_are_found_at_any_depth() {
        check("fn f() { if x { g(crate::x::y(1), [z::A; 2]) } }", &["crate::x::y", "z::A"]);
        check("macro_rules! m { () => { $crate::x::y!() } }", &["crate::x::y"]);
        check("fn f(_: crate::x::T<crate::y::U>) {}", &["crate::x::T", "crate::y::U"]);
    }

    #[test]
    fn super_and_self_are_written_from_the_root() {
        check("use super::c::D;", &["crate::a::c::D"]);
        check("use super::super::c::D;", &["crate::c::D"]);
        check("use super::{super::c::D, e::F};", &["crate::c::D", "crate::a::e::F"]);
        check("use self::c::D;", &["crate::a::b::c::D"]);
    }

    #[test]
    fn comments_and_strings_hold_no_paths() {
        check("// crate::a::b\n/* crate::c::d */ fn f() { \"crate::e::f\"; r#\"crate::g::h\"#; }", &[]);
    }

    #[test]
    fn an_import_has_a_name() {
        let name = |text: &str| {
            let found = super::paths(&parse(text).unwrap(), &[]);
            found.into_iter().map(|path| path.imported_as).collect::<Vec<_>>()
        };
        assert_eq!(name("pub use a::{B as C, D};"), [Some("C".to_owned()), Some("D".to_owned())]);
        assert_eq!(name("use a::B; fn f() { c::d() }"), [Some("B".to_owned()), None]);
    }
}
