//! Suites: a server as one tool.

use super::*;

fn suites() -> Snapshot {
    let servers = catalog(&[
        (
            "notes",
            &[
                r#"{"name":"add","description":"Adds a note. At once.","inputSchema":{"properties":{"text":{"type":"string"}},"required":["text"]}}"#,
                r#"{"name":"List-All","description":"Lists notes."}"#,
                r#"{"name":"wipe"}"#,
            ],
        ),
        ("files", &[r#"{"name":"read"}"#]),
    ]);
    let suite = Suite { description: Some("What to remember.".to_owned()), ..Suite::default() };
    let policy = Policy { deny: Patterns::compile(["wipe"]).unwrap(), ..Policy::default() };
    let mut layout = layout("notes", Exposure { policy, suite, ..Exposure::default() });
    let renamed = Suite { name: Some("documents".to_owned()), ..Suite::default() };
    let files = Exposure { suite: renamed, ..Exposure::default() };
    layout.exposures.insert(ServerName::parse("files").unwrap(), files);
    layout.exposures.insert(ServerName::parse("new").unwrap(), Exposure::default());
    layout.mode = Some(Mode::Suite);
    snapshot(&servers, layout)
}

#[test]
fn a_suite_lists_a_server_as_one_tool() {
    let snapshot = suites();
    let tools: Vec<serde_json::Value> = serde_json::from_slice(&snapshot.listing.tools).unwrap();
    let told: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap(), tool["description"].as_str().unwrap()))
        .collect();
    let unlisted = "The tools of new, which has not listed them yet; introspect says why";
    let expected = [("documents", "read"), ("new_suite", unlisted), ("notes_suite", "What to remember.")];
    assert_eq!(told, expected);
    let notes = ServerName::parse("notes").unwrap();
    assert_eq!(snapshot.listing.plan("notes_suite"), Plan::Suite(&notes));
    assert!(matches!(snapshot.listing.plan("files_suite"), Plan::Unknown { .. }));
    let lines = suite::introspect(&notes, &snapshot, &suite::Wanted::default());
    assert_eq!(lines, "List-All() - Lists notes.\nadd(text: string) - Adds a note. At once.");
    let wanted = suite::Wanted {
        full: true,
        tools: Some(vec!["add".to_owned(), "none".to_owned()]),
        ..suite::Wanted::default()
    };
    let full = suite::introspect(&notes, &snapshot, &wanted);
    assert!(full.starts_with("add - Adds a note. At once.\n{\"properties\""), "{full}");
    let none = suite::Wanted { tools: Some(Vec::new()), ..suite::Wanted::default() };
    assert_eq!(suite::introspect(&notes, &snapshot, &none), "notes has no tool like that");
    let one = suite::introspect(&notes, &snapshot, &suite::Wanted { most: 1, ..suite::Wanted::default() });
    assert!(one.starts_with("List-All() - Lists notes.\nand 1 more: "), "{one}");
}

#[test]
fn a_subtool_is_understood_however_it_is_written() {
    let snapshot = suites();
    let notes = ServerName::parse("notes").unwrap();
    for written in ["List-All", "list_all", "notes__List-All", "LIST ALL"] {
        assert_eq!(suite::subtool(&notes, written, &snapshot).unwrap().target.tool, "List-All", "{written}");
    }
    let told = suite::subtool(&notes, "ad", &snapshot).unwrap_err();
    assert_eq!(told, "notes has no tool \"ad\". It has:\nadd(text: string) - Adds a note.");
    assert!(suite::subtool(&notes, "wipe", &snapshot).is_err(), "denied");

    let alike = catalog(&[("notes", &[r#"{"name":"get_item"}"#, r#"{"name":"Get-Item"}"#])]);
    let snapshot = self::snapshot(&alike, layout("notes", Exposure::default()));
    let meant =
        |written: &str| suite::subtool(&notes, written, &snapshot).map(|found| found.target.tool.clone());
    assert_eq!(meant("Get-Item"), Ok("Get-Item".to_owned()));
    assert!(meant("GET_ITEM").unwrap_err().contains("get_item"), "either may be meant");
}

#[test]
fn execute_tool_finds_a_tool_by_a_server_name_apart_from_it() {
    let servers = catalog(&[("a", &[r#"{"name":"x","inputSchema":{}}"#]), ("b", &[r#"{"name":"x"}"#])]);
    let snapshot = snapshot(&servers, layout("new", Exposure::default()));
    let name = |name: &str, server| snapshot.executable(name, server).map(|known| known.name);
    for (written, server) in [("x", Some("a")), ("a__x", Some("a")), ("a__x", None)] {
        assert_eq!(name(written, server).as_deref(), Some("a__x"), "{written}");
    }
    for (written, server) in [("x", None), ("b__x", Some("a")), ("y", Some("a")), ("x", Some("nobody"))] {
        assert_eq!(name(written, server), None, "{written}");
    }
    for (written, server) in [("y", Some("new")), ("new__y", Some("new")), ("new__y", None)] {
        assert_eq!(name(written, server).as_deref(), Some("new__y"), "nobody has heard of it: {written}");
    }
}

#[test]
fn a_suite_never_takes_the_name_of_something_else() {
    let servers = catalog(&[("a", &[r#"{"name":"x"}"#]), ("b", &[r#"{"name":"y"}"#])]);
    let named = |name: &str| Exposure {
        suite: Suite { name: Some(name.to_owned()), ..Suite::default() },
        ..Exposure::default()
    };
    let mut layout = layout("a", named("b__y"));
    layout.exposures.insert(ServerName::parse("b").unwrap(), named("search_tools"));
    layout.mode = Some(Mode::Suite);
    let listing = list(&servers, layout);
    assert!(
        matches!(listing.plan("a__suite"), Plan::Suite(_))
            && matches!(listing.plan("b__suite"), Plan::Suite(_))
    );
    assert!(matches!(listing.plan("b__y"), Plan::Forward(_)));
    let servers = catalog(&[("a", &[r#"{"name":"suite"}"#])]);
    let mut layout = self::layout("a", named("a__suite"));
    layout.mode = Some(Mode::Suite);
    let listing = list(&servers, layout);
    assert!(
        matches!(listing.plan("a__suite"), Plan::Forward(_))
            && matches!(listing.plan("a__suite_"), Plan::Suite(_))
    );
}
