//! The profile of a JSON text: counts, ranges and few distinct values of everything in it, gathered in one pass.
//!
//! Memory is bounded for any input. Objects of one array share a node; keys that repeat in the same order are
//! found without a search.

mod node;
mod rows;

use node::MOST_KEYS;
pub(crate) use node::{Node, Numbers, Strings};
pub(crate) use rows::Rows;
use rows::Starts;

use super::{Key, Number, Object, SHAPE_LIMITS, Shape};
use crate::{
    text::{string_start, stripped},
    wire::{Cursor, ScanError, Span, Walk, skip},
};

/// How many nodes are kept; further values are only counted with their parents.
const NODES: usize = 2048;
/// From this many elements on, an array is a table, of which rows are shown.
const FEW: usize = 3;
/// After `READ_ALL` bytes, only some elements of an array, or members of a map, are read: `READ` of each
/// `GROUP`.
const READ_ALL: usize = 512 << 10;
const READ: usize = 16;
const GROUP: usize = 256;
/// An object of at least this many members of one kind is a map.
const MAP: usize = 12;
/// Characters of a key.
const KEY: usize = 64;

pub(crate) type Id = usize;

#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) nodes: Vec<Node>,
    /// The array, or the map, that makes up most of the text.
    pub(crate) rows: Option<Rows>,
    /// The longest string, with its quotes.
    pub(crate) longest: (Id, Span),
}

/// The node of the whole text.
pub(crate) const ROOT: Id = 0;

impl Profile {
    /// Reads one JSON value.
    pub(crate) fn of(json: &[u8]) -> Result<Self, ScanError> {
        let mut reader = Reader::new(json);
        let mut cursor = Cursor::new(json, 0);
        reader.value(&mut cursor, Some(ROOT), 0)?;
        cursor.end()?;
        Ok(reader.finish())
    }

    /// Reads one value per line, as the elements of one array.
    pub(crate) fn of_lines(text: &str) -> Result<Self, ScanError> {
        let mut reader = Reader::new(text.as_bytes());
        let mut cursor = Cursor::new(text.as_bytes(), 0);
        let item = reader.item(ROOT);
        let mut starts = Starts::default();
        while cursor.peek().is_ok() {
            if is_passed(starts.count, cursor.at()) {
                pass_lines(text, &mut cursor, &mut starts)?;
                continue;
            }
            starts.note(cursor.at());
            reader.value(&mut cursor, item, 1)?;
        }
        reader.nodes[ROOT].arrays.note(starts.count);
        reader.nodes[ROOT].arrays.passed = starts.passed;
        reader.rows = Some(starts.rows(ROOT, text.len()));
        Ok(reader.finish())
    }

    pub(crate) fn shape(&self) -> Shape {
        self.shape_of(ROOT, SHAPE_LIMITS.depth, &mut Vec::new()).bounded()
    }

    fn shape_of(&self, id: Id, depth: usize, above: &mut Vec<Id>) -> Shape {
        if depth == 0 || above.contains(&id) {
            return Shape { recursive: true, ..Shape::default() };
        }
        above.push(id);
        let node = &self.nodes[id];
        let number = match (node.numbers.integers, node.numbers.others) {
            (0, 0) => None,
            (_, 0) => Some(Number::Integer),
            _ => Some(Number::Any),
        };
        let array = (node.arrays.count > 0).then(|| {
            let item = node.arrays.item.map(|item| self.shape_of(item, depth - 1, above));
            Box::new(item.unwrap_or_default())
        });
        let object = (node.objects.count > 0).then(|| self.object_of(node, depth, above));
        above.pop();
        Shape {
            null: node.nulls > 0,
            boolean: node.trues + node.falses > 0,
            number,
            string: (node.strings.count > 0).then_some(node.strings.format),
            array,
            object,
            recursive: false,
        }
    }

