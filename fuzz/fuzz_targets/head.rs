//! The envelope: every accepted message is one JSON object for all parsers, and its parts are at the reported
//! positions.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use plugbay_core::wire::{Fault, Head, Kind, Malformed, ScanError};
use serde::de::IgnoredAny;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let bytes = text.as_bytes();
    let peeked = Head::peek(bytes);
    let head = match Head::read(bytes) {
        Ok(head) => head,
        Err(Malformed { fault: Fault::Json(error), .. }) => {
            let is_too_deep = matches!(error, ScanError::TooDeep(_));
            assert!(is_too_deep || serde_json::from_str::<Value>(text).is_err(), "JSON is rejected: {error}");
            return;
        }
        Err(_) => {
            assert!(serde_json::from_str::<IgnoredAny>(text).is_ok(), "the fault is the grammar");
            return;
        }
    };
    serde_json::from_str::<IgnoredAny>(text).expect("what is accepted is JSON");
    let peeked = peeked.expect("the quick reader accepts what the strict one accepts");
    assert_eq!(peeked.kind, head.kind, "both readers find the same");
    // Numbers out of range and unpaired surrogates are JSON, but this parser cannot represent them.
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
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
    if let Kind::Result { .. } | Kind::Error { id: Some(_) } = &head.kind {
        let frame = head.readdressed(&Bytes::copy_from_slice(bytes), b"77", &[]);
        let sent: Vec<u8> = frame.pieces().concat();
        let mut sent: Value = serde_json::from_slice(&sent).expect("what leaves is JSON");
        assert_eq!(sent["id"], 77);
        sent["id"] = value["id"].clone();
        assert_eq!(sent, value, "only the id is replaced");
    }
});
