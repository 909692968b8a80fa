//! Requests over HTTP: modern ones without a session, legacy ones in a session.

use plugbay_testkit::{HttpGateway, HttpHost, HttpReply, MODERN_META};
use serde_json::Value;

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"torture","version":"0"}}}"#;

pub(crate) type Headers<'a> = Vec<(&'a str, &'a str)>;

/// The headers of a modern request.
pub(crate) fn modern<'a>(method: &'a str, name: &'a str) -> Headers<'a> {
    let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method)];
    headers.extend((!name.is_empty()).then_some(("mcp-name", name)));
    headers
}

/// The body of a modern request; `members` follow `_meta`.
pub(crate) fn stateless(method: &str, members: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"_meta":{{{MODERN_META}}}{members}}}}}"#
    )
}

/// Makes a modern call on a connection that stays open.
pub(crate) fn call(host: &mut HttpHost, tool: &str, arguments: &str, more: &[(&str, &str)]) -> HttpReply {
    let mut headers = modern("tools/call", tool);
    headers.extend(more);
    host.post(&headers, &stateless("tools/call", &format!(r#","name":"{tool}","arguments":{arguments}"#)));
    host.reply()
}

/// Opens a legacy session with both messages of its handshake; `None` if the gateway refuses one.
pub(crate) fn open_session(gateway: &HttpGateway, more: &[(&str, &str)]) -> Option<String> {
    open_session_on(&mut gateway.connect(), more)
}

/// Like `open_session`, on a connection that stays open.
pub(crate) fn open_session_on(host: &mut HttpHost, more: &[(&str, &str)]) -> Option<String> {
    host.post(more, INITIALIZE);
    let opened = host.reply();
    let session = opened.header("mcp-session-id").filter(|_| opened.status == 200)?.to_owned();
    let mut headers = vec![("mcp-session-id", session.as_str())];
    headers.extend(more);
    host.post(&headers, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    (host.reply().status == 202).then_some(session)
}

/// Whether a reply is a real result: neither an error nor a result that reports one.
pub(crate) fn is_result(body: &str) -> bool {
    body.contains("\"result\"") && !body.contains("\"isError\":true")
}

/// The body of a legacy call.
pub(crate) fn legacy_call(id: usize, tool: &str, arguments: &str) -> String {
    let tool = Value::from(tool);
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":{tool},"arguments":{arguments}}}}}"#
    )
}
