//! Messages that plugbay writes itself: every JSON-RPC envelope that does not come from a peer.
//!
//! Ids, params, results and errors are raw JSON, so that a peer's bytes go into an envelope as they came.

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

use super::{Draft, Hole, Span};

const VERSION: &[u8] = br#"{"jsonrpc":"2.0","#;
/// Roughly how many bytes an envelope adds to its parts.
const OVERHEAD: usize = 64;

/// A request with the given raw id.
pub fn request(id: &[u8], method: &str, params: &[u8]) -> Bytes {
    let mut message = opened(id.len() + method.len() + params.len());
    put_member(&mut message, "id", id);
    message.put_u8(b',');
    put_method(&mut message, method);
    message.put_u8(b',');
    put_member(&mut message, "params", params);
    closed(message)
}

/// A request whose id is filled in when it is sent, and where its params stand in [`Draft::message`].
pub fn request_draft(method: &str, params: &[u8]) -> (Draft, Span) {
    let message = request(b"", method, params);
    let id = VERSION.len() + br#""id":"#.len();
    let params = message.len() - 1 - params.len()..message.len() - 1;
    (Draft::new(message).with(id..id, Hole::Ticket), params)
}

/// A notification; without `params` the member is left out.
pub fn notification(method: &str, params: Option<&[u8]>) -> Bytes {
    let mut message = opened(method.len() + params.map_or(0, <[u8]>::len));
    put_method(&mut message, method);
    if let Some(params) = params {
        message.put_u8(b',');
        put_member(&mut message, "params", params);
    }
    closed(message)
}

/// A request whose method and params stand in `object`, a peer's own bytes; `None` if that is no object.
pub fn with_id(id: u64, object: &[u8]) -> Option<Bytes> {
    let members = object.strip_prefix(b"{")?;
    let mut message = opened(object.len() + 20);
    put_member(&mut message, "id", itoa::Buffer::new().format(id).as_bytes());
    message.put_u8(b',');
    message.put_slice(members);
    Some(message.freeze())
}

/// The cancellation of a request whose number is filled in when it is sent; `reason` is plain text.
pub fn cancellation(reason: &str) -> Draft {
    let before = br#"{"requestId":"#;
    let params = format!(r#"{{"requestId":,"reason":{}}}"#, Value::from(reason));
    let message = notification("notifications/cancelled", Some(params.as_bytes()));
    let id = message.len() - 1 - params.len() + before.len();
    Draft::new(message).with(id..id, Hole::Ticket)
}

/// The response that holds a result.
pub fn result(id: &[u8], result: &[u8]) -> Bytes {
    response(id, "result", result)
}

/// The response that holds an error object.
pub fn error(id: &[u8], error: &[u8]) -> Bytes {
    response(id, "error", error)
}

fn response(id: &[u8], key: &str, value: &[u8]) -> Bytes {
    let mut message = opened(id.len() + value.len());
    put_member(&mut message, "id", id);
    message.put_u8(b',');
    put_member(&mut message, key, value);
    closed(message)
}

fn opened(parts: usize) -> BytesMut {
    let mut message = BytesMut::with_capacity(parts + OVERHEAD);
    message.put_slice(VERSION);
    message
}

fn closed(mut message: BytesMut) -> Bytes {
    message.put_u8(b'}');
    message.freeze()
}

/// Method names need no escapes, and those of peers are checked before they get here.
fn put_method(message: &mut BytesMut, method: &str) {
    message.put_slice(br#""method":""#);
    message.put_slice(method.as_bytes());
    message.put_u8(b'"');
}

fn put_member(message: &mut BytesMut, key: &str, value: &[u8]) {
    message.put_u8(b'"');
    message.put_slice(key.as_bytes());
    message.put_slice(b"\":");
    message.put_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_hold_their_parts_as_they_are() {
        for (message, expected) in [
            (request(b"7", "ping", b"{ }"), r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{ }}"#),
            (notification("a/b", None), r#"{"jsonrpc":"2.0","method":"a/b"}"#),
            (notification("a/b", Some(b"{}")), r#"{"jsonrpc":"2.0","method":"a/b","params":{}}"#),
            (result(b"\"x\"", b"{\"n\":1.0}"), r#"{"jsonrpc":"2.0","id":"x","result":{"n":1.0}}"#),
            (error(b"null", b"{}"), r#"{"jsonrpc":"2.0","id":null,"error":{}}"#),
        ] {
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn drafts_are_filled_where_the_number_belongs() {
        let (draft, params) = request_draft("tasks/get", br#"{"taskId":"a"}"#);
        assert_eq!(&draft.message()[params], br#"{"taskId":"a"}"#);
        assert_eq!(
            draft.render(12),
            r#"{"jsonrpc":"2.0","id":12,"method":"tasks/get","params":{"taskId":"a"}}"#
        );
        assert_eq!(
            cancellation("it \"ended\"").render(3),
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"it \"ended\""}}"#
        );
    }
}
