//! What hosts see of a configuration with problems, and of servers that have failed.

use std::collections::BTreeSet;

use super::*;

const TOOL: &str = r#"{"name":"x"}"#;

fn problem(what: &str) -> Problem {
    Problem {
        what: what.to_owned(),
        place: Some("/c.jsonc:3:1".to_owned()),
        remedy: Some("mend it".to_owned()),
        urgent: true,
    }
}

fn with_servers(mode: Mode, servers: &[&str]) -> Layout {
    let exposures = servers.iter().map(|name| (ServerName::parse(name).unwrap(), Exposure::default()));
    Layout { mode: Some(mode), exposures: exposures.collect(), name_limit: 64, ..Layout::default() }
}

fn failed(catalog: &Catalog, server: &str, what: &str) -> Catalog {
    let failure = Failure::new(what, vec!["noise of this start".to_owned()]);
    catalog.apply(Change::Failed(ServerName::parse(server).unwrap(), Arc::new(failure)))
}

/// The names of listed tools, and the description of the first.
fn shown(snapshot: &Snapshot) -> (String, String) {
    let tools: Vec<serde_json::Value> = serde_json::from_slice(&snapshot.listing.tools).unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let first = tools.first().and_then(|tool| tool["description"].as_str()).unwrap_or_default();
    (names.join(" "), first.to_owned())
}

fn told(snapshot: &Snapshot, longest: usize) -> String {
    instructions(snapshot, Some(&snapshot.listing), longest)
}

#[test]
fn a_configuration_without_servers_lists_gateway_status_alone_in_every_mode() {
    for mode in [Mode::All, Mode::Search, Mode::Activate, Mode::Suite] {
        let layout = Layout { problems: vec![problem("no brace")], ..with_servers(mode, &[]) };
        let snapshot = snapshot(&Catalog::default(), layout);
        let (names, description) = shown(&snapshot);
        assert_eq!(names, "gateway_status", "{mode:?}");
        let expected = "plugbay has no tools to show. Tell the user why: no brace (/c.jsonc:3:1); mend it. \
                        Call this for details.";
        assert_eq!(description, expected);
        assert_eq!(snapshot.listing.plan("gateway_status"), Plan::Builtin(BuiltinTool::Overview));
        let text = "plugbay has a problem. Tell the user:\n- no brace (/c.jsonc:3:1); mend it\n\
                    Details: gateway_status, or `plugbay doctor` in a terminal.";
        assert_eq!(told(&snapshot, LONGEST_INSTRUCTIONS), text);
        let status = overview(&snapshot, &View::in_mode(mode), |_| false);
        assert!(
            status.starts_with("problem: no brace (/c.jsonc:3:1); mend it\n`plugbay doctor`"),
            "{status}"
        );
        assert!(status.ends_with("no servers"), "{status}");
    }
}

#[test]
fn a_problem_beside_working_servers_changes_the_instructions_and_not_the_list() {
    for mode in [Mode::All, Mode::Search, Mode::Activate, Mode::Suite] {
        let servers = catalog(&[("a", &[TOOL])]);
        let good = with_servers(mode, &["a"]);
        let bad = Layout { problems: vec![problem("no brace")], ..good.clone() };
        let (good, bad) = (snapshot(&servers, good), snapshot(&servers, bad));
        assert_eq!(good.listing.tools, bad.listing.tools, "{mode:?}");
        let (good, bad) = (told(&good, LONGEST_INSTRUCTIONS), told(&bad, LONGEST_INSTRUCTIONS));
        assert!(bad.starts_with("plugbay has a problem. Tell the user:\n- no brace (/c.jsonc:3:1)"), "{bad}");
        assert!(bad.ends_with(&format!("\n\n{good}")), "{bad}");
        assert!(good.starts_with("One MCP server"), "{good}");
    }
}

#[test]
fn a_problem_that_is_not_urgent_is_kept_out_of_the_instructions() {
    let problems = vec![Problem { urgent: false, ..problem("unknown key") }];
    let layout = Layout { problems, ..with_servers(Mode::All, &["a"]) };
    let snapshot = snapshot(&catalog(&[("a", &[TOOL])]), layout);
    assert!(!told(&snapshot, LONGEST_INSTRUCTIONS).contains("unknown key"));
    assert!(overview(&snapshot, &View::in_mode(Mode::All), |_| false).contains("problem: unknown key"));
}

#[test]
fn instructions_with_problems_stay_within_the_limit_of_the_host() {
    let problems: Vec<Problem> = (0..40).map(|_| problem(&"many words ".repeat(60))).collect();
    let servers = catalog(&[("a", &[TOOL]), ("b", &[TOOL])]);
    let layouts = [with_servers(Mode::Search, &["a", "b"]), with_servers(Mode::All, &[])];
    for (servers, layout) in [&servers, &Catalog::default()].into_iter().zip(layouts) {
        let snapshot = snapshot(servers, Layout { problems: problems.clone(), ..layout });
        for longest in (0..LONGEST_INSTRUCTIONS).step_by(7) {
            let text = told(&snapshot, longest);
            assert!(text.len() <= longest, "{longest}: {text}");
        }
        let text = told(&snapshot, LONGEST_INSTRUCTIONS);
        assert!(text.starts_with("plugbay has a problem.") && text.contains("\nDetails: "), "{text}");
        let (_, description) = shown(&snapshot);
        assert!(description.len() < 800, "{description}");
    }
}

