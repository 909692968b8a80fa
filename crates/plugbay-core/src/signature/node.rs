//! A place in a schema. Keys keep their order, and references are followed within the document.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use crate::wire::{Members, Span, elements, string_value};

/// How many references may lead to one another.
const HOPS: usize = 8;
/// How much of a schema is read: this many bytes, and this many times its length. Branches multiply, and lead
/// to themselves. Anything that is not read is ignored.
const READ: (usize, usize) = (64 << 10, 32);

/// A schema that is being read.
pub(super) struct Document<'a> {
    json: &'a [u8],
    /// Bytes that may still be read.
    left: Cell<usize>,
    /// The targets of references, as far as they were followed.
    targets: RefCell<HashMap<String, Option<Span>>>,
}

impl<'a> Document<'a> {
    pub(super) fn new(json: &'a [u8]) -> Self {
        let left = Cell::new(READ.0 + READ.1 * json.len());
        Self { json, left, targets: RefCell::default() }
    }

    pub(super) fn root(&self) -> Node<'_> {
        Node { document: self, span: 0..self.json.len() }
    }

    /// The place of a JSON pointer, without the `#` before it.
    fn target(&self, pointer: &str) -> Option<Node<'_>> {
        let known = self.targets.borrow().get(pointer).cloned();
        let span = known.unwrap_or_else(|| {
            let mut found = Some(self.root());
            for key in pointer.split('/').skip(1) {
                found = found.and_then(|node| node.get(&key.replace("~1", "/").replace("~0", "~")));
            }
            let found = found.map(|node| node.span);
            self.targets.borrow_mut().insert(pointer.to_owned(), found.clone());
            found
        });
        Some(Node { document: self, span: span? })
    }
}

#[derive(Clone)]
pub(super) struct Node<'a> {
    document: &'a Document<'a>,
    span: Span,
}

impl<'a> Node<'a> {
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let json = self.read()?;
        Some(Self { span: Members::find(json, &self.span, key)?, ..*self })
    }

    /// The whole document, if this place in it may be read once more.
    fn read(&self) -> Option<&'a [u8]> {
        let left = self.document.left.get().checked_sub(1 + self.span.len());
        self.document.left.set(left.unwrap_or_default());
        left.map(|_| self.document.json)
    }

    /// The text as it is written.
    pub(super) fn raw(&self) -> &'a str {
        std::str::from_utf8(&self.document.json[self.span.clone()]).unwrap_or_default()
    }

    pub(super) fn text(&self) -> Option<String> {
        string_value(&self.document.json[self.span.clone()]).map(std::borrow::Cow::into_owned)
    }

    pub(super) fn list(&self, key: &str) -> Vec<Self> {
        let Some((list, json)) = self.get(key).and_then(|list| Some((list.clone(), list.read()?))) else {
            return Vec::new();
        };
        elements(json, &list.span).into_iter().map(|span| Self { span, ..*self }).collect()
    }

    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        self.list(key).iter().filter_map(Self::text).collect()
    }

    pub(super) fn members(&self, key: &str) -> Vec<(String, Self)> {
        let Some((object, json)) = self.get(key).and_then(|object| Some((object.clone(), object.read()?)))
        else {
            return Vec::new();
        };
        let member =
            |member: crate::wire::Member<'_>| (member.key.into_owned(), Self { span: member.value, ..*self });
        Members::of(json, &object.span).flatten().map(member).collect()
    }

    /// The place that its references lead to; the place itself if they lead nowhere.
    pub(super) fn resolved(&self) -> Self {
        let mut node = self.clone();
        for _ in 0..HOPS {
            let Some(reference) = node.get("$ref").and_then(|reference| reference.text()) else {
                return node;
            };
            let found = reference.strip_prefix('#').and_then(|pointer| self.document.target(pointer));
            match found {
                Some(found) => node = found,
                None => return node,
            }
        }
        node
    }
}
