//! What hosts see in each mode, and what their calls mean.

use std::sync::Arc;

use bytes::Bytes;

use super::{activate::*, *};
use crate::auto::{Sizes, builtin_tokens};
use crate::{
    arguments::{Envelope, unwrap_call},
    catalog::{Catalog, Change, Offer, Tool},
    era::Era,
    failure::Failure,
    policy::{Patterns, Policy},
};

fn catalog(servers: &[(&str, &[&'static str])]) -> Catalog {
    servers.iter().fold(Catalog::default(), |catalog, (name, tools)| {
        let tools = tools.iter().map(|t| Tool::parse(Bytes::from_static(t.as_bytes())).unwrap()).collect();
        let offer = Arc::new(Offer::new(Era::Legacy, None, None, tools));
        catalog.apply(Change::Listed(ServerName::parse(name).unwrap(), offer))
    })
}

fn layout(server: &str, exposure: Exposure) -> Layout {
    let exposures = [(ServerName::parse(server).unwrap(), exposure)].into();
    Layout { exposures, name_limit: 64, ..Layout::default() }
}

fn snapshot(catalog: &Catalog, layout: Layout) -> Snapshot {
    let mode = layout.mode.unwrap_or_default();
    Snapshot::new(Arc::new(catalog.clone()), Arc::new(layout), true).seen_by(&View::in_mode(mode))
}

fn list(catalog: &Catalog, layout: Layout) -> Arc<Listing> {
    snapshot(catalog, layout).listing
}

#[test]
fn definitions_keep_their_bytes_but_for_the_name() {
    let catalog = catalog(&[
        ("b", &[r#"{ "x": 1.0, "name":"t" , "inputSchema":{"a":1e2}}"#]),
        ("a", &[r#"{"name":"t2"}"#, r#"{"name":"t1"}"#]),
    ]);
    let listing = list(&catalog, layout("none", Exposure::default()));
    let expected =
        r#"[{"name":"a__t1"},{"name":"a__t2"},{ "x": 1.0, "name":"b__t" , "inputSchema":{"a":1e2}}]"#;
    assert_eq!(listing.tools, expected);
}

#[test]
fn the_user_filters_renames_and_describes() {
    let catalog = catalog(&[(
        "s",
        &[r#"{"name":"get","description":"old"}"#, r#"{"name":"put"}"#, r#"{"name":"del"}"#],
    )]);
    let exposure = Exposure {
        policy: Policy { allow: None, deny: Patterns::compile(["d*"]).unwrap() },
        rename: [("get".to_owned(), "fetch".to_owned())].into(),
        describe: [("get".to_owned(), "new".to_owned()), ("put".to_owned(), "puts".to_owned())].into(),
        ..Exposure::default()
    };
    let listing = list(&catalog, layout("s", exposure));
    let expected = r#"[{"name":"s__fetch","description":"new"},{"name":"s__put","description":"puts"}]"#;
    assert_eq!(listing.tools, expected);
    assert!(matches!(listing.plan("s__fetch"), Plan::Forward(target) if target.tool == "get"));
    assert!(matches!(listing.plan("s__del"), Plan::Unknown { .. }));
}

#[test]
fn a_server_that_was_never_heard_of_is_asked_itself() {
    let listing = list(&catalog(&[]), layout("new", Exposure::default()));
    assert!(matches!(listing.plan("new__x__y"), Plan::Forward(target) if target.quoted == "\"x__y\""));
    assert!(matches!(listing.plan("old__x"), Plan::Unknown { .. }));
}

#[test]
fn two_tools_never_share_a_name() {
    let rename = [("x".to_owned(), "y".to_owned())].into();
    let catalog = catalog(&[("s", &[r#"{"name":"x"}"#, r#"{"name":"y"}"#, r#"{"name":"z"}"#])]);
    let snapshot = snapshot(&catalog, layout("s", Exposure { rename, ..Exposure::default() }));
    assert_eq!(snapshot.listing.tools, r#"[{"name":"s__z"}]"#);
    assert_eq!(snapshot.names.collisions, ["s__y"]);
}

fn bare(servers: &[&str]) -> Layout {
    let exposure = Exposure { bare: true, ..Exposure::default() };
    let exposures = servers.iter().map(|name| (ServerName::parse(name).unwrap(), exposure.clone()));
    Layout { exposures: exposures.collect(), name_limit: 64, ..Layout::default() }
}

#[test]
fn bare_tools_stand_under_their_own_names() {
    let catalog = catalog(&[("a", &[r#"{"name":"x"}"#]), ("b", &[r#"{"name":"y"}"#])]);
    let Snapshot { listing, names, .. } = snapshot(&catalog, bare(&["a"]));
    assert_eq!(listing.tools, r#"[{"name":"b__y"},{"name":"x"}]"#);
    assert!(matches!(listing.plan("x"), Plan::Forward(target) if target.server.as_str() == "a"));
    assert!(names.ambiguous.is_empty());
}

#[test]
fn bare_names_that_two_servers_want_become_full_ones() {
    let tools: &[&'static str] = &[r#"{"name":"x"}"#];
    let both = catalog(&[("a", tools), ("b", tools)]);
    let Snapshot { listing, names, .. } = snapshot(&both, bare(&["a", "b"]));
    assert_eq!(listing.tools, r#"[{"name":"a__x"},{"name":"b__x"}]"#);
    assert_eq!(names.ambiguous, ["x"]);
    assert_eq!(listing.plan("x"), Plan::Unknown { nearest: vec!["a__x", "b__x"] });
}

#[test]
fn a_bare_name_cannot_pass_for_another_servers_tool() {
    let tools: &[&'static str] = &[r#"{"name":"git__push"}"#, r#"{"name":"odd__name"}"#];
    // Git has not been heard of yet: its calls are its own all the same.
    let Snapshot { listing, names, .. } = snapshot(&catalog(&[("a", tools)]), bare(&["a", "git"]));
    assert_eq!(listing.tools, r#"[{"name":"a__git__push"},{"name":"odd__name"}]"#);
    assert_eq!(names.ambiguous, ["git__push"]);
    assert!(matches!(listing.plan("git__push"), Plan::Forward(target) if target.server.as_str() == "git"));
}

#[test]
fn tools_behind_search_can_be_called_but_are_not_listed() {
    let servers = catalog(&[("a", &[r#"{"name":"x"}"#]), ("b", &[r#"{"name":"y"}"#])]);
    let exposure = Exposure { mode: Some(Mode::Search), ..Exposure::default() };
    let listing = list(&servers, layout("a", exposure));
    let tools = String::from_utf8(listing.tools.to_vec()).unwrap();
    assert!(
        tools.starts_with(r#"[{"name":"search_tools""#) && tools.ends_with(r#",{"name":"b__y"}]"#),
        "{tools}"
    );
    assert!(!tools.contains("a__x") && !tools.contains("proxy_status"), "{tools}");
    assert!(matches!(listing.plan("a__x"), Plan::Forward(_)));
    assert_eq!(listing.plan("proxy_status"), Plan::Builtin(BuiltinTool::Status), "callable all the same");
}

#[test]
fn whatever_the_mode_tools_can_be_found_and_the_panel_looked_at() {
    let servers = catalog(&[("a", &[r#"{"name":"x"}"#])]);
    let snapshot = snapshot(&servers, layout("a", Exposure::default()));
    for mode in [Mode::All, Mode::Search, Mode::Activate, Mode::Suite] {
        let listing = snapshot.seen_by(&View::in_mode(mode)).listing;
        for own in [BuiltinTool::Overview, BuiltinTool::Search, BuiltinTool::Describe, BuiltinTool::Execute] {
            assert_eq!(listing.plan(own.name()), Plan::Builtin(own), "{mode}");
        }
        let switched = listing.plan("gateway_activate") == Plan::Builtin(BuiltinTool::Activate);
        assert_eq!(switched, mode == Mode::Activate);
        let prompts = [BuiltinPrompt::Activate, BuiltinPrompt::Search, BuiltinPrompt::Status];
        let known = prompts.map(|prompt| listing.builtin_prompt(prompt.name()).is_some());
        assert_eq!(known, [mode == Mode::Activate, true, true], "{mode}");
    }
    let tools = snapshot.seen_by(&View::in_mode(Mode::All)).listing.tools.clone();
    assert_eq!(tools, r#"[{"name":"a__x"}]"#, "nothing of it is listed");
}

#[test]
fn a_plain_proxy_lists_nothing_of_ours() {
    let servers = catalog(&[("a", &[r#"{"name":"x"}"#])]);
    let plain = |mode| {
        let exposure = Exposure { mode, ..Exposure::default() };
        list(&servers, Layout { mode: Some(Mode::All), ..layout("a", exposure) })
    };
    let listing = plain(None);
    assert!(!listing.has_own_prompts() && listing.prompts == "[]");
    assert_eq!(listing.plan("gateway_status"), Plan::Builtin(BuiltinTool::Overview), "callable all the same");
    assert!(!plain(Some(Mode::All)).has_own_prompts() && plain(Some(Mode::Suite)).has_own_prompts());
}

#[test]
fn a_wrong_name_is_answered_with_the_nearest() {
    let catalog = catalog(&[("git", &[r#"{"name":"status"}"#, r#"{"name":"commit"}"#])]);
    let listing = list(&catalog, layout("git", Exposure::default()));
    assert_eq!(listing.plan("status"), Plan::Unknown { nearest: vec!["git__status"] });
    assert_eq!(listing.plan("git_comit"), Plan::Unknown { nearest: vec!["git__commit"] });
}

#[test]
fn pinned_tools_stand_beside_any_mode() {
    let servers = catalog(&[("a", &[r#"{"name":"get"}"#, r#"{"name":"put"}"#])]);
    let exposure = Exposure { pin: Patterns::compile(["g*"]).unwrap(), ..Exposure::default() };
    let snapshot = snapshot(&servers, layout("a", exposure));
    for (mode, own) in [(Mode::Search, "search_tools"), (Mode::Activate, "gateway_activate")] {
        let tools = snapshot.seen_by(&View::in_mode(mode)).listing.tools.clone();
        let tools = std::str::from_utf8(&tools).unwrap();
        assert!(tools.contains(own) && tools.contains("a__get") && !tools.contains("a__put"), "{tools}");
    }
    let deferring = View { defers: true, ..View::default() };
    let tools = snapshot.seen_by(&deferring).listing.tools.clone();
    assert_eq!(tools, r#"[{"name":"a__get","_meta":{"anthropic/alwaysLoad":true}},{"name":"a__put"}]"#);
}

#[test]
fn names_are_as_long_as_the_host_takes() {
    let servers = catalog(&[("server", &[r#"{"name":"a_name_of_thirty_characters_xx"}"#])]);
    let snapshot = snapshot(&servers, Layout { name_limit: 64, ..Layout::default() });
    let narrow = snapshot.seen_by(&View { name_limit: Some(30), ..View::default() });
    let name = &narrow.names.iter().next().unwrap().exposed;
    assert_eq!(name.len(), 30);
    assert!(matches!(narrow.listing.plan(name), Plan::Forward(_)) && narrow.names.get(name).is_some());
    let wide = narrow.seen_by(&View::default());
    assert!(wide.names.get("server__a_name_of_thirty_characters_xx").is_some());
}

/// Four servers in activate mode, of which `new` has not been heard of.
fn four_servers() -> Snapshot {
    let servers = catalog(&[
        ("github", &[r#"{"name":"get_issue"}"#, r#"{"name":"get_pr"}"#, r#"{"name":"merge"}"#]),
        ("gitlab", &[r#"{"name":"merge"}"#, r#"{"name":"pipelines"}"#]),
        ("Chrome-DevTools", &[r#"{"name":"navigate"}"#]),
    ]);
    let mut layout = layout("new", Exposure::default());
    layout.mode = Some(Mode::Activate);
    snapshot(&servers, layout)
}

fn activated(snapshot: &Snapshot, names: &[&str]) -> View {
    let mut view = View::in_mode(Mode::Activate);
    for name in names {
        for switch in meant(name, snapshot).unwrap() {
            view.active.switch_on(&switch);
        }
    }
    view
}

fn shown(snapshot: &Snapshot, view: &View) -> String {
    let tools: Vec<serde_json::Value> =
        serde_json::from_slice(&snapshot.seen_by(view).listing.tools).unwrap();
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.filter(|name| !name.starts_with("gateway_")).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_switched_on_is_listed_until_it_is_switched_off() {
    let snapshot = four_servers();
    let off = View::in_mode(Mode::Activate);
    assert_eq!(shown(&snapshot, &off), "");
    let all_of_one = activated(&snapshot, &["gitlab"]);
    assert_eq!(shown(&snapshot, &all_of_one), "gitlab__merge gitlab__pipelines");
    let mut some = activated(&snapshot, &["github.get_*", "chrome"]);
    assert_eq!(shown(&snapshot, &some), "Chrome-DevTools__navigate github__get_issue github__get_pr");
    let tools_of = |server: &ServerName| {
        snapshot.names.of(server).map(|found| found.target.tool.clone()).collect::<Vec<_>>()
    };
    for switch in meant("github__get_pr", &snapshot).unwrap() {
        some.active.switch_off(&switch, tools_of(&switch.server).into_iter());
    }
    assert_eq!(shown(&snapshot, &some), "Chrome-DevTools__navigate github__get_issue");
    let mut rest = activated(&snapshot, &["github"]);
    let switch = &meant("github.merge", &snapshot).unwrap()[0];
    rest.active.switch_off(switch, tools_of(&switch.server).into_iter());
    assert_eq!(shown(&snapshot, &rest), "github__get_issue github__get_pr");
    for name in ["*", "github.*"] {
        let mut view = activated(&snapshot, &["github"]);
        for switch in meant(name, &snapshot).unwrap() {
            view.active.switch_off(&switch, tools_of(&switch.server).into_iter());
        }
        assert!(view.active.is_empty(), "{name}");
    }
    assert!(matches!(snapshot.listing.plan("github__merge"), Plan::Forward(_)), "off, but not forbidden");
}

#[test]
fn names_are_understood_as_models_write_them() {
    let snapshot = four_servers();
    let servers = |name: &str| {
        let meant = meant(name, &snapshot).map_err(|unclear| unclear.to_string())?;
        Ok::<_, String>(meant.iter().map(|switch| switch.server.to_string()).collect::<Vec<_>>().join(" "))
    };
    for (name, server) in [
        ("chrome-devtools", "Chrome-DevTools"),
        (" Chrome ", "Chrome-DevTools"),
        ("devtools", "Chrome-DevTools"),
        ("lab", "gitlab"),
        ("gihtub", "github"),
        ("pipelines", "gitlab"),
        ("new", "new"),
        ("git*", "github gitlab"),
        ("*.pipe*", "gitlab new"),
        ("new.get_*", "new"),
        ("github.{get_pr,merge}", "github"),
        ("get_*", "github"),
        ("*_issue", "github"),
        ("m?rge", "github gitlab"),
    ] {
        assert_eq!(servers(name).as_deref(), Ok(server), "{name}");
    }
    for (name, told) in [
        ("git", "\"git\" can be github, gitlab: say which"),
        ("merge", "\"merge\" can be github.merge, gitlab.merge: say which"),
        ("github.get_isue", "github has no tool \"get_isue\": did you mean github.get_issue?"),
        ("zebra", "there is nothing named \"zebra\"; there are Chrome-DevTools, github, gitlab, new"),
        ("gitub*", "there is nothing named \"gitub*\"; there are Chrome-DevTools, github, gitlab, new"),
    ] {
        assert_eq!(servers(name), Err(told.to_owned()));
    }
}

#[test]
fn a_pattern_means_the_tools_that_fit_it() {
    let snapshot = four_servers();
    assert_eq!(shown(&snapshot, &activated(&snapshot, &["get_*"])), "github__get_issue github__get_pr");
    assert_eq!(shown(&snapshot, &activated(&snapshot, &["*_m*"])), "github__merge gitlab__merge");
}

#[test]
fn auto_reckons_with_servers_whose_mode_is_open() {
    let servers = catalog(&[("a", &[r#"{"name":"x"}"#, r#"{"name":"y"}"#]), ("b", &[r#"{"name":"z"}"#])]);
    let decided = Exposure { mode: Some(Mode::Suite), ..Exposure::default() };
    let sizes = Sizes::of(&snapshot(&servers, layout("a", decided)));
    assert_eq!((sizes.servers, sizes.tools), (1, 1));
    let open = Sizes::of(&snapshot(&servers, layout("a", Exposure::default())));
    assert_eq!((open.servers, open.tools), (2, 3));
    assert!(sizes.tokens < open.tokens);
}

#[test]
fn a_tool_can_be_switched_by_the_name_that_hosts_see() {
    let servers = catalog(&[("calc", &[r#"{"name":"evaluate"}"#, r#"{"name":"round"}"#])]);
    let rename = [("evaluate".to_owned(), "plus".to_owned())].into();
    let snapshot = snapshot(&servers, layout("calc", Exposure { rename, ..Exposure::default() }));
    for name in ["calc__plus", "calc.plus", "calc.pl*", "calc.evaluate"] {
        assert_eq!(shown(&snapshot, &activated(&snapshot, &[name])), "calc__plus", "{name}");
    }
}

#[test]
fn a_server_that_fails_drops_its_tools_and_brings_them_back() {
    let snapshot = four_servers();
    let view = activated(&snapshot, &["gitlab", "github.merge"]);
    let gitlab = ServerName::parse("gitlab").unwrap();
    let state = |snapshot: &Snapshot, name| State::of(&ServerName::parse(name).unwrap(), snapshot, &view);
    assert_eq!(state(&snapshot, "gitlab"), State::Active);
    assert_eq!(state(&snapshot, "Chrome-DevTools"), State::Ready);
    assert_eq!(state(&snapshot, "new"), State::Warming);

    let failure = Arc::new(Failure::new("exited with code 1", vec!["Permission denied".to_owned()]));
    let failed = snapshot.catalog.apply(Change::Failed(gitlab.clone(), Arc::clone(&failure)));
    let crashed = snapshot.with_states_of(Arc::new(failed), true);
    assert_eq!(shown(&crashed, &view), "github__merge");
    assert_eq!(state(&crashed, "gitlab"), State::Failed(failure));
    let told = overview(&crashed, &view);
    assert!(
        told.contains("gitlab: error: exited with code 1; stderr: Permission denied; try: check"),
        "{told}"
    );

    let offer = Arc::clone(&snapshot.catalog.get(&gitlab).unwrap().offer);
    let listed = crashed.catalog.apply(Change::Listed(gitlab, offer));
    let recovered = crashed.with_states_of(Arc::new(listed), true);
    assert_eq!(shown(&recovered, &view), "github__merge gitlab__merge gitlab__pipelines");
}

#[test]
fn the_overview_tells_what_is_saved() {
    let snapshot = four_servers();
    let view = activated(&snapshot, &["gitlab", "github.merge"]);
    let told = overview(&snapshot, &view);
    let each = cost(snapshot.names.iter().take(1));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], format!("Chrome-DevTools: ready, 1 tools, ~{each} tokens"));
    assert!(lines[1].starts_with("github: active, 1 of 3 tools, ~"), "{told}");
    assert!(lines[2].starts_with("gitlab: active, 2 tools, ~"), "{told}");
    assert_eq!(lines[3], "new: warming");
    let all = cost(snapshot.names.iter());
    let tokens = |line: &str| line.split(['~', ' ']).find_map(|word| word.parse::<usize>().ok()).unwrap();
    let (off, on) = (
        tokens(overview(&snapshot, &View::in_mode(Mode::Activate)).lines().last().unwrap()),
        tokens(lines[4]),
    );
    assert_eq!(off, builtin_tokens(&[BuiltinTool::Activate, BuiltinTool::Deactivate, BuiltinTool::Overview]));
    let saved = all.saturating_sub(on);
    assert!(on > off, "{told}");
    assert_eq!(lines[4], format!("in context: ~{on} tokens; all tools: ~{all}, ~{saved} saved"));
}

#[test]
fn a_host_that_does_not_list_again_gets_a_tool_to_call_through() {
    let deaf = View { deaf: true, ..View::in_mode(Mode::Activate) };
    assert_eq!(shown(&four_servers(), &deaf), "execute_tool");
}

/// `notes` and `files` as one tool each; `new` has not been heard of.
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
    let policy = Policy { allow: None, deny: Patterns::compile(["wipe"]).unwrap() };
    let mut layout = layout("notes", Exposure { policy, suite, ..Exposure::default() });
    let renamed = Suite { name: Some("documents".to_owned()), ..Suite::default() };
    let files = Exposure { suite: renamed, ..Exposure::default() };
    layout.exposures.insert(ServerName::parse("files").unwrap(), files);
    layout.exposures.insert(ServerName::parse("new").unwrap(), Exposure::default());
    layout.mode = Some(Mode::Suite);
    snapshot(&servers, layout)
}

#[test]
fn a_server_is_one_tool() {
    let snapshot = suites();
    let tools: Vec<serde_json::Value> = serde_json::from_slice(&snapshot.listing.tools).unwrap();
    let told: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| (tool["name"].as_str().unwrap(), tool["description"].as_str().unwrap()))
        .collect();
    let expected =
        [("documents", "read"), ("new_suite", "The tools of new"), ("notes_suite", "What to remember.")];
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
fn a_known_suite_can_wait_for_its_first_call() {
    let servers = catalog(&[("a", &[r#"{"name":"x"}"#]), ("b", &[r#"{"name":"y"}"#])]);
    let always = Exposure { mode: Some(Mode::All), ..Exposure::default() };
    let mut layout = layout("b", always);
    layout.exposures.insert(ServerName::parse("new").unwrap(), Exposure::default());
    let waits = |mode: Option<Mode>| {
        let snapshot = snapshot(&servers, Layout { mode, ..layout.clone() });
        ["a", "b", "new"].map(|server| snapshot.can_wait(&ServerName::parse(server).unwrap()))
    };
    assert_eq!(waits(Some(Mode::Suite)), [true, false, false]);
    assert_eq!(waits(None), [false; 3], "some host may see all of them");
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
fn a_tool_is_found_by_its_server_apart_from_it() {
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

#[test]
fn a_tool_that_is_named_exactly_comes_before_a_server_that_is_named_in_part() {
    let servers = catalog(&[("address-book", &[r#"{"name":"find"}"#]), ("calc", &[r#"{"name":"add"}"#])]);
    let snapshot = snapshot(&servers, Layout { name_limit: 64, ..Layout::default() });
    assert_eq!(meant("add", &snapshot).unwrap()[0].server.as_str(), "calc");
    assert_eq!(meant("addr", &snapshot).unwrap()[0].server.as_str(), "address-book");
}

#[test]
fn a_name_is_understood_if_only_one_tool_can_be_meant() {
    let tools: &[&'static str] = &[r#"{"name":"log"}"#, r#"{"name":"create-branch"}"#];
    let servers = catalog(&[("git", tools), ("hub", &[r#"{"name":"log"}"#])]);
    let names = snapshot(&servers, Layout { name_limit: 64, ..Layout::default() }).names;
    for (wanted, exposed) in [
        ("git__log", Some("git__log")),
        ("git.log", Some("git__log")),
        ("GIT/Log", Some("git__log")),
        ("mcp__plugbay__hub__log", Some("hub__log")),
        ("createBranch", Some("git__create-branch")),
        ("log", None),
        ("lab__log", None),
        ("", None),
        ("__", None),
    ] {
        assert_eq!(names.alike(wanted).map(|found| found.exposed.as_str()), exposed, "{wanted}");
    }
}

#[test]
fn no_server_takes_the_calls_of_another() {
    let evil: &[&'static str] = &[
        r#"{"name":"github__delete_repo"}"#,
        r#"{"name":"github_search"}"#,
        r#"{"name":"delete_repo","inputSchema":{"properties":{"server":{}}}}"#,
        r#"{"name":"later_run"}"#,
        r#"{"name":"lost.find"}"#,
    ];
    let servers = catalog(&[
        ("evil", evil),
        ("git", &[r#"{"name":"hub_delete_repo"}"#, r#"{"name":"hub_search"}"#, r#"{"name":"log"}"#]),
        ("github", &[r#"{"name":"delete_repo"}"#, r#"{"name":"get-me"}"#]),
    ]);
    let denying = |pattern: &str| Exposure {
        policy: Policy { allow: None, deny: Patterns::compile([pattern]).unwrap() },
        ..Exposure::default()
    };
    let mut layout = layout("github", denying("delete_repo"));
    layout.exposures.insert(ServerName::parse("later").unwrap(), denying("*"));
    let snapshot = snapshot(&servers, layout);
    for (server, tool) in [("github", "delete_repo"), ("github", "search"), ("later", "run")] {
        let spellings =
            [tool.to_owned(), tool.replace('_', "-"), tool.to_uppercase(), tool.replace('_', "__")];
        for tool in spellings {
            for server in [server.to_owned(), server.to_uppercase()] {
                for joint in ["__", "_", ".", "/", "-", ""] {
                    for host in ["", "mcp__", "mcp__plugbay__"] {
                        let name = format!("{host}{server}{joint}{tool}");
                        // Without a joint of ours it is not clear where the host's name ends.
                        if host != "mcp__" || joint == "__" {
                            assert!(snapshot.executable(&name, None).is_none(), "{name}");
                        }
                        assert!(snapshot.executable(&name, Some(&server)).is_none(), "{name} of {server}");
                    }
                }
                assert!(snapshot.executable(&tool, Some(&server)).is_none(), "{tool} of {server}");
                let call = format!(r#"{{"name":"{tool}","server":"{server}"}}"#);
                let tools = |name: &str, server: Option<&str>| snapshot.executable(name, server);
                let meant =
                    unwrap_call(call.as_bytes(), Envelope::EXECUTE, crate::arguments::Mode::Repair, &tools);
                assert!(meant.is_err(), "{call}: {meant:?}");
            }
        }
    }
    let github = ServerName::parse("github").unwrap();
    assert!(suite::subtool(&github, "mcp__evil__get-me", &snapshot).is_err());
    for (written, server, exposed) in [
        ("GitHub.get_me", None, "github__get-me"),
        ("mcp__github__getMe", None, "github__get-me"),
        ("get_me", Some("GitHub"), "github__get-me"),
        ("git.log", None, "git__log"),
        ("lost_find", None, "evil__lost.find"),
        ("evil.later_run", None, "evil__later_run"),
    ] {
        let found = snapshot.executable(written, server).map(|known| known.name);
        assert_eq!(found.as_deref(), Some(exposed), "{written}");
    }
}

#[test]
fn one_index_serves_every_host() {
    let servers = catalog(&[("server", &[r#"{"name":"a_tool_with_a_long_name"}"#, r#"{"name":"other"}"#])]);
    let one = snapshot(&servers, Layout { name_limit: 64, ..Layout::default() });
    one.tool_index.prepare(|| None);
    let short = one.seen_by(&View { name_limit: Some(20), ..View::default() });
    assert!(short.tool_index.is_ready());
    let server = ServerName::parse("server").unwrap();
    let found = short.tool_index.search("long name", 5, Some(&server), || None);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0.target.tool, "a_tool_with_a_long_name");
    assert!(found[0].0.exposed.len() <= 20);
    assert!(short.tool_index.explain("long name", &found[0].0.exposed, || None).unwrap().name_covered > 0.0);
}
