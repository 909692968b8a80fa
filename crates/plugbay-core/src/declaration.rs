//! What a server is told about hosts: client capabilities and extensions. Its lists may depend on that.

use crate::{capabilities::ClientCapabilities, extension::Extensions, wire::Span};

/// The client capabilities and extensions that were declared to a server, or by a host.
#[derive(Debug, Clone, Default)]
pub struct Declaration {
    pub capabilities: ClientCapabilities,
    pub extensions: Extensions,
}

impl Declaration {
    pub fn new(capabilities: ClientCapabilities, extensions: Extensions) -> Self {
        Self { capabilities, extensions }
    }

    /// `object` is a `capabilities` object of a client.
    pub fn read(bytes: &[u8], object: &Span) -> Self {
        Self::new(ClientCapabilities::read(bytes, object), Extensions::read(bytes, object))
    }

    /// The `capabilities` object of this kind of host, with the names of extensions only: some values differ
    /// from session to session.
    pub fn kind(&self) -> String {
        self.extensions.without_values().added_to(self.capabilities.declaration())
    }

    /// Whether nothing of `other` is missing here.
    pub fn covers(&self, other: &Self) -> bool {
        self.capabilities.covers(other.capabilities) && self.extensions.covers(&other.extensions)
    }
}

/// Two declarations are equal if both are of one kind of host: the values of extensions do not count.
impl PartialEq for Declaration {
    fn eq(&self, other: &Self) -> bool {
        self.capabilities == other.capabilities
            && self.extensions.covers(&other.extensions)
            && other.extensions.covers(&self.extensions)
    }
}

impl Eq for Declaration {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Declaration {
        Declaration::read(text.as_bytes(), &(0..text.len()))
    }

    #[test]
    fn values_of_extensions_make_no_other_kind_of_host() {
        let text = r#"{"sampling":{},"extensions":{"a/b":{"session":17}}}"#;
        let kind = r#"{"sampling":{},"extensions":{"a/b":{}}}"#;
        assert_eq!(read(text).kind(), kind);
        assert_eq!(read(text), read(kind));
        assert_ne!(read(text), read(r#"{"sampling":{}}"#));
        assert!(read(text).covers(&read(r#"{"sampling":{}}"#)) && !read("{}").covers(&read(kind)));
    }
}
