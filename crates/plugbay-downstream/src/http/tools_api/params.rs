//! Turns the body of a plain call into the request that an MCP host would send.

use bytes::{BufMut, Bytes, BytesMut};
use plugbay_core::wire::{Malformed, Members, check_params, folds_to, write};

use crate::{
    message::{Message, Request},
    refusal::Refusal,
};

const MEMBERS: [&str; 3] = ["name", "arguments", "_meta"];
/// The prefix of `_meta` keys that belong to the protocol. plugbay sets those itself.
const PROTOCOL: &str = "io.modelcontextprotocol/";
/// Each call has a session of its own, so any id will do.
const ID: &[u8] = b"1";

/// The body as a `tools/call`.
pub(super) fn read(body: &Bytes) -> Result<Request, Refusal> {
    check_params(body).map_err(|fault| Refusal::Malformed(Malformed::from(fault)))?;
    check_members(body)?;
    let request = write::request(ID, "tools/call", &with_arguments(body));
    match Message::read(request) {
        Ok(Message::Request(request)) => checked(request),
        _ => Err(invalid("the body cannot be sent as a message")),
    }
}

fn checked(request: Request) -> Result<Request, Refusal> {
    if let Some(key) = request.faults.ambiguous {
        return Err(invalid(format!("{key:?} must stand in the body once, and in these letters")));
    }
    request.named("the name of a tool, a string")?;
    if request.arguments().is_some_and(|arguments| !arguments.starts_with(b"{")) {
        return Err(invalid("\"arguments\" must be an object"));
    }
    Ok(request)
}

fn check_members(body: &[u8]) -> Result<(), Refusal> {
    if Members::find(body, &(0..body.len()), "method").is_some() {
        return Err(invalid("this takes the params of tools/call alone; JSON-RPC is served at /mcp"));
    }
    for member in Members::of(body, &(0..body.len())).flatten() {
        let key = &*member.key;
        if !MEMBERS.iter().any(|known| folds_to(key, known)) {
            return Err(invalid(format!("unknown member {key:?}; a call has {}", list(&MEMBERS))));
        }
        if key == "_meta" {
            check_meta(&body[member.value.clone()])?;
        }
    }
    Ok(())
}

fn check_meta(meta: &[u8]) -> Result<(), Refusal> {
    if !meta.starts_with(b"{") {
        return Err(invalid("\"_meta\" must be an object"));
    }
    let mut keys = Members::of(meta, &(0..meta.len())).flatten();
    match keys.find(|member| member.key.starts_with(PROTOCOL)) {
        Some(member) => Err(invalid(format!("{:?} has no place here; MCP is served at /mcp", member.key))),
        None => Ok(()),
    }
}

/// Adds empty arguments if there are none: not every server accepts a call without them.
fn with_arguments(body: &Bytes) -> Bytes {
    if Members::find(body, &(0..body.len()), "arguments").is_some() {
        return body.clone();
    }
    let inside = body.iter().position(|byte| *byte == b'{').map_or(0, |at| at + 1);
    let comma = if Members::of(body, &(0..body.len())).next().is_some() { "," } else { "" };
    let mut with = BytesMut::with_capacity(body.len() + 20);
    with.put_slice(&body[..inside]);
    with.put_slice(br#""arguments":{}"#);
    with.put_slice(comma.as_bytes());
    with.put_slice(&body[inside..]);
    with.freeze()
}

fn invalid(what: impl Into<String>) -> Refusal {
    Refusal::InvalidParams(what.into())
}

fn list(members: &[&str]) -> String {
    members.iter().map(|member| format!("{member:?}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &'static str) -> Result<String, String> {
        let read = read(&Bytes::from_static(body.as_bytes()));
        let text = |request: Request| String::from_utf8(request.message.to_vec()).unwrap();
        read.map(text).map_err(|refusal| refusal.message())
    }

    #[test]
    fn the_body_of_a_call_becomes_the_params_of_tools_call() {
        let expected = |params: &str| {
            Ok(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#))
        };
        let whole = r#"{"arguments":{"n":1.0},"name":"a","_meta":{"x":1}}"#;
        assert_eq!(check(whole), expected(whole));
        assert_eq!(check(r#" {"name":"a"}"#), expected(r#" {"arguments":{},"name":"a"}"#));
    }

    #[test]
    fn a_wrong_body_of_a_call_is_rejected_with_the_reason() {
        for (body, why) in [
            ("", "not valid JSON"),
            ("[]", "must be a JSON object"),
            ("{}", "\"name\" must be the name of a tool"),
            (r#"{"name":7}"#, "\"name\" must be the name of a tool"),
            (r#"{"name":"a","arguments":null}"#, "\"arguments\" must be an object"),
            (r#"{"name":"a","Name":"b"}"#, "\"name\" must stand in the body once"),
            (r#"{"name":"a","name":"b"}"#, "\"name\" must stand in the body once"),
            (r#"{"name":"a"},"id":7"#, "not valid JSON"),
            (r#"{"tool":"a"}"#, "unknown member \"tool\""),
            (r#"{"jsonrpc":"2.0","method":"tools/call"}"#, "served at /mcp"),
            (r#"{"name":"a","_meta":7}"#, "\"_meta\" must be an object"),
            (r#"{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}"#, "has no place here"),
        ] {
            let told = check(body).unwrap_err();
            assert!(told.contains(why), "{body}: {told}");
        }
    }
}
