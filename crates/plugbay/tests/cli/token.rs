//! `plugbay token`: its output, and the stored data.

use std::fs;

use serde_json::Value;

use crate::{harness::Harness, snapshot::snapshots};

#[test]
fn tokens_are_created_listed_and_revoked() {
    let harness = Harness::empty();
    snapshots(&harness, "token-list-without-tokens", &["token", "list"]);
    let created = harness.run(&[
        "token",
        "create",
        "ci",
        "--tools",
        "git__*",
        "files__read",
        "--expires",
        "30d",
        "--rate",
        "60/min",
    ]);
    let token = created.out.trim();
    assert!(created.code == Some(0) && token.starts_with("pb_") && token.len() == 46, "{created:?}");
    assert!(created.err.contains("cannot be shown again"), "{created:?}");
    assert!(created.err.contains("every host of a gateway"), "the first token: {created:?}");
    assert_eq!(harness.run(&["token", "create", "CI"]).code, Some(1), "names differ in more than case");
    let json = harness.run(&["token", "create", "ada", "--json"]);
    let made: Value = serde_json::from_str(&json.out).expect("JSON");
    assert!(made["token"].as_str().is_some_and(|token| token.starts_with("pb_")), "{json:?}");
    let list = harness.run(&["token", "list"]).out;
    assert!(list.contains("ci") && list.contains("60/min") && list.contains("git__* files__read"), "{list}");
    assert!(list.contains("never") && list.contains("all"), "{list}");
    let text = fs::read_to_string(harness.path().join("state/plugbay/tokens.json")).unwrap();
    assert!(!text.contains(&token[3..]), "{text}");
    assert_eq!(harness.run(&["token", "revoke", "ci"]).code, Some(0));
    let list = harness.run(&["token", "list", "--json"]).out;
    assert!(!list.contains("\"ci\"") && list.contains("\"ada\""), "{list}");
    let revoked = harness.run(&["token", "revoke", "ada"]);
    assert!(revoked.err.contains("no token is left"), "{revoked:?}");
}

#[test]
fn mistakes_with_tokens_are_explained() {
    let harness = Harness::empty();
    assert_eq!(harness.run(&["token", "create", "ci"]).code, Some(0));
    snapshots(&harness, "token-of-a-taken-name", &["token", "create", "ci"]);
    snapshots(&harness, "token-of-a-bad-name", &["token", "create", "a b"]);
    snapshots(&harness, "token-with-a-bad-pattern", &["token", "create", "x", "--tools", "[a"]);
    snapshots(&harness, "token-with-a-bad-limit", &["token", "create", "x", "--rate", "often"]);
    snapshots(&harness, "token-revoke-unknown", &["token", "revoke", "nobody"]);
}
