//! Rows for remote gateways.

use plugbay_testkit::Script;
use serde_json::{Value, json};

use super::table::{Harness, Row, names, remote, with};

pub(super) fn rows(harness: &Harness) -> Vec<Row> {
    let listing =
        |more: Value| json!({ "remotes": { "r": with(json!({ "url": harness.plain_api.url() }), more) } });
    let rejecting = |path: &str, more: Value| {
        let url = format!("{}{path}", harness.remote.url());
        json!({ "remotes": { "r": with(json!({ "url": url }), more) } })
    };
    let only = |tools: &str| with(listing(json!({})), json!({ "remoteTools": [tools] }));
    let local = json!({ "localServers": { "added": harness.entry("added", &Script::friendly()) } });
    let row = |key, before, after, look, shows| Row { key, before, after, look, shows };
    // The first tool of `s` is listed first if the remote shows none that would precede it.
    let appears = ["  s__a_tool", " web__search "];
    vec![
        row("remotes", json!({}), listing(json!({})), names, appears),
        row("remoteTools", only("search"), only("memory__*"), names, ["  s__a_tool", "  memory__store "]),
        row("localServers", json!({}), local, names, ["  s__a_tool", "  echo pid "]),
        row(
            "Remote.url",
            rejecting("/one", json!({})),
            rejecting("/two", json!({})),
            remote,
            ["\"/one/mcp\"", "\"/two/mcp\""],
        ),
        row(
            "Remote.headers",
            rejecting("", json!({ "headers": { "x-test": "one" } })),
            rejecting("", json!({ "headers": { "x-test": "two" } })),
            remote,
            ["(\"x-test\", \"one\")", "(\"x-test\", \"two\")"],
        ),
        row(
            "Remote.token",
            rejecting("", json!({ "token": "${KEY_ONE}" })),
            rejecting("", json!({ "token": "${KEY_TWO}" })),
            remote,
            ["\"Bearer one\"", "\"Bearer two\""],
        ),
        row(
            "Remote.bearer_token_env_var",
            rejecting("", json!({ "bearer_token_env_var": "KEY_ONE" })),
            rejecting("", json!({ "bearer_token_env_var": "KEY_TWO" })),
            remote,
            ["\"Bearer one\"", "\"Bearer two\""],
        ),
        row(
            "Remote.tools",
            listing(json!({ "tools": ["search"] })),
            listing(json!({ "tools": ["store"] })),
            names,
            ["  s__a_tool", "  memory__store "],
        ),
        row(
            "Remote.disabled",
            listing(json!({ "disabled": true })),
            listing(json!({ "disabled": false })),
            names,
            appears,
        ),
        row(
            "Remote.enabled",
            listing(json!({ "enabled": false })),
            listing(json!({ "enabled": true })),
            names,
            appears,
        ),
    ]
}