    fn object_of(&self, node: &Node, depth: usize, above: &mut Vec<Id>) -> Object {
        if let Some(map) = node.objects.map {
            return Object::Map(Box::new(self.shape_of(map, depth - 1, above)));
        }
        let mut keys: Vec<Key> = Vec::new();
        for key in &node.objects.keys {
            let name = key_name(&key.raw);
            let optional = key.count < node.objects.count;
            let shape = key.node.map(|id| self.shape_of(id, depth - 1, above)).unwrap_or_default();
            // Two keys may have one name: without hidden characters, or cut.
            if let Some(same) = keys.iter_mut().find(|known| known.name == name) {
                same.optional &= optional;
                same.shape.absorb(shape, false);
            } else {
                keys.push(Key { name, optional, once: false, shape });
            }
        }
        Object::Keys { keys, more: node.objects.more > 0 }
    }
}

/// A key for people and models: decoded, without hidden characters, not too long.
pub(crate) fn key_name(raw: &[u8]) -> String {
    let (start, is_cut) = string_start(raw, KEY);
    let mut name = stripped(&start).into_owned();
    name.push_str(if is_cut { "…" } else { "" });
    name
}

/// Whether the rest of a group of elements is skipped, at `at` and after `before` elements.
fn is_passed(before: usize, at: usize) -> bool {
    before % GROUP == READ && at > READ_ALL && before > GROUP
}

/// Counts lines from the cursor on that look like objects or arrays, up to the end of the group.
fn pass_lines(text: &str, cursor: &mut Cursor<'_>, starts: &mut Starts) -> Result<(), ScanError> {
    let mut at = cursor.at();
    for line in text[at..].split_inclusive('\n') {
        if starts.count.is_multiple_of(GROUP) {
            break;
        }
        match line.trim().as_bytes() {
            [] => {}
            [b'{', .., b'}'] | [b'[', .., b']'] => starts.pass(1, at),
            _ => return Err(ScanError::Unexpected(at)),
        }
        at += line.len();
    }
    cursor.move_to(at);
    Ok(())
}

struct Reader<'a> {
    json: &'a [u8],
    nodes: Vec<Node>,
    rows: Option<Rows>,
    longest: (Id, Span),
    /// Memory that no open array uses.
    spare: Vec<Starts>,
}

impl<'a> Reader<'a> {
    fn new(json: &'a [u8]) -> Self {
        Self { json, nodes: vec![Node::default()], rows: None, longest: (ROOT, 0..0), spare: Vec::new() }
    }

    fn value(&mut self, cursor: &mut Cursor<'_>, id: Option<Id>, depth: u32) -> Result<(), ScanError> {
        let first = cursor.peek()?;
        let Some(id) = id else { return cursor.value(depth).map(|_| ()) };
        match first {
            b'"' => {
                let (span, escaped) = cursor.string()?;
                let text = &self.json[span.start + 1..span.end - 1];
                self.nodes[id].strings.note(text, escaped);
                if span.len() > self.longest.1.len() {
                    self.longest = (id, span);
                }
            }
            b'{' => self.object(cursor, id, depth)?,
            b'[' => self.array(cursor, id, depth)?,
            _ => {
                let span = cursor.value(depth)?;
                let node = &mut self.nodes[id];
                match first {
                    b't' => node.trues += 1,
                    b'f' => node.falses += 1,
                    b'n' => node.nulls += 1,
                    _ => node.numbers.note(&self.json[span]),
                }
            }
        }
        Ok(())
    }

    fn object(&mut self, cursor: &mut Cursor<'_>, id: Id, depth: u32) -> Result<(), ScanError> {
        let mut members = Walk::open(cursor, b'{', depth)?;
        let start = cursor.at() - 1;
        self.nodes[id].objects.count += 1;
        let mut place = 0;
        while members.advance(cursor)? {
            if is_passed(members.count - 1, cursor.at()) && self.nodes[id].objects.map.is_some() {
                let passed = skip::elements(self.json, cursor.at(), GROUP - READ);
                members.pass(passed.count.saturating_sub(1));
                self.nodes[id].objects.passed += passed.count;
                cursor.move_to(passed.next);
                continue;
            }
            let (span, _) = cursor.string()?;
            cursor.expect(b':')?;
            let key = &self.json[span.start + 1..span.end - 1];
            let child = self.member(id, key, &mut place);
            self.value(cursor, child, depth + 1)?;
        }
        self.nodes[id].objects.members += members.count;
        if members.count >= MAP && !self.has_rows(start..cursor.at(), members.count) {
            let (span, samples) = (start..cursor.at(), Vec::new());
            self.offer(Rows { node: id, span, count: members.count, is_map: true, samples });
        }
        Ok(())
    }

