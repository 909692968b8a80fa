//! All mode: every allowed tool of every server, as `{server}__{tool}` unless the user wants it bare.

use std::collections::HashMap;

use bytes::{BufMut, BytesMut};

use super::{Layout, Listing, Own, Target, search};
use crate::{
    catalog::{Catalog, Tool},
    exposure::{Exposure, Mode},
    name::{self, ServerName},
    wire::Span,
};

/// The listing in the order of exposed names, so that equal catalogues give equal bytes.
pub(super) fn list(catalog: &Catalog, layout: &Layout) -> Listing {
    let plain = Exposure::default();
    let mut shown: Vec<Shown<'_>> = Vec::new();
    for (server, entry) in catalog.iter() {
        let exposure = layout.exposures.get(server).unwrap_or(&plain);
        for tool in entry.offer.tools.iter().filter(|tool| exposure.policy.may(&tool.name)) {
            let visible = exposure.rename.get(&tool.name).unwrap_or(&tool.name);
            let full = name::expose(server, visible, layout.name_limit);
            let exposed =
                if exposure.bare { name::expose_bare(visible, layout.name_limit) } else { full.clone() };
            let quoted = tool.definition.slice(tool.name_span.clone());
            let description = exposure.describe.get(&tool.name).cloned();
            let target = Target { server: server.clone(), tool: tool.name.clone(), quoted, description };
            shown.push(Shown { exposed, full, tool, exposure, target });
        }
    }
    let ambiguous = name_in_full(&mut shown, catalog, layout);
    let collisions = wanted_twice(&mut shown);
    shown.retain(|one| !collisions.contains(&one.exposed));

    let searchable = layout.exposures.values().any(|exposure| exposure.mode == Mode::Search);
    let mut tools = BytesMut::from("[");
    if searchable {
        tools.put_slice(&search::definitions(layout.admin_tools));
    }
    let mut index = HashMap::with_capacity(shown.len());
    for Shown { exposed, tool, exposure, target, .. } in shown {
        if exposure.mode == Mode::All {
            if tools.len() > 1 {
                tools.put_u8(b',');
            }
            let description = exposure.describe.get(&tool.name);
            write_definition(&mut tools, tool, &exposed, description.map(String::as_str));
        }
        index.insert(exposed, target);
    }
    tools.put_u8(b']');
    let unheard = layout.exposures.iter().filter(|(server, _)| catalog.get(server).is_none());
    let unheard = unheard.map(|(server, exposure)| (server.clone(), exposure.policy.clone())).collect();
    Listing { tools: tools.freeze(), index, searchable, collisions, ambiguous, unheard }
}

/// A tool on its way into the listing.
struct Shown<'a> {
    exposed: String,
    /// Its name with its server's in front.
    full: String,
    tool: &'a Tool,
    exposure: &'a Exposure,
    target: Target,
}

