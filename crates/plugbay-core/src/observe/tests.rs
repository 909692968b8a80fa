//! Every observed call ends once, and a shape holds no value.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

struct Recorded(Arc<Mutex<Vec<CallEnd>>>);

impl Observation for Recorded {
    fn ends(self: Box<Self>, end: CallEnd) {
        self.0.lock().unwrap().push(end);
    }
}

fn observed() -> (ObservedCall, Arc<Mutex<Vec<CallEnd>>>) {
    let ends = Arc::default();
    (ObservedCall::new(Box::new(Recorded(Arc::clone(&ends)))), ends)
}

#[test]
fn an_observed_call_ends_once() {
    let (call, ends) = observed();
    call.end(CallOutcome::Ok, 7);
    call.end(CallOutcome::TimedOut, 0);
    drop(call);
    assert_eq!(*ends.lock().unwrap(), [CallEnd { outcome: CallOutcome::Ok, bytes: 7 }]);
}

#[test]
fn an_observed_call_that_is_dropped_was_cancelled() {
    let (call, ends) = observed();
    drop(call);
    assert_eq!(*ends.lock().unwrap(), [CallEnd { outcome: CallOutcome::Cancelled, bytes: 0 }]);
}

#[test]
fn the_shape_of_arguments_has_keys_and_types() {
    let arguments =
        json!({ "path": "/etc", "n": 1.5, "on": true, "none": null, "tags": ["a", 1], "in": { "k": [] } });
    let expected = json!({ "path": "string", "n": "number", "on": "boolean", "none": null, "tags": ["string"], "in": { "k": [] } });
    assert_eq!(shape(arguments.to_string().as_bytes()), expected);
    assert_eq!(shape(b"{"), json!("unreadable"));
    assert_eq!(shape(br#"[[[[[["secret"]]]]]]"#), json!([[[["…"]]]]));
}

#[test]
fn the_shape_of_arguments_is_small_whatever_they_are() {
    let wide: serde_json::Map<String, Value> =
        (0..200).map(|n| (format!("{n:0>200}"), json!({ "a": 1 }))).collect();
    let shape = shape(Value::Object(wide).to_string().as_bytes()).to_string();
    assert!(shape.len() < 8000, "{}", shape.len());
    assert!(shape.contains("…"));
}

proptest! {
    #[test]
    fn no_value_of_arguments_is_in_their_shape(keys in prop::collection::vec("[a-z]{1,5}", 1..6), depth in 0_usize..5) {
        let mut value = json!("CANARY-0123");
        for key in keys.iter().cycle().take(depth + 1) {
            value = json!({ key: value, "list": ["CANARY-0123", 12_345_678_901_u64] });
        }
        let shape = shape(value.to_string().as_bytes()).to_string();
        prop_assert!(!shape.contains("CANARY") && !shape.contains("12345678901"), "{}", shape);
    }
}