    fn array(&mut self, cursor: &mut Cursor<'_>, id: Id, depth: u32) -> Result<(), ScanError> {
        let mut elements = Walk::open(cursor, b'[', depth)?;
        let mut starts = self.spare.pop().unwrap_or_default();
        let begin = cursor.at() - 1;
        starts.reset(begin);
        let mut item = self.nodes[id].arrays.item;
        while elements.advance(cursor)? {
            cursor.peek()?;
            if is_passed(starts.count, cursor.at()) {
                let passed = skip::elements(self.json, cursor.at(), GROUP - READ);
                starts.pass(passed.count, passed.last);
                elements.pass(passed.count.saturating_sub(1));
                cursor.move_to(passed.next);
                continue;
            }
            starts.note(cursor.at());
            if item.is_none() {
                item = self.item(id);
            }
            self.value(cursor, item, depth + 1)?;
        }
        self.nodes[id].arrays.note(starts.count);
        self.nodes[id].arrays.passed += starts.passed;
        if !self.has_rows(begin..cursor.at(), starts.count) {
            self.offer(starts.rows(id, cursor.at()));
        }
        self.spare.push(starts);
        Ok(())
    }

    /// Whether the known rows are better in any case, as they are for most arrays.
    fn has_rows(&self, span: Span, count: usize) -> bool {
        count == 0
            || self.rows.as_ref().is_some_and(|best| span.len() <= best.span.len() && best.count >= FEW)
    }

    /// Takes better rows: those of the outermost table, or of the longest if none is in another.
    fn offer(&mut self, rows: Rows) {
        let is_better = match &self.rows {
            None => rows.count > 0,
            Some(best) => {
                let is_table = rows.count >= FEW || best.count < FEW;
                is_table && rows.span.len() > best.span.len() && (!rows.is_map || !best.is_in(&rows))
            }
        };
        if is_better {
            self.rows = Some(rows);
        }
    }

    fn item(&mut self, array: Id) -> Option<Id> {
        if self.nodes[array].arrays.item.is_none() {
            let item = self.add(Node { via: self.nodes[array].via, array: Some(array), ..Node::default() });
            self.nodes[array].arrays.item = item;
        }
        self.nodes[array].arrays.item
    }

    fn add(&mut self, node: Node) -> Option<Id> {
        if self.nodes.len() == NODES {
            return None;
        }
        self.nodes.push(node);
        Some(self.nodes.len() - 1)
    }

    /// The node of a member's value. `place` is where the key is expected among those that are known.
    fn member(&mut self, id: Id, key: &[u8], place: &mut usize) -> Option<Id> {
        let objects = &mut self.nodes[id].objects;
        if let Some(map) = objects.map {
            return Some(map);
        }
        if let Some(at) = objects.find(key, *place) {
            *place = at + 1;
            objects.keys[at].count += 1;
            return objects.keys[at].node;
        }
        if objects.keys.len() == MOST_KEYS {
            if !self.is_alike(id) {
                self.nodes[id].objects.more += 1;
                return None;
            }
            return self.make_map(id);
        }
        let child = self.inner(id, key);
        self.nodes[id].objects.insert(key, child);
        *place = self.nodes[id].objects.keys.len();
        child
    }

    /// The node of a member with the same key as the object itself: values that contain their like share one.
    fn inner(&mut self, id: Id, key: &[u8]) -> Option<Id> {
        let outer = self.nodes[id].via;
        if let Some((object, at)) = outer
            && *self.nodes[object].objects.keys[at].raw == *key
        {
            return Some(self.nodes[id].array.unwrap_or(id));
        }
        let via = Some((id, self.nodes[id].objects.keys.len()));
        self.add(Node { via, ..Node::default() })
    }

