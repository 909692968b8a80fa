//! The gateway's own tools: they find, describe and call the others.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use plugbay_core::{
    catalog::{Catalog, Change, Offer, Tool},
    era::Era,
    exposure::{Exposure, Mode},
    surface::{Layout, Snapshot},
    wire::{DEPTH_LIMIT, Head},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    SECOND,
    harness::{Harness, cancel, modern, request, server},
};

/// The server `s` behind search, with two tools.
pub(super) fn searchable() -> Snapshot {
    snapshot(Layout::default())
}

fn snapshot(layout: Layout) -> Snapshot {
    let schema =
        json!({ "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"] });
    let describe = [("draw".to_owned(), "Paints a landscape.".to_owned())].into();
    let tools = [
        json!({ "name": "echo", "description": "Says it again.", "inputSchema": schema }),
        json!({ "name": "draw", "description": "Draws a picture.", "inputSchema": { "type": "object" },
                "annotations": { "readOnlyHint": true } }),
    ];
    let tools = tools.iter().map(|tool| Tool::parse(Bytes::from(tool.to_string())).expect("a tool"));
    let offer = Offer::new(Era::Legacy, None, None, tools.collect());
    let catalog = Catalog::default().apply(Change::Listed(server(), Arc::new(offer)));
    let exposure = Exposure { mode: Some(Mode::Search), describe, ..Exposure::default() };
    let layout = Layout { exposures: [(server(), exposure)].into(), name_limit: 64, ..layout };
    Snapshot::new(Arc::new(catalog), Arc::new(layout), true)
}

async fn harness() -> Harness {
    let mut harness = Harness::with(searchable());
    harness.open().await;
    harness
}

fn own(name: &str, arguments: &Value) -> String {
    request(9, "tools/call", &json!({ "name": name, "arguments": arguments }).to_string())
}

async fn said(harness: &mut Harness, name: &str, arguments: Value) -> (String, bool) {
    let answer = harness.ask(own(name, &arguments)).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), answer["result"]["isError"] == true)
}

#[tokio::test(start_paused = true)]
async fn search_mode_lists_three_builtin_tools() {
    let mut harness = harness().await;
    assert_eq!(harness.tools().await, "search_tools describe_tool execute_tool");
    let (found, failed) = said(&mut harness, "search_tools", json!({ "query": "paint a landscape" })).await;
    assert!(
        found.starts_with("s__draw")
            && found.contains("Paints a landscape.")
            && !found.contains("s__echo")
            && !failed,
        "{found}"
    );
    let (all, _) = said(&mut harness, "search_tools", json!({ "server": "s" })).await;
    assert!(all.contains("s__draw") && all.contains("s__echo(count: int)"), "{all}");
    let (nothing, failed) = said(&mut harness, "search_tools", json!({ "query": "zebra" })).await;
    assert!(nothing.starts_with("No tool found.") && nothing.ends_with(": s") && !failed, "{nothing}");
    let (missing, failed) = said(&mut harness, "search_tools", json!({})).await;
    assert!(missing.contains("query") && failed, "{missing}");
}

#[tokio::test(start_paused = true)]
async fn search_tools_rejects_arguments_of_a_wrong_type() {
    let mut harness = harness().await;
    for (key, value, wanted) in [
        ("server", json!(["s"]), "\"server\" must be a text: the name of a server"),
        ("query", json!(["paint"]), "\"query\" must be a text: say what the tool should do"),
        ("limit", json!(-1), "\"limit\" must be a whole number above 0"),
        ("limit", json!(0), "\"limit\" must be a whole number above 0"),
        ("limit", json!(2.5), "\"limit\" must be a whole number above 0"),
        ("detail", json!("x"), "\"detail\" must be true or false"),
    ] {
        let mut arguments = json!({ "query": "paint a landscape" });
        arguments[key] = value;
        let reply = said(&mut harness, "search_tools", arguments).await;
        assert_eq!(reply, (wanted.to_owned(), true));
    }
    for (key, value) in [("server", json!(null)), ("limit", json!("2")), ("limit", json!(2.0))] {
        let mut arguments = json!({ "query": "paint a landscape" });
        arguments[key] = value;
        let (found, failed) = said(&mut harness, "search_tools", arguments).await;
        assert!(found.contains("s__draw") && !failed, "{found}");
    }
}

