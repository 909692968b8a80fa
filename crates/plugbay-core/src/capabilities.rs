//! Client capabilities, as a host declared them: what servers can ask it for (sampling, elicitation, roots).

use crate::wire::{Members, Span, string_value};

/// The client capabilities that a gateway keeps for its hosts. Other things that a host declares are its
/// [extensions](crate::extension), or concern only servers that it speaks to directly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is declared by itself, in any combination")]
pub struct ClientCapabilities {
    pub sampling: bool,
    pub sampling_tools: bool,
    pub sampling_context: bool,
    pub form: bool,
    pub url: bool,
    pub roots: bool,
    pub roots_changes: bool,
}

impl ClientCapabilities {
    pub const NONE: Self = Self {
        sampling: false,
        sampling_tools: false,
        sampling_context: false,
        form: false,
        url: false,
        roots: false,
        roots_changes: false,
    };
    pub const ALL: Self = Self {
        sampling: true,
        sampling_tools: true,
        sampling_context: true,
        form: true,
        url: true,
        roots: true,
        roots_changes: true,
    };

    /// `object` is the value at `capabilities`, whichever era it was declared in.
    pub fn read(bytes: &[u8], object: &Span) -> Self {
        let declared = |object: &Span, key: &str| {
            Members::find(bytes, object, key).filter(|value| bytes[value.start] == b'{')
        };
        let mut client_capabilities = Self::NONE;
        if let Some(sampling) = declared(object, "sampling") {
            client_capabilities.sampling = true;
            client_capabilities.sampling_tools = declared(&sampling, "tools").is_some();
            client_capabilities.sampling_context = declared(&sampling, "context").is_some();
        }
        if let Some(elicitation) = declared(object, "elicitation") {
            client_capabilities.url = declared(&elicitation, "url").is_some();
            // Before elicitation had two modes, there was only the form.
            client_capabilities.form = declared(&elicitation, "form").is_some() || !client_capabilities.url;
        }
        if let Some(roots) = declared(object, "roots") {
            let changes = Members::find(bytes, &roots, "listChanged");
            client_capabilities.roots = true;
            client_capabilities.roots_changes = changes.is_some_and(|value| &bytes[value] == b"true");
        }
        client_capabilities
    }

    /// The JSON object to declare. Capabilities that were not declared are missing from it.
    pub fn declaration(self) -> String {
        let object = |members: &[(&str, bool)]| {
            let members: Vec<_> = members.iter().filter(|(_, has)| *has).map(|(text, _)| *text).collect();
            format!("{{{}}}", members.join(","))
        };
        let sampling =
            object(&[(r#""tools":{}"#, self.sampling_tools), (r#""context":{}"#, self.sampling_context)]);
        let elicitation = object(&[(r#""form":{}"#, self.form), (r#""url":{}"#, self.url)]);
        let roots = object(&[(r#""listChanged":true"#, self.roots_changes)]);
        object(&[
            (&format!(r#""sampling":{sampling}"#), self.sampling),
            (&format!(r#""elicitation":{elicitation}"#), self.form || self.url),
            (&format!(r#""roots":{roots}"#), self.roots),
        ])
    }

    /// The capability that this server request needs and that was not declared. What an unknown method needs
    /// cannot be told.
    pub fn lacks(self, bytes: &[u8], method: &[u8], params: Option<&Span>) -> Option<&'static str> {
        let has = |key: &str| params.is_some_and(|params| Members::find(bytes, params, key).is_some());
        match method {
            b"sampling/createMessage" if !self.sampling => Some("sampling"),
            b"sampling/createMessage" if !self.sampling_tools && (has("tools") || has("toolChoice")) => {
                Some("sampling.tools")
            }
            b"elicitation/create" => {
                let mode = params.and_then(|params| Members::find(bytes, params, "mode"));
                let by_url = mode.is_some_and(|mode| string_value(&bytes[mode]).as_deref() == Some("url"));
                match by_url {
                    true if !self.url => Some("elicitation.url"),
                    false if !self.form => Some("elicitation.form"),
                    _ => None,
                }
            }
            b"roots/list" if !self.roots => Some("roots"),
            _ => None,
        }
    }

    /// Whether nothing of `other` is missing here.
    pub fn covers(self, other: Self) -> bool {
        self.with(other) == self
    }

    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            sampling: self.sampling || other.sampling,
            sampling_tools: self.sampling_tools || other.sampling_tools,
            sampling_context: self.sampling_context || other.sampling_context,
            form: self.form || other.form,
            url: self.url || other.url,
            roots: self.roots || other.roots,
            roots_changes: self.roots_changes || other.roots_changes,
        }
    }
}

/// The server requests that both eras know; all others are known to legacy hosts only, if to any.
pub fn is_common(method: &[u8]) -> bool {
    matches!(method, b"sampling/createMessage" | b"elicitation/create" | b"roots/list")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ClientCapabilities {
        ClientCapabilities::read(text.as_bytes(), &(0..text.len()))
    }

    #[test]
    fn what_is_declared_is_read_and_declared_again() {
        for (declared, again) in [
            ("{}", "{}"),
            (r#"{"sampling":{}}"#, r#"{"sampling":{}}"#),
            (r#"{"sampling":{"tools":{},"x":1},"y":{}}"#, r#"{"sampling":{"tools":{}}}"#),
            (r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{}}}"#),
            (r#"{"elicitation":{"url":{}}}"#, r#"{"elicitation":{"url":{}}}"#),
            (r#"{"roots":{"listChanged":true}}"#, r#"{"roots":{"listChanged":true}}"#),
            (r#"{"roots":{"listChanged":false},"sampling":null}"#, r#"{"roots":{}}"#),
            ("7", "{}"),
        ] {
            assert_eq!(read(declared).declaration(), again, "{declared}");
        }
        assert_eq!(read(&ClientCapabilities::ALL.declaration()), ClientCapabilities::ALL);
    }

    #[test]
    fn only_what_was_declared_can_be_asked() {
        let lacks = |declared: &str, method: &str, params: &str| {
            read(declared).lacks(params.as_bytes(), method.as_bytes(), Some(&(0..params.len())))
        };
        let (sampling, form) = (r#"{"sampling":{}}"#, r#"{"elicitation":{}}"#);
        assert_eq!(lacks("{}", "sampling/createMessage", "{}"), Some("sampling"));
        assert_eq!(lacks(sampling, "sampling/createMessage", "{}"), None);
        assert_eq!(lacks(sampling, "sampling/createMessage", r#"{"tools":[]}"#), Some("sampling.tools"));
        assert_eq!(lacks(sampling, "elicitation/create", "{}"), Some("elicitation.form"));
        assert_eq!(lacks(form, "elicitation/create", "{}"), None);
        assert_eq!(lacks(form, "elicitation/create", r#"{"mode":"form"}"#), None);
        assert_eq!(lacks(form, "elicitation/create", r#"{"mode":"u\u0072l"}"#), Some("elicitation.url"));
        assert_eq!(lacks(form, "roots/list", "{}"), Some("roots"));
        assert_eq!(lacks("{}", "x/unheard-of", "{}"), None);
    }
}
