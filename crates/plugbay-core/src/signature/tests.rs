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
