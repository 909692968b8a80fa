//! Collects the lists of a server, one kind after the other and page by page.

use bytes::Bytes;
use plugbay_core::{
    catalog::{
        Allowance, HiddenText, Item, ItemKind, Items, LeftOut, ServerCapabilities, Tool, Tools, read_page,
    },
    size_limit,
    wire::Span,
};

use crate::http::{Mirror, Mirrors};

/// Rules for reading a server's definitions.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::server) struct ReadRules {
    /// Whether hidden characters are removed.
    pub(in crate::server) sanitize: bool,
    /// Whether requests repeat arguments in headers. A tool that asks for impossible headers is then left
    /// out, as MCP demands.
    pub(in crate::server) mirror: bool,
}

/// A listing in progress: all item kinds of a server, one after the other.
#[derive(Debug)]
pub(in crate::server) struct Listing {
    /// The kinds still to list; the last one is being listed.
    item_kinds: Vec<ItemKind>,
    rules: ReadRules,
    listed: Box<Listed>,
    pages: usize,
    cursor: Option<Bytes>,
    allowance: Box<Allowance>,
}

/// Everything that a server has listed.
#[derive(Debug, Default)]
pub(in crate::server) struct Listed {
    pub(in crate::server) tools: Tools,
    /// The tools of the pages so far, in no order; empty after the last page.
    unordered: Vec<Tool>,
    pub(in crate::server) items: Items,
    /// The hidden characters that were removed.
    pub(in crate::server) hidden: HiddenText,
    /// The arguments that requests repeat in headers.
    pub(in crate::server) mirrors: Mirrors,
    pub(in crate::server) left_out: Option<LeftOut>,
}

/// The next step after a page.
pub(in crate::server) enum Step {
    /// Request the next page.
    Request(Listing),
    Complete(Box<Listed>),
}

impl Listing {
    /// The listing of a server with these capabilities.
    pub(in crate::server) fn begin(capabilities: ServerCapabilities, rules: ReadRules) -> Step {
        let mut item_kinds: Vec<ItemKind> = capabilities.item_kinds().collect();
        item_kinds.reverse();
        let (listed, allowance) = (Box::default(), Box::default());
        Self { item_kinds, rules, listed, pages: 0, cursor: None, allowance }.next_step()
    }

    /// The kind that is being listed now.
    pub(in crate::server) fn item_kind(&self) -> Option<ItemKind> {
        self.item_kinds.last().copied()
    }

    /// How many bytes of definitions were taken so far.
    pub(in crate::server) fn bytes(&self) -> usize {
        self.allowance.taken()
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
        let (definitions, cursor) = read_page(message, result, item_kind, &mut self.allowance);
        let mut unusable = 0;
        for definition in definitions {
            let is_usable = if item_kind == ItemKind::Tool {
                Tool::parse(definition).map(|tool| self.add_tool(tool)).is_some()
            } else {
                Item::parse(definition, item_kind).map(|item| self.add_item(item, item_kind)).is_some()
            };
            unusable += usize::from(!is_usable);
        }
        if unusable > 0 {
            tracing::warn!(
                unusable,
                "entries of {} without a {} were left out",
                item_kind.list_method(),
                item_kind.key()
            );
        }
        self.pages += 1;
        // A cursor that repeats would never end.
        if cursor.is_some() && cursor != self.cursor {
            let is_short = cursor.as_ref().is_some_and(|cursor| cursor.len() <= size_limit::CURSOR);
            if is_short && self.pages < size_limit::PAGES && !self.allowance.is_spent() {
                self.cursor = cursor;
                return Step::Request(self);
            }
            self.allowance.stop();
        }
        self.next_item_kind()
    }

    /// Continues with the next kind, also if the server refuses to list this one.
    pub(in crate::server) fn next_item_kind(mut self) -> Step {
        // Sorted here and not at the end: after a long list, this is not the event loop's thread.
        match self.item_kinds.pop() {
            Some(ItemKind::Tool) => self.listed.tools = std::mem::take(&mut self.listed.unordered).into(),
            Some(kind) => self.listed.items_of(kind).sort_by(|a, b| a.key.cmp(&b.key)),
            None => {}
        }
        (self.pages, self.cursor) = (0, None);
        self.allowance.next_item_kind();
        self.next_step()
    }

    fn next_step(mut self) -> Step {
        if !self.item_kinds.is_empty() {
            return Step::Request(self);
        }
        self.listed.left_out = self.allowance.left_out();
        Step::Complete(self.listed)
    }

    fn add_tool(&mut self, tool: Tool) {
        if !self.allowance.takes_key(&tool.name, ItemKind::Tool) {
            return;
        }
        let Listed { unordered, hidden, mirrors, .. } = &mut *self.listed;
        if self.rules.mirror {
            match Mirror::read(&tool.definition) {
                Ok(Some(mirror)) => _ = mirrors.insert(tool.name.clone(), mirror),
                Ok(None) => {}
                Err(reason) => return tracing::warn!(tool = %tool.name, "left out: {reason}"),
            }
        }
        unordered.push(if self.rules.sanitize { hidden.tool(tool) } else { tool });
    }

    fn add_item(&mut self, item: Item, item_kind: ItemKind) {
        if !self.allowance.takes_key(&item.key, item_kind) {
            return;
        }
        let hidden = &mut self.listed.hidden;
        let item = if self.rules.sanitize { hidden.item(item, item_kind) } else { Some(item) };
        self.listed.items_of(item_kind).extend(item);
    }
}

impl Listed {
    fn items_of(&mut self, item_kind: ItemKind) -> &mut Vec<Item> {
        match item_kind {
            ItemKind::Template => &mut self.items.templates,
            ItemKind::Prompt => &mut self.items.prompts,
            ItemKind::Skill => &mut self.items.skills,
            ItemKind::Tool | ItemKind::Resource => &mut self.items.resources,
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
            Step::Complete(_) => ("", String::new()),
        }
    }

