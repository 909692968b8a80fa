//! The corpus of malformed calls, and what must hold for every call.

mod refusals;

use proptest::prelude::*;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json, value::RawValue};

use super::*;

/// Arguments as models give them, one case per line, with the expected outcome.
const CORPUS: &str = include_str!("corpus.jsonl");
/// Whole calls of `execute_tool`, and of a suite.
const CALLS: &str = include_str!("calls.jsonl");
const SUITES: &str = include_str!("suites.jsonl");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case<'a> {
    #[serde(rename = "case")]
    title: String,
    /// The tool's schema and the arguments,
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    arguments: Option<&'a RawValue>,
    /// or a whole call, and which of the tools below is called for how long.
    #[serde(borrow)]
    call: Option<&'a RawValue>,
    tool: Option<String>,
    timeout: Option<f64>,
    /// The filter for the result.
    jq: Option<String>,
    /// Exactly this is sent.
    #[serde(borrow)]
    sent: Option<&'a RawValue>,
    #[serde(default)]
    repairs: Vec<String>,
    /// Or it is refused, with these words.
    #[serde(default)]
    refused: Vec<String>,
}

fn even_null<'de, D: Deserializer<'de>>(json: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(json).map(Some)
}

const READ: &str = r#"{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"},"binary":{"type":"boolean"}},"required":["path"],"additionalProperties":false}"#;
const ENTITIES: &str = r#"{"type":"object","properties":{"entities":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"entityType":{"type":"string"},"observations":{"type":"array","items":{"type":"string"}}},"required":["name","entityType","observations"]}}},"required":["entities"]}"#;
const CREATE: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"private":{"type":"boolean"},"description":{"type":"string"}},"required":["name"]}"#;
const WRAPPED: &str = r##"{"$defs":{"P":{"type":"object","properties":{"query":{"type":"string"},"top":{"type":"integer"}},"required":["query"]}},"type":"object","properties":{"params":{"$ref":"#/$defs/P"}},"required":["params"]}"##;
const SLOW: &str = r#"{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}},"required":["command"]}"#;

const SPAWN: &str = r#"{"type":"object","properties":{"command":{"type":"string"},"args":{"type":"array","items":{"type":"string"}}},"required":["command"]}"#;

