//! The quick check: one pass over the bytes of arguments that are right, which most are.
//!
//! It accepts nothing that the full check would reject or repair. Where it cannot tell, it gives up, and the
//! full check decides.

use smallvec::SmallVec;

use super::{
    compiled::{Additional, CompiledSchema, Node, NodeId, ObjectRules},
    keywords::same,
    raw::Kind,
};
use crate::wire::{Cursor, Span, Walk, string_value};

/// How many steps a call may take, with one more for each byte of its arguments, and at most how many in all.
const STEPS: (usize, usize) = (4_000, 600_000);
/// How many bytes can be read once more in the time of a step.
const READ: usize = 64;
/// How many schemas are followed into each other: they may lead to themselves.
const DEPTH: u32 = 96;
/// More members than this that no schema names are left to the full check.
const MOST_UNNAMED: usize = 32;

/// Whether arguments fit their schema, with every key spelt as it should be. `false`: perhaps not.
pub(super) fn accepts(schema: &CompiledSchema, json: &[u8]) -> bool {
    if schema.nodes.is_empty() || simdutf8::basic::from_utf8(json).is_err() {
        return false;
    }
    let mut check = Check { schema, json, steps: (STEPS.0 + json.len()).min(STEPS.1) };
    let mut cursor = Cursor::new(json, 0);
    let place = Place { depth: DEPTH, nesting: 1, alone: true, root: true };
    json.first() == Some(&b'{')
        && check.visit(0, &mut cursor, place) == Some(Keys::Right)
        && cursor.at() == json.len()
}

/// Whether the keys of all objects in a value are spelt as they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Keys {
    /// The schema that was read does not name some keys; another one may name them, or something like them.
    Unclear,
    Right,
}

/// Where a value stands.
#[derive(Clone, Copy)]
struct Place {
    /// How many schemas may still be followed.
    depth: u32,
    /// How deep the value is nested.
    nesting: u32,
    /// No other schema applies to this value.
    alone: bool,
    /// The arguments as a whole.
    root: bool,
}

impl Place {
    fn shared(self) -> Self {
        Self { alone: false, ..self }
    }

    fn inside(self) -> Self {
        Self { nesting: self.nesting + 1, root: false, ..self }
    }
}

struct Check<'a> {
    schema: &'a CompiledSchema,
    json: &'a [u8],
    steps: usize,
}

impl<'a> Check<'a> {
    /// Reads a value that fits; `None` if it does not, or if only the full check can tell.
    fn visit(&mut self, id: NodeId, cursor: &mut Cursor<'a>, place: Place) -> Option<Keys> {
        let depth = place.depth.checked_sub(1)?;
        let place = Place { depth, ..place };
        let schema = self.schema;
        let node = schema.nodes.get(id as usize)?.as_ref()?;
        if let Some(target) = node.target {
            self.step(1)?;
            return self.visit(target, cursor, place);
        }
        let kind = Kind::at(cursor.peek().ok()?);
        let start = cursor.clone();
        let mut keys = self.own(node, kind, cursor, Place { alone: place.alone && node.alone, ..place })?;
        self.step(1 + (cursor.at() - start.at()) / READ)?;
        if kind == Kind::Null && node.nullable {
            return node.parts.is_empty().then_some(keys);
        }
        for part in &node.parts {
            keys = keys.max(self.visit(*part, &mut start.clone(), place.shared())?);
        }
        if let Some(branches) = &node.any_of {
            let fitting =
                branches.iter().filter_map(|id| self.visit(*id, &mut start.clone(), place.shared()));
            let fitting = fitting.max()?;
            // Below one of the names that models put around arguments, a key of an alternative may be a mistake.
            keys = if place.root { keys } else { keys.max(fitting) };
        }
        Some(keys)
    }

    /// Reads a value that fits the keywords of one schema.
    fn own(&mut self, node: &Node, kind: Kind, cursor: &mut Cursor<'a>, place: Place) -> Option<Keys> {
        if kind == Kind::Null && node.nullable {
            cursor.value(place.nesting).ok()?;
            return Some(Keys::Right);
        }
        if !node.types.may_allow(kind) {
            return None;
        }
        let start = cursor.at();
        let keys = match kind {
            Kind::Object => self.object(&node.object, cursor, place)?,
            Kind::Array => self.array(node, cursor, place)?,
            _ => {
                let span = cursor.value(place.nesting).ok()?;
                self.fits_scalar(node, kind, &self.json[span])?.then_some(Keys::Right)?
            }
        };
        let json = &self.json[start..cursor.at()];
        if let Some(choices) = &node.choices {
            self.step(choices.len() * (1 + json.len() / READ))?;
            choices.iter().any(|choice| same(json, choice)).then_some(())?;
        }
        Some(keys)
    }

