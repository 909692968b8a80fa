//! A request between the two eras: fields of its `_meta` are added or removed, and everything else stays the
//! same.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plugbay_core::{
    era::{CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY, Meta, MetaSlot, VERSION_KEY, without_envelope},
    wire::{Draft, Head, Hole, Kind, Members},
};
use serde_json::{Value, json};

const FIELD: &str = "plugbay.test/field";

fuzz_target!(|text: &str| {
    let message = Bytes::copy_from_slice(text.as_bytes());
    let Ok(head) = Head::read(&message) else { return };
    let (Kind::Request { .. } | Kind::Notification { .. }) = &head.kind else { return };
    let params = head.payload.as_ref();
    if let Some(meta) = params.and_then(|params| Members::find(&message, params, "_meta")) {
        let _ = Meta::read(&message, &meta).era();
    }
    let draft = || match &head.kind {
        Kind::Request { id, .. } => Draft::new(message.clone()).with(id.clone(), Hole::Ticket),
        _ => Draft::new(message.clone()),
    };
    let filled = MetaSlot::find(&message, params).fill(draft(), &format!("\"{FIELD}\":1")).render(77);
    let bare = without_envelope(draft(), params).render(77);
    for sent in [&filled, &bare] {
        let sent = Head::read(sent).expect("what leaves is a message");
        assert_eq!(std::mem::discriminant(&sent.kind), std::mem::discriminant(&head.kind));
    }

    let Ok(mut expected) = serde_json::from_str::<Value>(text) else { return };
    if let Kind::Request { .. } = &head.kind {
        expected["id"] = json!(77);
    }
    let parse = |sent: &[u8]| serde_json::from_slice::<Value>(sent).expect("what leaves is JSON");
    let mut filled = parse(&filled);
    let is_new = expected["params"]["_meta"].get(FIELD).is_none();
    if is_new && (expected["params"]["_meta"].is_object() || expected["params"].get("_meta").is_none()) {
        assert_eq!(filled["params"]["_meta"][FIELD], 1);
        filled["params"]["_meta"].as_object_mut().unwrap().remove(FIELD);
        let mut expected = expected.clone();
        if !expected["params"]["_meta"].is_object() {
            expected["params"]["_meta"] = json!({});
        }
        assert_eq!(filled, expected, "nothing else has changed");
    }
    if let Some(meta) = expected["params"]["_meta"].as_object_mut() {
        for key in [VERSION_KEY, CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY] {
            meta.remove(key);
        }
    }
    // Indexing `expected` above has turned absent members into null.
    let mut bare = parse(&bare);
    let _ = &mut bare["params"]["_meta"];
    assert_eq!(bare, expected, "only the envelope is gone");
});
