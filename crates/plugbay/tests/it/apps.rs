//! MCP Apps: two servers with the same page and the same tools, in every pairing of eras and in every mode.

use plugbay_testkit::{Config, Host, RawMessage, Script, Workspace};
use serde_json::json;

use crate::{
    fidelity::{PAIRS, Pair, passed},
    gateway,
};

const PAGE: &str = "ui://app/main.html";
const DECLARED: &str =
    r#"{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}"#;

/// The tools of a server: `show` has a page, in both forms, and two are for pages alone.
fn tools(server: &str, page: &str) -> String {
    let show = format!(
        r#"{{"name":"show","_meta":{{"n":1.0,"ui/resourceUri":"{page}","ui":{{"resourceUri":"{page}","x":1e400}}}}}}"#
    );
    let app_only = |name: &str| {
        format!(r#"{{"name":"{name}","description":"redraws","_meta":{{"ui":{{"visibility":["app"]}}}}}}"#)
    };
    format!(r#"[{show},{},{},{{"name":"wipe"}}]"#, app_only("refresh"), app_only(&format!("only_{server}")))
}

/// The contents of a page of this URI, with everything that a host uses.
fn contents(server: &str, page: &str) -> String {
    format!(
        r#"{{"contents":[{{"mimeType":"text/html;profile=mcp-app","uri":"{page}","text":"APP OF {server}","_meta":{{"ui":{{"csp":{{"connectDomains":["https://{server}.example"]}},"prefersBorder":true,"n":1.0}}}}}}]}}"#
    )
}

fn result(server: &str, page: &str) -> String {
    format!(r#"{{"content":[],"_meta":{{"of":"{server}","n":1.0,"ui":{{"resourceUri":"{page}"}}}}}}"#)
}

fn server(name: &str, era: &str) -> Script {
    let says = |what: &str| format!(r#"{{"content":[{{"type":"text","text":"{what} of {name}"}}]}}"#);
    Script::new()
        .set("era", json!(era))
        .set("tools", tools(name, PAGE))
        .set("resources", format!(r#"[{{"uri":"{PAGE}","name":"page","_meta":{{"ui":{{"n":1.0}}}}}}]"#))
        .set("reads", format!(r#"{{"{PAGE}":{{"result":{}}}}}"#, contents(name, PAGE)))
        .result("show", &result(name, PAGE))
        .result("refresh", &says("refresh"))
        .result(&format!("only_{name}"), &says("only"))
        .result("wipe", &says("wipe"))
}

fn config(workspace: &Workspace, era: &str) -> Config {
    workspace.config(&[("one", server("one", era)), ("two", server("two", era))])
}

/// A host that shows pages.
#[track_caller]
fn open(workspace: &Workspace, config: &Config, (era, _): Pair, tool: &str) -> Host {
    workspace.write_config(config);
    let host = workspace.serve(&gateway());
    host.declare(DECLARED);
    if era == "modern" {
        host.discover();
    } else {
        host.initialize();
    }
    host.await_tools(&[tool]);
    host
}

fn shown(server: &str) -> String {
    format!("ui://plugbay/{server}/app/main.html")
}

fn read(uri: &str) -> String {
    format!(r#"{{"uri":"{uri}"}}"#)
}

#[track_caller]
fn ask(host: &Host, method: &str, params: &str) -> RawMessage {
    let id = host.request(method, params);
    host.expect_response(id)
}

#[test]
fn each_panel_gets_the_page_of_its_own_server_also_in_parallel() {
    for pair in PAIRS {
        let workspace = Workspace::new();
        let host = open(&workspace, &config(&workspace, pair.1).top("mode", json!("all")), pair, "two__show");
        let listed = host.list_tools();
        for server in ["one", "two"] {
            let tool = listed.iter().find(|tool| tool.name == format!("{server}__show")).unwrap();
            let expected =
                tools(server, &shown(server)).replace(r#""show""#, &format!(r#""{server}__show""#));
            assert!(expected.starts_with(&format!("[{},", tool.raw)), "{}", tool.raw);
            let listed = ask(&host, "resources/list", "{}");
            let page = format!(r#"{{"uri":"{}","name":"page","_meta":{{"ui":{{"n":1.0}}}}}}"#, shown(server));
            assert!(listed.result().contains(&page), "{listed:?}");
        }
        // Both calls, then both reads, before any of them is answered.
        let calls = ["one", "two"].map(|server| host.start_call(&format!("{server}__show"), "{}"));
        let reads = ["one", "two"].map(|server| host.request("resources/read", &read(&shown(server))));
        for (at, server) in ["one", "two"].into_iter().enumerate() {
            let called = host.expect_response(calls[at]);
            assert_eq!(
                called.result(),
                passed(&result(server, &shown(server)), pair, "tools/call"),
                "{pair:?}"
            );
            let page = host.expect_response(reads[at]);
            let expected = passed(&contents(server, &shown(server)), pair, "resources/read");
            assert_eq!(page.result(), expected, "{pair:?}");
            let asked = workspace.count_log(server, &format!(r#""uri":"{PAGE}""#));
            assert_eq!(asked, 1, "{server} is asked by its own URI");
        }
        let unclear = ask(&host, "resources/read", &read(PAGE)).failure();
        assert!(unclear.contains(&shown("one")) && unclear.contains(&shown("two")), "{unclear}");
        host.finish();
    }
}

#[test]
fn a_page_calls_tools_by_their_own_names_in_every_mode() {
    for (pair, mode) in PAIRS.into_iter().zip(["all", "search", "activate", "suite"]) {
        let workspace = Workspace::new();
        let config =
            config(&workspace, pair.1).top("mode", json!(mode)).options("two", json!({"deny": ["wipe"]}));
        let host = open(&workspace, &config, pair, "two__show");
        let text = |name: &str| host.call(name, "{}").content_text();
        assert_eq!(text("only_two"), "only of two", "{mode}");
        assert_eq!(text("wipe"), "wipe of one", "{mode}: the other is denied");
        let unclear = host.call("refresh", "{}").failure();
        assert!(unclear.contains("one__refresh, two__refresh"), "{mode}: {unclear}");
        ask(&host, "resources/read", &read(&shown("two"))).result();
        assert_eq!(text("refresh"), "refresh of two", "{mode}: the host shows pages of two only");
        assert!(host.call("wipe", "{}").is_error(), "{mode}: the page of two means its own, which is denied");
        host.call("one__show", "{}").result();
        assert!(host.call("refresh", "{}").is_error(), "{mode}: it may be a page of either now");
        assert_eq!(text("one__refresh"), "refresh of one", "{mode}");
        assert_eq!(workspace.count_log("two", r#""name":"wipe""#), 0, "a denied call does not reach it");
        host.finish();
    }
}

#[test]
fn tools_with_pages_stay_in_the_list_of_a_host_that_shows_them() {
    for mode in ["search", "activate", "suite"] {
        let workspace = Workspace::new();
        let config = config(&workspace, "legacy").top("mode", json!(mode));
        let host = open(&workspace, &config, ("legacy", "legacy"), "two__show");
        let with = host.tool_names();
        host.finish();
        let host = workspace.serve(&gateway());
        host.initialize();
        let without = host.tool_names();
        host.finish();
        let added: Vec<&String> = with.iter().filter(|name| !without.contains(name)).collect();
        assert_eq!(added, ["one__show", "two__show"], "{mode}");
        assert!(without.iter().all(|name| with.contains(name)), "{mode}");
    }
}

#[test]
fn tools_for_apps_alone_are_not_found_by_models() {
    let workspace = Workspace::new();
    let config = config(&workspace, "legacy").top("mode", json!("search"));
    let host = open(&workspace, &config, ("legacy", "legacy"), "two__show");
    let found = host.call("search_tools", r#"{"query":"refresh redraws only_two"}"#).content_text();
    assert!(!found.contains("refresh(") && !found.contains("only_"), "{found}");
    let all = host.call("search_tools", r#"{"server":"two"}"#).content_text();
    assert!(all.contains("two__show") && !all.contains("redraws"), "{all}");
    for (tool, arguments) in [
        ("describe_tool", r#"{"name":"two__refresh"}"#),
        ("execute_tool", r#"{"name":"two__refresh","arguments":{}}"#),
    ] {
        let refused = host.call(tool, arguments).result_value();
        assert_eq!(refused["isError"], true, "{tool}: {refused}");
    }
    let described = host.call("describe_tool", r#"{"name":"two__show"}"#).content_text();
    assert!(described.contains("two__show"), "{described}");
    assert_eq!(
        host.call("two__only_two", "{}").content_text(),
        "only of two",
        "a page may use this name too"
    );
    let suites = config.top("mode", json!("suite"));
    workspace.write_config(&suites);
    host.await_tools(&["two_suite"]);
    let told = host.call("two_suite", r#"{"action":"introspect"}"#).content_text();
    assert!(told.contains("show(") && !told.contains("redraws"), "{told}");
    host.finish();
}

#[test]
fn a_page_that_only_one_server_has_passes_unchanged() {
    for pair in PAIRS {
        let workspace = Workspace::new();
        let other =
            Script::friendly().set("era", json!(pair.1)).set("resources", r#"[{"uri":"ui://x","name":"x"}]"#);
        // Its page is in no list: only the tool refers to it.
        let unlisted = server("one", pair.1).set("resources", r#"[{"uri":"y://z","name":"z"}]"#);
        let config = workspace.config(&[("one", unlisted), ("other", other)]).top("mode", json!("all"));
        let host = open(&workspace, &config, pair, "one__show");
        let listed = host.list_tools();
        let tool = listed.iter().find(|tool| tool.name == "one__show").unwrap();
        assert!(
            tools("one", PAGE).replace(r#""show""#, r#""one__show""#).contains(&tool.raw),
            "{}",
            tool.raw
        );
        let called = host.call("one__show", "{}");
        assert_eq!(called.result(), passed(&result("one", PAGE), pair, "tools/call"), "{pair:?}");
        let page = ask(&host, "resources/read", &read(PAGE));
        assert_eq!(page.result(), passed(&contents("one", PAGE), pair, "resources/read"), "{pair:?}");
        host.finish();
    }
}

#[test]
fn a_resource_is_answered_under_the_uri_that_was_asked_for() {
    let server = |name: &str| {
        let contents =
            format!(r#"{{"contents":[{{"text":"{name}","uri":"x:\/\/a"}},{{"uri":"x://a/part"}}]}}"#);
        Script::friendly()
            .set("resources", r#"[{"uri":"x://a","name":"a"}]"#)
            .set("reads", format!(r#"{{"x://a":{{"result":{contents}}}}}"#))
    };
    let workspace = Workspace::new();
    let host = crate::open(&workspace, &[("a", server("a")), ("b", server("b"))], &["b__echo"]);
    let page = ask(&host, "resources/read", &read("plugbay://b/x://a"));
    let expected = r#"{"contents":[{"text":"b","uri":"plugbay://b/x://a"},{"uri":"x://a/part"}]}"#;
    assert_eq!(page.result(), expected);
    host.finish();
}
