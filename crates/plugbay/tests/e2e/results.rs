//! A large result of a real server, passed to the next tool by a real client: all bytes arrive, and the model
//! pays only for an outline and a handle.

use std::{fs, path::PathBuf};

use plugbay_testkit::Workspace;
use serde_json::{Value, json};

use crate::{
    check::{only, usable},
    clients::{Client, Era},
    gateway::Gateway,
    world::{Call, World, call},
};

/// Limit of tokens for both calls and both results.
const MOST_TOKENS: usize = 400;

/// 300 KB of a log, with quotes, backslashes, tabs, and letters outside ASCII.
fn log() -> String {
    (0..)
        .map(|n| {
            format!(
                "2026-01-02T03:04:{:02}Z INFO worker-{} \"job {n}\" done in {} ms\té\\x\n",
                n % 60,
                n % 7,
                n * 13 % 997
            )
        })
        .scan(0, |length, line| {
            *length += line.len();
            (*length <= 300_000).then_some(line)
        })
        .collect()
}

pub(crate) fn check_handles(client: Client, era: Era) {
    let Some(installed) = usable(client) else { return };
    let workspace = Workspace::new();
    let world = World::new(&workspace);
    world.reset();
    let servers = only(&world.servers(installed), "filesystem");
    let (from, to) = (world.file("app.log"), world.file("copy.log"));
    fs::write(&from, log()).expect("the log");
    let gateway = Gateway::over_stdio(&workspace, &World::config(&servers).top("mode", json!("search")));
    Gateway::meet(&workspace);
    let execute = |tool: &str, arguments: Value| {
        call("execute_tool", json!({ "name": format!("filesystem__{tool}"), "arguments": arguments }))
    };
    let calls = [
        execute("read_text_file", json!({ "path": from })),
        execute("write_file", json!({ "path": to, "content": { "$result": "HANDLE" } })),
    ];
    let seen = client.run(&workspace, installed, era, &gateway.entry, &calls, &[]);
    assert_eq!(
        fs::read(&to).expect("a copy"),
        log().into_bytes(),
        "by {client:?}, {era:?}: {:?}",
        seen.results
    );
    let tokens = tokens(&calls, &seen.results, &[&from, &to]);
    assert!(tokens <= MOST_TOKENS, "{tokens} tokens: {:?}", seen.results);
}

/// The tokens that a model writes and reads. The test's folder names are unusually long, so they do not
/// count.
fn tokens(calls: &[Call], results: &[Value], paths: &[&PathBuf]) -> usize {
    let written =
        calls.iter().map(|call| call.arguments.to_string().replace("HANDLE", "r_0b6xH0k1TnG5uQm2sYw8Zw"));
    let read = results.iter().map(|seen| {
        let content = seen["result"]["content"].as_array().cloned().unwrap_or_default();
        content.iter().filter_map(|block| block["text"].as_str().map(str::to_owned)).collect::<String>()
    });
    let folder = paths[0].parent().expect("a folder").to_string_lossy().into_owned();
    let text: Vec<String> = written.chain(read).map(|text| text.replace(&folder, "/home/me/logs")).collect();
    let bytes = tiktoken_rs::o200k_base_singleton();
    text.iter().map(|text| bytes.encode_ordinary(text).len()).sum()
}
