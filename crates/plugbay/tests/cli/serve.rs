//! What surrounds `plugbay serve`, and the commands that need no server.

use crate::harness::{Harness, samples};

#[test]
fn serve_ends_with_its_input_and_says_nothing_to_a_pipe() {
    Harness::with(&samples()).run(&["serve"]).check(0, "", "");
}

#[test]
fn the_schema_is_printed() {
    let schema = Harness::empty().run(&["schema"]).json();
    assert!(schema["properties"]["mcpServers"].is_object());
}

#[test]
fn help_names_every_command() {
    let run = Harness::empty().run(&["--help"]);
    assert_eq!(run.code, Some(0));
    for command in ["serve", "list", "status", "tools", "call", "demo", "approve", "schema"] {
        assert!(run.out.contains(&format!("\n  {command} ")), "{}", run.out);
    }
    assert!(!run.out.contains("__"), "hidden commands stay hidden");
    assert!(Harness::empty().run(&["call", "--help"]).out.contains("\nExamples:\n"));
    assert_eq!(Harness::empty().run(&["frobnicate"]).code, Some(2));
}
