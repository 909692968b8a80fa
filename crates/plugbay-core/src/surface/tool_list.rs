//! All tools as one JSON document, for clients that speak plain HTTP.

use bytes::{BufMut, Bytes, BytesMut};
use sha2::{Digest, Sha256};

use super::found::Found;

/// `{"tools":[…]}` with a tag that changes with its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolList {
    pub body: Bytes,
    /// A digest of the body, in hexadecimal digits.
    pub tag: String,
}

impl ToolList {
    /// Writes each definition as its server wrote it, except for the name and the source in `_meta`.
    pub fn of<'a>(tools: impl IntoIterator<Item = &'a Found>) -> Self {
        let mut body = BytesMut::from(r#"{"tools":["#);
        for (number, found) in tools.into_iter().enumerate() {
            if number > 0 {
                body.put_u8(b',');
            }
            found.write_with_source(&mut body);
        }
        body.put_slice(b"]}");
        let body = body.freeze();
        let digest = format!("{:x}", Sha256::digest(&body));
        Self { tag: digest[..TAG_DIGITS].to_owned(), body }
    }
}

/// 128 bits: two lists never have the same tag by chance.
const TAG_DIGITS: usize = 32;
