//! The server by itself: it answers in its own era and refuses the other, or the matrix's columns would be wrong.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;

#[test]
fn a_legacy_server_is_no_modern_one() {
    let [discovered, initialized] = answers("legacy");
    assert_eq!(discovered["error"]["code"], UNSUPPORTED_PROTOCOL_VERSION, "{discovered}");
    assert_eq!(initialized["result"]["protocolVersion"], "2025-11-25", "{initialized}");
}

#[test]
fn a_modern_server_is_no_legacy_one() {
    let [discovered, initialized] = answers("modern");
    assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]), "{discovered}");
    assert_eq!(initialized["error"]["code"], UNSUPPORTED_PROTOCOL_VERSION, "{initialized}");
}

/// What a server of the given era says to the openings of both.
fn answers(era: &str) -> [Value; 2] {
    let client = json!({ "name": "test", "version": "1" });
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": client,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let initialize = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let mut server = Command::new(env!("CARGO_BIN_EXE_plugbay-matrix-peer"))
        .args(["server", "x", era])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut input = server.stdin.take().expect("a pipe");
    for request in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": { "_meta": meta } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": initialize }),
    ] {
        writeln!(input, "{request}").expect("the server reads");
    }
    drop(input);
    let output = server.wait_with_output().expect("the server ends with its input");
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let answers: Vec<Value> = lines.map(|line| serde_json::from_slice(line).expect("JSON")).collect();
    answers.try_into().expect("two answers")
}
