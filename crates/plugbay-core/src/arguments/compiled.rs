//! A tool's input schema, compiled once: parsed, and turned into nodes for the quick check.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use super::{
    keywords::{Bounds, Length, Types},
    pattern::Pattern,
    schema::{self, Parsed},
};

/// A schema of more nodes than this has no quick check.
const MOST_NODES: usize = 2_000;
/// An object of more properties than this has no quick check: each is one bit of a `u64`.
const MOST_PROPERTIES: usize = 64;
/// Keywords that only the full check understands.
const FULL_CHECK: [&str; 7] =
    ["oneOf", "not", "if", "dependencies", "dependentRequired", "patternProperties", "prefixItems"];
/// Keywords that apply another schema to the same value.
const JOINED: [&str; 6] = ["$ref", "allOf", "anyOf", "then", "else", "dependentSchemas"];

/// A tool's `inputSchema`, ready for any number of calls.
#[derive(Debug)]
pub struct CompiledSchema {
    pub(super) parsed: Arc<Parsed>,
    /// The nodes, the root first; empty if there are too many.
    pub(super) nodes: Vec<Option<Node>>,
}

impl CompiledSchema {
    /// Compiles a schema. One that cannot be read accepts everything.
    pub fn new(schema: &[u8]) -> Self {
        let parsed = Arc::new(Parsed::read(schema));
        let nodes = Compiler::default().compile(&parsed);
        Self { parsed, nodes }
    }
}

/// The number of a node.
pub(super) type NodeId = u32;

/// One schema within a schema, as the quick check reads it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) types: Types,
    pub(super) nullable: bool,
    pub(super) choices: Option<Vec<Value>>,
    pub(super) object: ObjectRules,
    pub(super) items: Option<NodeId>,
    pub(super) item_count: Length,
    pub(super) length: Length,
    pub(super) pattern: Option<Pattern>,
    pub(super) bounds: Option<Bounds>,
    /// Other schemas for the same value, of which all must hold: `allOf`, and `$ref` beside other keywords.
    pub(super) parts: Vec<NodeId>,
    /// Other schemas for the same value, of which one must hold.
    pub(super) any_of: Option<Vec<NodeId>>,
    /// No other schema applies to the same value.
    pub(super) alone: bool,
    /// This schema stands for another one and says nothing itself.
    pub(super) target: Option<NodeId>,
}

/// A schema's rules for an object's members.
#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    /// Sorted by name.
    pub(super) properties: Vec<(Box<str>, NodeId)>,
    /// One bit for each property that must be there.
    pub(super) required: u64,
    pub(super) additional: Additional,
    pub(super) count: Option<Length>,
}

/// The keyword `additionalProperties`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Additional {
    #[default]
    Unsaid,
    Forbidden,
    Schema(NodeId),
}

#[derive(Default)]
struct Compiler<'v> {
    ids: HashMap<*const Value, NodeId>,
    /// The schemas that were found, in the order of their ids.
    found: Vec<&'v Value>,
}

impl<'v> Compiler<'v> {
    /// A queue instead of recursion: schemas may refer to each other in long chains.
    fn compile(mut self, parsed: &'v Parsed) -> Vec<Option<Node>> {
        let mut nodes = Vec::new();
        self.id(parsed.root());
        while let Some(at) = self.found.get(nodes.len()).copied() {
            if nodes.len() == MOST_NODES {
                return Vec::new();
            }
            nodes.push(self.node(at, parsed));
        }
        nodes
    }

    fn id(&mut self, at: &'v Value) -> NodeId {
        let next = NodeId::try_from(self.found.len()).unwrap_or(NodeId::MAX);
        *self.ids.entry(std::ptr::from_ref(at)).or_insert_with(|| {
            self.found.push(at);
            next
        })
    }

    fn all(&mut self, several: &'v [Value]) -> Vec<NodeId> {
        several.iter().map(|one| self.id(one)).collect()
    }

    /// `None` for what only the full check can decide.
    fn node(&mut self, at: &'v Value, parsed: &'v Parsed) -> Option<Node> {
        if FULL_CHECK.iter().any(|key| at.get(*key).is_some()) || at == &Value::Bool(false) {
            return None;
        }
        if at.get("uniqueItems") == Some(&Value::Bool(true)) || at.get("items").is_some_and(Value::is_array) {
            return None;
        }
        let mut parts = self.all(schema::parts(at));
        let mut target = None;
        if let Some((found, siblings)) = parsed.target(at) {
            let found = self.id(found?);
            if !siblings || at.as_object().is_some_and(|all| all.len() == 1) {
                target = Some(found);
            } else {
                parts.push(found);
            }
        }
        let any_of = at.get("anyOf").and_then(Value::as_array).filter(|branches| !branches.is_empty());
        let bounds = Bounds::of(at);
        Some(Node {
            types: Types::of(at),
            nullable: at.get("nullable") == Some(&Value::Bool(true)),
            choices: schema::choices(at).map(|choices| choices.into_iter().cloned().collect()),
            object: self.object(at)?,
            items: at.get("items").map(|items| self.id(items)),
            item_count: Length::of(at, "minItems", "maxItems"),
            length: Length::of(at, "minLength", "maxLength"),
            pattern: at.get("pattern").and_then(Value::as_str).map(Pattern::new),
            bounds: (!bounds.is_free()).then_some(bounds),
            parts,
            any_of: any_of.map(|branches| self.all(branches)),
            alone: JOINED.iter().all(|key| at.get(*key).is_none()),
            target,
        })
    }

    fn object(&mut self, at: &'v Value) -> Option<ObjectRules> {
        let mut properties: Vec<(Box<str>, NodeId)> =
            schema::properties(at).map(|(name, own)| (name.as_str().into(), self.id(own))).collect();
        properties.sort();
        if properties.len() > MOST_PROPERTIES {
            return None;
        }
        let mut required = 0;
        for name in schema::required(at) {
            let index = properties.binary_search_by(|(own, _)| (**own).cmp(name)).ok()?;
            required |= 1 << index;
        }
        let additional = match at.get("additionalProperties") {
            None => Additional::Unsaid,
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(schema) => Additional::Schema(self.id(schema)),
        };
        let count = Length::of(at, "minProperties", "maxProperties");
        Some(ObjectRules { properties, required, additional, count: (!count.is_free()).then_some(count) })
    }
}
