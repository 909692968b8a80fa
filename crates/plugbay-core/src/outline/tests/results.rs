//! Results of tools that are replaced: blocks, errors, `structuredContent`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{super::*, snapshots::issues};
use crate::{outline::result::Replaced, tool_result::ToolResult};

const CLOSING: &str = "result: \"r_7Kq2\" - read_result {result, jq|lines|grep|page}";

fn how() -> Replacement<'static> {
    Replacement { threshold: 500, outline: 400, error: 300, closing: CLOSING, schema: OutputSchema::None }
}

fn replace(result: &[u8], how: &Replacement<'_>) -> Option<Replaced> {
    super::super::replace(&ToolResult::read(result)?, how)
}

fn replaced(result: &Value, how: &Replacement<'_>) -> Value {
    let replaced = replace(result.to_string().as_bytes(), how).unwrap();
    assert!(replaced.tokens_after < replaced.tokens_before);
    serde_json::from_slice(&replaced.result).unwrap()
}

fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn words() -> String {
    "Some words of a text.\n".repeat(400)
}

#[test]
fn small_results_stay_as_they_are() {
    for small in [
        json!({"content": [{"type": "text", "text": "ok"}]}),
        json!({}),
        json!([1, 2]),
        json!({"content": 5}),
    ] {
        assert_eq!(replace(small.to_string().as_bytes(), &how()), None);
    }
    let image = json!({"content": [{"type": "image", "data": "A".repeat(100_000), "mimeType": "image/png"}]});
    assert_eq!(replace(image.to_string().as_bytes(), &how()), None);
    assert_eq!(replace(&b"[".repeat(10_000), &how()), None);
}

#[test]
fn other_blocks_meta_and_unknown_members_keep_their_bytes_and_order() {
    let result = format!(
        r#"{{ "_meta" : {{"a":1.0}}, "content": [ {{"type":"text","text":"Here it is:"}}, {{"type":"image","data":"QUJD","mimeType":"image/png"}},
        {{"type":"text","annotations":{{"priority":1.0}},"text":{},"_meta":{{"x": 2}}}}, {{"type":"resource_link","uri":"a:b","name":"n"}}], "x":[ 1 ] }}"#,
        Value::from(words())
    );
    let out = String::from_utf8(replace(result.as_bytes(), &how()).unwrap().result).unwrap();
    let start = r#"{"_meta":{"a":1.0},"content":[{"type":"text","text":"Here it is:"},{"type":"image","data":"QUJD","mimeType":"image/png"},{"type":"text","annotations":{"priority":1.0},"text":"text, 8.8 KB,"#;
    assert!(out.starts_with(start), "{out}");
    assert!(
        out.ends_with(r#"","_meta":{"x": 2}},{"type":"resource_link","uri":"a:b","name":"n"}],"x":[ 1 ]}"#),
        "{out}"
    );
    let value: Value = serde_json::from_str(&out).unwrap();
    assert!(value["content"][2]["text"].as_str().unwrap().ends_with(CLOSING));
}

#[test]
fn an_error_keeps_its_message() {
    let short = json!({"content": [{"type": "text", "text": "Why it failed. ".repeat(60)}], "isError": true});
    assert_eq!(replace(short.to_string().as_bytes(), &how()), None);
    let message = format!("Cannot open the file.\n{}\nThe last cause.", words());
    let out = replaced(&json!({"content": [{"type": "text", "text": message}], "isError": true}), &how());
    let text = text_of(&out);
    assert!(text.starts_with("Cannot open the file.\nSome words"), "{text}");
    assert!(text.contains("\n… about 2,") && text.contains("\nThe last cause.\n"), "{text}");
    assert_eq!(out["isError"], true);
}

#[test]
fn structured_content_of_a_tool_without_a_schema_is_left_out() {
    let issues = issues(60);
    let both = json!({"content": [{"type": "text", "text": serde_json::to_string_pretty(&issues).unwrap()}], "structuredContent": issues});
    let out = replaced(&both, &how());
    assert!(out.get("structuredContent").is_none());
    let text = text_of(&out);
    assert_eq!(text.matches("JSON, ").count(), 1, "{text}");
    assert!(text.contains(".items[]: 60 objects"), "{text}");
}

