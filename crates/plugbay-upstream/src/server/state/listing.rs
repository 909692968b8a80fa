//! Collects the lists of a server, kind by kind and page by page.

use bytes::Bytes;
use plugbay_core::{
    catalog::{ITEM_LIMIT, Item, ItemKind, Items, ServerCapabilities, Tool, read_page},
    wire::Span,
};

/// A server that never stops paging is stopped here.
const PAGE_LIMIT: usize = 1_000;

/// A listing under way: of all item kinds that a server has, one after the other.
#[derive(Debug)]
pub(in crate::server) struct Listing {
    /// The kind that is being listed is the last.
    item_kinds: Vec<ItemKind>,
    tools: Vec<Tool>,
    stock: Items,
    pages: usize,
    cursor: Option<Bytes>,
}

/// What follows a page.
pub(in crate::server) enum Step {
    /// Request the next page.
    Request(Listing),
    Complete(Vec<Tool>, Items),
}

impl Listing {
    /// The listing of a server with these capabilities.
    pub(in crate::server) fn begin(capabilities: ServerCapabilities) -> Step {
        let mut item_kinds: Vec<ItemKind> = capabilities.item_kinds().collect();
        item_kinds.reverse();
        let (tools, stock) = (Vec::new(), Items::default());
        Self { item_kinds, tools, stock, pages: 0, cursor: None }.next_step()
    }

    /// The kind that is being listed now.
    pub(in crate::server) fn item_kind(&self) -> Option<ItemKind> {
        self.item_kinds.last().copied()
    }

    /// The method that requests the next page.
    pub(in crate::server) fn method(&self) -> &'static str {
        self.item_kind().unwrap_or(ItemKind::Tool).list_method()
    }

    /// The raw params that request the next page; `meta` are the members of `_meta`.
    pub(in crate::server) fn params(&self, meta: Option<&str>) -> String {
        let cursor =
            self.cursor.as_ref().map(|cursor| format!("\"cursor\":{}", String::from_utf8_lossy(cursor)));
        let meta = meta.map(|meta| format!("\"_meta\":{{{meta}}}"));
        let params: Vec<String> = cursor.into_iter().chain(meta).collect();
        format!("{{{}}}", params.join(","))
    }

    pub(in crate::server) fn page(mut self, message: &Bytes, result: &Span) -> Step {
        let Some(item_kind) = self.item_kind() else { return self.next_step() };
        let (definitions, cursor) = read_page(message, result, item_kind);
        let (offered, before) = (definitions.len(), self.count(item_kind));
        match item_kind {
            ItemKind::Tool => self.tools.extend(definitions.into_iter().filter_map(Tool::parse)),
            ItemKind::Resource | ItemKind::Template | ItemKind::Prompt | ItemKind::Skill => {
                let items =
                    definitions.into_iter().filter_map(|definition| Item::parse(definition, item_kind));
                self.items(item_kind).extend(items);
            }
        }
        let unusable = offered - (self.count(item_kind) - before);
        if unusable > 0 {
            tracing::warn!(
                unusable,
                "entries of {} without a {} were left out",
                item_kind.list_method(),
                item_kind.key()
            );
        }
        self.pages += 1;
        // A cursor that repeats itself would never end.
        if cursor.is_some()
            && cursor != self.cursor
            && self.pages < PAGE_LIMIT
            && self.count(item_kind) < ITEM_LIMIT
        {
            self.cursor = cursor;
            return Step::Request(self);
        }
        self.next_item_kind()
    }

    /// Goes on with the next kind, also when the server refuses to list this one.
    pub(in crate::server) fn next_item_kind(mut self) -> Step {
        self.item_kinds.pop();
        (self.pages, self.cursor) = (0, None);
        self.next_step()
    }

    fn next_step(self) -> Step {
        if self.item_kinds.is_empty() { Step::Complete(self.tools, self.stock) } else { Step::Request(self) }
    }

    fn count(&mut self, item_kind: ItemKind) -> usize {
        if item_kind == ItemKind::Tool { self.tools.len() } else { self.items(item_kind).len() }
    }

    fn items(&mut self, item_kind: ItemKind) -> &mut Vec<Item> {
        match item_kind {
            ItemKind::Template => &mut self.stock.templates,
            ItemKind::Prompt => &mut self.stock.prompts,
            ItemKind::Skill => &mut self.stock.skills,
            ItemKind::Tool | ItemKind::Resource => &mut self.stock.resources,
        }
    }
}

#[cfg(test)]
mod tests {
    use plugbay_core::wire::{Head, write};

    use super::*;

    fn page(step: Step, result: &str) -> Step {
        let Step::Request(listing) = step else { panic!("the listing is complete") };
        let message = write::result(b"1", result.as_bytes());
        let result = Head::read(&message).unwrap().payload.unwrap();
        listing.page(&message, &result)
    }

    fn requested(step: &Step) -> (&'static str, String) {
        match step {
            Step::Request(listing) => (listing.method(), listing.params(None)),
            Step::Complete(..) => ("", String::new()),
        }
    }

    #[test]
    fn tools_list_is_paged_and_followed_by_prompts_list() {
        let capabilities = ServerCapabilities { tools: true, prompts: true, ..ServerCapabilities::default() };
        let step = Listing::begin(capabilities);
        assert_eq!(requested(&step), ("tools/list", "{}".to_owned()));
        let step = page(step, r#"{"tools":[{"name":"a"}],"nextCursor":"2"}"#);
        assert_eq!(requested(&step), ("tools/list", r#"{"cursor":"2"}"#.to_owned()));
        let step = page(step, r#"{"tools":[{"name":"b"},{"nameless":1}],"nextCursor":"2"}"#);
        assert_eq!(requested(&step), ("prompts/list", "{}".to_owned()), "the cursor repeats itself");
        let Step::Complete(tools, stock) = page(step, r#"{"prompts":[{"name":"p"}]}"#) else {
            panic!("not complete")
        };
        assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(stock.prompts.len(), 1);
    }

    #[test]
    fn a_modern_list_request_carries_meta_behind_its_cursor() {
        let step = Listing::begin(ServerCapabilities { tools: true, ..ServerCapabilities::default() });
        let Step::Request(listing) = page(step, r#"{"tools":[],"nextCursor":"c"}"#) else {
            panic!("complete")
        };
        assert_eq!(listing.params(Some(r#""a":1"#)), r#"{"cursor":"c","_meta":{"a":1}}"#);
    }
}
