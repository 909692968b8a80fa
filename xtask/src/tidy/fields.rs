//! Rule: a struct has few fields, so that it is about one thing.

use proc_macro2::{Delimiter, Group, TokenTree};

use super::Tree;
use super::tree::tokens::{comma_separated, each_level, group, is_ident, is_punct};

const FIELDS: usize = 16;

/// Exempt places: a configuration has a field per key, and the scripts of test servers one per behaviour.
const EXEMPT: [&str; 4] =
    ["crates/plugbay/src/config/", "crates/plugbay/src/config.rs", "crates/plugbay-testkit/", "tests-e2e/"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for module in tree.crates.iter().flat_map(|krate| &krate.modules) {
        if EXEMPT.iter().any(|place| module.file.starts_with(place)) {
            continue;
        }
        each_level(&module.tokens, &mut |level| {
            let large = structs(level).into_iter().filter(|one| one.fields > FIELDS);
            problems.extend(large.map(|Struct { name, line, fields }| {
                format!(
                    "{}:{line}: struct {name} has {fields} fields; group them into parts with a name, at most {FIELDS} each",
                    module.file
                )
            }));
        });
    }
    problems
}

struct Struct {
    name: String,
    line: usize,
    fields: usize,
}

/// The structs that begin in these tokens, with named or numbered fields.
fn structs(tokens: &[TokenTree]) -> Vec<Struct> {
    let mut found = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        if let (true, Some(TokenTree::Ident(name))) = (is_ident(token, "struct"), tokens.get(place + 1))
            && let Some(body) = body(&tokens[place + 1..])
        {
            let body: Vec<TokenTree> = body.stream().into_iter().collect();
            let fields = comma_separated(&body).len();
            found.push(Struct { name: name.to_string(), line: name.span().start().line, fields });
        }
    }
    found
}

/// The braces before the next semicolon, or else the parentheses after the name or its generics.
fn body(after_keyword: &[TokenTree]) -> Option<&Group> {
    let end = after_keyword.iter().position(|token| is_punct(token, ';')).unwrap_or(after_keyword.len());
    let declaration = &after_keyword[..end];
    let braces = declaration.iter().find_map(|token| group(token, Delimiter::Brace));
    braces.or_else(|| {
        declaration.windows(2).enumerate().find_map(|(place, pair)| {
            let follows = place == 0 || is_punct(&pair[0], '>');
            group(&pair[1], Delimiter::Parenthesis).filter(|_| follows)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "crates/plugbay/src/lib.rs";
    const CONFIG: &str = "crates/plugbay/src/config/mod.rs";

    fn problems(file: &str, text: &str) -> Vec<String> {
        let root = if file == ROOT { text } else { "mod config;" };
        check(&Tree::of(&[("crates/plugbay/Cargo.toml", ""), (ROOT, root), (file, text)]))
    }

    fn named(fields: usize) -> String {
        let fields = "/// A, b.\n#[x(a, b)] pub(crate) field: Map<A, fn(B) -> C>,\n".repeat(fields);
        format!("pub struct Large<F: Fn(A, B)> where F: X {{ {fields} }}")
    }

    #[test]
    fn a_struct_over_the_limit_is_named_with_its_line() {
        assert_eq!(problems(ROOT, &named(FIELDS)), [""; 0]);
        let large = problems(ROOT, &format!("\nfn f() {{ {} }}", named(FIELDS + 1)));
        assert_eq!(large.len(), 1);
        assert!(large[0].starts_with("crates/plugbay/src/lib.rs:2: struct Large has 17 fields"), "{large:?}");
    }

    #[test]
    fn tuples_count_and_units_do_not() {
        let tuple =
            format!("struct Unit; struct Pair<A>({}) where A: Fn(B); fn f() {{}}", "u8, ".repeat(FIELDS + 1));
        assert_eq!(problems(ROOT, &tuple).len(), 1);
    }

    #[test]
    fn configuration_and_tests_are_exempt() {
        assert_eq!(problems(CONFIG, &named(FIELDS + 1)), [""; 0]);
        assert_eq!(problems(ROOT, &format!("#[cfg(test)] mod tests {{ {} }}", named(FIELDS + 1))), [""; 0]);
    }
}