#[test]
fn structured_content_stays_whole_where_a_host_checks_it() {
    let issues = issues(60);
    let both =
        json!({"content": [{"type": "text", "text": issues.to_string()}], "structuredContent": issues});
    let out = replaced(&both, &Replacement { schema: OutputSchema::Kept, ..how() });
    assert_eq!(out["structuredContent"], issues);
    assert!(text_of(&out).starts_with("JSON, "));
}

#[test]
fn structured_content_is_shortened_only_if_it_still_matches() {
    let issues = issues(60);
    let both = json!({"content": [], "structuredContent": issues});
    let matches =
        |json: &[u8]| serde_json::from_slice::<Value>(json).is_ok_and(|value| value["items"].is_array());
    let out = replaced(&both, &Replacement { schema: OutputSchema::Shortened(&matches), ..how() });
    assert_eq!(out["structuredContent"]["items"].as_array().unwrap().len(), 3);
    assert_eq!(out["structuredContent"]["items"][1]["id"], 1001);
    assert!(text_of(&out).starts_with("structuredContent has the first 3 elements of each array\nJSON, "));
    let out = replaced(&both, &Replacement { schema: OutputSchema::Shortened(&|_| false), ..how() });
    assert_eq!(out["structuredContent"], issues);
}

#[test]
fn a_text_that_is_the_only_member_is_read_as_text() {
    let result =
        json!({"content": [{"type": "text", "text": words()}], "structuredContent": {"content": words()}})
            .to_string();
    let readable = readable(&ToolResult::read(result.as_bytes()).unwrap()).unwrap();
    assert_eq!(readable.structured, None);
    assert_eq!(readable.text.as_deref(), Some(words().as_str()));
    let result =
        json!({"content": [{"type": "text", "text": words()}], "structuredContent": {"other": issues(9)}});
    let out = replaced(&result, &how());
    assert!(
        text_of(&out).starts_with("structuredContent: JSON, ") && text_of(&out).contains("\ntext: text, "),
        "{out}"
    );
}

#[test]
fn many_small_texts_are_one_outline() {
    let row =
        |n: usize| json!({"type": "text", "text": json!({"id": n, "name": format!("row {n}")}).to_string()});
    let blocks: Vec<Value> = (0..300).map(row).collect();
    let out = replaced(&json!({ "content": blocks }), &how());
    assert_eq!(out["content"].as_array().unwrap().len(), 1);
    assert!(text_of(&out).contains(".[]: 300 objects"), "{out}");
}

proptest! {
    #[test]
    fn a_replaced_result_is_one_json_object(
        texts in prop::collection::vec("([a-z\"\\\\天\u{202e} \n]{0,60}){0,40}", 0..6),
        is_error in any::<bool>(),
        with_structure in any::<bool>(),
        kept in any::<bool>(),
    ) {
        let blocks: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
        let mut result = json!({"content": blocks, "isError": is_error, "_meta": {"k": [1]}});
        if with_structure {
            result["structuredContent"] = json!({"texts": texts});
        }
        let schema = if kept { OutputSchema::Kept } else { OutputSchema::None };
        let how = Replacement { threshold: 50, outline: 100, error: 60, closing: CLOSING, schema };
        if let Some(replaced) = replace(result.to_string().as_bytes(), &how) {
            let value: Value = serde_json::from_slice(&replaced.result).unwrap();
            prop_assert_eq!(&value["_meta"], &result["_meta"]);
            prop_assert_eq!(value.get("structuredContent").is_some(), with_structure && kept);
            let is_outline = |block: &Value| block["text"].as_str().unwrap().ends_with(CLOSING);
            prop_assert_eq!(value["content"].as_array().unwrap().iter().filter(|block| is_outline(block)).count(), 1);
        }
    }
}
