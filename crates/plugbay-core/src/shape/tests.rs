//! Shapes: how they are written, merged, bounded and stored.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::tokens::estimate;

fn shape(value: &Value) -> Shape {
    Shape::of(value.to_string().as_bytes()).unwrap()
}

fn check(json: &str, line: &str) {
    assert_eq!(Shape::of(json.as_bytes()).unwrap().to_string(), line);
}

#[test]
fn shapes_are_written_as_signatures_are() {
    check(
        r#"{"id": 1, "title": "x", "done": true, "score": 0.5}"#,
        "{id: int, title, done: bool, score: number}",
    );
    check(r#"[{"a": 1}, {"a": null, "b": [1, "x"]}]"#, "{a: int|null, b?: (string|int)[]}[]");
    check("[]", "array");
    check("{}", "{}");
    check("[[1], [2.5]]", "number[][]");
    check(r#"{"odd key": "x", "a": {}}"#, r#"{"odd key", a: {}}"#);
    check("null", "null");
    assert_eq!(Shape::of(b"[1,"), None);
}

#[test]
fn formats_are_told_where_all_strings_agree() {
    let strings = r#"{"url": "https://example.com/a", "at": "2025-01-02T03:04:05Z", "on": "2025-01-02",
        "id": "123e4567-e89b-12d3-a456-426614174000", "mail": "a.b@example.com", "text": "https and more"}"#;
    check(strings, "{url: url, at: date-time, on: date, id: uuid, mail: email, text}");
    check(r#"["2025-01-02", "2025-13"]"#, "string[]");
}

#[test]
fn objects_used_as_maps_have_one_shape_for_all_members() {
    let map: serde_json::Map<String, Value> = (0..100).map(|n| (format!("k{n}"), json!({"n": n}))).collect();
    check(&json!({"by_id": map}).to_string(), "{by_id: {[key]: {n: int}}}");
    let few: serde_json::Map<String, Value> = (0..12).map(|n| (format!("k{n}"), json!({"n": n}))).collect();
    check(&json!(few).to_string(), "{[key]: {n: int}}");
}

#[test]
fn values_that_contain_their_like_are_written_once() {
    let tree = r#"[{"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}]"#;
    check(tree, "{name, children: {name, children?: …}[]}[]");
}

#[test]
fn merged_shapes_are_what_either_may_be() {
    let merged = shape(&json!({"a": 1, "b": "x"})).merge(shape(&json!({"a": 1.5, "c": null})));
    assert_eq!(merged.to_string(), "{a: number, b?, c?: null}");
    let unknown = Shape::default().merge(shape(&json!([1])));
    assert_eq!(unknown.to_string(), "int[]");
}

#[test]
fn hidden_characters_and_long_names_of_keys_are_taken_out() {
    let key = format!("a\u{202e}b{}", "x".repeat(500));
    let line = shape(&json!({ key: 1 })).to_string();
    assert!(line.starts_with("{\"abxxx") && line.ends_with("…\": int}") && line.len() < 100, "{line}");
}

#[test]
fn keys_of_one_name_are_one_key() {
    let long = "x".repeat(99);
    check(&format!(r#"{{"a": 1, "a\u202e": 1.5, "{long}1": 1, "{long}2": "x"}}"#), &{
        let cut = &long[..64];
        format!("{{a: number, \"{cut}…\": string|int}}")
    });
    let one = shape(&json!([{"a": 1, "a\u{7f}": 1}]));
    assert_eq!(one.clone().merge(one.clone()), one, "a merge with what is known changes nothing");
}

#[test]
fn a_line_fits_its_budget() {
    let wide: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("key{n}"), if n % 2 == 0 { json!(n) } else { json!("x") })).collect();
    let line = shape(&json!([wide])).line(60);
    assert!(estimate(&line) <= 60 && line.contains(", +"), "{line}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,3}|\\PC{0,8}", inner, 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn merging_is_the_same_in_both_orders_and_twice(one in any_json(), two in any_json()) {
        let (one, two) = (shape(&one), shape(&two));
        let both = one.clone().merge(two.clone());
        prop_assert_eq!(sorted(both.clone()), sorted(two.clone().merge(one)));
        prop_assert_eq!(both.clone().merge(two), both);
    }

    #[test]
    fn a_stored_shape_is_the_same(value in any_json()) {
        let shape = shape(&value);
        let stored = serde_json::to_string(&shape).unwrap();
        prop_assert_eq!(serde_json::from_str::<Shape>(&stored).unwrap(), shape);
    }
}

/// Keys keep the order of the first shape, which does not count here.
fn sorted(mut shape: Shape) -> Shape {
    shape.array = shape.array.map(|item| Box::new(sorted(*item)));
    match &mut shape.object {
        Some(Object::Keys { keys, .. }) => {
            keys.sort_by(|one, two| one.name.cmp(&two.name));
            for key in keys {
                key.shape = sorted(std::mem::take(&mut key.shape));
            }
        }
        Some(Object::Map(value)) => **value = sorted(std::mem::take(value)),
        None => {}
    }
    shape
}