/// The tools that `execute_tool` can call.
const TOOLS: [(&str, &str); 10] = [
    ("files__read", READ),
    ("clock__now", "{}"),
    ("odd__run", r#"{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}"#),
    (
        "odd__log",
        r#"{"type":"object","properties":{"repo_path":{"type":"string"},"max_count":{"type":"integer"}},"required":["repo_path"]}"#,
    ),
    ("odd__slow", SLOW),
    ("odd__create_repo", CREATE),
    ("odd__wrapped", WRAPPED),
    ("odd__spawn", SPAWN),
    ("odd__jq", r#"{"type":"object","properties":{"jq":{"type":"string"},"file":{"type":"string"}}}"#),
    ("odd__query", r#"{"type":"object","properties":{"sql":{"type":"string"},"server":{"type":"string"}}}"#),
];

/// The tools of a suite.
const SUBTOOLS: [(&str, &str); 8] = [
    ("read", READ),
    ("spawn", SPAWN),
    ("now", "{}"),
    (
        "find",
        r#"{"type":"object","properties":{"query":{"type":"string"},"names":{"type":"array"}},"required":["query"]}"#,
    ),
    ("slow", SLOW),
    ("create", CREATE),
    ("wrapped", WRAPPED),
    ("create_entities", ENTITIES),
];

/// What is sent to which tool, for how long, and the repairs.
#[derive(Debug, PartialEq)]
struct Sent {
    tool: String,
    arguments: String,
    timeout: Option<f64>,
    filter: Option<String>,
    repairs: Vec<String>,
}

/// Takes what a model wrote, and returns what a server gets.
fn send(outer: &str, envelope: Envelope, tools: &[(&str, &str)], mode: Mode) -> Result<Sent, String> {
    let known = |name: &str, server: Option<&str>| {
        let server = server.map(|server| format!("{server}__")).unwrap_or_default();
        let alike = |tool: &str| tool == name.to_lowercase() && tool.starts_with(&server);
        let meant = |(tool, _): &&(&str, &str)| alike(tool) || *tool == format!("{server}{name}");
        let (tool, schema) = tools.iter().find(meant)?;
        let exact = name == name.to_lowercase();
        let schema = Some(Arc::new(CompiledSchema::new(schema.as_bytes())));
        Some(ResolvedTool { name: (*tool).to_owned(), exact, schema, tool: () })
    };
    let call = unwrap_call(outer.as_bytes(), envelope, mode, &known).map_err(|none| match none {
        NoCall::Unknown(name) => format!("no tool {name}"),
        NoCall::Refused(refusal) => refusal.to_string(),
    })?;
    let call = call.checked(mode).map_err(|refusal| refusal.to_string())?;
    Ok(Sent {
        tool: call.tool.name,
        arguments: String::from_utf8(call.arguments.to_vec()).expect("UTF-8"),
        timeout: call.timeout.map(|timeout| timeout.as_secs_f64()),
        filter: call.filter,
        repairs: call.repairs.iter().map(ToString::to_string).collect(),
    })
}

fn fit<'a>(schema: &[u8], arguments: &'a [u8], mode: Mode) -> Result<CheckedArguments<'a>, Refusal> {
    check(&CompiledSchema::new(schema), arguments, mode)
}

fn cases(corpus: &str) -> Vec<Case<'_>> {
    corpus.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Checks that every case ends as it says.
fn check_cases<'a>(cases: &[Case<'a>], at_least: usize, run: impl Fn(&Case<'a>) -> Result<Sent, String>) {
    assert!(cases.len() >= at_least, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let outcome = run(case);
        let right = match (&outcome, case.sent) {
            (Ok(sent), Some(wanted)) => {
                sent.arguments == wanted.get()
                    && sent.repairs == case.repairs
                    && case.tool.as_ref().is_none_or(|tool| *tool == sent.tool)
                    && case.timeout == sent.timeout
                    && case.jq == sent.filter
            }
            (Err(message), None) => {
                !case.refused.is_empty() && case.refused.iter().all(|word| message.contains(word.as_str()))
            }
            _ => false,
        };
        if !right {
            let expected = case.sent.map_or(format!("{:?}", case.refused), |sent| sent.get().to_owned());
            wrong.push(format!(
                "{}:\n  got      {outcome:?}\n  expected {expected} {:?}",
                case.title, case.repairs
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Runs a case of arguments, put where they belong in a call.
fn below(case: &Case<'_>, outer: &str, envelope: Envelope, mode: Mode) -> Result<Sent, String> {
    let (schema, arguments) = (case.schema.expect("a schema"), case.arguments.expect("arguments"));
    send(&outer.replace("ARGUMENTS", arguments.get()), envelope, &[("s__t", schema.get())], mode)
}

#[test]
fn the_corpus_is_repaired_or_refused_as_it_says() {
    check_cases(&cases(CORPUS), 80, |case| {
        below(case, r#"{"name":"s__t","arguments":ARGUMENTS}"#, Envelope::EXECUTE, Mode::Repair)
    });
    check_cases(&cases(CORPUS), 60, |case| {
        below(case, r#"{"action":"call","subtool":"s__t","args":ARGUMENTS}"#, Envelope::SUITE, Mode::Repair)
    });
}

#[test]
fn whole_calls_are_understood_or_refused_as_they_say() {
    let call = |case: &Case<'_>| case.call.expect("a call").get().to_owned();
    check_cases(&cases(CALLS), 50, |case| send(&call(case), Envelope::EXECUTE, &TOOLS, Mode::Repair));
    check_cases(&cases(SUITES), 60, |case| send(&call(case), Envelope::SUITE, &SUBTOOLS, Mode::Repair));
}

#[test]
fn switched_off_nothing_is_changed_and_nothing_invalid_passes() {
    let told = |case: &Case<'_>, outcome: Result<Sent, String>, written: &str| match outcome {
        Ok(sent) => {
            assert_eq!(sent.arguments, written, "{}", case.title);
            assert!(case.repairs.is_empty() && sent.repairs.is_empty(), "{}", case.title);
        }
        Err(told) => assert!(!case.repairs.is_empty() || case.sent.is_none(), "{}: {told}", case.title),
    };
    for case in cases(CORPUS) {
        let outer = r#"{"name":"s__t","arguments":ARGUMENTS}"#;
        let outcome = below(&case, outer, Envelope::EXECUTE, Mode::CheckOnly);
        told(&case, outcome, case.arguments.expect("arguments").get());
    }
    for (corpus, envelope, tools) in
        [(CALLS, Envelope::EXECUTE, &TOOLS[..]), (SUITES, Envelope::SUITE, &SUBTOOLS[..])]
    {
        for case in cases(corpus) {
            let outcome = send(case.call.expect("a call").get(), envelope, tools, Mode::CheckOnly);
            told(&case, outcome, case.sent.map_or("nothing", RawValue::get));
        }
    }
}

#[test]
fn what_nobody_knows_may_take_anything() {
    let unheard = |name: &str, _: Option<&str>| {
        Some(ResolvedTool { name: name.to_owned(), exact: true, schema: None, tool: () })
    };
    let call = br#"{"name":"new__add","title":"t","description":"d"}"#;
    let call = unwrap_call(call, Envelope::EXECUTE, Mode::Repair, &unheard).unwrap();
    assert_eq!(&*call.arguments, br#"{"title":"t","description":"d"}"#);
}

#[test]
fn a_number_that_no_float_holds_is_sent_as_it_came() {
    let schema = br#"{"type": "object", "properties": {"a": {"type": "number"}}}"#;
    let arguments = br#"{"a": 1E999}"#;
    assert_eq!(&*fit(schema, arguments, Mode::CheckOnly).unwrap().arguments, arguments);
}

#[test]
fn arguments_behind_a_key_that_is_no_text_are_checked() {
    let schema = br#"{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}"#;
    let fits = |arguments: &str| fit(schema, arguments.as_bytes(), Mode::CheckOnly).is_ok();
    assert!(fits(r#"{"\ud800": 1, "a": 1}"#));
    assert!(!fits(r#"{"\ud800": 1, "a": "x"}"#));
    assert!(!fits(r#"{"\ud800": 1, "a": 1, "a": 2}"#), "a key that stands twice");
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
    let many = br##"{"allOf":[{"$ref":"#"},{"$ref":"#"}],"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##;
    assert!(fit(many, b"{\"a\":1}", Mode::Repair).is_ok());
    let refs = |count: usize| vec![json!({"$ref":"#"}); count];
    let wide = json!({"anyOf":refs(9),"allOf":refs(9),"required":["b"],"properties":{"a":{"$ref":"#"}}});
    assert!(fit(wide.to_string().as_bytes(), br#"{"a":{"a":"1"}}"#, Mode::Repair).is_err());
    let deep = format!("{}1{}", "[".repeat(90), "]".repeat(90));
    assert!(fit(b"{}", deep.as_bytes(), Mode::Repair).is_err());
    assert!(fit(b"{}", b"{\"a\":", Mode::Repair).is_err());
}

#[test]
fn schemas_that_lead_far_end_before_the_stack_does() {
    let own = json!({"$ref":"#/properties/a","type":"array","items":{"type":"integer"},"description":"x"});
    let circle = json!({"properties":{"a":own}}).to_string();
    let long = json!({"a": "1,".repeat(15_000)}).to_string();
    assert!(fit(circle.as_bytes(), long.as_bytes(), Mode::Repair).is_err());

    let next = |number: usize| (format!("a{number}"), json!({"$ref":format!("#/$defs/a{}", number + 1)}));
    let links: serde_json::Map<String, Value> = (0..20_000).map(next).collect();
    let chain = json!({"$defs":links,"$ref":"#/$defs/a0","properties":{"n":{"type":"integer"}}}).to_string();
    assert!(fit(chain.as_bytes(), br#"{"n":1}"#, Mode::Repair).is_ok());
    assert!(fit(chain.as_bytes(), br#"{"n":"x"}"#, Mode::Repair).is_err());
}

#[test]
fn all_that_takes_time_takes_steps() {
    let is_spent = |schema: &Schema| !schema.step(0);
    let many = |count: usize| Schema::read(json!({"anyOf":vec![json!({}); count]}).to_string().as_bytes());

    let (wide, items) = (many(5_000), format!("[{}]", vec!["{}"; 200].join(",")));
    let listed = json!({"items":wide.root()});
    assert!(spelling::is_clean(&wide, &[&listed], items.as_bytes()) && is_spent(&wide));
    assert_eq!(wide.alternative(wide.root(), &json!({})), json!(true));

    let (wide, plain) = (many(5_000), format!("[{}]", vec!["1"; 200].join(",")));
    assert!(spelling::is_clean(&wide, &[wide.root()], plain.as_bytes()) && is_spent(&wide));

    let (narrow, long) = (many(300), json!("x".repeat(64_000)).to_string());
    assert!(validate::fits(&narrow, &json!({"anyOf":narrow.root()["anyOf"]}), long.as_bytes()));
    assert!(is_spent(&narrow));

    let schema = Schema::read(b"{}");
    let choices = json!({"enum":(0..10_000).collect::<Vec<_>>()});
    assert!(validate::fits(&schema, &choices, long.as_bytes()) && is_spent(&schema), "left to the server");
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

/// The same as one parameter of a tool, beside others that its schema does not name, if it says nothing of
/// them.
fn tool((schema, value): (Value, String)) -> (Value, String) {
    let open =
        json!({"type":"object","properties":{"v":schema,"max_count":{"type":"integer"}},"required":["v"]});
    (open, format!(r#"{{"v":{value}, "unnamed" :1.0, "V2": null}}"#))
}

#[test]
fn the_quick_check_accepts_plain_arguments() {
    let nested = r##"{"type":"object","properties":{"a":{"type":"string","minLength":1,"pattern":"^x"},"n":{"type":"integer","minimum":1},"o":{"type":"object","properties":{"b":{"enum":["x",null]}},"additionalProperties":false},"l":{"type":"array","items":{"type":"string"},"maxItems":2},"m":{"type":"object","additionalProperties":{"type":"number"}},"f":{"type":"object"},"u":{"anyOf":[{"type":"integer"},{"type":"null"}]},"r":{"$ref":"#/$defs/r"}},"required":["a"],"$defs":{"r":{"type":"object","properties":{"r":{"$ref":"#/$defs/r"}}}}}"##;
    let schema = CompiledSchema::new(nested.as_bytes());
    for right in [
        r#"{"a":"x"}"#,
        r#"{ "a" : "xé\n" , "n" : 12 }"#,
        r#"{"a":"x","o":{"b":null},"l":[],"m":{"k":1.5,"l":-2e3}}"#,
        r#"{"a":"x","f":{"k":[{"deep":[1,{}]}]},"u":null}"#,
        r#"{"a":"x","r":{"r":{"r":{}}},"l":["1","2"],"u":3}"#,
    ] {
        assert!(quick::accepts(&schema, right.as_bytes()), "{right}");
    }
    for other in [
        "{}",
        r#"{"a":"y"}"#,
        r#"{"a":"x","a":"x"}"#,
        r#"{"a":"x","n":0}"#,
        r#"{"a":"x","n":1.5}"#,
        r#"{"a":"x","nn":1}"#,
        r#"{"a":"x","o":{"c":1}}"#,
        r#"{"a":"x","l":["1","2","3"]}"#,
        r#"{"a":"x","m":{"k":"1"}}"#,
        r#"{"a":"x","f":{"k":{"d":1,"d":1}}}"#,
        r#"{"a":"x","u":"3"}"#,
        r#"{"a":"x"} "#,
        r#"{"a":"x",}"#,
        r#"{"a":"x""#,
        r#"{"a":"x" "n":1}"#,
        r#"{"arguments":{"a":"x"}}"#,
        r#"[{"a":"x"}]"#,
        "",
    ] {
        assert!(!quick::accepts(&schema, other.as_bytes()), "{other}");
    }
    assert!(!quick::accepts(&schema, b"{\"a\":\"x\xff\"}"), "not UTF-8");
}

#[test]
fn the_quick_check_of_hostile_schemas_ends() {
    let many = br##"{"allOf":[{"$ref":"#"},{"$ref":"#"}],"anyOf":[{"$ref":"#"},{"$ref":"#"}]}"##;
    assert!(!quick::accepts(&CompiledSchema::new(many), b"{\"a\":1}"));
    let wide = json!({"properties":{"a":{"anyOf":vec![json!({"type":"string","minLength":70_000}); 1_500]}}});
    let long = json!({"a":"x".repeat(64_000)}).to_string();
    assert!(!quick::accepts(&CompiledSchema::new(wide.to_string().as_bytes()), long.as_bytes()));
    let large = json!({"properties":{"a":{"anyOf":vec![json!({"type":"string"}); 5_000]}}});
    assert!(CompiledSchema::new(large.to_string().as_bytes()).nodes.is_empty());
    let deep = format!("{}1{}", r#"{"a":"#.repeat(64), "}".repeat(64));
    assert!(!quick::accepts(&CompiledSchema::new(b"{}"), deep.as_bytes()));
}

/// Checks that the full check accepts unchanged what the quick check accepts.
fn quick_agrees_with_full(schema: &[u8], arguments: &[u8]) {
    let schema = CompiledSchema::new(schema);
    if quick::accepts(&schema, arguments) {
        let unchanged = CheckedArguments { arguments: arguments.into(), repairs: Vec::new() };
        let shown = String::from_utf8_lossy(arguments);
        assert_eq!(check_fully(&schema, arguments, Mode::Repair), Ok(unchanged), "{shown}");
    }
}

#[test]
fn the_quick_check_agrees_with_the_full_one_on_the_corpus() {
    let cases = cases(CORPUS);
    for schema in cases.iter().filter_map(|case| case.schema) {
        for arguments in cases.iter().flat_map(|case| [case.arguments, case.sent]).flatten() {
            quick_agrees_with_full(schema.get().as_bytes(), arguments.get().as_bytes());
        }
    }
}

proptest! {
    #[test]
    fn the_quick_check_agrees_with_the_full_one(
        (one, own) in pairs(), (other, value) in pairs(), (inner, deep) in pairs(),
        shape in 0..6usize,
    ) {
        let schema = match shape {
            0 => json!({"properties":{"a":one,"file_path":other}}),
            1 => json!({"properties":{"a":{"anyOf":[one,{"properties":{"b":other}}]},"filePath":inner}}),
            2 => json!({"properties":{"a":{"allOf":[one,other]}},"additionalProperties":inner}),
            3 => json!({"anyOf":[{"properties":{"arguments":one}},{"properties":{"a":other}}]}),
            4 => json!({"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":one,"arguments":other}}}}),
            _ => json!({"properties":{"a":{"items":one},"name":{"additionalProperties":other}}}),
        };
        let schema = schema.to_string();
        for key in ["a", "file_path", "filePath", "arguments", "name", "b"] {
            for value in [&own, &value, &deep, &format!("[{own},{deep}]"), &format!(r#"{{"b":{value}}}"#)] {
                quick_agrees_with_full(schema.as_bytes(), format!(r#"{{"{key}":{value}}}"#).as_bytes());
                let both = format!(r#"{{"a":{own},"{key}":{value}}}"#);
                quick_agrees_with_full(schema.as_bytes(), both.as_bytes());
            }
        }
    }

    #[test]
    fn what_fits_is_never_changed((schema, value) in pairs().prop_map(tool)) {
        let fitting = fit(schema.to_string().as_bytes(), value.as_bytes(), Mode::Repair);
        let expected = CheckedArguments { arguments: value.as_bytes().into(), repairs: Vec::new() };
        prop_assert_eq!(fitting, Ok(expected));
    }

    /// Any value with any schema: the check ends, and what is sent fits and reports its repairs.
    #[test]
    fn what_is_sent_fits((schema, _) in pairs().prop_map(tool), (_, value) in pairs()) {
        let schema = schema.to_string();
        if let Ok(fitting) = fit(schema.as_bytes(), value.as_bytes(), Mode::Repair) {
            let again = fit(schema.as_bytes(), &fitting.arguments, Mode::CheckOnly);
            prop_assert!(again.is_ok(), "{}", String::from_utf8_lossy(&fitting.arguments));
            prop_assert_eq!(fitting.repairs.is_empty(), *fitting.arguments == *value.as_bytes());
        }
    }
}