#[test]
fn a_failed_server_without_known_tools_says_so_where_its_tools_would_be() {
    let layout = with_servers(Mode::All, &["a", "git-hub"]);
    let broken = failed(&Catalog::default(), "git-hub", "exited with code 1");
    let only = snapshot(&broken, with_servers(Mode::All, &["git-hub"]));
    let (names, description) = shown(&only);
    assert_eq!(names, "gateway_status");
    let expected = "Tell the user why: git-hub does not work: exited with code 1. Call this for details.";
    assert!(description.ends_with(expected), "{description}");
    assert!(!description.contains("noise"), "differs from start to start: {description}");
    let text = told(&only, LONGEST_INSTRUCTIONS);
    assert!(text.ends_with("\n- git-hub: does not work: exited with code 1"), "{text}");

    let working = catalog(&[("a", &[TOOL])]);
    let beside = snapshot(&failed(&working, "git-hub", "exited with code 1"), layout.clone());
    let (names, description) = shown(&beside);
    assert_eq!(names, "gateway_status a__x");
    assert_eq!(description, "All servers: state, tools, tokens. Says why no tools of git-hub are listed.");
    // The list was the same before the failure.
    assert_eq!(beside.listing.tools, snapshot(&working, layout).listing.tools);

    let notes = |query: &str, nothing| beside_search(&beside, query, nothing, &BTreeSet::new()).join("\n");
    let reason = "git-hub does not work: exited with code 1";
    assert_eq!(
        (notes("mend x", true).as_str(), notes("an issue of Git Hub", false).as_str()),
        (reason, reason)
    );
    assert_eq!(notes("an issue of git", false), "");

    let several =
        ["c", "d"].iter().fold(broken, |catalog, server| failed(&catalog, server, "exited with code 1"));
    let several = snapshot(&several, with_servers(Mode::Search, &["git-hub", "c", "d", "e"]));
    let notes = beside_search(&several, "an issue of git hub", true, &BTreeSet::new());
    let others = "tools of c, d are missing: gateway_status says why";
    let waiting = "tools of e are missing: not listed yet, search again in a few seconds";
    assert_eq!(notes, [reason, others, waiting], "the server that is named has a reason of its own");
}

#[test]
fn a_failure_of_a_server_with_known_tools_does_not_change_the_list_or_the_instructions() {
    for mode in [Mode::All, Mode::Search, Mode::Suite] {
        let (working, layout) = (catalog(&[("a", &[TOOL])]), with_servers(mode, &["a"]));
        let before = snapshot(&working, layout.clone());
        let after = snapshot(&failed(&working, "a", "exited"), layout);
        assert_eq!(before.listing.tools, after.listing.tools);
        assert_eq!(told(&before, LONGEST_INSTRUCTIONS), told(&after, LONGEST_INSTRUCTIONS));
        let a = after.servers();
        assert!(beside_search(&after, "a", true, &BTreeSet::new()).is_empty());
        assert_eq!(beside_search(&after, "x", false, &a.iter().collect()), ["a does not work: exited"]);
    }
}

#[test]
fn a_server_with_no_tools_at_all_is_no_problem() {
    let snapshot = snapshot(&catalog(&[("a", &[])]), with_servers(Mode::All, &["a"]));
    assert_eq!(snapshot.listing.tools, "[]");
}

#[test]
fn a_new_reason_of_a_failure_changes_the_notice() {
    let layout = with_servers(Mode::All, &["a"]);
    let first = snapshot(&failed(&Catalog::default(), "a", "no program"), layout);
    let same = failed(&Catalog::default(), "a", "no program");
    let view = View::in_mode(Mode::All);
    let kept = first.with_states_of(Arc::new(same), true).seen_by(&view);
    assert!(Arc::ptr_eq(&kept.listing, &first.seen_by(&view).listing));
    let next = first.with_states_of(Arc::new(failed(&Catalog::default(), "a", "no port")), true);
    assert!(shown(&next).1.contains("a does not work: no port"));
}

#[test]
fn a_server_that_works_but_does_not_run_is_idle() {
    let servers = failed(&catalog(&[("a", &[TOOL]), ("b", &[TOOL])]), "b", "exited");
    let snapshot = snapshot(&servers, with_servers(Mode::All, &["a", "b", "c"]));
    let told = overview(&snapshot, &View::in_mode(Mode::All), |_| true);
    let states: Vec<&str> = told.lines().map(|line| line.split([',', ';']).next().unwrap()).collect();
    assert_eq!(states[..3], ["a: idle", "b: error: exited", "c: warming"], "{told}");
}
