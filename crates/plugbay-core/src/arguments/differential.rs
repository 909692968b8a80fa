//! Compares the validator with the `jsonschema` crate, on generated data: it never rejects a valid value.

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use super::{CompiledSchema, Schema, quick, validate};

const KEYS: [&str; 4] = ["a", "b", "c", "a/b~"];
const TEXTS: [&str; 10] = ["", "a", "aa", "abc", "7", "٣", "ä", "x\ny", "1.0", "a b"];
const PATTERNS: [&str; 12] = [
    "^a+$",
    r"\d",
    "[a-c]{2}",
    r"^\w+$",
    r"^\S*$",
    "b|^$",
    "^.$",
    r"\bb",
    "a{0,1}c?$",
    r"\p{L}",
    r"^\x61",
    "(?!a)b",
];
const TYPES: [&str; 7] = ["null", "boolean", "number", "integer", "string", "array", "object"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_valid_value_is_rejected(
        own in schema(true),
        // Without references: a schema that leads to itself uses up all steps.
        shared in schema(false),
        values in prop::collection::vec(value(), 16),
    ) {
        let schema = json!({ "type": "object", "properties": { "v": own }, "$defs": { "x": shared } });
        let Ok(theirs) = jsonschema::draft202012::new(&schema) else { return Ok(()) };
        let text = schema.to_string();
        let ours = Schema::read(text.as_bytes());
        let compiled = CompiledSchema::new(text.as_bytes());
        for value in values {
            let arguments = json!({ "v": value });
            let written = arguments.to_string();
            ours.look_at(written.len());
            let fits = validate::fits(&ours, ours.root(), written.as_bytes());
            prop_assert!(fits || !theirs.is_valid(&arguments), "{arguments} is valid by {schema}");
            prop_assert!(fits || !quick::accepts(&compiled, written.as_bytes()), "the quick check: {arguments}, {schema}");
        }
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..9).prop_map(Value::from),
        select(vec![0.5, 1.0, -2.0, 0.3, 2.5, 1e3]).prop_map(Value::from),
        select(&TEXTS[..]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(select(&KEYS[..]), inner, 0..4).prop_map(object),
        ]
    })
}

fn object(members: std::collections::BTreeMap<&str, Value>) -> Value {
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn schema(refers: bool) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        8 => keywords(),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(if refers { json!({ "$ref": "#/$defs/x" }) } else { json!({}) }),
    ];
    leaf.prop_recursive(3, 16, 3, move |inner| {
        (keywords(), prop::collection::vec(nested(inner, refers), 1..3)).prop_map(|(mut schema, more)| {
            for (key, value) in more {
                schema[key] = value;
            }
            schema
        })
    })
}

/// Keywords that need no other schema to say something of a value.
fn keywords() -> impl Strategy<Value = Value> {
    let count = || (0u64..4).prop_map(Value::from);
    let number =
        || prop_oneof![(-3i64..6).prop_map(Value::from), select(vec![0.5, 2.0, -0.5]).prop_map(Value::from)];
    let names = prop::collection::btree_set(select(&KEYS[..]), 0..3).prop_map(|names| json!(names));
    let types = prop_oneof![
        select(&TYPES[..]).prop_map(Value::from),
        prop::collection::btree_set(select(&TYPES[..]), 1..4).prop_map(|types| json!(types)),
    ];
    let needed = (select(&KEYS[..]), prop::collection::btree_set(select(&KEYS[..]), 0..3));
    let one = prop_oneof![
        4 => types.prop_map(|types| ("type", types)),
        1 => value().prop_map(|value| ("const", value)),
        2 => prop::collection::vec(value(), 1..4).prop_map(|values| ("enum", Value::from(values))),
        2 => names.prop_map(|names| ("required", names)),
        1 => needed.prop_map(|(key, names)| ("dependentRequired", json!({ key: names }))),
        3 => (select(vec!["minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength"]), count()),
        3 => (select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), number()),
        1 => select(vec![0.5, 1.0, 2.0, 0.1]).prop_map(|step| ("multipleOf", Value::from(step))),
        1 => any::<bool>().prop_map(|unique| ("uniqueItems", Value::from(unique))),
        2 => select(&PATTERNS[..]).prop_map(|pattern| ("pattern", Value::from(pattern))),
    ];
    prop::collection::vec(one, 0..3)
        .prop_map(|all| all.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Keywords with other schemas in them.
fn nested(
    inner: impl Strategy<Value = Value> + Clone + 'static,
    refers: bool,
) -> impl Strategy<Value = (&'static str, Value)> {
    let list = prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
    let map = prop::collection::btree_map(select(&KEYS[..]), inner.clone(), 0..3).prop_map(object);
    let by_pattern =
        (select(&PATTERNS[..]), inner.clone()).prop_map(|(pattern, own)| json!({ pattern: own }));
    prop_oneof![
        4 => (select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]), list),
        4 => (select(vec!["not", "if", "then", "else", "items", "additionalProperties", "contains", "propertyNames",
            "unevaluatedProperties", "additionalItems"]), inner),
        3 => (select(vec!["properties", "dependentSchemas"]), map),
        1 => by_pattern.prop_map(|own| ("patternProperties", own)),
        1 => Just((if refers { "$ref" } else { "title" }, Value::from("#/$defs/x"))),
    ]
}
