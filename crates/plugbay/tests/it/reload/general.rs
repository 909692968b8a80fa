//! Keys at the top of the file, limits, and profiles of hosts.

use plugbay_testkit::{MODERN_META, RawMessage, Script};
use serde_json::{Value, json};

use super::table::{
    Harness, LONG_NAME, Row, call, definitions, duration, hits, long_call, names, profiles, with,
};
use crate::LIST_CHANGED;

pub(super) fn top(harness: &Harness) -> Vec<Row> {
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    let search = |more: Value| with(json!({ "mode": "search" }), more);
    let added = json!({ "mcpServers": { "added": harness.entry("added", &Script::friendly()) } });
    vec![
        row("mode", json!({}), search(json!({})), names, [" s__echo ", " search_tools "]),
        row("mcpServers", json!({}), added, names, [" s__echo ", " added__echo "]),
        row(
            "discoverGlobs",
            json!({}),
            json!({ "discoverGlobs": ["found/*.json"] }),
            names,
            [" s__echo ", " found__echo "],
        ),
        row(
            "defaults",
            json!({}),
            json!({ "defaults": { "prefix": false } }),
            names,
            [" s__echo ", " echo "],
        ),
        row(
            "adminTools",
            search(json!({})),
            search(json!({ "adminTools": true })),
            names,
            [" search_tools ", " proxy_status "],
        ),
        row(
            "splitExecute",
            search(json!({})),
            search(json!({ "splitExecute": true })),
            names,
            [" execute_tool ", " execute_read_tool "],
        ),
        row(
            "code",
            search(json!({})),
            search(json!({ "code": true })),
            names,
            [" execute_tool ", " run_code "],
        ),
        row(
            "Code.offer",
            search(json!({ "code": { "offer": false } })),
            search(json!({ "code": { "offer": true } })),
            names,
            [" execute_tool ", " run_code "],
        ),
        row(
            "Code.ask",
            json!({ "code": { "ask": "never" } }),
            json!({ "code": { "ask": "writes" } }),
            |harness| script_run(harness, "return await tools.s.add({ n: 1 })"),
            ["\\\"n\\\":1", "would allow it"],
        ),
        row(
            "Code.time",
            json!({ "code": { "time": "100ms" } }),
            json!({ "code": { "time": "2s" } }),
            |harness| duration(|| drop(script_run(harness, "await tools.s.hang()"))),
            ["short", "long"],
        ),
        row(
            "learn",
            search(json!({ "learn": 1, "adminTools": true })),
            search(json!({ "learn": 2, "adminTools": true })),
            used_tools,
            ["0 learned", "2 learned"],
        ),
        row(
            "repair",
            search(json!({})),
            search(json!({ "repair": false })),
            repaired,
            [r#"\"n\":7"#, "integer"],
        ),
        row(
            "Search.limit",
            search(json!({})),
            search(json!({ "search": { "limit": 2 } })),
            hits,
            [" 5 ", " 2 "],
        ),
        row(
            "Limits.message",
            json!({}),
            json!({ "limits": { "message": 4096 } }),
            long_call,
            ["accepted", "4096"],
        ),
        row(
            "Limits.message",
            json!({}),
            json!({ "limits": { "message": 4096 } }),
            big_result,
            ["xxxx", "4096"],
        ),
        row("Limits.rate", json!({}), json!({ "limits": { "rate": "1/day" } }), two_calls, ["{}", "1/day"]),
        row(
            "Limits.sessionRate",
            json!({}),
            json!({ "limits": { "sessionRate": "1/hour" } }),
            two_calls,
            ["{}", "rate limit of this session"],
        ),
        row("Limits.quota", json!({}), json!({ "limits": { "quota": "1/day" } }), two_calls, ["{}", "quota"]),
        row(
            "Audit.file",
            json!({}),
            json!({ "audit": { "file": "audit.jsonl" } }),
            audit_files,
            [" 0 ", " audit.jsonl "],
        ),
        row(
            "Audit.rotate",
            json!({ "audit": { "file": "rotate.jsonl" } }),
            json!({ "audit": { "file": "rotate.jsonl", "rotate": 1024 } }),
            audit_files,
            [" rotate.jsonl ", " rotate.jsonl.1 "],
        ),
        row(
            "Audit.keep",
            json!({ "audit": { "file": "keep.jsonl", "rotate": 1024, "keep": 1 } }),
            json!({ "audit": { "file": "keep.jsonl", "rotate": 1024, "keep": 3 } }),
            audit_files,
            [" keep.jsonl.1 ", " keep.jsonl.3 "],
        ),
        row(
            "Limits.nameLength",
            json!({}),
            json!({ "limits": { "nameLength": 48 } }),
            long_name,
            ["whole", "shortened"],
        ),
    ]
}

/// A profile for this host, in a mode.
fn mine(mode: &str, profile: Value) -> Value {
    let host = with(json!({ "clients": ["testkit"] }), profile);
    json!({ "mode": mode, "hosts": { "mine": host } })
}

/// The kind of this host.
pub(super) fn host_kinds() -> Vec<Row> {
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    vec![
        row(
            "Host.codeMode",
            mine("auto", json!({ "mostTools": 1 })),
            mine("auto", json!({ "mostTools": 1, "codeMode": true })),
            hidden,
            ["hidden", "listed"],
        ),
        row(
            "Host.findsByTitle",
            mine("all", json!({})),
            mine("all", json!({ "findsByTitle": true })),
            definitions,
            ["s__echo", "\"title\":\"s echo\""],
        ),
        row(
            "Host.era",
            mine("all", json!({ "era": "modern" })),
            mine("all", json!({ "era": "legacy" })),
            mine_shows,
            ["\"modern\"", "\"legacy\""],
        ),
        row(
            "Host.requestTokens",
            mine("all", json!({})),
            mine("all", json!({ "requestTokens": 4712 })),
            mine_shows,
            ["mine", "4712"],
        ),
    ]
}

pub(super) fn hosts() -> Vec<Row> {
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    let waits = |pause: &str, settle: &str| {
        mine("activate", json!({ "listsAgain": true, "pause": pause, "settle": settle }))
    };
    let pin = json!({ "mcpServers": { "s": { "plugbay": { "pin": ["echo"] } } } });
    let pinned = |profile: Value| with(mine("search", profile), pin.clone());
    vec![
        row(
            "Host.clients",
            mine("all", json!({ "clients": ["nobody"], "nameLimit": 48 })),
            mine("all", json!({ "nameLimit": 48 })),
            long_name,
            ["whole", "shortened"],
        ),
        row(
            "Host.nameLimit",
            mine("all", json!({})),
            mine("all", json!({ "nameLimit": 48 })),
            long_name,
            ["whole", "shortened"],
        ),
        row(
            "Host.listsAgain",
            mine("activate", json!({ "listsAgain": true })),
            mine("activate", json!({ "listsAgain": false })),
            names,
            [" gateway_status ", " execute_tool "],
        ),
        row("Host.pause", waits("1ms", "1ms"), waits("1500ms", "1ms"), activation, ["short", "long"]),
        row(
            "Host.settle",
            waits("1h", "1ms"),
            waits("1h", "1500ms"),
            activation_after_list,
            ["short", "long"],
        ),
        row(
            "Host.mostTools",
            mine("auto", json!({})),
            mine("auto", json!({ "mostTools": 1 })),
            hidden,
            ["listed", "hidden"],
        ),
        row(
            "Host.defersFrom",
            pinned(json!({})),
            pinned(json!({ "defersFrom": 1 })),
            marked,
            ["unmarked", "deferred"],
        ),
        row(
            "Host.instructionsLimit",
            mine("search", json!({})),
            mine("search", json!({ "instructionsLimit": 10 })),
            instructions,
            ["whole", "cut"],
        ),
        row(
            "Host.resultLimit",
            mine("all", json!({})),
            mine("all", json!({ "resultLimit": 4711 })),
            profiles,
            ["mine", "4711"],
        ),
        row(
            "Host.shows",
            mine("all", json!({ "shows": "text" })),
            mine("all", json!({ "shows": "structured" })),
            mine_shows,
            ["\"text\"", "\"structured\""],
        ),
    ]
}

fn mine_shows(harness: &Harness) -> String {
    let all: Value = serde_json::from_str(&profiles(harness)).unwrap();
    let hosts = all["hosts"].as_array().expect("hosts");
    let mine = hosts.iter().find(|host| host.to_string().contains("\"mine\""));
    mine.map_or_else(String::new, ToString::to_string)
}

/// Uses two tools once the row is in effect, and reports how many of them are listed.
fn used_tools(harness: &Harness) -> String {
    if !names(harness).contains("proxy_status") {
        return "not loaded yet".to_owned();
    }
    for tool in ["s__echo", "s__pid"] {
        call(harness, "execute_tool", &json!({ "name": tool, "arguments": {} }));
    }
    let names = names(harness);
    format!("{} learned", ["s__echo", "s__pid"].iter().filter(|tool| names.contains(**tool)).count())
}

fn repaired(harness: &Harness) -> String {
    let arguments = json!({ "name": "s__add", "arguments": { "n": "7" } });
    let answer = call(harness, "execute_tool", &arguments);
    answer.replace("\\\\", "\\")
}

fn big_result(harness: &Harness) -> String {
    call(harness, "s__big", &json!({}))
}

fn long_name(harness: &Harness) -> String {
    let names = names(harness);
    let is_whole = names.contains(&format!("s__{LONG_NAME}"));
    let is_shortened = names.contains("s__a_tool");
    if is_whole {
        "whole"
    } else if is_shortened {
        "shortened"
    } else {
        "absent"
    }
    .to_owned()
}

fn hidden(harness: &Harness) -> String {
    if names(harness).contains(" s__echo ") { "listed" } else { "hidden" }.to_owned()
}

fn marked(harness: &Harness) -> String {
    let tools = harness.host.list_tools();
    let echo = tools.iter().find(|tool| tool.name == "s__echo");
    let is_marked = echo.is_some_and(|tool| tool.raw.contains("anthropic/alwaysLoad"));
    if is_marked { "deferred" } else { "unmarked" }.to_owned()
}

fn instructions(harness: &Harness) -> String {
    let params = format!(r#"{{"_meta":{{{MODERN_META}}}}}"#);
    let answer = harness.host.expect_response(harness.host.request("server/discover", &params));
    let result = answer.result_value();
    let length = result["instructions"].as_str().unwrap_or_default().chars().count();
    if length > 10 { "whole" } else { "cut" }.to_owned()
}

fn activation(harness: &Harness) -> String {
    call(harness, "gateway_deactivate", &json!({ "name": "s" }));
    duration(|| drop(call(harness, "gateway_activate", &json!({ "name": "s" }))))
}

/// The time between the list after an activation and the activation's result.
fn activation_after_list(harness: &Harness) -> String {
    settle(harness, "gateway_deactivate");
    settle(harness, "gateway_activate")
}

/// Lists when the list has changed, as the profile describes, and measures the time from then on.
fn settle(harness: &Harness, tool: &str) -> String {
    let host = &harness.host;
    host.barrier();
    let is_change = |message: &RawMessage| message.method().as_deref() == Some(LIST_CHANGED);
    while host.take_now(is_change).is_some() {}
    let id = host.start_call(tool, r#"{"name":"s"}"#).to_string();
    let next = host.expect("a change or a result", |next| is_change(next) || next.id() == Some(&id));
    if !is_change(&next) {
        return "no change".to_owned();
    }
    host.list_tools();
    duration(|| drop(host.expect_response(id)))
}

/// The answers to two calls.
fn two_calls(harness: &Harness) -> String {
    let answers = [(); 2].map(|()| call(harness, "s__echo", &json!({})));
    format!("{{}} {}", answers.join(" "))
}

/// The names of audit files after some calls, each between spaces.
fn audit_files(harness: &Harness) -> String {
    for _ in 0..6 {
        call(harness, "s__echo", &json!({}));
    }
    let folder = harness.workspace.config_path().parent().expect("a folder").to_owned();
    let names = std::fs::read_dir(folder).expect("a folder").flatten();
    let names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let names: Vec<&String> = names.iter().filter(|name| name.contains(".jsonl")).collect();
    format!(" {} {} ", names.len(), names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" "))
}

/// The answer to `run_code`.
fn script_run(harness: &Harness, code: &str) -> String {
    harness.host.call("run_code", &json!({ "code": code }).to_string()).text().to_owned()
}
