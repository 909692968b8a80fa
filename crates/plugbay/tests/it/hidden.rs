//! Hidden characters: no mode shows those in definitions, but results keep theirs.

use plugbay_testkit::{Script, Workspace};
use serde_json::json;

use crate::gateway;

/// A tool whose texts have a direction mark, an escaped zero-width space and an escaped tag.
const LYING: &str = "{\"name\":\"echo\",\"description\":\"Says\u{202e} it \\u200bback\",\"inputSchema\":{\"type\":\"object\",\
    \"properties\":{\"m\":{\"type\":\"string\",\"description\":\"a \\udb40\\udc41message\"}}}}";

#[test]
fn no_mode_shows_hidden_characters_of_a_definition() {
    for (mode, asked) in [
        ("all", None),
        ("search", Some(("describe_tool", r#"{"name":"s__echo"}"#))),
        ("activate", Some(("describe_tool", r#"{"name":"s__echo"}"#))),
        ("suite", Some(("s_suite", r#"{"action":"introspect","detail":"full"}"#))),
    ] {
        let workspace = Workspace::new();
        let script = Script::friendly().set("tools", format!("[{LYING}]"));
        let config = workspace.config(&[("s", script)]).top("mode", json!(mode));
        workspace.write_config(&config);
        let host = workspace.serve(&gateway());
        host.initialize();
        let listed: String = host.list_tools().into_iter().map(|tool| tool.raw).collect();
        let told = asked.map(|(tool, arguments)| host.call(tool, arguments).text().to_owned());
        let told = listed + &told.unwrap_or_default();
        for hidden in ["\u{202e}", "\u{200b}", "\u{e0041}", "\\u202e", "\\u200b", "\\udb40"] {
            assert!(!told.contains(hidden), "{mode}: {told}");
        }
        assert!(told.contains("Says it back"), "{mode}: {told}");
        if mode == "all" {
            let result = host.call("s__echo", "{\"m\":\"\u{202e}\"}").text().to_owned();
            assert!(result.contains('\u{202e}'), "a result is untouched: {result}");
        }
        host.finish();
    }
}
