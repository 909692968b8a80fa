//! Activation: which tools a host sees when it activates and deactivates servers.

use super::*;

/// Four servers in activate mode, of which `new` has never listed its tools.
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
fn activated_tools_are_listed_until_they_are_deactivated() {
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
fn names_for_activation_are_understood_as_models_write_them() {
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
fn a_pattern_activates_the_tools_that_match_it() {
    let snapshot = four_servers();
    assert_eq!(shown(&snapshot, &activated(&snapshot, &["get_*"])), "github__get_issue github__get_pr");
    assert_eq!(shown(&snapshot, &activated(&snapshot, &["*_m*"])), "github__merge gitlab__merge");
}

#[test]
fn auto_mode_counts_the_tools_of_servers_without_a_mode() {
    let servers = catalog(&[("a", &[r#"{"name":"x"}"#, r#"{"name":"y"}"#]), ("b", &[r#"{"name":"z"}"#])]);
    let decided = Exposure { mode: Some(Mode::Suite), ..Exposure::default() };
    let sizes = Sizes::of(&snapshot(&servers, layout("a", decided)));
    assert_eq!((sizes.servers, sizes.tools), (1, 1));
    let open = Sizes::of(&snapshot(&servers, layout("a", Exposure::default())));
    assert_eq!((open.servers, open.tools), (2, 3));
    assert!(sizes.tokens < open.tokens);
}

#[test]
fn a_tool_can_be_activated_by_the_name_that_hosts_see() {
    let servers = catalog(&[("calc", &[r#"{"name":"evaluate"}"#, r#"{"name":"round"}"#])]);
    let rename = [("evaluate".to_owned(), "plus".to_owned())].into();
    let snapshot = snapshot(&servers, layout("calc", Exposure { rename, ..Exposure::default() }));
    for name in ["calc__plus", "calc.plus", "calc.pl*", "calc.evaluate"] {
        assert_eq!(shown(&snapshot, &activated(&snapshot, &[name])), "calc__plus", "{name}");
    }
}

#[test]
fn activated_tools_leave_the_list_with_a_failing_server_and_return() {
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
    let told = overview(&crashed, &view, |_| false);
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
fn the_status_overview_shows_the_saved_tokens() {
    let snapshot = four_servers();
    let view = activated(&snapshot, &["gitlab", "github.merge"]);
    let told = overview(&snapshot, &view, |_| false);
    let each = cost(snapshot.names.iter().take(1));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], format!("Chrome-DevTools: ready, 1 tool, ~{each} tokens"));
    assert!(lines[1].starts_with("github: active, 1 of 3 tools, ~"), "{told}");
    assert!(lines[2].starts_with("gitlab: active, 2 tools, ~"), "{told}");
    assert_eq!(lines[3], "new: warming");
    let all = cost(snapshot.names.iter());
    let tokens = |line: &str| line.split(['~', ' ']).find_map(|word| word.parse::<usize>().ok()).unwrap();
    let (off, on) = (
        tokens(overview(&snapshot, &View::in_mode(Mode::Activate), |_| false).lines().last().unwrap()),
        tokens(lines[4]),
    );
    assert_eq!(off, builtin_tokens(&[BuiltinTool::Activate, BuiltinTool::Deactivate, BuiltinTool::Overview]));
    let saved = all.saturating_sub(on);
    assert!(on > off, "{told}");
    assert_eq!(lines[4], format!("in context: ~{on} tokens; all tools: ~{all}, ~{saved} saved"));
}

#[test]
fn a_host_that_does_not_list_again_gets_a_tool_to_call_through() {
    let ignoring = View { ignores_list_changes: true, ..View::in_mode(Mode::Activate) };
    assert_eq!(shown(&four_servers(), &ignoring), "execute_tool");
}

/// The name of one server begins like the tool of another one.
#[test]
fn a_tool_that_is_named_exactly_comes_before_a_server_that_is_named_in_part() {
    let servers = catalog(&[("address-book", &[r#"{"name":"find"}"#]), ("calc", &[r#"{"name":"add"}"#])]);
    let snapshot = snapshot(&servers, Layout { name_limit: 64, ..Layout::default() });
    assert_eq!(meant("add", &snapshot).unwrap()[0].server.as_str(), "calc");
    assert_eq!(meant("addr", &snapshot).unwrap()[0].server.as_str(), "address-book");
}
