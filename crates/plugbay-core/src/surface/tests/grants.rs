//! A caller that may use only some tools: no path leads it to another one.

use proptest::prelude::*;

use super::*;
use crate::policy::ToolGrant;

fn granted(catalog: &Catalog, layout: Layout, globs: &[&str]) -> Snapshot {
    let mode = layout.mode.unwrap_or_default();
    let whole = Snapshot::new(Arc::new(catalog.clone()), Arc::new(layout), true);
    whole.granted(&ToolGrant::compile(globs).unwrap()).seen_by(&View::in_mode(mode))
}

fn two_servers() -> Catalog {
    catalog(&[
        ("git", &[r#"{"name":"log"}"#, r#"{"name":"push"}"#]),
        ("files", &[r#"{"name":"read"}"#, r#"{"name":"wipe"}"#]),
    ])
}

#[test]
fn a_grant_lists_the_tools_that_match() {
    let listing = |globs: &[&str]| {
        granted(&two_servers(), Layout { name_limit: 64, ..Layout::default() }, globs).listing
    };
    assert_eq!(listing(&["git__l*"]).tools, r#"[{"name":"git__log"}]"#);
    assert_eq!(listing(&["files__*"]).tools, r#"[{"name":"files__read"},{"name":"files__wipe"}]"#);
    assert_eq!(listing(&["*__push", "*__read"]).tools, r#"[{"name":"files__read"},{"name":"git__push"}]"#);
    assert!(matches!(listing(&["git__l*"]).plan("git__push"), Plan::Unknown { .. }));
    assert!(matches!(listing(&["git__l*"]).plan("files__read"), Plan::Unknown { .. }));
}

#[test]
fn a_grant_hides_servers_of_which_nothing_may_be_used() {
    let snapshot = granted(&two_servers(), Layout { name_limit: 64, ..Layout::default() }, &["git__log"]);
    assert_eq!(snapshot.servers().len(), 1);
    let words = instructions(&snapshot, None, LONGEST_INSTRUCTIONS);
    assert!(words.contains("git") && !words.contains("files") && !words.contains("push"), "{words}");
}

#[test]
fn a_grant_knows_renamed_and_bare_tools() {
    let exposure = Exposure {
        rename: [("log".to_owned(), "history".to_owned())].into(),
        bare: true,
        ..Exposure::default()
    };
    let names = |globs: &[&str]| {
        granted(&two_servers(), layout("git", exposure.clone()), globs)
            .names
            .iter()
            .map(|found| found.exposed.clone())
            .collect::<Vec<_>>()
    };
    for glob in ["git__log", "git__history", "history"] {
        assert_eq!(names(&[glob]), ["history"], "{glob}");
    }
    assert!(names(&["log"]).is_empty());
}

#[test]
fn a_bare_tool_cannot_pass_for_a_granted_tool_of_another_server() {
    let catalog = catalog(&[("evil", &[r#"{"name":"git__log"}"#])]);
    assert!(granted(&catalog, bare(&["evil"]), &["git__*"]).names.is_empty());
}

#[test]
fn a_grant_reaches_a_server_that_never_listed_its_tools() {
    let listing = |glob: &str| granted(&catalog(&[]), layout("new", Exposure::default()), &[glob]).listing;
    assert!(matches!(listing("new__get_*").plan("new__get_x"), Plan::Forward(_)));
    assert!(matches!(listing("new__get_*").plan("new__put_x"), Plan::Unknown { .. }));
    assert!(matches!(listing("old__*").plan("new__get_x"), Plan::Unknown { .. }));
}

/// Everything by which a host could reach a tool of this snapshot.
fn reachable(snapshot: &Snapshot, name: &str) -> Vec<Target> {
    let mut targets = Vec::new();
    if let Plan::Forward(target) = snapshot.listing.plan(name) {
        targets.push(target.into_owned());
    }
    let open = || ["a", "b"].map(|server| ServerName::parse(server).unwrap()).into();
    for plan in [snapshot.plan(name), snapshot.plan_beside(name, open)] {
        if let Plan::Forward(target) = plan {
            targets.push(target.into_owned());
        }
    }
    for server in [None, Some("a"), Some("b"), Some("new")] {
        targets.extend(snapshot.executable(name, server).map(|tool| tool.tool.target().clone()));
        targets.extend(snapshot.names.meant(name, server).map(|found| found.target.clone()));
    }
    targets.extend(snapshot.names.alike(name).map(|found| found.target.clone()));
    let servers = ["a", "b", "new"].map(|server| ServerName::parse(server).unwrap());
    for server in servers {
        targets.extend(suite::subtool(&server, name, snapshot).ok().map(|found| found.target.clone()));
    }
    let found = snapshot.tool_index.search(name, 50, None, || None);
    targets.extend(found.into_iter().map(|(found, _)| found.target.clone()));
    targets.extend(snapshot.names.iter().map(|found| found.target.clone()));
    targets
}

const TOOLS: [&str; 5] = ["get_x", "get_y", "put_x", "a__get_x", "x"];

proptest! {
    #[test]
    fn no_path_leads_to_a_tool_outside_the_grant(
        globs in prop::collection::vec("(a|b|new|\\*)?(__)?(get_|put_|\\*)?[xy*]?", 1..4),
        name in "(a|b|new)?(__|_)?(a__)?(get_|put_|Get-)?[xyz]",
        mode in prop::sample::select(vec![Mode::All, Mode::Search, Mode::Activate, Mode::Suite]),
        bare in any::<bool>(),
    ) {
        let definitions: Vec<String> = TOOLS.iter().map(|tool| format!(r#"{{"name":"{tool}"}}"#)).collect();
        let definitions: Vec<&'static str> = definitions.into_iter().map(|text| &*text.leak()).collect();
        let catalog = catalog(&[("a", &definitions), ("b", &definitions)]);
        let exposure = Exposure { bare, ..Exposure::default() };
        let exposures = ["a", "b", "new"].map(|server| (ServerName::parse(server).unwrap(), exposure.clone()));
        let layout = Layout { mode: Some(mode), exposures: exposures.into(), name_limit: 64, ..Layout::default() };
        let globs: Vec<&str> = globs.iter().map(String::as_str).collect();
        let patterns = Patterns::compile(&globs).unwrap();
        let snapshot = granted(&catalog, layout, &globs);
        for Target { server, tool, .. } in reachable(&snapshot, &name) {
            let by_bare_name = bare && !tool.contains("__") && patterns.matches(&tool);
            prop_assert!(patterns.matches(&format!("{server}__{tool}")) || by_bare_name, "{server}__{tool} by {name} with {globs:?}");
        }
    }
}
