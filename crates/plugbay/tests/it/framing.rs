//! `Content-Length` headers instead of newlines, on either side.

use plugbay_testkit::{Framing, Script, Workspace};
use serde_json::json;

use crate::{gateway, open, open_with, warm};

fn headed() -> Script {
    Script::friendly().set("framing", r#""content-length""#)
}

#[test]
fn a_server_that_wants_content_length_framing_gets_it() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", headed())]).options("s", json!({"framing": "content-length"}));
    let host = open_with(&workspace, &config, &["s__echo"]);
    let text = host.call("s__echo", r#"{"n":1.0,"text":"line\nbreak é"}"#).content_text();
    assert!(text.contains(r#"{"n":1.0,"text":"line\nbreak é"}"#));
    host.finish();
}

/// Finding the framing of a silent server depends on how busy the machine is; the actor's tests script that.
#[test]
fn content_length_framing_that_a_server_has_used_is_remembered() {
    let workspace = Workspace::new();
    let config = workspace.config(&[("s", headed())]);
    warm(&workspace, &config.clone().options("s", json!({"framing": "content-length"})), &["s__echo"]);
    let host = open_with(&workspace, &config, &["s__echo"]);
    host.call("s__echo", "{}").result();
    assert_eq!(workspace.starts("s").len(), 2, "no start was in vain");
    host.finish();
}

#[test]
fn a_host_with_content_length_framing_is_answered_in_it() {
    let workspace = Workspace::new();
    let host =
        workspace.serve_with(&gateway(), &[("s", Script::friendly())]).with_framing(Framing::ContentLength);
    assert_eq!(host.initialize().framing, Framing::ContentLength);
    host.await_tools(&["s__echo"]);
    let answer = host.call("s__echo", r#"{"text":"é中😀"}"#);
    assert_eq!(answer.framing, Framing::ContentLength);
    assert!(answer.content_text().contains("é中😀"));
    let ended = host.finish();
    assert!(ended.messages.iter().all(|m| m.framing == Framing::ContentLength));
}

#[test]
fn content_length_headers_may_come_in_pieces_and_with_others() {
    let workspace = Workspace::new();
    let host =
        workspace.serve_with(&gateway(), &[("s", Script::friendly())]).with_framing(Framing::ContentLength);
    host.initialize();
    let body = r#"{"jsonrpc":"2.0","id":"é","method":"ping"}"#;
    let message = format!(
        "content-length: {}\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{body}",
        body.len()
    );
    let (head, tail) = message.as_bytes().split_at(20);
    host.send_bytes(head);
    host.send_bytes(tail);
    assert!(!host.expect_response(r#""é""#).is_error());
    host.finish();
}

#[test]
fn a_host_with_newline_framing_is_answered_in_it() {
    let workspace = Workspace::new();
    let host = open(&workspace, &[("s", Script::friendly())], &["s__echo"]);
    host.send_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":\"crlf\",\"method\":\"ping\"}\r\n");
    host.expect_response(r#""crlf""#);
    let ended = host.finish();
    assert!(ended.messages.iter().all(|m| m.framing == Framing::Newline));
}
