//! Answers of servers: members are added, ids and URIs get a prefix, and otherwise the JSON stays the same.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plugbay_core::{
    apps::page_links,
    catalog::{Allowance, ItemKind, read_page},
    era::{Era, InputRequired, completion, remark, renumbered, visits_required},
    skill,
    task::{self, Task},
    wire::{Head, Kind, Members, Span, string_value},
};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let message = Bytes::copy_from_slice(text.as_bytes());
    let Ok(head) = Head::read(&message) else { return };
    let Some(payload) = head.payload.clone() else { return };
    let readdress = |changes: &[(Span, &[u8])]| {
        let sent = head.readdressed(&message, b"77", changes).into_bytes();
        Head::read(&sent).expect("what leaves is a message");
        serde_json::from_slice::<Value>(&sent).ok()
    };

    for cacheable in [false, true] {
        if let Some(change) = completion(&message, &head, cacheable)
            && let Some(sent) = readdress(&[change])
        {
            assert_eq!(sent["result"]["resultType"], "complete");
            assert!(!cacheable || sent["result"]["ttlMs"] == 0);
        }
    }
    for (era, of_reading) in [(Era::Legacy, false), (Era::Modern, true)] {
        if let Some(change) = renumbered(&message, &head, era, of_reading) {
            let sent = readdress(&[change]);
            assert!(sent.is_none_or(|sent| sent["error"]["code"].is_number()));
        }
    }
    if let Some((at, added)) = remark(&message, &head, br#""plugbay.test/field":1"#) {
        let sent = readdress(&[(at..at, &added)]);
        assert!(sent.is_none_or(|sent| !sent["result"].is_null()));
    }

    let links = Members::find(&message, &payload, "_meta").map(|meta| page_links(&message, &meta));
    let links = links.unwrap_or_default().into_iter().map(|link| link.span).collect();
    let spans: [Vec<Span>; 4] = [
        task::ids_of_begun(&message, &head),
        task::ids_of_told(&message, &head),
        skill::uris_of_result(&message, &head),
        links,
    ];
    for spans in &spans {
        for span in spans {
            assert!(message[span.start] == b'"' && message[span.end - 1] == b'"' && span.len() > 1);
        }
        let changes: Vec<(Span, &[u8])> =
            spans.iter().map(|span| (span.start + 1..span.start + 1, &b"s__"[..])).collect();
        if let Kind::Result { .. } | Kind::Error { .. } = head.kind {
            readdress(&changes);
        }
    }
    let begun = Task::begun(&message, &head);
    assert!(begun.is_none() || !spans[0].is_empty(), "the id of a task that was begun is found");
    let _ = (Task::told(&message, &head), task::is_demanded(&message, &head));
    let _ = (InputRequired::read(&message, &head), visits_required(&message, &head));

    for (kind, key) in [(ItemKind::Tool, "tools"), (ItemKind::Prompt, "prompts"), (ItemKind::Skill, "skills")]
    {
        let (definitions, cursor) = read_page(&message, &payload, kind, &mut Allowance::default());
        assert!(cursor.is_none_or(|cursor| cursor.len() > 2 && cursor.starts_with(b"\"")));
        let Some(list) = Members::find(&message, &payload, key) else {
            assert!(definitions.is_empty());
            continue;
        };
        if let Ok(Value::Array(items)) = serde_json::from_slice(&message[list]) {
            let read = definitions.iter().map(|one| serde_json::from_slice::<Value>(one).unwrap());
            assert_eq!(read.collect::<Vec<_>>(), items);
        }
        for definition in definitions {
            let entry = skill::Entry::read(&definition, &(0..definition.len()));
            assert!(entry.uris.iter().all(|uri| definition[uri.start] == b'"'));
            let root = entry.uris.first().and_then(|uri| string_value(&definition[uri.clone()]));
            for directory in root.iter().flat_map(|uri| skill::directories(uri)) {
                assert!(root.as_deref().is_some_and(|uri| skill::is_below(uri, directory)));
            }
        }
    }
});
