//! Names and texts of servers and hosts within plugbay's own sentences: none can end its quotes or its line.

use std::borrow::Cow;

use super::{escaped_json, hidden_in, is_line_break, stripped};

/// A name is cut here, in bytes.
const LONGEST: usize = 200;
/// How many names are listed.
const NAMES: usize = 40;
/// How many bytes the names of a list may have together.
const LIST: usize = 2_000;
/// Marks that end a name in a list, a signature or quotes.
const ENDS: [char; 5] = [',', ';', '(', ')', '`'];

/// A name in backquotes. One that could break out of them is a JSON string instead.
pub fn quoted(name: &str) -> String {
    let name = cut(name);
    if name.contains('`') || breaks_a_line(&name) { json(&name) } else { format!("`{name}`") }
}

/// A name as one word of a list or signature, bare if it can be, else as a JSON string.
pub fn word(name: &str) -> Cow<'_, str> {
    let name = cut(name);
    let is_odd = |char: char| char.is_whitespace() || ENDS.contains(&char);
    if name.is_empty() || name.contains(is_odd) || breaks_a_line(&name) { json(&name).into() } else { name }
}

/// Names with commas between them, and how many more there are.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut list = String::new();
    let mut names = names.into_iter();
    for (at, name) in names.by_ref().enumerate() {
        if at == NAMES || list.len() > LIST {
            return format!("{list} and {} more", 1 + names.count());
        }
        list.push_str(if at == 0 { "" } else { ", " });
        list.push_str(&word(name));
    }
    list
}

/// A text on one line: line breaks are blanks, and other hidden characters are left out.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    match stripped(text) {
        text if !text.contains(is_line_break) => text,
        text => text.replace("\r\n", " ").replace(is_line_break, " ").into(),
    }
}

fn breaks_a_line(name: &str) -> bool {
    name.contains(|char: char| char.is_control() || is_line_break(char)) || !hidden_in(name).is_empty()
}

fn json(name: &str) -> String {
    escaped_json(&serde_json::Value::from(name).to_string()).into_owned()
}

fn cut(name: &str) -> Cow<'_, str> {
    if name.len() <= LONGEST {
        return name.into();
    }
    format!("{}…", &name[..name.floor_char_boundary(LONGEST - "…".len())]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_end_neither_its_quotes_nor_its_line() {
        assert_eq!(quoted("file name, (new)"), "`file name, (new)`");
        assert_eq!(quoted("größe"), "`größe`");
        assert_eq!(quoted("x` is missing; `y"), r#""x` is missing; `y""#);
        assert_eq!(quoted("a\n\nold__delete(path: string)"), r#""a\n\nold__delete(path: string)""#);
        assert_eq!(quoted("a\u{2028}b\u{202e}c\u{85}"), r#""a\u2028b\u202ec\u0085""#);
        assert_eq!(quoted(""), "``");
        assert!(quoted(&"é".repeat(1_000)).len() < 210);
    }

    #[test]
    fn a_word_of_a_list_is_bare_only_if_it_ends_where_it_seems_to() {
        assert_eq!(listed(["a", "$filter", "xsi:type", "größe"]), "a, $filter, xsi:type, größe");
        assert_eq!(
            listed(["a b", "a,b", "f(x)", "`", "", "a\u{202e}"]),
            r#""a b", "a,b", "f(x)", "`", "", "a\u202e""#
        );
        let many: Vec<String> = (0..50).map(|number| format!("k{number}")).collect();
        assert!(listed(many.iter().map(String::as_str)).ends_with(", k39 and 10 more"));
        let long = vec!["x".repeat(1_000); 50];
        assert!(listed(long.iter().map(String::as_str)).len() < LIST + 2 * LONGEST);
    }

    #[test]
    fn a_text_on_one_line_keeps_its_words_apart() {
        assert_eq!(on_one_line("a\nb\r\nc\u{2028}d\u{85}e\rf\u{202e}g"), "a b c d e fg");
        assert_eq!(on_one_line("plain"), "plain");
    }
}
