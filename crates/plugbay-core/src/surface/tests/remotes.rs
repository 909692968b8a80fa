//! The tools of remote gateways beside local ones.

use super::*;
use crate::policy::{Patterns, Policy};

fn remotes(servers: &[&str], locals: &[&str]) -> Layout {
    let remote = Exposure { remote: true, ..Exposure::default() };
    let local = Exposure { bare: true, ..Exposure::default() };
    let of = |names: &[&str], exposure: &Exposure| -> Vec<(ServerName, Exposure)> {
        names.iter().map(|name| (ServerName::parse(name).unwrap(), exposure.clone())).collect()
    };
    let exposures = [of(servers, &remote), of(locals, &local)].concat();
    Layout { exposures: exposures.into_iter().collect(), name_limit: 64, ..Layout::default() }
}

fn server_of(snapshot: &Snapshot, name: &str) -> Option<String> {
    match snapshot.plan(name) {
        Plan::Forward(target) => Some(format!("{}: {}", target.server, target.tool)),
        _ => None,
    }
}

#[test]
fn remote_tools_keep_the_names_that_their_remote_gives_them() {
    let tools: &[&'static str] = &[r#"{"name":"memory__store"}"#, r#"{"name":"web_search"}"#];
    let seen = snapshot(&catalog(&[("team", tools)]), remotes(&["team"], &[]));
    assert_eq!(seen.listing.tools, r#"[{"name":"memory__store"},{"name":"web_search"}]"#);
    assert_eq!(server_of(&seen, "memory__store").unwrap(), "team: memory__store");
    assert!(seen.names.shadowed.is_empty() && seen.names.ambiguous.is_empty());
}

#[test]
fn a_local_tool_wins_over_a_remote_tool_of_the_same_name() {
    let local: &[&'static str] = &[r#"{"name":"read_file"}"#];
    let remote: &[&'static str] = &[r#"{"name":"read_file"}"#, r#"{"name":"git__push"}"#];
    let servers = catalog(&[("files", local), ("team", remote)]);
    let seen = snapshot(&servers, remotes(&["team"], &["files", "git"]));
    assert_eq!(server_of(&seen, "read_file").unwrap(), "files: read_file");
    assert_eq!(server_of(&seen, "team__read_file").unwrap(), "team: read_file");
    assert_eq!(server_of(&seen, "team__git__push").unwrap(), "team: git__push");
    assert_eq!(server_of(&seen, "git__push").unwrap(), "git: push", "a local server has that name");
    assert_eq!(seen.names.shadowed, ["git__push", "read_file"]);
    assert!(seen.names.ambiguous.is_empty() && seen.names.collisions.is_empty());
}

#[test]
fn a_remote_tool_cannot_pass_for_a_local_one_by_the_case_of_its_name() {
    let local: &[&'static str] = &[r#"{"name":"echo"}"#];
    let remote: &[&'static str] =
        &[r#"{"name":"GIT__PUSH"}"#, r#"{"name":"Echo"}"#, r#"{"name":"Search_Tools"}"#];
    let seen = snapshot(&catalog(&[("git", local), ("team", remote)]), remotes(&["team"], &["git"]));
    for name in ["GIT__PUSH", "Echo", "Search_Tools"] {
        assert_eq!(server_of(&seen, &format!("team__{name}")).unwrap(), format!("team: {name}"));
    }
    assert_eq!(seen.names.shadowed, ["Echo", "GIT__PUSH", "Search_Tools"]);
}

#[test]
fn remote_tools_that_two_remotes_have_get_the_names_of_their_remotes() {
    let tools: &[&'static str] = &[r#"{"name":"memory__store"}"#];
    let seen = snapshot(&catalog(&[("one", tools), ("two", tools)]), remotes(&["one", "two"], &[]));
    assert_eq!(seen.listing.tools, r#"[{"name":"one__memory__store"},{"name":"two__memory__store"}]"#);
    assert_eq!(seen.names.ambiguous, ["memory__store"]);
}

#[test]
fn a_remote_that_never_listed_gets_the_tool_calls_that_only_it_may_have() {
    let mut layout = remotes(&["team"], &["files"]);
    let policy =
        Policy { allow: Some(Patterns::compile(["store"]).unwrap()), own_names: true, ..Policy::default() };
    layout.exposures.get_mut(&ServerName::parse("team").unwrap()).unwrap().policy = policy;
    let seen = snapshot(&catalog(&[("files", &[r#"{"name":"read"}"#])]), layout);
    assert_eq!(server_of(&seen, "memory__store").unwrap(), "team: memory__store");
    assert_eq!(server_of(&seen, "memory__drop"), None, "not allowed");
    assert_eq!(server_of(&seen, "files__store"), None, "a local server's name");
    let two = snapshot(&catalog(&[]), remotes(&["one", "two"], &[]));
    assert_eq!(server_of(&two, "memory__store"), None, "it could be either");
}

#[test]
fn the_own_name_of_a_remote_tool_is_enough_if_no_other_tool_has_it() {
    let remote: &[&'static str] =
        &[r#"{"name":"web__web_search"}"#, r#"{"name":"a__status"}"#, r#"{"name":"b__status"}"#];
    let servers = catalog(&[("team", remote), ("git", &[r#"{"name":"log"}"#])]);
    let mut layout = remotes(&["team"], &[]);
    layout.exposures.insert(ServerName::parse("git").unwrap(), Exposure::default());
    let seen = snapshot(&servers, layout.clone());
    assert_eq!(server_of(&seen, "web_search").unwrap(), "team: web__web_search");
    assert_eq!(server_of(&seen, "status"), None, "two tools have it");
    assert_eq!(server_of(&seen, "log").unwrap(), "git: log", "as the page of an app calls it");
    let servers = catalog(&[("team", &[r#"{"name":"git__push"}"#]), ("git", &[r#"{"name":"log"}"#])]);
    let seen = snapshot(&servers, layout.clone());
    assert_eq!(server_of(&seen, "git__push"), None, "no name of a local server leads to a remote");
    assert_eq!(server_of(&seen, "push").unwrap(), "team: git__push");
    let early = Snapshot::new(Arc::new(servers), Arc::new(layout), false);
    assert_eq!(server_of(&early, "push"), None, "another server may list it too");
}

#[test]
fn a_host_that_is_a_gateway_lists_every_tool_in_every_mode() {
    let servers = catalog(&[("a", &[r#"{"name":"x"}"#]), ("b", &[r#"{"name":"y"}"#])]);
    for mode in [Mode::Search, Mode::Activate, Mode::Suite] {
        let suite = Exposure { mode: Some(Mode::Suite), ..Exposure::default() };
        let snapshot = snapshot(&servers, Layout { mode: Some(mode), ..layout("b", suite) });
        let whole = snapshot.seen_by(&View { whole: true, ..View::in_mode(Mode::All) });
        assert_eq!(whole.listing.tools, r#"[{"name":"a__x"},{"name":"b__y"}]"#, "{mode}");
    }
}
