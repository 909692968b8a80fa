//! References to results are found where they stand, and the arguments stay JSON when values replace them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_core::{
    reference::{find, in_uri, may_be_in, unquoted},
    wire::check_params,
};
use serde::de::IgnoredAny;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let _ = in_uri(text);
    let bytes = text.as_bytes();
    if check_params(bytes).is_err() {
        let _ = find(bytes, &(0..bytes.len()));
        return;
    }
    let whole = 0..bytes.len();
    let references = find(bytes, &whole);
    assert!(references.is_empty() || may_be_in(bytes), "the quick look overlooks one");
    let (mut replaced, mut from) = (String::new(), 0);
    for reference in &references {
        assert!(from <= reference.span.start, "they stand in order and apart");
        let object: Value = serde_json::from_str(&text[reference.span.clone()]).expect("an object");
        assert!(object["$result"].is_string());
        replaced.push_str(&text[from..reference.span.start]);
        replaced.push_str("\"value\"");
        from = reference.span.end;
    }
    replaced.push_str(&text[from..]);
    serde_json::from_str::<IgnoredAny>(&replaced).expect("the arguments are still JSON");
    for (span, inner) in unquoted(bytes, &whole) {
        assert!(span.end <= bytes.len());
        serde_json::from_str::<IgnoredAny>(&inner).expect("what was in the string is JSON");
    }
});
