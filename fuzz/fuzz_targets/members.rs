//! The cursor: it finds the same members and elements as another parser, and each is a valid value of its
//! own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_core::wire::{Members, elements, string_value};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let bytes = text.as_bytes();
    let all: Vec<_> = Members::of(bytes, &(0..bytes.len())).collect();
    let listed = elements(bytes, &(0..bytes.len()));
    let own = string_value(bytes);
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    let parse = |span: std::ops::Range<usize>| serde_json::from_slice::<Value>(&bytes[span]).unwrap();
    match &value {
        Value::Object(members) if text.starts_with('{') => {
            for member in all.into_iter().flatten() {
                assert!(members.contains_key(&*member.key), "{:?}", member.key);
                parse(member.value);
            }
            for (key, own) in members {
                // For a key that occurs twice, another parser takes the last member.
                let found = Members::find(bytes, &(0..bytes.len()), key);
                let once = Members::of(bytes, &(0..bytes.len()))
                    .flatten()
                    .filter(|member| member.key == *key)
                    .count()
                    == 1;
                assert!(!once || found.is_some_and(|found| parse(found) == *own), "{key:?}");
            }
        }
        Value::Array(items) if text.starts_with('[') => {
            let found: Vec<Value> = listed.into_iter().map(parse).collect();
            assert!(found.is_empty() || found == *items);
        }
        Value::String(written) if text.starts_with('"') && text.ends_with('"') => {
            assert_eq!(own.as_deref(), Some(written.as_str()));
        }
        _ => {}
    }
});