    #[test]
    fn tools_list_is_paged_and_followed_by_prompts_list() {
        let capabilities = ServerCapabilities { tools: true, prompts: true, ..ServerCapabilities::default() };
        let step = Listing::begin(capabilities, ReadRules::default());
        assert_eq!(requested(&step), ("tools/list", "{}".to_owned()));
        let step = page(step, r#"{"tools":[{"name":"a"}],"nextCursor":"2"}"#);
        assert_eq!(requested(&step), ("tools/list", r#"{"cursor":"2"}"#.to_owned()));
        let step = page(step, r#"{"tools":[{"name":"b"},{"nameless":1}],"nextCursor":"2"}"#);
        assert_eq!(requested(&step), ("prompts/list", "{}".to_owned()), "the cursor repeats itself");
        let Step::Complete(listed) = page(step, r#"{"prompts":[{"name":"p"}]}"#) else {
            panic!("not complete")
        };
        assert_eq!(listed.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!((listed.items.prompts.len(), listed.left_out), (1, None));
    }

    #[test]
    fn definitions_are_cleaned_and_mirrors_read_with_their_page() {
        let capabilities = ServerCapabilities { tools: true, prompts: true, ..ServerCapabilities::default() };
        let step = Listing::begin(capabilities, ReadRules { sanitize: true, mirror: true });
        let schema = |kind| {
            format!(r#"{{"type":"object","properties":{{"a":{{"type":"{kind}","x-mcp-header":"A"}}}}}}"#)
        };
        let (good, bad) = (schema("string"), schema("number"));
        let tools = format!(
            r#"{{"name":"a","description":"do\u200bit","inputSchema":{good}}},{{"name":"b","inputSchema":{bad}}}"#
        );
        let step = page(step, &format!(r#"{{"tools":[{tools}]}}"#));
        let Step::Complete(listed) = page(step, r#"{"prompts":[{"name":"p","description":"x\u200b"}]}"#)
        else {
            panic!("not complete")
        };
        let [tool] = &listed.tools[..] else { panic!("{:?}", listed.tools) };
        assert!(String::from_utf8_lossy(&tool.definition).contains("doit"), "{tool:?}");
        let places: Vec<_> = listed.hidden.places.iter().map(|place| place.what.as_str()).collect();
        assert_eq!(places, ["tool a", "prompt p"]);
        assert_eq!(listed.mirrors.keys().collect::<Vec<_>>(), ["a"]);
    }

    /// The parts of a listing that a server has filled by repeating these pages until it was stopped.
    fn filled(
        capabilities: ServerCapabilities,
        definition: impl Fn(usize) -> String,
        per_page: usize,
    ) -> Listed {
        let mut step = Listing::begin(capabilities, ReadRules::default());
        for number in 0.. {
            step = match step {
                Step::Complete(listed) => return *listed,
                Step::Request(_) => {
                    let items = (0..per_page).map(|item| definition(number * per_page + item));
                    let (items, cursor) = (items.collect::<Vec<_>>().join(","), number);
                    page(step, &format!(r#"{{"tools":[{items}],"nextCursor":"{cursor}"}}"#))
                }
            };
        }
        unreachable!("it is stopped")
    }

    #[test]
    fn tools_list_without_an_end_takes_no_more_memory_than_its_limit() {
        let tools = ServerCapabilities { tools: true, ..ServerCapabilities::default() };
        let described = |number: usize, length: usize| {
            format!(r#"{{"name":"t{number}","description":"{}"}}"#, "x".repeat(length))
        };
        let listed = filled(tools, |number| described(number, 900_000), 4);
        let bytes: usize = listed.tools.iter().map(|tool| tool.definition.len()).sum();
        assert!(bytes <= size_limit::DEFINITIONS && listed.tools.len() > 60, "{bytes}");
        assert_eq!(listed.left_out, Some(LeftOut { rest: true, ..LeftOut::default() }));

        let listed = filled(tools, |number| described(number, 1), 3_000);
        assert_eq!((listed.tools.len(), listed.left_out.unwrap().rest), (size_limit::ITEMS, true));
        let listed = filled(tools, |number| described(number, 1), 1);
        assert_eq!((listed.tools.len(), listed.left_out.unwrap().rest), (size_limit::PAGES, true));
    }

    #[test]
    fn tools_list_leaves_out_definitions_over_a_limit_and_keeps_the_others() {
        let step = Listing::begin(
            ServerCapabilities { tools: true, ..ServerCapabilities::default() },
            ReadRules::default(),
        );
        let (long, name) = ("x".repeat(size_limit::DEFINITION), "n".repeat(size_limit::NAME + 1));
        let result = format!(
            r#"{{"tools":[{{"name":"a","description":"{long}"}},{{"name":"{name}"}},{{"name":"b"}}]}}"#
        );
        let Step::Complete(listed) = page(step, &result) else { panic!("not complete") };
        assert_eq!(listed.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["b"]);
        assert_eq!(listed.left_out, Some(LeftOut { long: 1, long_names: 1, rest: false }));
    }

    #[test]
    fn a_modern_list_request_carries_meta_behind_its_cursor() {
        let step = Listing::begin(
            ServerCapabilities { tools: true, ..ServerCapabilities::default() },
            ReadRules::default(),
        );
        let Step::Request(listing) = page(step, r#"{"tools":[],"nextCursor":"c"}"#) else {
            panic!("complete")
        };
        assert_eq!(listing.params(Some(r#""a":1"#)), r#"{"cursor":"c","_meta":{"a":1}}"#);
    }
}
