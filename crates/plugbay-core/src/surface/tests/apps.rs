//! MCP Apps: pages that lead to their own servers, tools that pages call, and tools that are not for models.

use proptest::prelude::*;

use super::*;
use crate::catalog::{Item, ItemKind, Items, ServerCapabilities};

/// A server with tools and pages, each a raw definition.
fn app(catalog: &Catalog, name: &str, tools: &[String], pages: &[String]) -> Catalog {
    let tools = tools.iter().map(|tool| Tool::parse(Bytes::from(tool.clone())).unwrap()).collect();
    let item = |page: &String| Item::parse(Bytes::from(page.clone()), ItemKind::Resource).unwrap();
    let items = Items { resources: pages.iter().map(item).collect(), ..Items::default() };
    let capabilities = ServerCapabilities { tools: true, resources: true, ..ServerCapabilities::default() };
    let offer = Offer::new(Era::Legacy, None, None, tools).with_items(capabilities, items);
    catalog.apply(Change::Listed(ServerName::parse(name).unwrap(), Arc::new(offer)))
}

fn paged(name: &str, uri: &str) -> String {
    format!(r#"{{"name":"{name}","_meta":{{ "n":1.0,"ui":{{"resourceUri":"{uri}"}}}}}}"#)
}

fn listed(uri: &str) -> String {
    format!(r#"{{"uri":"{uri}","mimeType":"text/html;profile=mcp-app"}}"#)
}

const PAGE: &str = "ui://app/main.html";

/// Two servers with the same page, and the same tools except for one.
fn twins() -> Catalog {
    let tools = |own: &str| vec![paged("show", PAGE), r#"{"name":"refresh"}"#.to_owned(), own.to_owned()];
    let one = app(&Catalog::default(), "one", &tools(r#"{"name":"only_one"}"#), &[listed(PAGE)]);
    app(&one, "two", &tools(r#"{"name":"only_two"}"#), &[listed(PAGE)])
}

fn all() -> Layout {
    Layout { name_limit: 64, ..Layout::default() }
}

fn open(servers: &[&str]) -> BTreeSet<ServerName> {
    servers.iter().map(|server| ServerName::parse(server).unwrap()).collect()
}

/// `server: tool`, or the candidates.
fn planned(snapshot: &Snapshot, name: &str, shown: &[&str]) -> String {
    match snapshot.plan_beside(name, || open(shown)) {
        Plan::Forward(target) => format!("{}: {}", target.server, target.tool),
        Plan::Ambiguous { candidates } => candidates.join(" or "),
        Plan::Unknown { .. } => "unknown".to_owned(),
        other => format!("{other:?}"),
    }
}

fn read(snapshot: &Snapshot, uri: &str) -> Vec<(String, String)> {
    let own = |place: Place| (place.server.to_string(), String::from_utf8(place.quoted.to_vec()).unwrap());
    snapshot.resources.resources_at(uri).into_iter().map(own).collect()
}

#[test]
fn the_page_of_a_tool_leads_to_its_own_server() {
    let snapshot = snapshot(&twins(), all());
    for server in ["one", "two"] {
        let shown = format!("ui://plugbay/{server}/app/main.html");
        let definition = snapshot.names.get(&format!("{server}__show")).unwrap().definition();
        assert_eq!(definition, paged(&format!("{server}__show"), &shown));
        assert!(snapshot.names.list().body.windows(shown.len()).any(|part| part == shown.as_bytes()));
        assert_eq!(read(&snapshot, &shown), [(server.to_owned(), format!("\"{PAGE}\""))]);
    }
    let pages = ["one", "two"].map(|server| listed(&format!("ui://plugbay/{server}/app/main.html")));
    assert_eq!(snapshot.resources.resources, format!("[{}]", pages.join(",")));
    assert_eq!(read(&snapshot, PAGE).len(), 2);
}

#[test]
fn a_page_that_no_other_server_has_keeps_its_bytes() {
    let older = format!(r#"{{"_meta":{{"ui/resourceUri":"{}"}},"name":"old"}}"#, PAGE.replace('/', r"\/"));
    let catalog = app(&Catalog::default(), "one", std::slice::from_ref(&older), &[]);
    let catalog = app(&catalog, "two", &[], &[listed("ui://other")]);
    let snapshot = snapshot(&catalog, all());
    assert_eq!(snapshot.listing.tools, format!("[{}]", older.replace("\"old\"", "\"one__old\"")));
    assert_eq!(read(&snapshot, PAGE), [("one".to_owned(), format!("\"{PAGE}\""))], "nobody lists it");
}

#[test]
fn a_server_cannot_take_a_page_by_listing_it() {
    let catalog = app(&Catalog::default(), "good", &[paged("show", PAGE)], &[]);
    let moved = "ui://plugbay/good/app/main.html";
    let catalog = app(&catalog, "evil", &[paged("show", moved)], &[listed(PAGE), listed(moved)]);
    let snapshot = snapshot(&catalog, all());
    let shown =
        |name: &str| String::from_utf8(snapshot.names.get(name).unwrap().definition().to_vec()).unwrap();
    assert_eq!(shown("good__show"), paged("good__show", moved));
    assert_eq!(read(&snapshot, moved), [("good".to_owned(), format!("\"{PAGE}\""))]);
    let of_evil = "ui://plugbay/evil/plugbay/good/app/main.html";
    assert_eq!(shown("evil__show"), paged("evil__show", of_evil));
    assert_eq!(read(&snapshot, of_evil), [("evil".to_owned(), format!("\"{moved}\""))]);
}

#[test]
fn a_page_calls_tools_of_its_server_by_their_own_names() {
    let snapshot = snapshot(&twins(), all());
    assert_eq!(planned(&snapshot, "only_two", &[]), "two: only_two");
    assert_eq!(planned(&snapshot, "refresh", &["two"]), "two: refresh");
    for shown in [&[][..], &["one", "two"]] {
        assert_eq!(planned(&snapshot, "refresh", shown), "one__refresh or two__refresh", "{shown:?}");
    }
    assert_eq!(planned(&snapshot, "one__refresh", &["two"]), "one: refresh");
    assert_eq!(planned(&snapshot, "one__only_two", &["two"]), "unknown");
}

#[test]
fn an_exposed_name_wins_over_an_own_name() {
    let catalog =
        catalog(&[("a", &[r#"{"name":"x"}"#]), ("b", &[r#"{"name":"a__x"}"#, r#"{"name":"q__x"}"#])]);
    let snapshot = snapshot(&catalog, all());
    assert_eq!(planned(&snapshot, "a__x", &["b"]), "a: x");
    assert_eq!(planned(&snapshot, "q__x", &["b"]), "b: q__x", "there is no server q");
}

#[test]
fn a_page_reaches_no_tool_that_is_hidden_from_it() {
    let policy = Policy { deny: Patterns::compile(["refresh", "only_*"]).unwrap(), ..Policy::default() };
    let snapshot = snapshot(&twins(), layout("one", Exposure { policy, ..Exposure::default() }));
    assert_eq!(planned(&snapshot, "only_one", &["one"]), "unknown");
    assert_eq!(planned(&snapshot, "refresh", &["two"]), "two: refresh");
    assert_eq!(planned(&snapshot, "refresh", &["one"]), "unknown", "another server's tool is not meant");
    let model_only = r#"{"name":"t","_meta":{"ui":{"visibility":["model"]}}}"#;
    let snapshot = super::snapshot(&catalog(&[("s", &[model_only])]), all());
    assert_eq!(planned(&snapshot, "t", &[]), "unknown");
    assert_eq!(planned(&snapshot, "s__t", &[]), "s: t");
}

const REFRESH: &str = r#"{"name":"refresh","description":"refreshes","_meta":{"ui":{"visibility":["app"]}}}"#;

#[test]
fn tools_for_apps_alone_are_kept_from_models() {
    let catalog = catalog(&[("s", &[REFRESH, r#"{"name":"show","description":"shows"}"#])]);
    let server = ServerName::parse("s").unwrap();
    for mode in [Mode::All, Mode::Search, Mode::Activate, Mode::Suite] {
        let snapshot = snapshot(&catalog, Layout { mode: Some(mode), ..all() });
        let found = snapshot.tool_index.search("refresh", 9, None, || None);
        assert!(found.iter().all(|(found, _)| found.exposed == "s__show"), "{found:?}");
        assert_eq!(snapshot.tool_index.search("show", 9, None, || None)[0].0.exposed, "s__show");
        for name in ["s__refresh", "refresh", "S.Refresh"] {
            assert!(snapshot.names.alike(name).is_none(), "{name}");
            assert!(snapshot.executable(name, None).is_none(), "{name}");
            assert!(snapshot.executable(name, Some("s")).is_none(), "{name}");
            assert!(suite::subtool(&server, name, &snapshot).is_err_and(|told| !told.contains("refreshes")));
        }
        assert_eq!(suite::introspect(&server, &snapshot, &suite::Wanted::default()), "show() - shows");
        assert!(!instructions(&snapshot, Some(&snapshot.listing), LONGEST_INSTRUCTIONS).contains("refresh"));
        assert_eq!(snapshot.names.nearest("s__refresj"), Vec::<&str>::new());
        assert_eq!(snapshot.names.undecided().tools, 1);
        assert_eq!(planned(&snapshot, "refresh", &[]), "s: refresh", "a page calls it in mode {mode:?}");
        let listed = snapshot.listing.tools.windows(10).any(|part| part == b"s__refresh");
        assert_eq!(listed, mode == Mode::All, "{mode:?}");
    }
}

#[test]
fn a_host_that_shows_pages_lists_their_tools_in_every_mode() {
    let catalog =
        app(&Catalog::default(), "s", &[paged("show", PAGE), paged("more", PAGE), REFRESH.to_owned()], &[]);
    for mode in [Mode::Search, Mode::Activate, Mode::Suite] {
        let plain = snapshot(&catalog, Layout { mode: Some(mode), ..all() });
        let beside = plain.seen_by(&View { apps: true, ..View::in_mode(mode) });
        let added = format!(",{},{}]", paged("s__more", PAGE), paged("s__show", PAGE));
        let plain = std::str::from_utf8(&plain.listing.tools).unwrap();
        assert_eq!(beside.listing.tools, plain.strip_suffix(']').unwrap().to_owned() + &added, "{mode:?}");
    }
    let unsettled =
        Snapshot::new(Arc::new(catalog.clone()), Arc::new(layout("later", Exposure::default())), false);
    let search = |apps| View { apps, ..View::in_mode(Mode::Search) };
    assert!(!unsettled.is_complete(&search(true)));
}

const URIS: [&str; 5] =
    ["ui://a", "ui://a/b", "ui://plugbay/a/b", "ui://plugbay/b/b", "ui://plugbay/a/plugbay/b/b"];

/// The servers `a`, `b` and `c` with the pages that their tools name and those that they list.
fn any_catalog(named: &[Vec<usize>], pages: &[Vec<usize>]) -> Catalog {
    let servers = ["a", "b", "c"].iter().zip(named.iter().zip(pages));
    servers.fold(Catalog::default(), |catalog, (server, (named, pages))| {
        let tools: Vec<_> = named.iter().map(|at| paged(&format!("t{at}"), URIS[*at])).collect();
        app(&catalog, server, &tools, &pages.iter().map(|at| listed(URIS[*at])).collect::<Vec<_>>())
    })
}

proptest! {
    #[test]
    fn every_page_leads_to_the_server_that_named_it(
        named in prop::collection::vec(prop::collection::vec(0..URIS.len(), 0..4), 3),
        pages in prop::collection::vec(prop::collection::vec(0..URIS.len(), 0..4), 3),
    ) {
        let snapshot = snapshot(&any_catalog(&named, &pages), all());
        let definitions: serde_json::Value = serde_json::from_slice(&snapshot.listing.tools).unwrap();
        for tool in definitions.as_array().unwrap() {
            let (server, name) = name::split(tool["name"].as_str().unwrap()).unwrap();
            let own = URIS[name[1..].parse::<usize>().unwrap()];
            let shown = tool["_meta"]["ui"]["resourceUri"].as_str().unwrap();
            prop_assert!(shown.starts_with("ui://"));
            prop_assert_eq!(read(&snapshot, shown), [(server.to_owned(), format!("\"{own}\""))]);
            let owners = named.iter().zip(&pages).filter(|(named, pages)| {
                named.iter().chain(*pages).any(|at| URIS[*at] == own)
            });
            if owners.count() == 1 && !own.starts_with("ui://plugbay/") {
                prop_assert_eq!(shown, own, "nothing clashes");
            }
        }
        let resources: serde_json::Value = serde_json::from_slice(&snapshot.resources.resources).unwrap();
        for resource in resources.as_array().unwrap() {
            prop_assert_eq!(read(&snapshot, resource["uri"].as_str().unwrap()).len(), 1);
        }
    }

    #[test]
    fn an_own_name_reaches_an_allowed_tool_of_that_name_or_nothing(
        tools in prop::collection::vec(prop::collection::btree_map("x|y|a__x|search_tools", "app|model|", 0..4), 3),
        deny in "x|y|none",
        name in "(a|b)?(__)?(x|y|search_tools)",
        shown in prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3),
    ) {
        let definition = |(name, visibility): (&String, &String)| match visibility.as_str() {
            "" => format!(r#"{{"name":"{name}"}}"#),
            who => format!(r#"{{"name":"{name}","_meta":{{"ui":{{"visibility":["{who}"]}}}}}}"#),
        };
        let servers = ["a", "b", "c"].iter().zip(&tools);
        let catalog = servers.fold(Catalog::default(), |catalog, (server, tools)| {
            app(&catalog, server, &tools.iter().map(definition).collect::<Vec<_>>(), &[])
        });
        let policy = Policy { deny: Patterns::compile([&deny]).unwrap(), ..Policy::default() };
        let snapshot = snapshot(&catalog, layout("a", Exposure { policy, ..Exposure::default() }));
        if let Plan::Forward(target) = snapshot.plan_beside(&name, || open(&shown)) {
            let (server, tool) = (target.server.as_str(), target.tool.as_str());
            prop_assert!(server != "a" || tool != deny, "{name} reaches {target:?}");
            let by_exposed = name == format!("{server}__{tool}");
            let at = ["a", "b", "c"].iter().position(|one| *one == server).unwrap();
            prop_assert!(by_exposed || name == tool && tools[at][tool] != "model", "{name} reaches {target:?}");
            prop_assert!(by_exposed || snapshot.names.get(&name).is_none(), "an exposed name wins");
        }
    }
}
