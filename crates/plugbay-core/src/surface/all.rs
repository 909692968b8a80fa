//! All mode: every allowed tool of every server, as `{server}__{tool}`.

use std::collections::HashMap;

use bytes::{BufMut, BytesMut};

use super::{Layout, Listing, Target};
use crate::{
    catalog::{Catalog, Tool},
    exposure::Exposure,
    name,
    wire::Span,
};

/// The listing in the order of exposed names, so that equal catalogues give equal bytes.
pub(super) fn list(catalog: &Catalog, layout: &Layout) -> Listing {
    let plain = Exposure::default();
    let mut shown: Vec<(String, &Tool, &Exposure, Target)> = Vec::new();
    for (server, entry) in catalog.iter() {
        let exposure = layout.exposures.get(server).unwrap_or(&plain);
        for tool in entry.offer.tools.iter().filter(|tool| exposure.policy.may(&tool.name)) {
            let visible = exposure.rename.get(&tool.name).unwrap_or(&tool.name);
            let exposed = name::expose(server, visible, layout.name_limit);
            let quoted = tool.definition.slice(tool.name_span.clone());
            let target = Target { server: server.clone(), tool: tool.name.clone(), quoted };
            shown.push((exposed, tool, exposure, target));
        }
    }
    shown.sort_by(|a, b| a.0.cmp(&b.0));
    let collisions = collisions(&shown);
    shown.retain(|(exposed, ..)| !collisions.contains(exposed));

    let mut tools = BytesMut::from("[");
    let mut index = HashMap::with_capacity(shown.len());
    for (exposed, tool, exposure, target) in shown {
        if !index.is_empty() {
            tools.put_u8(b',');
        }
        let description = exposure.describe.get(&tool.name);
        write_definition(&mut tools, tool, &exposed, description.map(String::as_str));
        index.insert(exposed, target);
    }
    tools.put_u8(b']');
    let unheard = layout.exposures.iter().filter(|(server, _)| catalog.get(server).is_none());
    let unheard = unheard.map(|(server, exposure)| (server.clone(), exposure.policy.clone())).collect();
    Listing { tools: tools.freeze(), index, collisions, unheard }
}

fn collisions(shown: &[(String, &Tool, &Exposure, Target)]) -> Vec<String> {
    let mut twice: Vec<String> =
        shown.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0.clone()).collect();
    twice.dedup();
    twice
}

/// The server's own bytes, with nothing replaced but what must be.
fn write_definition(out: &mut BytesMut, tool: &Tool, name: &str, description: Option<&str>) {
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
        name::ServerName,
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
        Layout { exposures, name_limit: 64 }
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
            policy: Policy { allow: None, deny: Patterns::compile(["d*"]).unwrap() },
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

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let catalog = catalog(&[("git", &[r#"{"name":"status"}"#, r#"{"name":"commit"}"#])]);
        let listing = list(&catalog, &layout("git", Exposure::default()));
        assert_eq!(listing.plan("status"), Plan::Unknown { nearest: vec!["git__status"] });
        assert_eq!(listing.plan("git_comit"), Plan::Unknown { nearest: vec!["git__commit"] });
    }
}
