//! The servers of a file as entries for another file.

use plugbay_hosts::{Launch, Remote, RemoteKind};

use super::Place;
use crate::config::servers_in;

/// One line for each server.
fn listed(place: &Place, file: &str) -> Vec<String> {
    let listed = servers_in(&place.path(file), &place.paths());
    let lines = listed.servers.iter().map(|entry| {
        let launch = match &entry.launch {
            Launch::Process { command, args, env, cwd } => format!("{command} {args:?} {env:?} {cwd:?}"),
            Launch::Remote(Remote { url, kind, headers, login }) if login.is_empty() => {
                format!("{url} {kind:?} {headers:?}")
            }
            Launch::Remote(Remote { url, login, .. }) => {
                format!("{url} {}", serde_json::Value::from(login.clone()))
            }
        };
        let off = if entry.disabled { " disabled" } else { "" };
        place.plain(&format!("{}: {launch}{off}", entry.name))
    });
    lines.collect()
}

#[test]
fn entries_are_exported_as_they_are_written() {
    let place = Place::new();
    let text = r#"{ "servers": {
        "a": { "command": ["npx", "-y"], "args": ["x"], "env": { "K": "${TOK}" }, "cwd": "sub" },
        "b": { "url": "https://b.example", "bearer_token_env_var": "TOK", "env_http_headers": { "X": "Y" } },
        "c": { "type": "sse", "url": "https://c.example", "headers": { "H": "1" }, "enabled": false },
        "d": { "url": "https://d.example", "auth": { "CLIENT_ID": "me", "clientSecret": "${TOK}", "privateKeyFile": "k.pem" }, "scopes": ["a"] },
        "e": { "url": "https://e.example", "oauth": false, "headersHelper": "./h.sh x" },
        "f": { "url": "https://f.example", "oauth": {}, "headersFile": "~/h" },
        "broken": { "command": 7 },
        "tuned": { "plugbay": { "idle": "never" } },
    } }"#;
    place.write("project/c", text);
    let expected = [
        r#"a: npx ["-y", "x"] {"K": "${TOK}"} Some("project/sub")"#,
        r#"b: https://b.example Unsaid {"Authorization": "Bearer ${TOK}", "X": "${Y}"}"#,
        r#"c: https://c.example Sse {"H": "1"} disabled"#,
        r#"d: https://d.example {"oauth":{"clientId":"me","clientSecret":"${TOK}","privateKeyFile":"project/k.pem","scopes":["a"]}}"#,
        r#"e: https://e.example {"headersCommand":["project/./h.sh","x"],"oauth":false}"#,
        r#"f: https://f.example {"headersFile":"~/h"}"#,
    ];
    assert_eq!(listed(&place, "project/c"), expected);
    let names = servers_in(&place.path("project/c"), &place.paths()).names;
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "broken", "tuned"]);
}

#[test]
fn limits_of_an_entry_are_exported() {
    let place = Place::new();
    let text = r#"{ "mcpServers": { "a": { "command": "x", "includeTools": ["r"], "startup_timeout_sec": 7, "env_vars": ["V"],
        "plugbay": { "deny": ["d"], "timeout": "1500ms", "passEnv": ["A_*"] } }, "h": { "type": "http", "url": "https://h.example" } } }"#;
    place.write("project/c", text);
    let servers = servers_in(&place.path("project/c"), &place.paths()).servers;
    let entry = &servers[0];
    assert_eq!((entry.include.join(""), entry.exclude.join("")), ("r".to_owned(), "d".to_owned()));
    assert_eq!((entry.start_seconds, entry.call_milliseconds), (Some(7), Some(1500)));
    assert_eq!(entry.pass_env, ["A_*", "V"]);
    assert!(matches!(&servers[1].launch, Launch::Remote(Remote { kind: RemoteKind::Http, .. })));
}
