//! Rule: only core's `wire` writes and reads JSON-RPC messages.

use proc_macro2::TokenTree;

use super::{
    Tree,
    tree::{
        Module,
        tokens::{each_level, is_ident, is_punct},
    },
};

const CRATES: [&str; 9] = [
    "plugbay-core",
    "plugbay-upstream",
    "plugbay-downstream",
    "plugbay-model",
    "plugbay-telemetry",
    "plugbay-auth",
    "plugbay-files",
    "plugbay-sandbox",
    "plugbay",
];
const WIRE: [&str; 2] = ["crates/plugbay-core/src/wire/", "crates/plugbay-core/src/wire.rs"];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let concerned = tree
        .crates
        .iter()
        .filter(|krate| krate.folder.strip_prefix("crates/").is_some_and(|name| CRATES.contains(&name)));
    let modules = concerned.flat_map(|krate| &krate.modules);
    modules
        .filter(|module| !WIRE.iter().any(|place| module.file.starts_with(place)))
        .flat_map(problems)
        .collect()
}

fn problems(module: &Module) -> Vec<String> {
    let mut lines = Vec::new();
    each_level(&module.tokens, &mut |level| {
        if !is_documentation(level) {
            lines.extend(
                level.iter().filter(|token| names_jsonrpc(token)).map(|token| token.span().start().line),
            );
        }
    });
    lines.sort_unstable();
    lines.dedup();
    let problem = |line| {
        format!("{}:{line}: writes \"jsonrpc\" by hand; use plugbay_core::wire for the message", module.file)
    };
    lines.into_iter().map(problem).collect()
}

/// Whether this is the inside of `#[doc = "…"]`, the form of every doc comment.
fn is_documentation(level: &[TokenTree]) -> bool {
    matches!(level, [doc, equals, _] if is_ident(doc, "doc") && is_punct(equals, '='))
}

/// Whether a token has the key: in a literal with plain or escaped quotes, or as a field name that serde
/// would write.
fn names_jsonrpc(token: &TokenTree) -> bool {
    match token {
        TokenTree::Literal(literal) => {
            let source = literal.to_string();
            source.contains(r#""jsonrpc""#) || source.contains(r#""jsonrpc\""#)
        }
        other => is_ident(other, "jsonrpc"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems_in(file: &str, text: &str) -> Vec<String> {
        let folder = file.split_once("/src/").expect("a source file").0;
        let (manifest, root) = (format!("{folder}/Cargo.toml"), format!("{folder}/src/lib.rs"));
        let declaration = if file == root { text } else { "mod wire; mod wired;" };
        let others = ["wire", "wired"].map(|name| format!("{folder}/src/{name}.rs"));
        let mut files = vec![(manifest.as_str(), ""), (root.as_str(), declaration)];
        files.extend(others.iter().map(|other| (other.as_str(), if other == file { text } else { "" })));
        check(&Tree::of(&files))
    }

    #[test]
    fn the_key_is_found_however_it_is_quoted() {
        for text in [
            r#"fn f() { json!({ "jsonrpc": "2.0" }) }"#,
            r#"fn f() { format!("{{\"jsonrpc\":\"2.0\"}}") }"#,
            r##"const A: &[u8] = br#"{"jsonrpc":"2.0"}"#;"##,
            "struct Message { jsonrpc: &'static str }",
        ] {
            let problems = problems_in("crates/plugbay-upstream/src/lib.rs", &format!("\n{text}"));
            assert_eq!(problems.len(), 1, "{text}");
            assert!(problems[0].starts_with("crates/plugbay-upstream/src/lib.rs:2:"), "{problems:?}");
        }
    }

    #[test]
    fn comments_tests_and_other_words_are_free() {
        for text in [
            "/// `{\"jsonrpc\":\"2.0\"}`\n// \"jsonrpc\"\nfn f() {}",
            "#[cfg(test)] mod tests { const A: &str = \"jsonrpc\"; }",
            "const A: &str = \"application/vscode-jsonrpc\";",
        ] {
            assert_eq!(problems_in("crates/plugbay/src/lib.rs", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn wire_and_the_test_kit_are_free() {
        let text = "const A: &str = \"jsonrpc\";";
        assert_eq!(problems_in("crates/plugbay-core/src/wire.rs", text), [""; 0]);
        assert_eq!(problems_in("crates/plugbay-core/src/wired.rs", text).len(), 1);
        assert_eq!(problems_in("crates/plugbay-testkit/src/lib.rs", text), [""; 0]);
        assert_eq!(problems_in("crates/plugbay-model/src/wire.rs", text).len(), 1);
    }
}
