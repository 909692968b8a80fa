//! The envelope: what is accepted is one JSON object for every parser, and its parts are where they are said to be.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plugbay_core::wire::{Head, Kind};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let bytes = text.as_bytes();
    let quick = Head::read_quickly(bytes);
    let Ok(head) = Head::read(bytes) else { return };
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        // JSON has numbers that this parser cannot hold.
        Err(error) if error.to_string().starts_with("number out of range") => return,
        Err(error) => panic!("what is accepted is JSON: {error}"),
    };
    let part = |span: &std::ops::Range<usize>| serde_json::from_slice::<Value>(&bytes[span.clone()]).unwrap();
    let (id, payload) = match &head.kind {
        Kind::Request { id, method } => {
            assert_eq!(value["method"].as_str().map(str::as_bytes), Some(&bytes[method.clone()]));
            (Some(id), "params")
        }
        Kind::Notification { method } => {
            assert_eq!(value["method"].as_str().map(str::as_bytes), Some(&bytes[method.clone()]));
            (None, "params")
        }
        Kind::Result { id } => (Some(id), "result"),
        Kind::Error { id } => (id.as_ref(), "error"),
    };
    assert!(id.is_none_or(|id| part(id) == value["id"]), "the id");
    assert!(head.payload.as_ref().is_none_or(|span| part(span) == value[payload]), "the payload");
    assert!(quick.is_ok(), "the quick reader rejects what the strict one accepts");
    if let (Kind::Result { .. } | Kind::Error { id: Some(_) }, Ok(head)) = (&head.kind, quick) {
        let frame = head.readdressed(&Bytes::copy_from_slice(bytes), b"77", &[]);
        let sent: Vec<u8> = frame.pieces().concat();
        let mut sent: Value = serde_json::from_slice(&sent).expect("what leaves is JSON");
        assert_eq!(sent["id"], 77);
        sent["id"] = value["id"].clone();
        assert_eq!(sent, value, "only the id is replaced");
    }
});