/// A server that is slow to start delays only calls of unknown tools.
#[tokio::test(start_paused = true)]
async fn execute_tool_of_a_known_tool_does_not_wait_for_other_servers() {
    let settled = searchable();
    let mut harness = Harness::with(Snapshot::new(settled.catalog.clone(), settled.layout.clone(), false));
    harness.open().await;
    harness.say(own("execute_tool", &json!({ "name": "s__draw", "arguments": {} }))).await;
    harness.forwarded().await.answer("{}");
    assert_eq!(harness.hear().await["id"], 9);
    let (described, failed) = said(&mut harness, "describe_tool", json!({ "name": "s__draw" })).await;
    assert!(described.contains("Paints a landscape.") && !failed, "{described}");

    for arguments in [
        json!({ "name": "other__draw", "arguments": {} }),
        json!({ "name": "draw", "arguments": {} }),
        json!({ "name": "s__draw", "server": "other", "arguments": {} }),
    ] {
        harness.say(own("execute_tool", &arguments)).await;
        harness.nothing_forwarded().await;
        harness.say(cancel(9)).await;
    }
    harness.hear_nothing().await;
}

#[tokio::test(start_paused = true)]
async fn arguments_of_builtin_tools_have_a_limit_that_is_told() {
    let mut harness = harness().await;
    let long = |piece: &str| piece.repeat((1 << 20) / piece.len());
    for (tool, argument, value) in [
        ("search_tools", "query", json!(long("y"))),
        ("search_tools", "server", json!(long("a"))),
        ("describe_tool", "name", json!(long("天"))),
        ("describe_tool", "names", json!(vec!["s__ecko"; 20_000])),
        ("describe_tool", "names", json!(vec!["s__ecko"; 101])),
        ("execute_tool", "name", json!(long("天"))),
        ("execute_read_tool", "name", json!(long("s__"))),
    ] {
        let (text, failed) = said(&mut harness, tool, json!({ argument: value })).await;
        let is_told = text.contains(&format!("`{argument}` is too long")) && text.contains("the limit is");
        assert!(is_told && failed && text.len() < 200, "{tool} {argument}: {text:.200}");
    }
    let call = json!({ "name": "s__echo", "server": long("s"), "arguments": {} });
    let (text, failed) = said(&mut harness, "execute_tool", call).await;
    assert!(text.contains("`server` is too long") && failed && text.len() < 200, "{text:.200}");

    for (name, told) in [(long("天"), "`name` is too long"), ("天".repeat(20_000), "Unknown tool: 天")] {
        let answer = harness.ask(own(&name, &json!({}))).await;
        let text = answer["error"]["message"].as_str().unwrap();
        assert!(text.starts_with(told) && text.len() < 300, "{text:.300}");
    }
}

#[tokio::test(start_paused = true)]
async fn describe_tool_answers_each_of_many_names_once() {
    let mut harness = harness().await;
    let unknown: Vec<String> = (0..30).map(|number| format!("s__ecko{number}")).collect();
    let known = ["s__echo", "s.echo", "S__Echo", "s__draw"];
    let names = [known.as_slice(), &unknown.iter().map(String::as_str).collect::<Vec<_>>(), &known].concat();
    let (text, failed) = said(&mut harness, "describe_tool", json!({ "names": names })).await;
    for known in [r#""name":"s__echo""#, r#""name":"s__draw""#] {
        assert_eq!(text.matches(known).count(), 1, "{text}");
    }
    assert!(text.matches("There is no tool").count() == 30 && !failed, "{text}");
}

#[tokio::test]
async fn a_describe_tool_request_that_takes_long_waits_for_a_thread_and_can_be_cancelled() {
    let mut harness = harness().await;
    let busy = harness.workers.occupy().await;
    let arguments = json!({ "name": "s__echo, a, b, c, d, e, f, g, h" });
    harness.say(own("describe_tool", &arguments)).await;
    assert_eq!(harness.ask(request(1, "ping", "{}")).await["id"], 1, "others are served");
    harness.say(cancel(9)).await;
    assert_eq!(harness.ask(request(2, "ping", "{}")).await["id"], 2, "it has not been answered");
    drop(busy);
    assert_eq!(harness.ask(own("describe_tool", &arguments)).await["id"], 9, "its id is free again");
}

