//! What hosts see in each mode, and what their calls mean.

mod activation;
mod apps;
mod forged;
mod grants;
mod naming;
mod notices;
mod remotes;
mod spellings;
mod suites;

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
fn tool_definitions_keep_their_bytes_but_for_the_name() {
    let catalog = catalog(&[
        ("b", &[r#"{ "x": 1.0, "name":"t" , "inputSchema":{"a":1e2}}"#]),
        ("a", &[r#"{"name":"t2"}"#, r#"{"name":"t1"}"#]),
    ]);
    let listing = list(&catalog, layout("a", Exposure::default()));
    let expected =
        r#"[{"name":"a__t1"},{"name":"a__t2"},{ "x": 1.0, "name":"b__t" , "inputSchema":{"a":1e2}}]"#;
    assert_eq!(listing.tools, expected);
}

#[test]
fn the_user_filters_renames_and_describes_tools() {
    let catalog = catalog(&[(
        "s",
        &[r#"{"name":"get","description":"old"}"#, r#"{"name":"put"}"#, r#"{"name":"del"}"#],
    )]);
    let exposure = Exposure {
        policy: Policy { deny: Patterns::compile(["d*"]).unwrap(), ..Policy::default() },
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
fn a_tool_call_reaches_a_server_that_never_listed_its_tools() {
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
fn bare_tool_names_that_two_servers_want_become_full_ones() {
    let tools: &[&'static str] = &[r#"{"name":"x"}"#];
    let both = catalog(&[("a", tools), ("b", tools)]);
    let Snapshot { listing, names, .. } = snapshot(&both, bare(&["a", "b"]));
    assert_eq!(listing.tools, r#"[{"name":"a__x"},{"name":"b__x"}]"#);
    assert_eq!(names.ambiguous, ["x"]);
    assert_eq!(listing.plan("x"), Plan::Unknown { nearest: vec!["a__x", "b__x"] });
}

#[test]
fn a_bare_tool_name_cannot_pass_for_another_servers_tool() {
    let tools: &[&'static str] = &[r#"{"name":"git__push"}"#, r#"{"name":"odd__name"}"#];
    // `git` has not listed its tools yet: calls of them are still its own.
    let Snapshot { listing, names, .. } = snapshot(&catalog(&[("a", tools)]), bare(&["a", "git"]));
    let tools = String::from_utf8(listing.tools.to_vec()).unwrap();
    assert!(tools.ends_with(r#",{"name":"a__git__push"},{"name":"odd__name"}]"#), "{tools}");
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
fn every_mode_lists_built_in_tools_for_search_and_status() {
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
fn a_plain_proxy_lists_no_built_in_tools() {
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
fn an_unknown_tool_name_is_answered_with_the_nearest() {
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
fn tool_names_are_as_long_as_the_host_takes() {
    let servers = catalog(&[("server", &[r#"{"name":"a_name_of_thirty_characters_xx"}"#])]);
    let snapshot = snapshot(&servers, Layout { name_limit: 64, ..Layout::default() });
    let narrow = snapshot.seen_by(&View { name_limit: Some(30), ..View::default() });
    let name = &narrow.names.iter().next().unwrap().exposed;
    assert_eq!(name.len(), 30);
    assert!(matches!(narrow.listing.plan(name), Plan::Forward(_)) && narrow.names.get(name).is_some());
    let wide = narrow.seen_by(&View::default());
    assert!(wide.names.get("server__a_name_of_thirty_characters_xx").is_some());
}