/// Gives bare tools their full names where two want the same one, or where the name reads like a tool
/// of another server: a server must not be able to take another's calls. Returns the names given up.
fn name_in_full(shown: &mut [Shown<'_>], catalog: &Catalog, layout: &Layout) -> Vec<String> {
    let mut ambiguous = wanted_twice(shown);
    ambiguous
        .extend(shown.iter().filter(|one| reads_joined(one, catalog, layout)).map(|one| one.exposed.clone()));
    ambiguous.retain(|name| shown.iter().any(|one| one.exposed == *name && one.exposed != one.full));
    ambiguous.sort();
    ambiguous.dedup();
    for one in shown.iter_mut().filter(|one| ambiguous.contains(&one.exposed)) {
        one.exposed.clone_from(&one.full);
    }
    ambiguous
}

fn reads_joined(one: &Shown<'_>, catalog: &Catalog, layout: &Layout) -> bool {
    let server = name::split(&one.exposed).and_then(|(server, _)| ServerName::parse(server).ok());
    let known = |server: &ServerName| catalog.get(server).is_some() || layout.exposures.contains_key(server);
    one.exposed != one.full && (server.as_ref().is_some_and(known) || Own::named(&one.exposed).is_some())
}

/// Sorts by exposed name and returns those that stand there more than once.
fn wanted_twice(shown: &mut [Shown<'_>]) -> Vec<String> {
    shown.sort_by(|a, b| a.exposed.cmp(&b.exposed));
    let pairs = shown.windows(2).filter(|pair| pair[0].exposed == pair[1].exposed);
    let mut twice: Vec<String> = pairs.map(|pair| pair[0].exposed.clone()).collect();
    twice.dedup();
    twice
}

/// The server's own bytes, with nothing replaced but what must be.
pub(super) fn write_definition(out: &mut BytesMut, tool: &Tool, name: &str, description: Option<&str>) {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut edits: Vec<(Span, String)> = vec![(tool.name_span.clone(), quoted(name))];
    match (description, &tool.description_span) {
        (Some(text), Some(span)) => edits.push((span.clone(), quoted(text))),
        (Some(text), None) => {
            edits[0].1.push_str(",\"description\":");
            edits[0].1.push_str(&quoted(text));
        }
        (None, _) => {}
    }
    edits.sort_by_key(|(span, _)| span.start);
    let mut done = 0;
    for (span, text) in edits {
        out.put_slice(&tool.definition[done..span.start]);
        out.put_slice(text.as_bytes());
        done = span.end;
    }
    out.put_slice(&tool.definition[done..]);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::{
        catalog::{Change, Offer},
        era::Era,
        policy::{Patterns, Policy},
        surface::{Plan, Snapshot},
    };

    fn catalog(servers: &[(&str, &[&'static str])]) -> Catalog {
        servers.iter().fold(Catalog::default(), |catalog, (name, tools)| {
            let tools =
                tools.iter().map(|t| Tool::parse(Bytes::from_static(t.as_bytes())).unwrap()).collect();
            let offer = Arc::new(Offer::new(Era::Legacy, None, None, tools));
            catalog.apply(Change::Listed(ServerName::parse(name).unwrap(), offer))
        })
    }

    fn layout(server: &str, exposure: Exposure) -> Layout {
        let exposures = [(ServerName::parse(server).unwrap(), exposure)].into();
        Layout { exposures, name_limit: 64, ..Layout::default() }
    }

    #[test]
    fn definitions_keep_their_bytes_but_for_the_name() {
        let catalog = catalog(&[
            ("b", &[r#"{ "x": 1.0, "name":"t" , "inputSchema":{"a":1e2}}"#]),
            ("a", &[r#"{"name":"t2"}"#, r#"{"name":"t1"}"#]),
        ]);
        let listing = list(&catalog, &layout("none", Exposure::default()));
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
            mode: Mode::All,
            policy: Policy { allow: None, deny: Patterns::compile(["d*"]).unwrap() },
            bare: false,
            rename: [("get".to_owned(), "fetch".to_owned())].into(),
            describe: [("get".to_owned(), "new".to_owned()), ("put".to_owned(), "puts".to_owned())].into(),
        };
        let snapshot = Snapshot::new(Arc::new(catalog), &layout("s", exposure), true);
        let listing = &snapshot.listing;
        let expected = r#"[{"name":"s__fetch","description":"new"},{"name":"s__put","description":"puts"}]"#;
        assert_eq!(listing.tools, expected);
        assert!(matches!(listing.plan("s__fetch"), Plan::Forward(target) if target.tool == "get"));
        assert!(matches!(listing.plan("s__del"), Plan::Unknown { .. }));
    }

    #[test]
    fn a_server_that_was_never_heard_of_is_asked_itself() {
        let listing = list(&catalog(&[]), &layout("new", Exposure::default()));
        assert!(matches!(listing.plan("new__x__y"), Plan::Forward(target) if target.quoted == "\"x__y\""));
        assert!(matches!(listing.plan("old__x"), Plan::Unknown { .. }));
    }

    #[test]
    fn two_tools_never_share_a_name() {
        let rename = [("x".to_owned(), "y".to_owned())].into();
        let catalog = catalog(&[("s", &[r#"{"name":"x"}"#, r#"{"name":"y"}"#, r#"{"name":"z"}"#])]);
        let listing = list(&catalog, &layout("s", Exposure { rename, ..Exposure::default() }));
        assert_eq!(listing.tools, r#"[{"name":"s__z"}]"#);
        assert_eq!(listing.collisions, ["s__y"]);
    }

    fn bare(servers: &[&str]) -> Layout {
        let exposure = Exposure { bare: true, ..Exposure::default() };
        let exposures = servers.iter().map(|name| (ServerName::parse(name).unwrap(), exposure.clone()));
        Layout { exposures: exposures.collect(), name_limit: 64, ..Layout::default() }
    }

    #[test]
    fn bare_tools_stand_under_their_own_names() {
        let catalog = catalog(&[("a", &[r#"{"name":"x"}"#]), ("b", &[r#"{"name":"y"}"#])]);
        let listing = list(&catalog, &bare(&["a"]));
        assert_eq!(listing.tools, r#"[{"name":"b__y"},{"name":"x"}]"#);
        assert!(matches!(listing.plan("x"), Plan::Forward(target) if target.server.as_str() == "a"));
        assert!(listing.ambiguous.is_empty());
    }

    #[test]
    fn bare_names_that_two_servers_want_become_full_ones() {
        let tools: &[&'static str] = &[r#"{"name":"x"}"#];
        let both = catalog(&[("a", tools), ("b", tools)]);
        let listing = list(&both, &bare(&["a", "b"]));
        assert_eq!(listing.tools, r#"[{"name":"a__x"},{"name":"b__x"}]"#);
        assert_eq!(listing.ambiguous, ["x"]);
        assert_eq!(listing.plan("x"), Plan::Unknown { nearest: vec!["a__x", "b__x"] });
    }

    #[test]
    fn a_bare_name_cannot_pass_for_another_servers_tool() {
        let tools: &[&'static str] = &[r#"{"name":"git__push"}"#, r#"{"name":"odd__name"}"#];
        // Git has not been heard of yet: its calls are its own all the same.
        let listing = list(&catalog(&[("a", tools)]), &bare(&["a", "git"]));
        assert_eq!(listing.tools, r#"[{"name":"a__git__push"},{"name":"odd__name"}]"#);
        assert_eq!(listing.ambiguous, ["git__push"]);
        assert!(
            matches!(listing.plan("git__push"), Plan::Forward(target) if target.server.as_str() == "git")
        );
    }

    #[test]
    fn tools_behind_search_can_be_called_but_are_not_listed() {
        let servers = catalog(&[("a", &[r#"{"name":"x"}"#]), ("b", &[r#"{"name":"y"}"#])]);
        let exposure = Exposure { mode: Mode::Search, ..Exposure::default() };
        let listing = list(&servers, &layout("a", exposure));
        let tools = String::from_utf8(listing.tools.to_vec()).unwrap();
        assert!(
            tools.starts_with(r#"[{"name":"search_tools""#) && tools.ends_with(r#",{"name":"b__y"}]"#),
            "{tools}"
        );
        assert!(!tools.contains("a__x") && !tools.contains("proxy_status"), "{tools}");
        assert!(matches!(listing.plan("a__x"), Plan::Forward(_)));
        assert_eq!(listing.plan("proxy_status"), Plan::Own(Own::Status), "callable all the same");
        assert!(matches!(list(&servers, &Layout::default()).plan("search_tools"), Plan::Unknown { .. }));
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let catalog = catalog(&[("git", &[r#"{"name":"status"}"#, r#"{"name":"commit"}"#])]);
        let listing = list(&catalog, &layout("git", Exposure::default()));
        assert_eq!(listing.plan("status"), Plan::Unknown { nearest: vec!["git__status"] });
        assert_eq!(listing.plan("git_comit"), Plan::Unknown { nearest: vec!["git__commit"] });
    }
}
