//! Tests of the catalog.

use super::*;

fn offer(names: &[&str]) -> Arc<Offer> {
    let tools =
        names.iter().map(|name| Tool::parse(Bytes::from(format!(r#"{{"name":"{name}","x":1.0}}"#))).unwrap());
    Arc::new(Offer::new(Era::Legacy, None, None, tools.collect()))
}

#[test]
fn a_failing_server_keeps_what_it_offered() {
    let name = ServerName::parse("a").unwrap();
    let catalog = Catalog::default().apply(Change::Listed(name.clone(), offer(&["x"])));
    let failure = Arc::new(Failure::new("gone", Vec::new()));
    let failed = catalog.apply(Change::Failed(name.clone(), Arc::clone(&failure)));
    assert_eq!(failed.get(&name).unwrap().freshness, Freshness::Stale);
    assert_eq!((catalog.failure(&name), failed.failure(&name)), (None, Some(&failure)));
    let recovered = failed.apply(Change::Listed(name.clone(), offer(&["x"])));
    assert_eq!(recovered.failure(&name), None);
    assert_eq!(failed.get(&name).unwrap().offer, offer(&["x"]));
    assert!(failed.apply(Change::Forgotten(name.clone())).get(&name).is_none());
    assert_eq!(catalog.get(&name).unwrap().freshness, Freshness::Fresh, "snapshots do not change");
}

#[test]
fn tools_stand_in_one_order_and_once() {
    assert_eq!(offer(&["b", "a", "b"]), offer(&["a", "b"]));
    assert!(offer(&["b", "a"]).tool("b").is_some());
}

#[test]
fn a_page_keeps_definitions_as_they_came() {
    let message = Bytes::from_static(
        br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"zeta":1.0,"name":"a","description":"x\u00e9"},{"nameless":1}],"nextCursor":"p2"}}"#,
    );
    let head = crate::wire::Head::read(&message).unwrap();
    let (definitions, cursor) =
        read_page(&message, &head.payload.unwrap(), ItemKind::Tool, &mut Allowance::default());
    let tools: Vec<Tool> = definitions.into_iter().filter_map(Tool::parse).collect();
    assert_eq!(tools[0].definition, r#"{"zeta":1.0,"name":"a","description":"x\u00e9"}"#);
    assert_eq!(tools[0].description().unwrap(), "xé");
    assert_eq!((tools.len(), cursor), (1, Some(Bytes::from_static(b"\"p2\""))));
}
