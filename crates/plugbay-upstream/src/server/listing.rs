//! Collects a server's tools, page by page.

use bytes::Bytes;
use plugbay_core::{
    catalog::{TOOL_LIMIT, Tool, read_page},
    wire::Span,
};

/// A server that never stops paging is stopped here.
const PAGE_LIMIT: usize = 1_000;

/// A list under way.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    tools: Vec<Tool>,
    pages: usize,
    last_cursor: Option<Bytes>,
}

/// What one more page means.
pub(crate) enum Step {
    /// Ask for the page behind this cursor, a JSON string.
    Next(Bytes),
    Complete(Vec<Tool>),
}

impl Listing {
    pub(crate) fn page(&mut self, message: &Bytes, result: &Span) -> Step {
        let (tools, unusable, cursor) = read_page(message, result);
        if unusable > 0 {
            tracing::warn!(unusable, "tools without a name were left out");
        }
        self.tools.extend(tools);
        self.pages += 1;
        match cursor {
            // A cursor that repeats itself would go on for ever.
            Some(cursor)
                if self.last_cursor.as_ref() != Some(&cursor)
                    && self.pages < PAGE_LIMIT
                    && self.tools.len() < TOOL_LIMIT =>
            {
                self.last_cursor = Some(cursor.clone());
                Step::Next(cursor)
            }
            _ => Step::Complete(std::mem::take(&mut self.tools)),
        }
    }
}

/// A `tools/list` request; `fields` are the members of `_meta`, empty for a legacy server.
pub(crate) fn request(id: u64, cursor: Option<&Bytes>, fields: &str) -> Bytes {
    let cursor = cursor.map(|cursor| format!("\"cursor\":{}", String::from_utf8_lossy(cursor)));
    let meta = (!fields.is_empty()).then(|| format!("\"_meta\":{{{fields}}}"));
    let params: Vec<String> = cursor.into_iter().chain(meta).collect();
    let params = params.join(",");
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{params}}}}}"#))
}
