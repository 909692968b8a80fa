//! A place in a schema. Keys keep their order, and references are followed.

use crate::wire::{Members, Span, elements, string_value};

/// How many references may lead to one another.
const HOPS: usize = 8;

#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    json: &'a [u8],
    span: Span,
}

impl<'a> Node<'a> {
    pub(super) fn root(json: &'a [u8]) -> Self {
        Self { json, span: 0..json.len() }
    }

    pub(super) fn get(&self, key: &str) -> Option<Self> {
        Some(Self { json: self.json, span: Members::find(self.json, &self.span, key)? })
    }

    /// The text as it is written.
    pub(super) fn raw(&self) -> &'a str {
        std::str::from_utf8(&self.json[self.span.clone()]).unwrap_or_default()
    }

    pub(super) fn text(&self) -> Option<String> {
        string_value(&self.json[self.span.clone()]).map(std::borrow::Cow::into_owned)
    }

    pub(super) fn list(&self, key: &str) -> Vec<Self> {
        let Some(list) = self.get(key) else { return Vec::new() };
        elements(self.json, &list.span).into_iter().map(|span| Self { json: self.json, span }).collect()
    }

    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).iter().filter_map(Self::text).collect()
    }

    pub(super) fn members(&self, key: &str) -> Vec<(String, Self)> {
        let Some(object) = self.get(key) else { return Vec::new() };
        let member = |member: crate::wire::Member<'_>| {
            (member.key.into_owned(), Self { json: self.json, span: member.value })
        };
        Members::of(self.json, &object.span).flatten().map(member).collect()
    }

    /// Behind its references; where they lead nowhere, the place itself.
    pub(super) fn resolved(&self) -> Self {
        let mut node = self.clone();
        for _ in 0..HOPS {
            let Some(reference) = node.get("$ref").and_then(|reference| reference.text()) else {
                return node;
            };
            let Some(path) = reference.strip_prefix('#') else { return node };
            let step = |node: Self, key: &str| node.get(&key.replace("~1", "/").replace("~0", "~"));
            let root = Self::root(self.json);
            match path.split('/').skip(1).try_fold(root, step) {
                Some(found) => node = found,
                None => return node,
            }
        }
        node
    }
}
