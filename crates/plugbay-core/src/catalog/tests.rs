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

#[test]
fn an_offer_is_cleaned_of_hidden_characters_and_says_where_they_were() {
    let tool = |json: &str| Tool::parse(Bytes::from(json.to_owned())).unwrap();
    let plain = r#"{"name":"plain", "description":"é \n","x":1.0}"#;
    let tools =
        vec![tool(plain), tool("{\"name\":\"lies\",\"title\":\"a\u{202e}b\",\"description\":\"x\\u200b\"}")];
    let item = |json: &str, kind| Item::parse(Bytes::from(json.to_owned()), kind).unwrap();
    let items = Items {
        resources: vec![
            item(r#"{"uri":"x://1","name":"n"}"#, ItemKind::Resource),
            item("{\"uri\":\"x://\u{200b}1\"}", ItemKind::Resource),
        ],
        prompts: vec![item("{\"name\":\"p\u{200b}\",\"description\":\"d\u{7f}\"}", ItemKind::Prompt)],
        ..Items::default()
    };
    let info = Bytes::from("{\"name\":\"s\u{e0041}\",\"version\":\"1\"}");
    let offer = Offer::new(Era::Legacy, Some(info), Some("use \u{1b}[31mme".to_owned()), tools)
        .with_items(ServerCapabilities::default(), items);
    let cleaned = offer.without_hidden();
    assert_eq!(cleaned.instructions.as_deref(), Some("use me"));
    assert_eq!(cleaned.info.as_deref(), Some(&br#"{"name":"s","version":"1"}"#[..]));
    assert_eq!(cleaned.tools[0].definition, r#"{"name":"lies","title":"ab","description":"x"}"#);
    assert_eq!(cleaned.tools[1].definition, plain);
    assert_eq!(cleaned.resources.len(), 1);
    assert_eq!(cleaned.prompts[0].definition, "{\"name\":\"p\u{200b}\",\"description\":\"d\"}");
    assert_eq!(
        cleaned.hidden.clone().unwrap().lines(),
        [
            "instructions: removed ANSI escape",
            "serverInfo: removed tag",
            "tool lies: removed bidi, zero-width",
            "resource x://\\u{200b}1: left out, its URI has hidden characters (zero-width)",
            "prompt p\\u{200b}: removed control: left zero-width in names and values that calls repeat",
        ]
    );
    let again = cleaned.clone().without_hidden();
    assert!(again.lists_same(&cleaned));
    let plain = Offer::new(Era::Legacy, None, None, vec![tool(plain)]).without_hidden();
    assert_eq!(plain.hidden, None);
}
