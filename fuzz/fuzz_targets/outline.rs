//! Outlines, excerpts and shortened results keep to their budgets, and a shortened result is still a result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plugbay_core::{
    outline::{OutputSchema, Replacement, grep, lines, outline, page, readable, replace},
    tool_result::ToolResult,
    wire::Head,
};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let outlined = outline(text, 200);
    assert!(outlined.text.len() <= 200 * LONGEST_TOKEN + ROOM, "{} bytes", outlined.text.len());
    let (pattern, rest) = text.split_once('\n').unwrap_or((text, text));
    let _ = grep(rest, pattern, 2, 100);
    for number in 0..3 {
        let shown = [lines(text, number, None, 100), page(text, number, 100)];
        assert!(shown.iter().all(|shown| shown.text.len() <= 100 * LONGEST_TOKEN + ROOM), "more than its budget");
    }

    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{text}}}"#);
    let result = Head::read(message.as_bytes()).map_or_else(|_| as_result(text), |_| text.as_bytes().to_vec());
    let Some(read) = ToolResult::read(&result) else { return };
    let _ = readable(&read);
    for schema in [OutputSchema::None, OutputSchema::Kept, OutputSchema::Shortened(&|_| true)] {
        let how = Replacement { threshold: 40, outline: 120, error: 60, closing: "r_1", schema };
        let Some(replaced) = replace(&read, &how) else { continue };
        let after: Value = serde_json::from_slice(&replaced.result).expect("what is cut still parses");
        let before: Value = serde_json::from_slice(&result).unwrap_or_default();
        assert_eq!(after["isError"], before["isError"], "an error stays one");
        if matches!(schema, OutputSchema::Kept) {
            assert_eq!(after["structuredContent"], before["structuredContent"]);
        }
    }
});

/// More bytes than any token of ordinary text.
const LONGEST_TOKEN: usize = 64;
/// Bytes for notes and cut marks.
const ROOM: usize = 2048;

fn as_result(text: &str) -> Vec<u8> {
    serde_json::json!({ "content": [{ "type": "text", "text": text }] }).to_string().into_bytes()
}
