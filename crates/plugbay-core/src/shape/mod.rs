//! The shape of JSON values: keys and types, never a value.
//!
//! Two shapes merge to one that fits the values of both. Shapes are bounded, and written as one line in the
//! notation of [`crate::signature`], so that a model can write `jq` before it has seen a result.

mod display;
mod fields;
mod format;
pub(crate) mod profile;
#[cfg(test)]
mod tests;

pub(crate) use display::{is_name, key_text};
pub use format::Format;
use profile::Profile;
use serde::{Deserialize, Serialize};

/// How large a shape may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShapeLimits {
    /// Keys of one object; further ones are counted as "more".
    pub keys: usize,
    /// Types in all.
    pub nodes: usize,
    pub depth: usize,
}

pub const SHAPE_LIMITS: ShapeLimits = ShapeLimits { keys: 64, nodes: 256, depth: 8 };

/// All that a value may be: a union, each kind at most once. If nothing is set, it is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    #[serde(rename = "z", default, skip_serializing_if = "is_false")]
    pub null: bool,
    #[serde(rename = "b", default, skip_serializing_if = "is_false")]
    pub boolean: bool,
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Number>,
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub string: Option<Format>,
    /// The elements of an array, all taken together.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Box<Shape>>,
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub object: Option<Object>,
    /// The value repeats the shape of an outer one with the same key, or goes deeper than the limit.
    #[serde(rename = "r", default, skip_serializing_if = "is_false")]
    pub recursive: bool,
}

/// The kind of numbers: only integers, or others too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Number {
    #[serde(rename = "i")]
    Integer,
    #[serde(rename = "n")]
    Any,
}

/// The members of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Object {
    /// Known keys, in the order in which they were first seen.
    #[serde(rename = "k")]
    Keys {
        #[serde(rename = "k")]
        keys: Vec<Key>,
        /// Some keys were left out.
        #[serde(rename = "m", default, skip_serializing_if = "is_false")]
        more: bool,
    },
    /// An object used as a map: any key, and one shape for all values.
    #[serde(rename = "m")]
    Map(Box<Shape>),
}

/// One key of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    #[serde(rename = "k")]
    pub name: String,
    /// Some objects had no such key.
    #[serde(rename = "o", default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// Only one of the shapes that were merged has it. Never stored: see [`Shape::confirmed`].
    #[serde(skip)]
    pub once: bool,
    #[serde(rename = "v")]
    pub shape: Shape,
}

/// Whether two shapes are those of different values, so that each confirms the keys of the other.
type Confirms = bool;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Shape {
    /// The shape of one JSON value; `None` if the bytes are not JSON.
    pub fn of(json: &[u8]) -> Option<Self> {
        Profile::of(json).ok().map(|profile| profile.shape())
    }

    /// The shape that fits the values of both, within [`SHAPE_LIMITS`].
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        self.absorb(other, true);
        self.bounded()
    }

    /// The same within [`SHAPE_LIMITS`]: for shapes from a file.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.bound(SHAPE_LIMITS.depth, &mut { SHAPE_LIMITS.nodes });
        self
    }

    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    fn absorb(&mut self, other: Self, confirms: Confirms) {
        self.null |= other.null;
        self.boolean |= other.boolean;
        self.recursive |= other.recursive;
        self.number = self.number.max(other.number);
        self.string = match (self.string, other.string) {
            (Some(one), Some(two)) => Some(one.common(two)),
            (one, two) => one.or(two),
        };
        match (&mut self.array, other.array) {
            (Some(one), Some(two)) => one.absorb(*two, confirms),
            (one, two) => *one = one.take().or(two),
        }
        self.object = match (self.object.take(), other.object) {
            (Some(one), Some(two)) => Some(one.merged(two, confirms)),
            (one, two) => one.or(two),
        };
    }

    fn bound(&mut self, depth: usize, nodes: &mut usize) {
        *nodes = nodes.saturating_sub(1);
        if (depth == 0 || *nodes == 0) && (self.array.is_some() || self.object.is_some()) {
            (self.array, self.object, self.recursive) = (None, None, true);
            return;
        }
        if let Some(item) = &mut self.array {
            item.bound(depth - 1, nodes);
        }
        match &mut self.object {
            Some(Object::Map(value)) => value.bound(depth - 1, nodes),
            Some(Object::Keys { keys, more }) => {
                // All siblings are counted before the contents of any, so width comes before depth.
                let room = SHAPE_LIMITS.keys.min(*nodes);
                *more |= keys.len() > room;
                keys.truncate(room);
                for key in keys {
                    key.shape.bound(depth - 1, nodes);
                }
            }
            None => {}
        }
    }
}

impl Object {
    fn merged(self, other: Self, confirms: Confirms) -> Self {
        match (self, other) {
            (Self::Keys { keys: one, more }, Self::Keys { keys: two, more: also }) => {
                merged_keys(one, two, more || also, confirms)
            }
            (one, two) => {
                let mut value = one.value();
                value.absorb(two.value(), confirms);
                Self::Map(Box::new(value))
            }
        }
    }

    /// One shape for all values.
    fn value(self) -> Shape {
        match self {
            Self::Map(value) => *value,
            Self::Keys { keys, .. } => keys.into_iter().fold(Shape::default(), |mut all, key| {
                all.absorb(key.shape, false);
                all
            }),
        }
    }
}

fn merged_keys(one: Vec<Key>, two: Vec<Key>, more: bool, confirms: Confirms) -> Object {
    let mut keys = one;
    let known = keys.len();
    let mut seen = vec![false; known];
    for key in two {
        match keys[..known].iter().position(|own| own.name == key.name) {
            Some(place) => {
                seen[place] = true;
                keys[place].optional |= key.optional;
                keys[place].once &= key.once && !confirms;
                keys[place].shape.absorb(key.shape, confirms);
            }
            None => keys.push(Key { optional: true, ..key }),
        }
    }
    for (key, _) in keys.iter_mut().zip(&seen).filter(|(_, seen)| !**seen) {
        key.optional = true;
    }
    // Objects without a common key are no records.
    let is_disjoint = known > 0 && keys.len() > known && !seen.contains(&true);
    if (is_disjoint || keys.len() > SHAPE_LIMITS.keys) && are_alike(&keys) {
        return Object::Map(Box::new(Object::Keys { keys, more }.value()));
    }
    Object::Keys { keys, more }
}

/// Whether all values are of one kind, as those of a map are.
fn are_alike(keys: &[Key]) -> bool {
    let kinds = |shape: &Shape| {
        [
            shape.boolean,
            shape.number.is_some(),
            shape.string.is_some(),
            shape.array.is_some(),
            shape.object.is_some(),
        ]
    };
    let known = || keys.iter().map(|key| kinds(&key.shape)).filter(|kinds| kinds.contains(&true));
    let first = known().next();
    known().all(|kinds| Some(kinds) == first)
}
