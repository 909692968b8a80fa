//! `wire` and `unwire` on generated files: undoing restores the same text, and edits change nothing else.

use std::collections::BTreeMap;

use plugbay_hosts::{
    Entry,
    edit::{EditError, OwnEntry, unwire, wire},
    jsonc,
    known::{self, Host},
    read::{Found, read},
};
use proptest::prelude::*;

use crate::files::{self, Dice, Generated};

fn own() -> OwnEntry {
    let env = [("PLUGBAY_LOG".to_owned(), "it's \"on\" # now".to_owned())].into();
    OwnEntry { name: "plugbay".into(), command: "/opt/plugbay".into(), args: vec!["serve".into()], env }
}

fn host(id: &str) -> &'static Host {
    known::by_id(id).unwrap()
}

fn entries(found: &[Found]) -> BTreeMap<Vec<String>, Entry> {
    found.iter().map(|found| (found.key.clone(), found.entry.clone())).collect()
}

/// The entries that move: each bit of `choice` decides about some of them.
fn moved(found: &[Found], choice: u8) -> Vec<Found> {
    let chosen = found.iter().enumerate().filter(|(index, _)| choice >> (index % 8) & 1 == 1);
    chosen.map(|(_, found)| found.clone()).collect()
}

fn check(host: &Host, file: &Generated, choice: u8) {
    let text = &file.text;
    let before = read(host, text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let wired =
        |moved: &[Found]| wire(host, text, &own(), moved).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let undone = |wired: &str, original| unwire(host, wired, "plugbay", original).unwrap();

    let alone = wired(&[]);
    assert_eq!(undone(&alone, None), *text, "without the original, from\n{alone}");
    assert_eq!(undone(&alone, Some(text)), *text, "with the original, from\n{alone}");

    let moved = moved(&before.found, choice);
    let result = wired(&moved);
    assert_eq!(undone(&result, Some(text)), *text, "after moving {}, from\n{result}", moved.len());
    for comment in &file.comments {
        assert!(result.contains(comment.as_str()), "{comment} is lost in\n{result}");
    }
    let mut expected = entries(&before.found);
    expected.retain(|key, _| !moved.iter().any(|moved| moved.key == *key));
    let mut after = entries(&read(host, &result).unwrap().found);
    let added = after.remove(&vec![host.container.clone(), "plugbay".to_owned()]).expect("its own entry");
    assert_eq!(added.name, "plugbay");
    assert_eq!(after, expected, "in\n{result}");
}

/// Checks later edits by the user, in each format.
fn check_edited(host: &Host, file: &Generated, choice: u8, edit: impl Fn(&str) -> String) {
    let before = read(host, &file.text).unwrap();
    let wired = wire(host, &file.text, &own(), &moved(&before.found, choice)).unwrap();
    let edited = edit(&wired);
    let result = unwire(host, &edited, "plugbay", Some(&file.text))
        .unwrap_or_else(|error| panic!("{error}\n--- original\n{}\n--- edited\n{edited}", file.text));
    assert!(result.contains("users_own"), "{result}");
    let mut after = entries(&read(host, &result).unwrap().found);
    after.retain(|key, _| key.last().is_some_and(|name| name != "users_own"));
    assert_eq!(after, entries(&before.found), "--- edited\n{edited}\n--- result\n{result}");
}

#[test]
fn files_without_any_entry_are_the_same_after_wire_and_unwire() {
    let json = [
        "",
        "\n",
        "// only a comment",
        "/* a */\r\n",
        "{}",
        "{ }",
        "{\n}\n",
        "{ /* empty */ }",
        "{\"a\":1}",
        "{\"mcpServers\":{}}",
        "{\n  \"mcpServers\": {}\n}\n",
        "{ \"mcpServers\": { } }",
        "{\"mcpServers\": {\n\n  },}",
        "{\n\t\"mcpServers\": { // none\n\t}\n}",
        "\u{feff}{}",
    ];
    let toml = [
        "",
        "\n",
        "# c",
        "a = 1",
        "a = 1\r\n",
        "a = 1\n\n\n",
        "[mcp_servers]",
        "[mcp_servers]\n",
        "mcp_servers = {}\n",
        "mcp_servers = { }",
        "[a]\n[[b]]\n",
    ];
    let yaml = [
        "",
        "\n",
        "# c",
        "---\n",
        "a: 1",
        "a: 1\r\n",
        "extensions:",
        "extensions:\n",
        "extensions: # c\na: 1\n",
        "extensions: {}",
        "extensions: { }\n",
        "{}",
        "{a: 1}\n",
        "{extensions: {}}",
        "a: |+\n  x\n\n",
        "a:\n- 1\n# end",
    ];
    for (id, texts) in [("cursor", &json[..]), ("codex", &toml), ("goose", &yaml)] {
        for text in texts {
            check(host(id), &Generated { text: (*text).to_owned(), comments: Vec::new() }, 0);
        }
    }
}

#[test]
fn a_file_with_a_lone_carriage_return_is_not_edited() {
    let yaml = ["a: b\r", "a: b\r\r\n", "a: b\r\rc: d\n", "a:\n - b \r\r", "\r"];
    let json = ["\r\r\r", "{}\r", "{\r}\n"];
    let files = yaml.map(|text| ("goose", text)).into_iter().chain(json.map(|text| ("zed", text)));
    for (id, text) in files {
        let error = wire(host(id), text, &own(), &[]).unwrap_err();
        assert!(matches!(error, EditError::Unsafe(_)), "{error} for {text:?}");
        assert!(unwire(host(id), text, "plugbay", None).is_err(), "{text:?}");
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_of_a_host_is_the_same_after_wire_and_unwire(bytes in bytes(), choice: u8) {
        check(host("cursor"), &files::json(Dice::new(&bytes), "mcpServers"), choice);
        check(host("vscode"), &files::json(Dice::new(&bytes), "servers"), choice);
        check(host("claude-code"), &files::json(Dice::new(&bytes), "mcpServers"), choice);
    }

    #[test]
    fn toml_of_a_host_is_the_same_after_wire_and_unwire(bytes in bytes(), choice: u8) {
        check(host("codex"), &files::toml(Dice::new(&bytes)), choice);
    }

    #[test]
    fn yaml_of_a_host_is_the_same_after_wire_and_unwire(bytes in bytes(), choice: u8) {
        check(host("goose"), &files::yaml(Dice::new(&bytes)), choice);
    }

    #[test]
    fn an_edit_of_the_user_in_json_survives_unwire(bytes in bytes(), choice: u8) {
        let file = files::json(Dice::new(&bytes), "mcpServers");
        check_edited(host("claude-code"), &file, choice, |text| {
            jsonc::set(text, &["mcpServers", "users_own"], jsonc::input(&serde_json::json!({ "command": "x" }))).unwrap()
        });
    }

    #[test]
    fn an_edit_of_the_user_in_toml_survives_unwire(bytes in bytes(), choice: u8) {
        let file = files::toml(Dice::new(&bytes));
        check_edited(host("codex"), &file, choice, |text| format!("{text}\n[users_own]\nx = 1\n"));
    }

    #[test]
    fn an_edit_of_the_user_in_yaml_survives_unwire(bytes in bytes(), choice: u8) {
        let file = files::yaml(Dice::new(&bytes));
        check_edited(host("goose"), &file, choice, |text| format!("{text}\nusers_own: [1]\n"));
    }
}
