//! A Rust file as tokens: without comments and test-only items, with strings as literals.

mod paths;
mod tests_only;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

pub(crate) use paths::paths;

/// The tokens of a file without test-only items. An error begins with the line number.
pub(crate) fn parse(text: &str) -> Result<TokenStream, String> {
    let tokens: TokenStream = text
        .parse()
        .map_err(|error: proc_macro2::LexError| format!("{}: {error}", error.span().start().line))?;
    Ok(tests_only::dropped(tokens))
}

/// A module inside another: `mod a;` has its own file, `mod a { … }` a body.
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) body: Option<TokenStream>,
}

/// Separates the child modules from a module's tokens.
pub(crate) fn split_children(tokens: TokenStream) -> (TokenStream, Vec<Child>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let (mut own, mut children) = (Vec::new(), Vec::new());
    let mut rest = tokens.as_slice();
    while let [first, after @ ..] = rest {
        if let [TokenTree::Ident(name), end, after @ ..] = after
            && is_ident(first, "mod")
        {
            let body = group(end, Delimiter::Brace).map(Group::stream);
            children.push(Child { name: name.to_string(), body });
            rest = after;
        } else {
            own.push(first.clone());
            rest = after;
        }
    }
    (own.into_iter().collect(), children)
}

/// Calls `visit` with the tokens of every nesting level, outermost first.
pub(crate) fn each_level(tokens: &TokenStream, visit: &mut impl FnMut(&[TokenTree])) {
    let level: Vec<TokenTree> = tokens.clone().into_iter().collect();
    visit(&level);
    for token in &level {
        if let TokenTree::Group(group) = token {
            each_level(&group.stream(), visit);
        }
    }
}

pub(crate) fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

pub(crate) fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

pub(crate) fn group(token: &TokenTree, delimiter: Delimiter) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == delimiter => Some(group),
        _ => None,
    }
}

/// Splits at commas outside of angle brackets: for the parts of a group or of a list of generics.
pub(crate) fn comma_separated(tokens: &[TokenTree]) -> Vec<&[TokenTree]> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (place, token) in tokens.iter().enumerate() {
        // `->` and `=>` close nothing.
        let arrow = place > 0 && (is_punct(&tokens[place - 1], '-') || is_punct(&tokens[place - 1], '='));
        if is_punct(token, '<') {
            depth += 1;
        } else if is_punct(token, '>') && !arrow {
            depth = depth.saturating_sub(1);
        } else if is_punct(token, ',') && depth == 0 {
            parts.push(&tokens[start..place]);
            start = place + 1;
        }
    }
    parts.push(&tokens[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}