    fn object(&mut self, rules: &ObjectRules, cursor: &mut Cursor<'a>, place: Place) -> Option<Keys> {
        let mut seen = 0u64;
        let mut unnamed = SmallVec::<[&[u8]; 8]>::new();
        let mut keys = Keys::Right;
        let mut walk = Walk::open(cursor, b'{', place.nesting).ok()?;
        while walk.advance(cursor).ok()? {
            let key = self.key(cursor)?;
            let named = rules.properties.binary_search_by(|(name, _)| name.as_bytes().cmp(key));
            keys = keys.min(match named {
                Ok(index) if seen & 1 << index == 0 => {
                    seen |= 1 << index;
                    self.visit(rules.properties[index].1, cursor, place.inside())?
                }
                Ok(_) => return None,
                Err(_) => {
                    note_once(&mut unnamed, key)?;
                    self.additional(rules, cursor, place)?
                }
            });
        }
        let complete = seen & rules.required == rules.required;
        (complete && rules.count.is_none_or(|count| count.allows(|| walk.count))).then_some(keys)
    }

    /// The value of a key that the schema does not name.
    fn additional(&mut self, rules: &ObjectRules, cursor: &mut Cursor<'a>, place: Place) -> Option<Keys> {
        let right = |is_right: bool| if is_right { Keys::Right } else { Keys::Unclear };
        match rules.additional {
            Additional::Forbidden => None,
            Additional::Unsaid => {
                self.any(cursor, place.inside().nesting)?;
                Some(right(place.alone && rules.properties.is_empty()))
            }
            Additional::Schema(id) => {
                let is_scalar = !matches!(Kind::at(cursor.peek().ok()?), Kind::Object | Kind::Array);
                let keys = self.visit(id, cursor, place.inside())?;
                Some(right(is_scalar || place.alone && keys == Keys::Right))
            }
        }
    }

    fn array(&mut self, node: &Node, cursor: &mut Cursor<'a>, place: Place) -> Option<Keys> {
        let mut keys = Keys::Right;
        let mut walk = Walk::open(cursor, b'[', place.nesting).ok()?;
        while walk.advance(cursor).ok()? {
            if let Some(items) = node.items {
                keys = keys.min(self.visit(items, cursor, place.inside())?);
                continue;
            }
            let is_scalar = self.any(cursor, place.inside().nesting)?;
            if !is_scalar && !place.alone {
                keys = Keys::Unclear;
            }
        }
        node.item_count.allows(|| walk.count).then_some(keys)
    }

    /// Reads a value that no schema describes: no key may stand twice in an object. `true`: it is a scalar.
    fn any(&mut self, cursor: &mut Cursor<'a>, nesting: u32) -> Option<bool> {
        self.step(1)?;
        match cursor.peek().ok()? {
            b'{' => {
                let mut names = SmallVec::<[&[u8]; 8]>::new();
                let mut walk = Walk::open(cursor, b'{', nesting).ok()?;
                while walk.advance(cursor).ok()? {
                    note_once(&mut names, self.key(cursor)?)?;
                    self.any(cursor, nesting + 1)?;
                }
                Some(false)
            }
            b'[' => {
                let mut walk = Walk::open(cursor, b'[', nesting).ok()?;
                while walk.advance(cursor).ok()? {
                    self.any(cursor, nesting + 1)?;
                }
                Some(false)
            }
            _ => cursor.value(nesting).ok().map(|_| true),
        }
    }

    /// Reads a key, without its quotes, and the colon after it. A key with escapes is left to the full check.
    fn key(&self, cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
        let (Span { start, end }, escaped) = cursor.string().ok()?;
        cursor.expect(b':').ok()?;
        (!escaped).then(|| &self.json[start + 1..end - 1])
    }

    /// Whether a scalar fits; `None` if only the full check can tell.
    fn fits_scalar(&mut self, node: &Node, kind: Kind, json: &[u8]) -> Option<bool> {
        match kind {
            Kind::String if node.length.is_free() && node.pattern.is_none() => Some(true),
            Kind::String => {
                let text = string_value(json)?;
                if let Some(pattern) = &node.pattern {
                    self.step(pattern.cost(&text))?;
                    if pattern.matches(&text) == Some(false) {
                        return Some(false);
                    }
                }
                Some(node.length.allows(|| text.chars().count()))
            }
            Kind::Number => Some(
                node.types.allow(kind, json)
                    && node.bounds.as_ref().is_none_or(|bounds| bounds.allow(json) != Some(false)),
            ),
            _ => Some(true),
        }
    }

    fn step(&mut self, cost: usize) -> Option<()> {
        self.steps = self.steps.checked_sub(cost)?;
        Some(())
    }
}

fn note_once<'k>(names: &mut SmallVec<[&'k [u8]; 8]>, key: &'k [u8]) -> Option<()> {
    let is_new = names.len() < MOST_UNNAMED && !names.contains(&key);
    is_new.then(|| names.push(key))
}
