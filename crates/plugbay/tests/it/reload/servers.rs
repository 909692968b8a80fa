//! Keys of a server's entry and of its `plugbay` object.

use plugbay_testkit::Script;
use serde_json::{Value, json};

use super::table::{Harness, Row, call, definitions, environment, names, remote, shown_status, status, with};

/// The keys that MCP hosts use.
pub(super) fn entries(harness: &Harness) -> Vec<Row> {
    let own = |entry: Value| json!({ "mcpServers": { "s": entry } });
    // A separate script, because the server `s` may not have read its own yet.
    let scripted = harness.entry("own", &Script::friendly().tool("env", r#"{"env":true}"#));
    let (program, script) = (&scripted["command"], &scripted["args"][0]);
    let tells_folder =
        format!("exec env \"FOLDER=$(pwd)\" {} {}", program.as_str().unwrap(), script.as_str().unwrap());
    let in_folder =
        |folder: &str| own(json!({ "command": "sh", "args": ["-c", tells_folder], "cwd": folder }));
    let slow = harness.entry("slow", &Script::new().set("start_delay_ms", 3_600_000));
    let starts_within = |seconds: u32| {
        let mut entry = slow.clone();
        entry["startup_timeout_sec"] = seconds.into();
        json!({ "mcpServers": { "slow": entry } })
    };
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    let hidden = [" s__echo ", "  s__pid s__read  "];
    vec![
        row(
            "Server.command",
            own(json!({ "command": ["env", "COMMAND=one", program] })),
            own(json!({ "command": ["env", "COMMAND=two", program] })),
            environment,
            [r#""COMMAND":"one""#, r#""COMMAND":"two""#],
        ),
        row(
            "Server.args",
            own(json!({ "command": "env", "args": ["ARG=one", program, script] })),
            own(json!({ "command": "env", "args": ["ARG=two", program, script] })),
            environment,
            [r#""ARG":"one""#, r#""ARG":"two""#],
        ),
        row(
            "Server.env",
            own(json!({ "env": { "VALUE": "${KEY_ONE}" } })),
            own(json!({ "env": { "VALUE": "${KEY_TWO}" } })),
            environment,
            [r#""VALUE":"one""#, r#""VALUE":"two""#],
        ),
        row(
            "Server.passEnv",
            own(json!({ "passEnv": ["KEY_ONE"] })),
            own(json!({ "passEnv": ["KEY_T*"] })),
            environment,
            [r#""KEY_ONE":"one""#, r#""KEY_TWO":"two""#],
        ),
        row("Server.cwd", in_folder("one"), in_folder("two"), environment, ["/one\"", "/two\""]),
        row(
            "Server.disabled",
            json!({}),
            own(json!({ "disabled": true })),
            names,
            [" s__echo ", " gateway_status "],
        ),
        row(
            "Server.enabled",
            json!({}),
            own(json!({ "enabled": false })),
            names,
            [" s__echo ", " gateway_status "],
        ),
        row(
            "Server.timeout",
            own(json!({ "timeout": 1000 })),
            own(json!({ "timeout": 1100 })),
            hang,
            ["within 1 s", "within 1.1 s"],
        ),
        row(
            "Server.tool_timeout_sec",
            own(json!({ "tool_timeout_sec": 0.3 })),
            own(json!({ "tool_timeout_sec": 0.4 })),
            hang,
            ["within 0.3 s", "within 0.4 s"],
        ),
        row("Server.startup_timeout_sec", starts_within(1), starts_within(2), status, [" 1 s", " 2 s"]),
        row("Server.includeTools", json!({}), own(json!({ "includeTools": ["pid", "read"] })), names, hidden),
        row("Server.tools", json!({}), own(json!({ "tools": ["pid", "read"] })), names, hidden),
        row(
            "Server.excludeTools",
            json!({}),
            own(json!({ "excludeTools": ["a*", "b*", "d*", "e*", "h*"] })),
            names,
            hidden,
        ),
    ]
}

/// The keys of a server behind a URL.
pub(super) fn remotes(harness: &Harness) -> Vec<Row> {
    let behind_url = |path: &str, more: Value| {
        let entry = json!({ "url": format!("{}{path}", harness.remote.url()), "type": "http" });
        json!({ "mcpServers": { "r": with(entry, more) } })
    };
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    vec![
        row(
            "Server.type",
            behind_url("/mcp", json!({})),
            behind_url("/mcp", json!({ "type": "sse" })),
            remote,
            ["initialize", "text: \"\""],
        ),
        row(
            "Server.url",
            behind_url("/one", json!({})),
            behind_url("/two", json!({})),
            remote,
            ["\"/one\"", "\"/two\""],
        ),
        row(
            "Server.headers",
            behind_url("/mcp", json!({ "headers": { "x-test": "one" } })),
            behind_url("/mcp", json!({ "headers": { "x-test": "two" } })),
            remote,
            ["(\"x-test\", \"one\")", "(\"x-test\", \"two\")"],
        ),
        row(
            "Server.env_http_headers",
            behind_url("/mcp", json!({ "env_http_headers": { "x-test": "KEY_ONE" } })),
            behind_url("/mcp", json!({ "env_http_headers": { "x-test": "KEY_TWO" } })),
            remote,
            ["(\"x-test\", \"one\")", "(\"x-test\", \"two\")"],
        ),
        row(
            "Server.bearer_token_env_var",
            behind_url("/mcp", json!({ "bearer_token_env_var": "KEY_ONE" })),
            behind_url("/mcp", json!({ "bearer_token_env_var": "KEY_TWO" })),
            remote,
            ["\"Bearer one\"", "\"Bearer two\""],
        ),
    ]
}

/// plugbay's own keys.
pub(super) fn options(harness: &Harness) -> Vec<Row> {
    let own = |options: Value| json!({ "mcpServers": { "s": { "plugbay": options } } });
    let search = |options: Value| json!({ "mode": "search", "mcpServers": { "s": { "plugbay": options } } });
    let named = |name: &str, entry: &Value, options: Value| {
        let mut entry = entry.clone();
        entry["plugbay"] = options;
        json!({ "mcpServers": { name: entry } })
    };
    let slow = harness.entry("slow", &Script::new().set("start_delay_ms", 3_600_000));
    let framed = harness.entry("framed", &Script::friendly().set("framing", "\"content-length\""));
    let remote = json!({ "url": "https://127.0.0.1:9/mcp" });
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    let hidden = [" s__echo ", "  s__pid s__read  "];
    vec![
        row("Plugbay.mode", json!({}), own(json!({ "mode": "suite" })), names, [" s__echo ", " s_suite "]),
        row(
            "Plugbay.pin",
            search(json!({})),
            search(json!({ "pin": ["echo"] })),
            names,
            [" search_tools ", " s__echo "],
        ),
        row("Plugbay.allow", json!({}), own(json!({ "allow": ["pid", "read"] })), names, hidden),
        row("Plugbay.deny", json!({}), own(json!({ "deny": ["a*", "b*", "d*", "e*", "h*"] })), names, hidden),
        row("Plugbay.prefix", json!({}), own(json!({ "prefix": false })), names, [" s__echo ", " echo "]),
        row(
            "Plugbay.rename",
            json!({}),
            own(json!({ "rename": { "echo": "say" } })),
            names,
            [" s__echo ", " s__say "],
        ),
        row(
            "Plugbay.timeout",
            own(json!({ "timeout": "300ms" })),
            own(json!({ "timeout": "400ms" })),
            hang,
            ["within 0.3 s", "within 0.4 s"],
        ),
        row(
            "Plugbay.maxTime",
            own(json!({ "timeout": "500ms", "maxTime": "500ms" })),
            own(json!({ "timeout": "500ms", "maxTime": "900ms" })),
            busy,
            ["within 0.5 s", "within 0.9 s"],
        ),
        row(
            "Plugbay.start",
            named("slow", &slow, json!({ "start": "300ms" })),
            named("slow", &slow, json!({ "start": "400ms" })),
            status,
            // On a busy machine the server counts as slow before it has failed.
            [" 0.3 s", " 0.4 s"],
        ),
        row(
            "Plugbay.scope",
            own(json!({ "scope": "shared" })),
            own(json!({ "scope": "project" })),
            shown_status,
            [r#""scope":"shared""#, r#""scope":"project""#],
        ),
        row(
            "Plugbay.instances",
            own(json!({ "scope": "session", "instances": 3 })),
            own(json!({ "scope": "session", "instances": 5 })),
            shown_status,
            [r#""instanceLimit":3"#, r#""instanceLimit":5"#],
        ),
        row("Plugbay.idle", json!({}), own(json!({ "idle": "10ms" })), rest, ["kept", "restarted"]),
        row(
            "Plugbay.framing",
            named("framed", &framed, json!({ "framing": "newline", "start": "500ms" })),
            named("framed", &framed, json!({ "framing": "content-length" })),
            names,
            [" s__echo ", " framed__echo "],
        ),
        row(
            "Plugbay.passEnv",
            own(json!({ "passEnv": ["KEY_ONE"] })),
            own(json!({ "passEnv": ["KEY_TWO"] })),
            environment,
            [r#""KEY_ONE":"one""#, r#""KEY_TWO":"two""#],
        ),
        row(
            "Plugbay.caFile",
            named("r", &remote, json!({ "caFile": "one.pem" })),
            named("r", &remote, json!({ "caFile": "two.pem" })),
            status,
            ["one.pem", "two.pem"],
        ),
    ]
}

/// plugbay's changes to definitions.
pub(super) fn texts(harness: &Harness) -> Vec<Row> {
    let own = |options: Value| json!({ "mcpServers": { "s": { "plugbay": options } } });
    let lies = harness.entry("lies", &Script::friendly().tool("say\u{202e}", r#"{"echo":true}"#));
    let named = |options: Value| json!({ "mcpServers": { "lies": with(lies.clone(), json!({ "plugbay": options })) } });
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    vec![
        row(
            "Plugbay.describe",
            json!({}),
            own(json!({ "describe": { "echo": "Says it back." } })),
            definitions,
            ["Scripted tool echo", "Says it back."],
        ),
        row(
            "Plugbay.sanitize",
            named(json!({})),
            named(json!({ "sanitize": false })),
            definitions,
            ["\"Scripted tool say\"", "\"Scripted tool say\u{202e}\""],
        ),
    ]
}

/// How a server is shown as one tool.
pub(super) fn suites() -> Vec<Row> {
    let suite =
        |suite: Value| json!({ "mode": "suite", "mcpServers": { "s": { "plugbay": { "suite": suite } } } });
    let described = |characters: usize| {
        let mut settings = suite(json!({ "summaryMaxChars": characters }));
        settings["mcpServers"]["s"]["plugbay"]["describe"] =
            json!({ "echo": "Says back every word that it was told before." });
        settings
    };
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    vec![
        row("Suite.name", suite(json!({})), suite(json!({ "name": "mine" })), names, [" s_suite ", " mine "]),
        row(
            "Suite.description",
            suite(json!({})),
            suite(json!({ "description": "It holds numbers." })),
            definitions,
            ["s_suite", "It holds numbers."],
        ),
        row("Suite.summaryMaxChars", described(160), described(20), inside, ["told before.", "…"]),
        row("Suite.full", suite(json!({})), suite(json!({ "full": true })), inside, ["read(", "required"]),
    ]
}

/// The handling of large results.
pub(super) fn results() -> Vec<Row> {
    let rules = |rules: Value| json!({ "mcpServers": { "s": { "plugbay": { "results": rules } } } });
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    let outlined = ["outline", "whole"];
    vec![
        row("Results.threshold", json!({}), rules(json!({ "threshold": false })), large, outlined),
        row("Results.tools", json!({}), rules(json!({ "tools": { "e*": false } })), large, outlined),
        row(
            "Results.listed",
            json!({}),
            rules(json!({ "listed": true })),
            names,
            [" s__echo ", " read_result "],
        ),
    ]
}

/// Whether a large result comes whole.
fn large(harness: &Harness) -> String {
    let arguments = json!({ "text": "word ".repeat(10_000) });
    let answer = call(harness, "execute_tool", &json!({ "name": "s__echo", "arguments": arguments }));
    if answer.len() > 50_000 { "whole" } else { "outline" }.to_owned()
}

fn hang(harness: &Harness) -> String {
    call(harness, "s__hang", &json!({}))
}

fn busy(harness: &Harness) -> String {
    let id = harness.host.start_call_with_progress("s__busy", "{}", "\"p\"");
    harness.host.expect_response(id).text().to_owned()
}

/// Whether the server `s` stops between two calls.
fn rest(harness: &Harness) -> String {
    let pid = || call(harness, "s__pid", &json!({})).split("text\":").nth(1).map(str::to_owned);
    let before = pid();
    std::thread::sleep(std::time::Duration::from_millis(700));
    if before == pid() { "kept" } else { "restarted" }.to_owned()
}

fn inside(harness: &Harness) -> String {
    call(harness, "s_suite", &json!({ "action": "introspect" }))
}
