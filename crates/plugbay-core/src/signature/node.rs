//! A place in a schema. Keys keep their order, and references are followed within the document.

use std::{borrow::Cow, cell::RefCell, collections::HashMap, rc::Rc};

use super::steps::StepsLeft;
use crate::wire::{Cursor, Span, Walk, key_value, skip, string_value};

/// How many references may lead to one another.
const HOPS: usize = 8;
/// A longer reference leads nowhere.
const LONGEST_REFERENCE: usize = 1 << 10;
/// A longer key is no keyword, even if each of its letters is escaped.
const LONGEST_KEYWORD: usize = 64;

/// A schema that is being read, as far as there are steps. Anything that is not read is ignored.
pub(super) struct Document<'a> {
    json: &'a [u8],
    steps: &'a StepsLeft,
    /// The members of objects on the way to targets of references, by where they start.
    objects: RefCell<HashMap<usize, Rc<ByKey>>>,
}

type ByKey = HashMap<String, Span>;

impl<'a> Document<'a> {
    pub(super) fn new(json: &'a [u8], steps: &'a StepsLeft) -> Self {
        Self { json, steps, objects: RefCell::default() }
    }

    pub(super) fn root(&self) -> Node<'_> {
        Node { document: self, span: 0..self.json.len() }
    }

    /// The place of a JSON pointer, without the `#` before it.
    fn target(&self, pointer: &str) -> Option<Node<'_>> {
        let mut span = 0..self.json.len();
        for key in pointer.split('/').skip(1) {
            let key = key.replace("~1", "/").replace("~0", "~");
            span = self.object(&span)?.get(&*key)?.clone();
        }
        Some(Node { document: self, span })
    }

    /// The members of an object. All references into it need only one pass.
    fn object(&self, span: &Span) -> Option<Rc<ByKey>> {
        self.steps.item()?;
        if let Some(known) = self.objects.borrow().get(&span.start) {
            return Some(Rc::clone(known));
        }
        let members = Items::all(self.json, self.steps, span)?;
        let members = members.filter_map(|item| Some((self.decoded(&item.key)?.into_owned(), item.value)));
        let object: Rc<ByKey> = Rc::new(members.collect());
        self.objects.borrow_mut().insert(span.start, Rc::clone(&object));
        Some(object)
    }

    /// The text of a key.
    fn decoded(&self, key: &Span) -> Option<Cow<'a, str>> {
        let key = &self.json[key.clone()];
        self.steps.bytes(key.len())?;
        if memchr::memchr(b'\\', key).is_some() {
            self.steps.text(key.len())?;
        }
        Some(key_value(key))
    }
}

/// A value in a schema: nothing of it has been read yet.
#[derive(Clone)]
pub(super) struct Node<'a> {
    document: &'a Document<'a>,
    span: Span,
}

impl<'a> Node<'a> {
    /// The schema at this place, or the one that its references lead to.
    pub(super) fn schema(&self) -> Schema<'a> {
        let mut schema = self.keywords();
        for _ in 0..HOPS {
            let target = schema.get("$ref").and_then(|reference| {
                let pointer = reference.text(LONGEST_REFERENCE)?;
                self.document.target(pointer.strip_prefix('#')?)
            });
            let Some(target) = target else { break };
            schema = target.keywords();
        }
        schema
    }

    /// Reads the keywords in one pass.
    fn keywords(&self) -> Schema<'a> {
        let mut schema = Schema { document: self.document, places: [const { None }; KEYWORDS.len()] };
        let Document { json, steps, .. } = self.document;
        for Item { key, value } in Items::all(json, steps, &self.span).into_iter().flatten() {
            let key = if key.len() <= LONGEST_KEYWORD { self.document.decoded(&key) } else { None };
            if let Some(at) = key.and_then(|key| KEYWORDS.iter().position(|keyword| *keyword == key)) {
                schema.places[at] = Some(value); // the last of several wins, as in most parsers
            }
        }
        schema
    }

    /// At most so many bytes of the text as it is written.
    pub(super) fn raw(&self, longest: usize) -> &'a str {
        let json = &self.document.json[self.span.clone()];
        let cut = &json[..json.len().min(longest)];
        let end = std::str::from_utf8(cut).map_or_else(|error| error.valid_up_to(), str::len);
        std::str::from_utf8(&cut[..end]).unwrap_or_default()
    }

    pub(super) fn is_object(&self) -> bool {
        self.document.json.get(self.span.start) == Some(&b'{')
    }

    /// The text of a string, if it has at most so many bytes with its quotes.
    pub(super) fn text(&self, longest: usize) -> Option<Cow<'a, str>> {
        let json = &self.document.json[self.span.clone()];
        if json.len() > longest {
            return None;
        }
        self.document.steps.item()?;
        self.document.steps.text(json.len())?;
        string_value(json)
    }

    /// The elements of an array, as far as they are asked for.
    pub(super) fn elements(self) -> impl Iterator<Item = Self> {
        self.items(b'[').map(|(_, element)| element)
    }

    /// The members of an object, as far as they are asked for.
    pub(super) fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Self)> {
        self.items(b'{').map_while(|(key, value)| Some((value.document.decoded(&key)?, value)))
    }

    fn items(self, open: u8) -> impl Iterator<Item = (Span, Self)> {
        let document = self.document;
        let items = Items::of(document.json, document.steps, &self.span, open);
        items.map(move |Item { key, value }| (key, Self { document, span: value }))
    }
}

