//! A remote gateway: its addresses, and the session id that it gets for the hosts here.

use std::{fmt::Write as _, sync::Arc};

use reqwest::Url;

/// The header that names the session.
pub(super) const SESSION_ID: &str = "x-session-id";

/// The base address of a remote. The address of its MCP endpoint stands for the same remote.
pub(super) fn base(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/mcp").unwrap_or(path).trim_end_matches('/').to_owned();
    url.set_path(&path);
    url.set_fragment(None);
    url
}

/// The address of a remote's MCP endpoint.
pub(super) fn mcp(base: &Url) -> Url {
    below(base, "mcp")
}

/// The address of the tool list of a remote with the plain API.
pub(super) fn tools(base: &Url) -> Url {
    below(base, "tools")
}

/// The address for calls.
pub(super) fn call(base: &Url) -> Url {
    below(base, "tools/call")
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// A new session id: `client-` and a random UUID.
pub(crate) fn new_session_id() -> Arc<str> {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        bytes = unlikely_to_repeat();
    }
    format!("client-{}", uuid(bytes)).into()
}

/// A substitute on systems without randomness: the id need not be secret, only unique.
fn unlikely_to_repeat() -> [u8; 16] {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() ^ (u128::from(std::process::id()) << 96)).to_be_bytes()
}

/// Formats a UUID: version 4, variant 1.
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        let _ = write!(text, "{byte:02x}"); // a String takes everything
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_is_named_by_its_base_address_or_by_its_mcp_endpoint() {
        let cases = [
            ("https://h.example", "https://h.example/mcp", "https://h.example/tools/call"),
            ("https://h.example/", "https://h.example/mcp", "https://h.example/tools/call"),
            ("https://h.example/mcp", "https://h.example/mcp", "https://h.example/tools/call"),
            ("https://h.example/mcp/", "https://h.example/mcp", "https://h.example/tools/call"),
            ("https://h.example:8/gw", "https://h.example:8/gw/mcp", "https://h.example:8/gw/tools/call"),
            (
                "https://h.example/gw/mcp?k=1",
                "https://h.example/gw/mcp?k=1",
                "https://h.example/gw/tools/call?k=1",
            ),
            ("https://h.example/mcp/mcp", "https://h.example/mcp/mcp", "https://h.example/mcp/tools/call"),
        ];
        for (url, at_mcp, at_call) in cases {
            let base = base(Url::parse(url).unwrap());
            assert_eq!((mcp(&base).as_str(), call(&base).as_str()), (at_mcp, at_call), "{url}");
        }
        assert_eq!(tools(&base(Url::parse("http://h/mcp").unwrap())).as_str(), "http://h/tools");
    }

    #[test]
    fn a_session_id_is_client_and_a_random_uuid() {
        assert_eq!(uuid([0xff; 16]), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(uuid([0; 16]), "00000000-0000-4000-8000-000000000000");
        let (one, other) = (new_session_id(), new_session_id());
        assert!(one.starts_with("client-") && one.len() == 43 && one != other, "{one}");
    }
}
