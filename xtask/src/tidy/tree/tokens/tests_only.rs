//! Drops code that only tests compile: items under `#[cfg(test)]` or `#[test]`, files under `#![cfg(test)]`.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::{comma_separated, group, is_ident, is_punct};

/// Keywords that begin an item after its attributes and visibility. A comma does not end such an item.
const ITEM_KEYWORDS: [&str; 15] = [
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "impl",
    "macro_rules",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
    "union",
    "unsafe",
    "use",
];

pub(super) fn dropped(tokens: TokenStream) -> TokenStream {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut kept = Vec::new();
    let mut rest = tokens.as_slice();
    while let [first, after @ ..] = rest {
        if let [hash, bang, body, ..] = rest
            && is_punct(hash, '#')
            && is_punct(bang, '!')
            && attribute(body).is_some_and(is_test)
        {
            return TokenStream::new();
        }
        if let [hash, body, item @ ..] = rest
            && is_punct(hash, '#')
            && attribute(body).is_some_and(is_test)
        {
            rest = after_item(item);
            continue;
        }
        kept.push(match first {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), dropped(group.stream()));
                inner.set_span(group.span());
                TokenTree::Group(inner)
            }
            other => other.clone(),
        });
        rest = after;
    }
    kept.into_iter().collect()
}

fn attribute(body: &TokenTree) -> Option<&Group> {
    group(body, Delimiter::Bracket)
}

/// Whether an attribute is `#[cfg(test)]`, `#[cfg(all(test, …))]`, `#[test]` or `#[runtime::test(…)]`.
fn is_test(attribute: &Group) -> bool {
    let tokens: Vec<TokenTree> = attribute.stream().into_iter().collect();
    match tokens.as_slice() {
        [name, TokenTree::Group(condition)] if is_ident(name, "cfg") => needs_test(condition),
        [.., name, TokenTree::Group(_)] | [.., name] => is_ident(name, "test"),
        [] => false,
    }
}

/// Whether a condition holds only in tests. `any(test, …)` may also hold elsewhere.
fn needs_test(condition: &Group) -> bool {
    let tokens: Vec<TokenTree> = condition.stream().into_iter().collect();
    comma_separated(&tokens).into_iter().any(|part| match part {
        [name] => is_ident(name, "test"),
        [name, TokenTree::Group(inner)] => is_ident(name, "all") && needs_test(inner),
        _ => false,
    })
}

/// The tokens after an item, field, arm or statement.
fn after_item(mut tokens: &[TokenTree]) -> &[TokenTree] {
    while let [hash, TokenTree::Group(_), rest @ ..] = tokens
        && is_punct(hash, '#')
    {
        tokens = rest;
    }
    let is_item = begins_item(tokens);
    let is_use = is_item && tokens.iter().take(3).any(|token| is_ident(token, "use"));
    let ends = |token: &TokenTree| {
        let body = group(token, Delimiter::Brace).is_some() && !is_use;
        body || is_punct(token, ';') || (is_punct(token, ',') && !is_item)
    };
    let end = tokens.iter().position(ends).map_or(tokens.len(), |last| last + 1);
    &tokens[end..]
}

fn begins_item(tokens: &[TokenTree]) -> bool {
    let after_visibility = match tokens {
        [public, restriction, rest @ ..] if is_ident(public, "pub") => {
            match group(restriction, Delimiter::Parenthesis) {
                Some(_) => rest,
                None => &tokens[1..],
            }
        }
        _ => tokens,
    };
    let first = after_visibility.first();
    first.is_some_and(|first| ITEM_KEYWORDS.iter().any(|keyword| is_ident(first, keyword)))
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    /// Checks that both texts have the same tokens after test-only code is dropped from the first.
    fn check(text: &str, expected: &str) {
        assert_eq!(parse(text).unwrap().to_string(), parse(expected).unwrap().to_string(), "{text}");
    }

    #[test]
    fn items_of_tests_are_dropped() {
        check("fn a() {} #[cfg(test)] mod tests { fn b() {} } fn c() {}", "fn a() {} fn c() {}");
        check("#[cfg(test)] mod tests; fn c() {}", "fn c() {}");
        check("#[cfg(test)] use a::{B, C}; fn c() {}", "fn c() {}");
        check("#[cfg(all(test, unix))] #[allow(x)] pub(crate) fn a<B, C>() {} fn c() {}", "fn c() {}");
        check("#[test] fn a() {} #[tokio::test(start_paused = true)] async fn b() {} fn c() {}", "fn c() {}");
        check("impl X { #[cfg(test)] fn a() {} fn b() {} }", "impl X { fn b() {} }");
        check("struct X { #[cfg(test)] a: u8, b: u8 }", "struct X { b: u8 }");
        check("#![cfg(test)] fn a() {}", "");
    }

    #[test]
    fn other_conditions_are_kept() {
        for text in ["#[cfg(unix)] mod a;", "#[cfg(any(test, unix))] mod a;", "#[cfg(not(test))] mod a;"] {
            check(text, text);
            assert!(parse(text).unwrap().to_string().contains("mod a"), "{text}");
        }
    }

    #[test]
    fn comments_and_strings_declare_nothing() {
        check("// #[cfg(test)]\nfn a() { \"#[cfg(test)]\"; /* mod b; */ }", "fn a() { \"#[cfg(test)]\"; }");
    }
}
