//! Outlines as a model reads them, and what holds for all of them.

mod excerpts;
mod hostile;
mod results;
mod snapshots;

use super::*;

/// Compares with a file in `snapshots`.
fn snapshot(name: &str, text: &str) {
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

/// Checks what holds for every outline: it fits, it forges no line, and its rows parse.
fn check(text: &str, tokens: usize) -> Outline {
    let outline = outline(text, tokens);
    assert!(estimate(&outline.text) <= tokens, "{} > {tokens}: {}", estimate(&outline.text), outline.text);
    assert!(crate::text::hidden_in(&outline.text).is_empty(), "{:?}", outline.text);
    let rows = outline.text.lines().skip_while(|line| !line.ends_with("samples cut:")).skip(1);
    for row in rows {
        let json = if row.starts_with('[') { row.split_once("]: ").unwrap().1 } else { row };
        serde_json::from_str::<serde_json::Value>(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    }
    outline
}
