//! Collects what a server lists, kind by kind and page by page.

use bytes::Bytes;
use plugbay_core::{
    catalog::{ITEM_LIMIT, Item, ItemKind, Items, ServerCapabilities, Tool, read_page},
    wire::Span,
};

/// A server that never stops paging is stopped here.
const PAGE_LIMIT: usize = 1_000;

/// Lists under way: of all kinds that a server has, one after the other.
#[derive(Debug)]
pub(crate) struct Listing {
    /// What is being listed, and what comes after it.
    item_kinds: Vec<ItemKind>,
    tools: Vec<Tool>,
    stock: Items,
    pages: usize,
    cursor: Option<Bytes>,
}

/// What is to be asked next.
pub(crate) enum Step {
    Ask(Listing),
    Complete(Vec<Tool>, Items),
}

impl Listing {
    /// The first thing to ask of a server that has these.
    pub(crate) fn begin(features: ServerCapabilities) -> Step {
        let mut item_kinds: Vec<ItemKind> = features.item_kinds().collect();
        item_kinds.reverse();
        let (tools, stock) = (Vec::new(), Items::default());
        Self { item_kinds, tools, stock, pages: 0, cursor: None }.go_on()
    }

    /// What is being listed now.
    pub(crate) fn item_kind(&self) -> Option<ItemKind> {
        self.item_kinds.last().copied()
    }

    /// A request for the next page; `fields` are the members of `_meta`, empty for a legacy server.
    pub(crate) fn request(&self, id: u64, fields: &str) -> Bytes {
        let method = self.item_kind().unwrap_or(ItemKind::Tool).list_method();
        let cursor =
            self.cursor.as_ref().map(|cursor| format!("\"cursor\":{}", String::from_utf8_lossy(cursor)));
        let meta = (!fields.is_empty()).then(|| format!("\"_meta\":{{{fields}}}"));
        let params: Vec<String> = cursor.into_iter().chain(meta).collect();
        let params = params.join(",");
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#))
    }

    pub(crate) fn page(mut self, message: &Bytes, result: &Span) -> Step {
        let Some(item_kind) = self.item_kind() else { return self.go_on() };
        let (definitions, cursor) = read_page(message, result, item_kind);
        let (offered, before) = (definitions.len(), self.count(item_kind));
        match item_kind {
            ItemKind::Tool => self.tools.extend(definitions.into_iter().filter_map(Tool::parse)),
            ItemKind::Resource | ItemKind::Template | ItemKind::Prompt => {
                let items =
                    definitions.into_iter().filter_map(|definition| Item::parse(definition, item_kind));
                self.resources(item_kind).extend(items);
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
        // A cursor that repeats itself would go on for ever.
        if cursor.is_some()
            && cursor != self.cursor
            && self.pages < PAGE_LIMIT
            && self.count(item_kind) < ITEM_LIMIT
        {
            self.cursor = cursor;
            return Step::Ask(self);
        }
        self.next_ware()
    }

    /// The server does not list this kind after all: that is no reason to do without the others.
    pub(crate) fn next_ware(mut self) -> Step {
        self.item_kinds.pop();
        (self.pages, self.cursor) = (0, None);
        self.go_on()
    }

    fn go_on(self) -> Step {
        if self.item_kinds.is_empty() { Step::Complete(self.tools, self.stock) } else { Step::Ask(self) }
    }

    fn count(&mut self, item_kind: ItemKind) -> usize {
        if item_kind == ItemKind::Tool { self.tools.len() } else { self.resources(item_kind).len() }
    }

    fn resources(&mut self, item_kind: ItemKind) -> &mut Vec<Item> {
        match item_kind {
            ItemKind::Template => &mut self.stock.templates,
            ItemKind::Prompt => &mut self.stock.prompts,
            ItemKind::Tool | ItemKind::Resource => &mut self.stock.resources,
        }
    }
}
