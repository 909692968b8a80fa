//! The corpus of malformed calls, and what must hold for every call.

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::*;

/// Calls as models make them, one per line, with what becomes of them.
const CORPUS: &str = include_str!("corpus.jsonl");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case<'a> {
    #[serde(rename = "case")]
    title: String,
    /// The tool's schema; without it, the call of `execute_tool` itself is looked at.
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: &'a RawValue,
    /// Exactly this is sent.
    #[serde(borrow)]
    sent: Option<&'a RawValue>,
    #[serde(default)]
    repairs: Vec<String>,
    /// Or it is refused, with these words.
    #[serde(default)]
    refused: Vec<String>,
}

#[test]
fn the_corpus_is_repaired_or_refused_as_it_says() {
    let mut wrong = Vec::new();
    let cases: Vec<Case<'_>> = CORPUS.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(cases.len() >= 80, "{} cases", cases.len());
    for case in &cases {
        let expected = match case.sent {
            Some(sent) => Ok((sent.get().to_owned(), case.repairs.clone())),
            None => Err(case.refused.clone()),
        };
        let outcome = run(case);
        let right = match (&outcome, &expected) {
            (Ok(sent), Ok(wanted)) => sent == wanted,
            (Err(message), Err(words)) => {
                !words.is_empty() && words.iter().all(|word| message.contains(word.as_str()))
            }
            _ => false,
        };
        if !right {
            wrong.push(format!("{}:\n  got      {outcome:?}\n  expected {expected:?}", case.title));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn run(case: &Case<'_>) -> Result<(String, Vec<String>), String> {
    let arguments = case.arguments.get().as_bytes();
    let told = |repairs: Vec<Repair>| repairs.iter().map(ToString::to_string).collect();
    let text = |json: &[u8]| String::from_utf8(json.to_vec()).expect("UTF-8");
    match case.schema {
        Some(schema) => match fit(schema.get().as_bytes(), arguments, Mode::Repair) {
            Ok(fitting) => Ok((text(&fitting.arguments), told(fitting.repairs))),
            Err(refusal) => Err(refusal.to_string()),
        },
        None => match unwrap_call(arguments, Envelope::EXECUTE, Mode::Repair) {
            Ok(call) => Ok((text(&call.arguments), told(call.repairs))),
            Err(refusal) => Err(refusal.to_string()),
        },
    }
}

/// What a suite makes of a call: the tool, what is sent, and what was put right; or why not.
fn through_suite(outer: &str, schema: &str, mode: Mode) -> Result<(String, String, usize), String> {
    let call = unwrap_call(outer.as_bytes(), Envelope::SUITE, mode).map_err(|refusal| refusal.to_string())?;
    let fitting = fit(schema.as_bytes(), &call.arguments, mode).map_err(|refusal| refusal.to_string())?;
    let sent = String::from_utf8(fitting.arguments.to_vec()).expect("UTF-8");
    Ok((call.name, sent, call.repairs.len() + fitting.repairs.len()))
}

#[test]
fn the_corpus_holds_below_the_args_of_a_suite() {
    for line in CORPUS.lines() {
        let case: Case<'_> = serde_json::from_str(line).expect(line);
        let Some(schema) = case.schema else { continue };
        let outer = format!(r#"{{"action":"call","subtool":"t","args":{}}}"#, case.arguments.get());
        match (through_suite(&outer, schema.get(), Mode::Repair), case.sent) {
            (Ok((_, sent, repairs)), Some(wanted)) => {
                assert_eq!((sent.as_str(), repairs), (wanted.get(), case.repairs.len()), "{}", case.title);
            }
            (Err(told), None) => {
                assert!(
                    case.refused.iter().all(|word| told.contains(word.as_str())),
                    "{}: {told}",
                    case.title
                );
            }
            (outcome, _) => panic!("{}: {outcome:?}", case.title),
        }
    }
}

#[test]
fn a_suite_is_called_in_many_ways() {
    const SCHEMA: &str = r#"{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"],"additionalProperties":false}"#;
    let right = |outer: &str| through_suite(outer, SCHEMA, Mode::Repair);
    for outer in [
        r#"{"action":"call","subtool":"read","args":{"path":"a"}}"#,
        r#"{"subtool":"read","args":{"path":"a"}}"#,
        r#"{"action":"call","subtool":" read ","args":{"path":"a"}}"#,
        r#"{"action":"call","subtool":"read","args":"{\"path\":\"a\"}"}"#,
        r#"{"action":"call","subtool":"read","args":"```json\n{\"path\":\"a\"}\n```"}"#,
        r#"{"action":"call","subtool":"read","arguments":{"path":"a"}}"#,
        r#"{"action":"call","subtool":"read","params":{"path":"a"}}"#,
        r#"{"action":"call","subtool":"read","input":{"path":"a"}}"#,
        r#"{"action":"call","subtool":"read","path":"a"}"#,
        r#"{"action":"call","subtool":"read","args":{},"path":"a"}"#,
        r#"{"action":"call","subtool":"read","args":null,"path":"a"}"#,
        r#"{"action":"call","tool":"read","args":{"path":"a"}}"#,
        r#"{"action":"call","name":"read","args":{"path":"a"}}"#,
        r#"{"action":"call","subTool":"read","args":{"path":"a"}}"#,
        r#"{"action":"call","sub_tool":"read","args":{"path":"a"}}"#,
        r#"{"action":"call","tool_name":"read","arguments":{"path":"a"}}"#,
        r#"{"args":{"action":"call","subtool":"read","args":{"path":"a"}}}"#,
        r#"{"action":"call","subtool":"read","args":{"args":{"path":"a"}}}"#,
        r#"{"action":"call","subtool":"read","args":{"Path":"a"}}"#,
        r#"{"action":"call","subtool":"read","args":{"path":"a"},"detail":false,"timeout":5}"#,
    ] {
        let outcome = right(outer);
        let sent = outcome.as_ref().map(|(tool, sent, _)| (tool.as_str(), sent.replace(' ', "")));
        assert_eq!(sent, Ok(("read", r#"{"path":"a"}"#.to_owned())), "{outer}: {outcome:?}");
    }
    for (outer, told) in [
        (r#"{"action":"call"}"#, "`subtool` is missing"),
        (r#"{"action":"call","args":{"path":"a"}}"#, "`subtool` is missing"),
        (r#"{"action":"call","subtool":7}"#, "`subtool` must be a string"),
        (r#"["call","read"]"#, "expected an object with `subtool` and `args`"),
        (
            r#"{"action":"call","subtool":"read","args":{"limit":1},"path":"a"}"#,
            "both below `args` and beside it",
        ),
        (r#"{"action":"call","subtool":"read"}"#, "path"),
        (r#"{"action":"call","subtool":"read","args":["a"]}"#, "do not fit: they are a list"),
        (r#"{"action":"call","subtool":"read","args":{"path":"a","limit":"many"}}"#, "limit"),
    ] {
        let outcome = right(outer);
        assert!(outcome.as_ref().is_err_and(|said| said.contains(told)), "{outer}: {outcome:?}");
    }
    let flattened = through_suite(r#"{"subtool":"read","path":"a"}"#, SCHEMA, Mode::CheckOnly);
    assert!(flattened.is_err_and(|told| told.contains("belong below `args`")));
}

#[test]
fn switched_off_nothing_is_changed_and_nothing_invalid_passes() {
    for line in CORPUS.lines() {
        let case: Case<'_> = serde_json::from_str(line).expect(line);
        let Some(schema) = case.schema else { continue };
        let arguments = case.arguments.get().as_bytes();
        match fit(schema.get().as_bytes(), arguments, Mode::CheckOnly) {
            Ok(fitting) => {
                assert_eq!(&*fitting.arguments, arguments, "{}", case.title);
                assert!(case.repairs.is_empty() && case.sent.is_some(), "{}", case.title);
            }
            Err(refusal) => {
                assert!(!case.repairs.is_empty() || case.sent.is_none(), "{}: {refusal}", case.title);
            }
        }
    }
}

#[test]
fn the_message_shows_what_was_missed_and_an_example() {
    let schema = br#"{"type":"object","properties":{"limit":{"type":"integer","minimum":3},"path":{"type":"string"}},"required":["path"]}"#;
    let refusal = fit(schema, br#"{"limit":"many"}"#, Mode::Repair).unwrap_err();
    let expected = "`limit` does not fit: it is a string \"many\"; schema: {\"minimum\":3,\"type\":\"integer\"}; \
        for example: 3\n`path` is missing; schema: {\"type\":\"string\"}; for example: \"text\"";
    assert_eq!(refusal.to_string(), expected);
    assert_eq!(refusal.problems[1].place, "path");
}

#[test]
fn odd_schemas_ask_for_nothing_and_end() {
    let circular = br##"{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}"##;
    let tree = br##"{"$defs":{"n":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}]}},"type":"object","properties":{"n":{"$ref":"#/$defs/n"}}}"##;
    for schema in
        [&circular[..], b"", b"not json", b"true", b"[]", b"{\"type\":7}", b"{\"$ref\":\"http://x/y\"}"]
    {
        assert!(fit(schema, b"{\"a\":1}", Mode::Repair).is_ok(), "{schema:?}");
    }
    let _ = fit(tree, br#"{"n":{"next":{"next":5}}}"#, Mode::Repair);
    let deep = format!("{}1{}", "[".repeat(90), "]".repeat(90));
    assert!(fit(b"{}", deep.as_bytes(), Mode::Repair).is_err());
    assert!(fit(b"{}", b"{\"a\":", Mode::Repair).is_err());
}

/// A schema with a value that fits it.
fn pairs() -> impl Strategy<Value = (Value, String)> {
    let digits = "-?[1-9][0-9]{0,30}(\\.[0-9]{1,5}0)?";
    let leaf = prop_oneof![
        "[a-zA-Z0-9 ,{}\\[\\]:\"'é天-]{0,12}"
            .prop_map(|text| (json!({"type":"string"}), json!(text).to_string())),
        digits.prop_map(|number| (json!({"type":"number"}), number)),
        (0i64..99).prop_map(|number| (json!({"type":"integer","minimum":0}), number.to_string())),
        any::<bool>().prop_map(|value| (json!({"type":"boolean"}), value.to_string())),
        Just((json!({"type":["string","null"]}), "null".to_owned())),
        Just((json!({"enum":["Asc","desc",3]}), "\"Asc\"".to_owned())),
        Just((json!({}), "{ \"free\" : [1.0, null] }".to_owned())),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|pairs| {
                let schemas: Vec<Value> = pairs.iter().map(|(schema, _)| schema.clone()).collect();
                let values: Vec<String> = pairs.into_iter().map(|(_, value)| value).collect();
                (json!({"type":"array","prefixItems":schemas}), format!("[{}]", values.join(" , ")))
            }),
            (inner.clone(), inner.clone())
                .prop_map(|((a, value), (b, _))| (json!({"anyOf":[b,a]}), value)),
            prop::collection::btree_map("(a|file_path|filePath|arguments|name)", inner, 0..4).prop_map(|members| {
                let schemas: serde_json::Map<String, Value> =
                    members.iter().map(|(key, (schema, _))| (key.clone(), schema.clone())).collect();
                let required: Vec<&String> = members.keys().take(1).collect();
                let values: Vec<String> =
                    members.iter().map(|(key, (_, value))| format!("\"{key}\": {value}")).collect();
                let schema = json!({"type":"object","properties":schemas,"required":required,"additionalProperties":false});
                (schema, format!("{{ {} }}", values.join(" ,\n")))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn what_fits_is_never_changed((schema, value) in pairs()) {
        let fitting = fit(schema.to_string().as_bytes(), value.as_bytes(), Mode::Repair);
        let expected = Fitting { arguments: value.as_bytes().into(), repairs: Vec::new() };
        prop_assert_eq!(fitting, Ok(expected));
    }

    /// Any value with any schema: it ends, and what is sent fits and tells what was done to it.
    #[test]
    fn what_is_sent_fits((schema, _) in pairs(), (_, value) in pairs()) {
        let schema = schema.to_string();
        if let Ok(fitting) = fit(schema.as_bytes(), value.as_bytes(), Mode::Repair) {
            let again = fit(schema.as_bytes(), &fitting.arguments, Mode::CheckOnly);
            prop_assert!(again.is_ok(), "{}", String::from_utf8_lossy(&fitting.arguments));
            prop_assert_eq!(fitting.repairs.is_empty(), *fitting.arguments == *value.as_bytes());
        }
    }
}

#[test]
fn a_parameter_beside_a_subtool_is_never_lost() {
    let call = br#"{"action":"call","subtool":"find","query":"cats","names":["a"],"detail":true}"#;
    let call = unwrap_call(call, Envelope::SUITE, Mode::Repair).unwrap();
    assert_eq!(&*call.arguments, br#"{"query":"cats","names":["a"],"detail":true}"#);
    let strict = unwrap_call(br#"{"subtool":"find","query":"cats"}"#, Envelope::SUITE, Mode::CheckOnly);
    assert!(strict.is_err());
}