/// The keywords on which the kind of a value depends.
const KEYWORDS: [&str; 10] =
    ["$ref", "const", "enum", "anyOf", "oneOf", "allOf", "type", "properties", "required", "items"];

/// A schema whose keywords were read.
pub(super) struct Schema<'a> {
    document: &'a Document<'a>,
    places: [Option<Span>; KEYWORDS.len()],
}

impl<'a> Schema<'a> {
    /// The value of one of the `KEYWORDS`.
    pub(super) fn get(&self, keyword: &str) -> Option<Node<'a>> {
        let at = KEYWORDS.iter().position(|known| *known == keyword)?;
        Some(Node { document: self.document, span: self.places[at].clone()? })
    }

    /// The elements of a keyword's array.
    pub(super) fn list(&self, keyword: &str) -> impl Iterator<Item = Node<'a>> + use<'a> {
        self.get(keyword).into_iter().flat_map(Node::elements)
    }

    /// The members of a keyword's object.
    pub(super) fn members(&self, keyword: &str) -> impl Iterator<Item = (Cow<'a, str>, Node<'a>)> + use<'a> {
        self.get(keyword).into_iter().flat_map(Node::members)
    }
}

/// A member of an object or an element of an array; an element has an empty key.
struct Item {
    /// With its quotes.
    key: Span,
    value: Span,
}

/// The members of an object, or the elements of an array, which must have been checked before. Each takes steps.
struct Items<'a> {
    json: &'a [u8],
    cursor: Cursor<'a>,
    steps: &'a StepsLeft,
    walk: Option<Walk>,
    has_keys: bool,
    /// The steps of all bytes were taken before.
    is_paid: bool,
}

impl<'a> Items<'a> {
    /// All members of an object, if there are steps to pass all of its bytes.
    fn all(json: &'a [u8], steps: &'a StepsLeft, span: &Span) -> Option<Self> {
        steps.bytes(span.len())?;
        Some(Self { is_paid: true, ..Self::of(json, steps, span, b'{') })
    }

    /// As many items as are asked for. `open`: the bracket that begins such a value; any other has no items.
    fn of(json: &'a [u8], steps: &'a StepsLeft, span: &Span, open: u8) -> Self {
        let mut cursor = Cursor::new(&json[..span.end], span.start);
        let walk = Walk::open(&mut cursor, open, 0).ok();
        Self { json, cursor, steps, walk, has_keys: open == b'{', is_paid: false }
    }

    fn advance(&mut self) -> Option<Item> {
        self.steps.item()?;
        let start = self.cursor.at();
        if !self.walk.as_mut()?.advance(&mut self.cursor).ok()? {
            return None;
        }
        let key = if self.has_keys { self.key()? } else { 0..0 };
        let value = self.cursor.checked_value().ok()?;
        if !self.is_paid {
            self.steps.bytes(self.cursor.at() - start)?;
        }
        Some(Item { key, value })
    }

    fn key(&mut self) -> Option<Span> {
        self.cursor.peek().ok().filter(|first| *first == b'"')?;
        let start = self.cursor.at();
        let end = skip::string_end(self.json, start)?;
        self.cursor.move_to(end);
        self.cursor.expect(b':').ok()?;
        Some(start..end)
    }
}

impl Iterator for Items<'_> {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        let item = self.advance();
        if item.is_none() {
            self.walk = None;
        }
        item
    }
}
