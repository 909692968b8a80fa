//! Collects what a server lists, kind by kind and page by page.

use bytes::Bytes;
use plugbay_core::{
    catalog::{Features, ITEM_LIMIT, Item, Stock, Tool, Ware, read_page},
    wire::Span,
};

/// A server that never stops paging is stopped here.
const PAGE_LIMIT: usize = 1_000;

/// Lists under way: of all kinds that a server has, one after the other.
#[derive(Debug)]
pub(crate) struct Listing {
    /// What is being listed, and what comes after it.
    wares: Vec<Ware>,
    tools: Vec<Tool>,
    stock: Stock,
    pages: usize,
    cursor: Option<Bytes>,
}

/// What is to be asked next.
pub(crate) enum Step {
    Ask(Listing),
    Complete(Vec<Tool>, Stock),
}

impl Listing {
    /// The first thing to ask of a server that has these.
    pub(crate) fn begin(features: Features) -> Step {
        let mut wares: Vec<Ware> = features.wares().collect();
        wares.reverse();
        let (tools, stock) = (Vec::new(), Stock::default());
        Self { wares, tools, stock, pages: 0, cursor: None }.go_on()
    }

    /// What is being listed now.
    pub(crate) fn ware(&self) -> Option<Ware> {
        self.wares.last().copied()
    }

    /// A request for the next page; `fields` are the members of `_meta`, empty for a legacy server.
    pub(crate) fn request(&self, id: u64, fields: &str) -> Bytes {
        let method = self.ware().unwrap_or(Ware::Tool).list_method();
        let cursor =
            self.cursor.as_ref().map(|cursor| format!("\"cursor\":{}", String::from_utf8_lossy(cursor)));
        let meta = (!fields.is_empty()).then(|| format!("\"_meta\":{{{fields}}}"));
        let params: Vec<String> = cursor.into_iter().chain(meta).collect();
        let params = params.join(",");
        Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}}}}}"#))
    }

    pub(crate) fn page(mut self, message: &Bytes, result: &Span) -> Step {
        let Some(ware) = self.ware() else { return self.go_on() };
        let (definitions, cursor) = read_page(message, result, ware);
        let (offered, before) = (definitions.len(), self.count(ware));
        match ware {
            Ware::Tool => self.tools.extend(definitions.into_iter().filter_map(Tool::parse)),
            Ware::Resource | Ware::Template | Ware::Prompt => {
                let items = definitions.into_iter().filter_map(|definition| Item::parse(definition, ware));
                self.shelf(ware).extend(items);
            }
        }
        let unusable = offered - (self.count(ware) - before);
        if unusable > 0 {
            tracing::warn!(
                unusable,
                "entries of {} without a {} were left out",
                ware.list_method(),
                ware.key()
            );
        }
        self.pages += 1;
        // A cursor that repeats itself would go on for ever.
        if cursor.is_some()
            && cursor != self.cursor
            && self.pages < PAGE_LIMIT
            && self.count(ware) < ITEM_LIMIT
        {
            self.cursor = cursor;
            return Step::Ask(self);
        }
        self.next_ware()
    }

    /// The server does not list this kind after all: that is no reason to do without the others.
    pub(crate) fn next_ware(mut self) -> Step {
        self.wares.pop();
        (self.pages, self.cursor) = (0, None);
        self.go_on()
    }

    fn go_on(self) -> Step {
        if self.wares.is_empty() { Step::Complete(self.tools, self.stock) } else { Step::Ask(self) }
    }

    fn count(&mut self, ware: Ware) -> usize {
        if ware == Ware::Tool { self.tools.len() } else { self.shelf(ware).len() }
    }

    fn shelf(&mut self, ware: Ware) -> &mut Vec<Item> {
        match ware {
            Ware::Template => &mut self.stock.templates,
            Ware::Prompt => &mut self.stock.prompts,
            Ware::Tool | Ware::Resource => &mut self.stock.resources,
        }
    }
}