    /// Whether all members of an object are of one kind.
    fn is_alike(&self, id: Id) -> bool {
        let children = || self.nodes[id].objects.keys.iter().filter_map(|key| key.node);
        let mut kinds = children().map(|child| self.nodes[child].kinds()).filter(|kinds| *kinds != 0);
        let first = kinds.next();
        kinds.all(|kinds| Some(kinds) == first) && children().all(|child| child > id)
    }

    /// Makes one node for all members from now on.
    fn make_map(&mut self, id: Id) -> Option<Id> {
        let keys = self.nodes[id].objects.take_keys();
        let mut children = keys.iter().filter_map(|key| key.node);
        let map = children.next()?;
        for child in children {
            self.absorb(map, child);
        }
        self.nodes[map].via = None;
        self.nodes[id].objects.map = Some(map);
        Some(map)
    }

    /// Adds what is known of one node to another. Both are trees below the same object, except for nodes that
    /// contain themselves.
    fn absorb(&mut self, into: Id, from: Id) {
        if into == from {
            return;
        }
        let mut node = std::mem::take(&mut self.nodes[from]);
        let keys = node.objects.take_keys();
        let (item, map) = (node.arrays.item, node.objects.map);
        self.nodes[into].add(node);
        match (self.nodes[into].arrays.item, item) {
            (Some(own), Some(other)) => self.absorb(own, other),
            (own, other) => self.nodes[into].arrays.item = own.or(other),
        }
        if map.is_some() && self.nodes[into].objects.map.is_none() {
            self.make_map(into);
        }
        for key in keys {
            let own = self.nodes[into].objects.find(&key.raw, 0);
            match (self.nodes[into].objects.map, own) {
                (Some(map), _) => key.node.into_iter().for_each(|child| self.absorb(map, child)),
                (None, Some(at)) => {
                    self.nodes[into].objects.keys[at].count += key.count;
                    match (self.nodes[into].objects.keys[at].node, key.node) {
                        (Some(own), Some(other)) => self.absorb(own, other),
                        (own, other) => self.nodes[into].objects.keys[at].node = own.or(other),
                    }
                }
                (None, None) if self.nodes[into].objects.keys.len() < MOST_KEYS => {
                    self.nodes[into].objects.insert(&key.raw, key.node);
                    let last = self.nodes[into].objects.keys.len() - 1;
                    self.nodes[into].objects.keys[last].count = key.count;
                }
                (None, None) => self.nodes[into].objects.more += 1,
            }
        }
        match (self.nodes[into].objects.map, map) {
            (Some(own), Some(other)) => self.absorb(own, other),
            (own, other) => self.nodes[into].objects.map = own.or(other),
        }
    }

    fn finish(mut self) -> Profile {
        for id in (0..self.nodes.len()).rev() {
            if self.is_map(id) {
                self.make_map(id);
            }
        }
        let is_row = |rows: &Rows, nodes: &[Node]| !rows.is_map || nodes[rows.node].objects.map.is_some();
        let mut rows = self.rows.take().filter(|rows| is_row(rows, &self.nodes));
        if let Some(rows) = rows.as_mut().filter(|rows| rows.is_map) {
            rows.find_members(self.json);
        }
        Profile { nodes: self.nodes, rows, longest: self.longest }
    }

    /// Whether an object has many members whose values are objects with the same first key.
    fn is_map(&self, id: Id) -> bool {
        let keys = &self.nodes[id].objects.keys;
        let first = |key: &node::Known| {
            let objects = &self.nodes[key.node?].objects;
            objects.keys.first().map(|first| &first.raw)
        };
        keys.len() >= MAP
            && first(&keys[0]).is_some()
            && self.is_alike(id)
            && keys.iter().all(|key| first(key) == first(&keys[0]))
    }
}
