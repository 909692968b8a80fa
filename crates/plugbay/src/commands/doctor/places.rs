//! Finds the entries of servers in the configuration files, with their places.

use std::path::Path;

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Object, ObjectProp, Value as Node},
    common::Ranged as _,
    parse_to_ast,
};
use plugbay_hosts::jsonc;

use super::examination::EntryPlace;
use crate::{
    config::{Position, Settings},
    files,
};

/// The keys that hold servers.
const SERVERS: [&str; 5] = ["mcpServers", "servers", "context_servers", "mcp_servers", "mcp"];

/// The entries of all files that were read, in the order of precedence, lowest first.
pub fn entries(settings: &Settings) -> Vec<EntryPlace> {
    settings.contents.iter().flat_map(|content| of_file(&content.file)).collect()
}

fn of_file(file: &Path) -> Vec<EntryPlace> {
    let text = files::read_text(file).unwrap_or_default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let Ok(parsed) = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()) else {
        return Vec::new();
    };
    let Some(Node::Object(root)) = &parsed.value else { return Vec::new() };
    let mut found = Vec::new();
    for key in SERVERS {
        let servers = root.get(key).and_then(|property| property.value.as_object());
        for property in servers.into_iter().flat_map(|Object { properties, .. }| properties) {
            found.extend(place(file, text, key, property));
        }
    }
    found
}

fn place(file: &Path, text: &str, key: &str, property: &ObjectProp<'_>) -> Option<EntryPlace> {
    let server = property.name.as_str().to_owned();
    let range = property.range();
    Some(EntryPlace {
        value: jsonc::get(text, &[key, &server]).ok()??,
        file: file.to_owned(),
        path: vec![key.to_owned(), server.clone()],
        start: position(text, range.start),
        end: position(text, range.end),
        server,
    })
}

fn position(text: &str, offset: usize) -> Position {
    let before = &text[..offset.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    Position { line, column: before[line_start..].chars().count() + 1 }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_entry_is_found_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f.jsonc");
        fs::write(
            &file,
            "{ // x\n  \"servers\": {\n    \"a\": { \"command\": \"x\" },\n    \"b\": {}\n  }\n}",
        )
        .unwrap();
        let places = of_file(&file);
        let spans: Vec<_> =
            places.iter().map(|entry| (entry.server.as_str(), entry.start, entry.end)).collect();
        let at = |line, column| Position { line, column };
        assert_eq!(spans, [("a", at(3, 5), at(3, 28)), ("b", at(4, 5), at(4, 12))]);
        assert_eq!(places[0].text("command"), Some("x"));
        assert_eq!(places[0].key("args"), ["servers", "a", "args"]);
    }
}