#[tokio::test(start_paused = true)]
async fn describe_tool_returns_the_definition_of_the_server() {
    let mut harness = harness().await;
    let (text, _) = said(&mut harness, "describe_tool", json!({ "name": ["s__draw", "s__echo"] })).await;
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["name"], &lines[1]["name"]), (&json!("s__draw"), &json!("s__echo")));
    assert_eq!(lines[1]["inputSchema"]["required"], json!(["count"]));
    let (unknown, failed) = said(&mut harness, "describe_tool", json!({ "name": "s__ecko" })).await;
    assert!(unknown.contains("s__echo(count: int)") && failed, "{unknown}");
    let (both, failed) = said(&mut harness, "describe_tool", json!({ "name": "s__ecko, s.draw" })).await;
    assert!(both.contains("There is no tool") && both.contains(r#""name":"s__draw""#) && !failed, "{both}");
}

#[tokio::test(start_paused = true)]
async fn execute_tool_forwards_the_tool_call_as_a_direct_one() {
    let mut harness = harness().await;
    let arguments = r#"{"name":"s__echo","arguments":{"count":12345678901234567890123}}"#;
    let params = format!(
        r#"{{"name":"execute_tool","arguments":{arguments},"_meta":{{"progressToken":"t","k":1.0}}}}"#
    );
    harness.say(request("\"h\"", "tools/call", &params)).await;
    let forwarded = harness.forwarded().await;
    let id = forwarded.ticket().0;
    let expected = format!(
        r#"{{"name":"echo","arguments":{{"count":12345678901234567890123}},"_meta":{{"progressToken":{id},"k":1.0}}}}"#
    );
    assert_eq!(forwarded.text(), request(id, "tools/call", &expected));
    forwarded.progress();
    assert_eq!(harness.hear().await["params"]["progressToken"], "t");
    forwarded.answer(r#"{"x":1.0}"#);
    assert!(
        harness.hear_text().await.contains(r#""result":{"x":1.0}"#),
        "nothing was put right, nothing is added"
    );
}

#[tokio::test]
async fn execute_tool_takes_a_closer_look_at_arguments_in_another_thread() {
    let mut harness = harness().await;
    let busy = harness.workers.occupy().await;
    harness.say(own("execute_tool", &json!({ "name": "s__echo", "arguments": { "count": 7 } }))).await;
    harness.forwarded().await.answer(json!({ "x": 1 }));
    assert_eq!(harness.hear().await["result"]["x"], 1, "right arguments need no closer look");
    harness.say(own("execute_tool", &json!({ "name": "s__echo", "arguments": { "count": "7" } }))).await;
    assert_eq!(harness.ask(request(1, "ping", "{}")).await["id"], 1, "others are served");
    drop(busy);
    let forwarded = harness.forwarded().await;
    assert!(forwarded.text().contains(r#""arguments":{"count":7}"#), "{}", forwarded.text());
}

#[tokio::test(start_paused = true)]
async fn execute_tool_repairs_arguments_and_reports_it() {
    let mut harness = harness().await;
    for (arguments, result) in [
        (json!({ "name": "s__echo", "count": "7" }), json!({ "x": 1 })),
        (json!({ "name": "s__echo", "arguments": "{\"count\":7}" }), json!({ "_meta": { "y": 2 }, "x": 1 })),
    ] {
        harness.say(own("execute_tool", &arguments)).await;
        let forwarded = harness.forwarded().await;
        assert!(forwarded.text().contains(r#""arguments":{"count":7}"#), "{}", forwarded.text());
        forwarded.answer(&result);
        let told = harness.hear().await["result"].clone();
        assert!(told["_meta"]["plugbay/repairs"][0]["was"].is_string(), "{told}");
        assert_eq!(told["x"], 1);
        assert_eq!(told["_meta"]["y"], result["_meta"]["y"]);
    }
    let (refused, failed) =
        said(&mut harness, "execute_tool", json!({ "name": "s__echo", "arguments": { "count": "many" } }))
            .await;
    assert!(refused.contains("count") && refused.contains("integer") && failed, "{refused}");
    for (arguments, word) in [
        (json!({ "name": "s__echo", "arguments": { "count": 7 }, "timeout": "abc" }), "`timeout` must be"),
        (
            json!({ "name": "s__echo", "server": "t", "arguments": { "count": 7 } }),
            "no tool of the server `t`",
        ),
        (json!({ "name": "s__echo", "arguments": { "count": 7 }, "cuont": 7 }), "`cuont` beside"),
    ] {
        let (refused, failed) = said(&mut harness, "execute_tool", arguments).await;
        assert!(refused.contains(word) && failed, "{refused}");
    }
    harness
        .say(own("execute_tool", &json!({ "server": "s", "name": "echo", "count": 7, "timeout": 9 })))
        .await;
    let forwarded = harness.forwarded().await;
    let sent: Value = serde_json::from_str(&forwarded.text()).unwrap();
    assert_eq!(sent["params"], json!({ "name": "echo", "arguments": { "count": 7 } }), "in the host's order");
    assert_eq!(forwarded.timeout(), Some(Duration::from_secs(9)));
    forwarded.answer(json!({}));
    assert_eq!(harness.hear().await["result"]["_meta"]["plugbay/repairs"][0]["was"], "server-apart");
}

#[tokio::test(start_paused = true)]
async fn execute_tool_accepts_an_unambiguous_tool_name() {
    let mut harness = harness().await;
    for name in ["echo", "s.echo", "S__ECHO", "mcp__plugbay__s__echo"] {
        harness.say(own("execute_tool", &json!({ "name": name, "arguments": { "count": 7 } }))).await;
        harness.forwarded().await.answer("{}");
        let repairs = harness.hear().await["result"]["_meta"]["plugbay/repairs"].clone();
        assert_eq!(repairs, json!([{ "at": "name", "was": "value-spelling" }]), "{name}");
    }
    let (unknown, failed) = said(&mut harness, "execute_tool", json!({ "name": "s__ecko" })).await;
    assert!(unknown.contains("Nearest:\ns__echo(count: int)") && failed, "{unknown}");
    // No name is similar, but a tool does what the name says.
    let (unknown, _) = said(&mut harness, "execute_tool", json!({ "name": "paint_landscapes_now" })).await;
    assert!(unknown.contains("Nearest:\ns__draw()"), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn search_tools_accepts_any_spelling_of_a_server() {
    let mut harness = harness().await;
    let (found, _) = said(&mut harness, "search_tools", json!({ "query": "paint", "server": "S" })).await;
    assert!(found.starts_with("s__draw"), "{found}");
    let (unknown, failed) = said(&mut harness, "search_tools", json!({ "server": "weather" })).await;
    assert!(unknown.starts_with("`server`: there is nothing named \"weather\"") && failed, "{unknown}");
    let (some, _) = said(&mut harness, "search_tools", json!({ "server": "s", "limit": 1 })).await;
    assert!(
        some.starts_with("s__draw") && some.ends_with("and 1 more: say in \"query\" what the tool should do")
    );
}

#[tokio::test(start_paused = true)]
async fn search_tools_names_further_tools_where_none_fits_well() {
    let tool = |number: usize| {
        let what = if number < 16 { "paint_picture" } else { "other" };
        let definition = json!({ "name": format!("{what}_{number}") });
        Tool::parse(Bytes::from(definition.to_string())).expect("a tool")
    };
    let offer = Offer::new(Era::Legacy, None, None, (0..60).map(tool).collect());
    let catalog = Catalog::default().apply(Change::Listed(server(), Arc::new(offer)));
    let exposure = Exposure { mode: Some(Mode::Search), ..Exposure::default() };
    let layout = Layout { exposures: [(server(), exposure)].into(), name_limit: 64, ..Layout::default() };
    let mut harness = Harness::with(Snapshot::new(Arc::new(catalog), Arc::new(layout), true));
    harness.open().await;

    let (fits, _) = said(&mut harness, "search_tools", json!({ "query": "paint picture" })).await;
    assert_eq!(fits.lines().count(), 5, "{fits}");
    let (poor, _) = said(&mut harness, "search_tools", json!({ "query": "paint picture quux" })).await;
    let lines: Vec<&str> = poor.lines().collect();
    assert_eq!((lines.len(), lines[0]), (7, "No tool fits this well. The nearest:"), "{poor}");
    assert_eq!(lines[6].matches("s__paint_picture_").count(), 8, "{poor}");
    assert!(lines[6].starts_with("or: "), "{poor}");
}

#[tokio::test(start_paused = true)]
async fn search_tools_does_not_block_the_session() {
    let tool = |number: u32| json!({ "name": format!("draw_{number}"), "description": "Draws." });
    let tools = (0..300).map(|number| Tool::parse(Bytes::from(tool(number).to_string())).expect("a tool"));
    let offer = Offer::new(Era::Legacy, None, None, tools.collect());
    let catalog = Catalog::default().apply(Change::Listed(server(), Arc::new(offer)));
    let layout = Layout { mode: Some(Mode::Search), name_limit: 64, ..Layout::default() };
    let mut harness = Harness::with(Snapshot::new(Arc::new(catalog), Arc::new(layout), true));
    harness.say(own("search_tools", &json!({ "query": "draw 7" }))).await;
    assert!(harness.hear_text().await.contains("s__draw_7"));
}

#[tokio::test(start_paused = true)]
async fn search_tools_waits_until_every_server_has_listed() {
    let known = searchable();
    let mut harness = Harness::with(known.with_states_of(Arc::clone(&known.catalog), false));
    harness.say(own("search_tools", &json!({ "query": "draw" }))).await;
    harness.hear_nothing().await;
    harness.snapshots.send_replace(searchable());
    assert!(harness.hear_text().await.contains("s__draw"));
}

#[tokio::test(start_paused = true)]
async fn builtin_tools_answer_a_modern_host_in_its_era() {
    let mut harness = Harness::with(searchable());
    let arguments = r#","name":"search_tools","arguments":{"query":"draw"}"#;
    let answer = harness.ask(modern(1, "tools/call", arguments)).await;
    assert_eq!(answer["result"]["resultType"], "complete");
    harness.say(modern(2, "tools/call", r#","name":"execute_tool","arguments":{"name":"s__draw"}"#)).await;
    harness.forwarded().await.answer("{}");
    assert_eq!(harness.hear().await["result"], json!({ "resultType": "complete" }));
}

#[tokio::test(start_paused = true)]
async fn read_only_tools_can_have_their_own_execute_tool() {
    let mut harness = Harness::with(snapshot(Layout { split: true, ..Layout::default() }));
    harness.open().await;
    assert_eq!(harness.tools().await, "search_tools describe_tool execute_tool execute_read_tool");
    let (all, _) = said(&mut harness, "search_tools", json!({ "server": "s" })).await;
    assert!(
        all.contains("s__draw() - [reads] Paints") && all.contains("s__echo(count: int) - Says"),
        "{all}"
    );
    let (full, _) = said(&mut harness, "search_tools", json!({ "query": "paint", "detail": true })).await;
    assert!(full.starts_with("s__draw - [reads] Paints"), "{full}");
    let (nearest, _) = said(&mut harness, "execute_tool", json!({ "name": "s__drew" })).await;
    assert!(nearest.contains("[reads]"), "{nearest}");
    harness.say(own("execute_read_tool", &json!({ "name": "s__draw" }))).await;
    harness.forwarded().await.answer("{}");
    harness.hear().await;
    let writing = json!({ "name": "s__echo", "arguments": { "count": 1 } });
    let (refused, failed) = said(&mut harness, "execute_read_tool", writing).await;
    assert!(refused == "s__echo may change things: call it with execute_tool" && failed, "{refused}");
    harness.nothing_forwarded().await;
}

#[tokio::test(start_paused = true)]
async fn execute_tool_sends_no_arguments_that_are_nested_deeper_than_a_message_may_be() {
    let mut harness = harness().await;
    let nested = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    for levels in (1..DEPTH_LIMIT as usize).rev() {
        let call = json!({ "name": "s__draw", "arguments": nested(levels) });
        harness.say(own("execute_tool", &call)).await;
        let Ok(forwarded) = timeout(SECOND, harness.forwarded()).await else {
            assert_eq!(harness.hear().await["result"]["isError"], true);
            continue;
        };
        Head::read(forwarded.text().as_bytes()).unwrap_or_else(|why| panic!("{levels} levels: {why:?}"));
        return;
    }
    panic!("nothing was sent");
}

#[tokio::test(start_paused = true)]
async fn execute_tool_leaves_every_other_parameter_where_the_host_put_it() {
    let mut harness = harness().await;
    let arguments = r#""arguments":{"timeout":5,"arguments":"{\"count\":\n 7}","name":"s__echo"}"#;
    let params = format!(
        r#"{{{arguments},"_meta":{{"progressToken":"p\u0041","k":1.0}},"task":{{"ttl":1}},"name":"execute\u005ftool"}}"#
    );
    let before = format!(r#"{{"params":{params},"method":"tools/call","id":"i","jsonrpc":"2.0"}}"#);
    harness.say(before).await;
    let forwarded = harness.forwarded().await;
    let ticket = forwarded.ticket().0;
    let sent = format!(
        r#"{{"params":{{"arguments":{{"count":  7}},"_meta":{{"progressToken":{ticket},"k":1.0}},"task":{{"ttl":1}},"name":"echo"}},"method":"tools/call","id":{ticket},"jsonrpc":"2.0"}}"#
    );
    assert_eq!(forwarded.text(), sent);
    forwarded.progress();
    assert_eq!(harness.hear().await["params"]["progressToken"], "pA");
}
