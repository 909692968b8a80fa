//! MCP Apps, the extension `io.modelcontextprotocol/ui`: the page of a tool, and who may call the tool.

use crate::wire::{Members, Span, elements, string_value};

/// The name by which hosts and servers declare it.
pub const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// The beginning of every page's URI: hosts accept no other.
pub const PAGE_SCHEME: &str = "ui://";
/// The member of `_meta` that named a page before there was `ui.resourceUri`.
const OLDER_KEY: &str = "ui/resourceUri";

/// What the `_meta` of a tool says about apps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUi {
    pub pages: Vec<PageLink>,
    pub for_model: bool,
    /// Pages of the same server may call it.
    pub for_app: bool,
}

/// A place that names a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLink {
    /// The value in the definition or result, with its quotes.
    pub span: Span,
    pub uri: String,
}

impl ToolUi {
    /// `meta` is the `_meta` of a definition; `None` if it says nothing about apps.
    pub fn read(bytes: &[u8], meta: &Span) -> Option<Self> {
        let pages = page_links(bytes, meta);
        let ui = Members::find(bytes, meta, "ui");
        let visibility = ui.and_then(|ui| Members::find(bytes, &ui, "visibility"));
        let visibility = visibility.filter(|list| bytes[list.start] == b'[');
        if pages.is_empty() && visibility.is_none() {
            return None;
        }
        let sees = |who: &str| {
            visibility.as_ref().is_none_or(|list| {
                elements(bytes, list).into_iter().any(|one| string_value(&bytes[one]).as_deref() == Some(who))
            })
        };
        Some(Self { pages, for_model: sees("model"), for_app: sees("app") })
    }
}

/// How many pages of one object count: half of them are the first ones, half the last ones.
const MOST_LINKS: usize = 16;

/// The pages that an object `_meta` names. A key that occurs twice counts twice, because parsers differ in
/// which of the two they take.
pub fn page_links(bytes: &[u8], meta: &Span) -> Vec<PageLink> {
    let mut links = Vec::new();
    let mut add = |span: Span| {
        let uri = string_value(&bytes[span.clone()]).filter(|uri| is_page(uri));
        links.extend(uri.map(|uri| PageLink { span, uri: uri.into_owned() }));
    };
    for member in Members::of(bytes, meta).flatten() {
        match &*member.key {
            "ui" => {
                let inner = Members::of(bytes, &member.value).flatten();
                inner.filter(|inner| inner.key == "resourceUri").for_each(|inner| add(inner.value));
            }
            OLDER_KEY => add(member.value),
            _ => {}
        }
    }
    if links.len() > MOST_LINKS {
        links.drain(MOST_LINKS / 2..links.len() - MOST_LINKS / 2);
    }
    links
}

pub fn is_page(uri: &str) -> bool {
    uri.starts_with(PAGE_SCHEME)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(meta: &str) -> Option<ToolUi> {
        ToolUi::read(meta.as_bytes(), &(0..meta.len()))
    }

    fn uris(meta: &str) -> Vec<String> {
        page_links(meta.as_bytes(), &(0..meta.len())).into_iter().map(|link| link.uri).collect()
    }

    #[test]
    fn a_page_is_named_in_either_form() {
        let nested = read(r#"{"a":1,"ui":{"resourceUri":"ui:\/\/x"}}"#).unwrap();
        assert_eq!(nested.pages, [PageLink { span: 27..37, uri: "ui://x".to_owned() }]);
        assert!(nested.for_model && nested.for_app, "the default is both");
        assert_eq!(
            uris(r#"{"ui/resourceUri":"ui://x","ui":{"resourceUri":"ui://y"}}"#),
            ["ui://x", "ui://y"]
        );
        assert_eq!(uris(r#"{"ui":{"resourceUri":"ui://x","resourceUri":"ui://y"}}"#), ["ui://x", "ui://y"]);
        for nothing in [
            "{}",
            "7",
            r#"{"ui":7}"#,
            r#"{"ui":{"resourceUri":7}}"#,
            r#"{"ui":{"resourceUri":"https://x"}}"#,
            r#"{"ui":{"visibility":"app"}}"#,
            r#"{"x":{"ui":{"resourceUri":"ui://x"}}}"#,
        ] {
            assert_eq!(read(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn visibility_says_who_may_call_a_tool() {
        for (visibility, expected) in [
            (r#"["app"]"#, (false, true)),
            (r#"["model"]"#, (true, false)),
            (r#"["model","app"]"#, (true, true)),
            (r#"["\u0061pp","later"]"#, (false, true)),
            ("[]", (false, false)),
        ] {
            let ui = read(&format!(r#"{{"ui":{{"visibility":{visibility}}}}}"#)).unwrap();
            assert_eq!((ui.for_model, ui.for_app), expected, "{visibility}");
        }
    }
}
