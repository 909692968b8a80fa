//! Signatures of the schemas that servers write, and of odd ones.

use super::*;

fn line(properties: &str, required: &str) -> String {
    let definition = format!(
        r##"{{"name":"t","description":"Does it. More.","inputSchema":{{"type":"object","properties":{properties},"required":{required},
        "$defs":{{"P":{{"type":"object","properties":{{"x":{{"type":"number"}},"y":{{"type":"number"}}}},"required":["x"]}},"L":{{"$ref":"#/$defs/L"}},"T":{{"type":"object","properties":{{"of":{{"$ref":"#/$defs/T"}}}}}},"B":{{"anyOf":[{{"$ref":"#/$defs/B"}},{{"type":"string"}}]}}}}}}}}"##
    );
    Signature::of("s__t", &Tool::parse(definition.into()).unwrap()).to_string()
}

#[test]
fn types_are_told_in_a_word() {
    for (schema, expected) in [
        (r#"{"type":"string"}"#, "string"),
        (r#"{"type":"integer"}"#, "int"),
        (r#"{"type":["boolean","null"]}"#, "bool"),
        (r#"{"type":"array","items":{"type":"string"}}"#, "string[]"),
        (r#"{"type":"array"}"#, "array"),
        (r#"{"type":"array","items":[{"type":"string"}]}"#, "array"),
        (r#"{"type":"array","items":{"enum":["a","b"]}}"#, r#"("a"|"b")[]"#),
        (r#"{"type":"string","enum":["a","b"]}"#, r#""a"|"b""#),
        (r#"{"enum":[1,2,3,4,5,6,7]}"#, "1|2|3|4|5|6|…"),
        (r#"{"const":"x"}"#, r#""x""#),
        (r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, "string"),
        (r#"{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}"#, "string|string[]"),
        (r##"{"$ref":"#/$defs/P"}"##, "{x: number, y?: number}"),
        (r##"{"allOf":[{"$ref":"#/$defs/P"}]}"##, "{x: number, y?: number}"),
        (r##"{"type":"array","items":{"$ref":"#/$defs/P"}}"##, "{x, y?}[]"),
        (r##"{"$ref":"#/$defs/L"}"##, "any"),
        (r##"{"$ref":"#/$defs/T"}"##, "{of?: {of?}}"),
        (r##"{"$ref":"#/$defs/B"}"##, "any|string"),
        (r##"{"$ref":"#/$defs/none"}"##, "any"),
        (r#"{"$ref":"https://example.com/x"}"#, "any"),
        (r#"{"type":"object"}"#, "object"),
        (
            r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"object","properties":{"c":{}}}}}"#,
            "{a?, b?: {c?}}",
        ),
        ("{}", "any"),
        ("true", "any"),
        ("7", "any"),
    ] {
        assert_eq!(
            line(&format!(r#"{{"p":{schema}}}"#), "[]"),
            format!("s__t(p?: {expected}) - Does it."),
            "{schema}"
        );
    }
    assert_eq!(line(r#"{"p":{"type":["string","null"]}}"#, r#"["p"]"#), "s__t(p: string|null) - Does it.");
}

#[test]
fn needed_parameters_come_first_and_are_always_shown() {
    let text = line(r#"{"b":{"type":"string"},"a":{"type":"string"},"c":{"type":"string"}}"#, r#"["c","a"]"#);
    assert_eq!(text, "s__t(a: string, c: string, b?: string) - Does it.");
    let definition = r#"{"name":"t","inputSchema":{"properties":{"a":{},"b":{},"c":{}},"required":["b"]}}"#;
    let signature = Signature::of("t", &Tool::parse(definition.into()).unwrap());
    assert_eq!(signature.line(0), "t(b: any, +2)");
}

#[test]
fn very_many_required_parameters_are_counted() {
    let names: Vec<String> = (0..90).map(|n| format!("{n}_{}", "name".repeat(40))).collect();
    let members: Vec<String> = names.iter().map(|name| format!(r#""{name}":{{}}"#)).collect();
    let schema =
        format!(r#"{{"properties":{{{}}},"required":{}}}"#, members.join(","), serde_json::json!(names));
    let definition = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
    let text = Signature::of("s__t", &Tool::parse(definition.into()).unwrap()).line(LINE);
    assert!(estimate(&text) < REQUIRED + LINE && text.contains(", +"), "{text}");
}

#[test]
fn odd_tools_have_signatures_too() {
    for (definition, expected) in [
        (r#"{"name":"t"}"#, "t()"),
        (r#"{"name":"t","inputSchema":null,"description":""}"#, "t()"),
        (r#"{"name":"t","inputSchema":{"type":"object"},"description":"\n\n  A\n  b.  C."}"#, "t() - A b."),
        (
            r#"{"name":"t","inputSchema":{"properties":{"a b\n":{"type":"string"}}}}"#,
            r#"t("a b\n"?: string)"#,
        ),
    ] {
        assert_eq!(Signature::of("t", &Tool::parse(definition.into()).unwrap()).to_string(), expected);
    }
}

#[test]
fn long_purposes_end_at_a_word() {
    assert_eq!(shorten("one two, three", 9), "one two…");
    assert_eq!(shorten("one", 9), "one");
    assert_eq!(shorten("天气预报天气预报", 4), "天气预报…");
}

#[test]
fn the_first_sentence_is_enough() {
    for (text, expected) in [
        ("One. Two.", "One."),
        ("\n  Wrapped over\n  lines! Then more.", "Wrapped over lines!"),
        ("Converts units, e.g. km to mi. Fast.", "Converts units, e.g. km to mi."),
        ("Reads v1.2 files", "Reads v1.2 files"),
        ("A title\n\nArgs:\n  x: a thing.", "A title"),
        ("预报天气。很快。", "预报天气。"),
        ("", ""),
    ] {
        assert_eq!(first_sentence(text), expected, "{text:?}");
    }
}

/// A schema with branches within branches, each of them tiny.
fn nested(leaf: &str, width: usize) -> String {
    (0..3).fold(leaf.to_owned(), |inner, _| format!(r#"{{"anyOf":[{}]}}"#, vec![inner; width].join(",")))
}

fn tool_of(own: &str, count: usize) -> Tool {
    let members: Vec<String> = (0..count).map(|number| format!(r#""key{number}":{own}"#)).collect();
    let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, members.join(","));
    Tool::parse(format!(r#"{{"name":"t","inputSchema":{schema}}}"#).into()).unwrap()
}

/// Schemas of nearly a megabyte whose parts are tiny, very many, or both.
fn hostile() -> Vec<Tool> {
    let many: Vec<String> = (0..700).map(|number| format!(r#""k{number}":{{}}"#)).collect();
    vec![
        tool_of(&nested("{}", 32), 6),
        tool_of(&nested(r#"{"const":1}"#, 32), 2),
        tool_of(&nested(r#"{"type":["object","object"]}"#, 24), 2),
        tool_of("{}", 60_000),
        tool_of(&format!(r#"{{"properties":{{{}}}}}"#, many.join(",")), 90),
        tool_of(&format!("{{{}}}", many.join(",")), 90),
        tool_of(&format!(r#"{{"enum":[{}1]}}"#, "1,".repeat(4_000)), 90),
        tool_of(r##"{"$ref":"#/properties/key1"}"##, 20_000),
        tool_of(&format!(r#"{{"description":"{}"}}"#, "x".repeat(9_000)), 90),
    ]
}

#[test]
fn the_signatures_of_one_reply_have_few_steps_together() {
    for tool in hostile() {
        let (mut steps, mut taken) = (Steps::default(), 0);
        for _ in 0..50 {
            steps.share(|left| {
                let before = left.left();
                let (_, _) = parameters(tool.raw("inputSchema").unwrap(), (left, Room::of(LINE)));
                taken += before - left.left();
            });
        }
        // Passes over 8 MiB, or visits of 31,000 members.
        assert!(taken <= 123 << 10, "{taken} steps for {} bytes", tool.definition.len());
    }
}

#[test]
fn a_signature_is_complete_after_those_of_hostile_schemas() {
    let mut steps = Steps::default();
    for tool in hostile() {
        (0..50).for_each(|_| drop(Signature::for_line("x", &tool, &mut steps)));
    }
    let plain = tool_of(&nested(r#"{"type":"string"}"#, 2), 100);
    let text = Signature::for_line("x", &plain, &mut steps).line(LINE);
    assert_eq!(text, Signature::of("x", &plain).line(LINE));
    assert!(text.ends_with(": string, +92)"), "{text}");
}

#[test]
fn parameters_that_a_line_does_not_show_are_not_read() {
    let steps_for = |room, count| {
        let (own, steps) =
            (r#"{"type":"object","properties":{"a":{"type":"string"}}}"#, StepsLeft::default());
        let before = steps.left();
        let tool = tool_of(own, count);
        let (shown, more) = parameters(tool.raw("inputSchema").unwrap(), (&steps, Room::of(room)));
        assert_eq!(Some(count), more.map(|more| more + shown.len()));
        // Without those of finding the parameters.
        before - steps.left() - count * (1 + own.len()).div_ceil(12)
    };
    assert!(steps_for(LINE, 90) < 3 * steps_for(LINE, 9), "{} steps", steps_for(LINE, 90));
    assert!(steps_for(usize::MAX, 90) > 5 * steps_for(usize::MAX, 9));
}

#[test]
fn branches_are_read_until_the_text_is_full() {
    let steps_for = |branches: &str| {
        let steps = StepsLeft::default();
        let before = steps.left();
        let tool = tool_of(&format!(r#"{{"anyOf":[{branches}]}}"#), 1);
        let (shown, _) = parameters(tool.raw("inputSchema").unwrap(), (&steps, Room::of(LINE)));
        (shown[0].kind.clone(), before - steps.left())
    };
    let branches: Vec<String> = (0..32).map(|number| format!(r#"{{"const":{number}}}"#)).collect();
    let ((few, short), (many, long)) = (steps_for(&branches[..5].join(",")), steps_for(&branches.join(",")));
    assert_eq!((few.as_str(), many.as_str()), ("0|1|2|3|…", "0|1|2|3|…"));
    assert!(long < 2 * short, "{long} steps instead of {short}");
}

#[test]
fn parameters_that_nobody_counts_are_hinted_at() {
    let text = Signature::for_line("x", &tool_of("{}", 60_000), &mut Steps::default()).line(LINE);
    assert!(text.starts_with("x(key0?: any, ") && text.ends_with(", …)"), "{text}");
}
