//! The summary of a server: what it is for, gathered from the names of its tools.

use rustc_hash::{FxHashMap, FxHashSet};

/// How many bytes of it a model reads: of what can be done, and with what.
const VERBS: usize = 48;
const THINGS: usize = 36;
/// How many names are read, and how many words of each.
const NAMES: usize = 1_000;
const WORDS: usize = 16;

/// The summary: `read_file`, `write_file` and `list_files` are `read write list: file`. Without commas it has
/// half as many tokens. Words in front of every name say nothing, and words that many names have in common
/// come first.
pub(crate) fn summary<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<Vec<String>> = names.take(NAMES).map(words).filter(|name| !name.is_empty()).collect();
    while names.len() > 1 && names.iter().all(|name| name.len() > 1 && name[0] == names[0][0]) {
        for name in &mut names {
            name.remove(0);
        }
    }
    let things = by_frequency(names.iter().flat_map(|name| name.iter().skip(1)));
    let known: FxHashSet<&str> = things.iter().map(|(thing, _)| *thing).collect();
    let verbs = by_frequency(names.iter().map(|name| &name[0]));
    let verbs = verbs.iter().map(|(verb, _)| *verb).filter(|verb| !known.contains(verb));
    let common = things.iter().filter(|(_, count)| *count > 1).map(|(thing, _)| *thing);
    let parts = [within(verbs, VERBS), within(common, THINGS)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
}

/// The words of a name in small letters: `getUser_name` is `get`, `user`, `name`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() && before.is_lowercase() {
            if words.len() > WORDS {
                break;
            }
            if words.last().is_none_or(|word| !word.is_empty()) {
                words.push(String::new());
            }
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Words with their counts, the most frequent first; equally frequent ones in their order.
fn by_frequency<'a>(words: impl Iterator<Item = &'a String>) -> Vec<(&'a str, usize)> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    for word in words {
        let place = *places.entry(word).or_insert_with(|| {
            counts.push((word, 0));
            counts.len() - 1
        });
        counts[place].1 += 1;
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// As many words as there is room for, and a mark if there are more.
fn within<'a>(words: impl Iterator<Item = &'a str>, room: usize) -> String {
    let mut text = String::new();
    for word in words {
        if text.len() + word.len() > room {
            return format!("{text}…");
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_can_be_done_and_with_what() {
        for (names, told) in [
            ("", ""),
            ("echo", "echo"),
            ("git_add git_commit git_log", "add commit log"),
            ("readFile writeFile listFiles", "read write list: file"),
            (
                "add_observations create_entities create_relations delete_entities delete_observations \
                 delete_relations open_nodes read_graph search_nodes",
                "delete create add open read search: observations entities relations nodes",
            ),
            (
                "create_directory directory_tree edit_file get_file_info list_directory read_file read_text_file",
                "read create edit get list: file directory",
            ),
        ] {
            assert_eq!(summary(names.split_whitespace()), told);
        }
    }

    #[test]
    fn it_is_never_long() {
        let many: Vec<String> =
            (0..300).map(|number| format!("{number}verb_thing{}", number % 100)).collect();
        let told = summary(many.iter().map(String::as_str));
        assert!(told.len() <= VERBS + THINGS + 16 && told.ends_with('…'), "{told}");
    }
}
