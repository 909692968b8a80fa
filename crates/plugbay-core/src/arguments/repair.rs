//! Repairs of arguments: from the whole down to single values.
//!
//! Every step first checks whether the value fits as it is; only one that does not is examined more closely.

use std::{borrow::Cow, collections::HashSet};

use serde_json::Value;

use super::{
    Fault, Mode, Problem, Repair, explain, is_right, literal,
    raw::{self, Entry, Kind},
    scalar,
    schema::{self, Schema},
    shape::{begins, below, is_nothing, only_needed, wrapped},
    spelling::{Keys, Level, UnnamedKey, join},
    validate::fits,
};

/// Branches multiply, and lead to themselves; a repair that needs more steps than this, or goes deeper, is
/// given up. Each step reads the value anew, so a long one takes several.
const STEPS: usize = 1_000;
const READ: usize = 16 << 10;
const DEPTH: u32 = 100;
/// How many steps it takes to compare a value with a choice, however it is spelt.
const CHOICE: usize = 8;
/// How many alternatives are reported if none fits, and how many problems of each.
const TOLD: usize = 8;

pub(super) type Repaired<'a> = Result<Cow<'a, [u8]>, Vec<Problem>>;

pub(super) struct Repairer<'s> {
    schema: &'s Schema,
    repairing: bool,
    pub(super) repairs: Vec<Repair>,
    steps: usize,
    depth: u32,
}

/// How the keys of an object are spelt.
enum Spelling {
    Right,
    /// They were not spelt as in the schema; here they are.
    Repaired(Vec<u8>),
    /// Some cannot be repaired: their problems, and the object as it may be meant.
    Wrong(Vec<Problem>, Vec<u8>),
}

impl<'s> Repairer<'s> {
    pub(super) fn new(schema: &'s Schema, mode: Mode) -> Self {
        Self { schema, repairing: mode == Mode::Repair, repairs: Vec::new(), steps: STEPS, depth: 0 }
    }

    /// Repairs the arguments as a whole: models wrap, quote and leave them out in more ways than a value.
    pub(super) fn arguments<'a>(&mut self, json: &'a [u8]) -> Repaired<'a> {
        let schema = self.schema;
        let root = &*schema.whole(schema.root());
        if !self.step(json) {
            return Err(self.problem(root, "", "cannot be understood"));
        }
        if !self.repairing {
            return self.value(schema.root(), json, "");
        }
        let text = raw::text(json);
        let written = text.as_deref().and_then(literal::inside);
        if let (Some(text), Some((inner, fault))) = (&text, &written)
            && (matches!(Kind::of(inner), Kind::Object | Kind::Array | Kind::Null) || begins(root, text))
        {
            self.note("", *fault);
            return self.right_arguments(inner).map(owned);
        }
        if is_nothing(json) && fits(schema, root, b"{}") {
            self.note("", Fault::Missing);
            return Ok(b"{}".as_slice().into());
        }
        if Kind::of(json) == Kind::Object {
            if let Some((inner, beside)) = wrapped(root, json) {
                self.note("", Fault::Nested);
                for key in beside {
                    self.note(&key, Fault::Remark);
                }
                return self.right_arguments(&inner).map(owned);
            }
            if let Some(whole) = self.shallow(root, json) {
                return Ok(whole.into());
            }
            return self.value(schema.root(), json, "");
        }
        let scalar = written.as_ref().map(|(inner, _)| &**inner);
        if let Some(whole) = self.bare_parameter(root, json).or_else(|| self.bare_parameter(root, scalar?)) {
            return Ok(whole.into());
        }
        if let (Kind::Array, [only]) = (Kind::of(json), raw::list(json).as_slice())
            && Kind::of(only) == Kind::Object
        {
            self.note("", Fault::ListForSingle);
            return self.right_arguments(only);
        }
        self.value(schema.root(), json, "")
    }

    fn right_arguments<'a>(&mut self, json: &'a [u8]) -> Repaired<'a> {
        if is_right(self.schema, self.schema.root(), json) { Ok(json.into()) } else { self.arguments(json) }
    }

    /// Takes the whole as the value of the only parameter that a tool needs. A text that begins like data
    /// with parts does not count, even if text is wanted: half a command is a command too.
    fn bare_parameter(&mut self, root: &Value, json: &[u8]) -> Option<Vec<u8>> {
        let (key, own) = only_needed(root)?;
        let is_plain = raw::text(json).is_none_or(|text| !begins(root, &text));
        (is_plain && fits(self.schema, own, json)).then(|| {
            self.note("", Fault::BareParameter);
            below(key, json)
        })
    }

    /// Takes the whole as the members of the only parameter that a tool needs, without its name.
    fn shallow(&mut self, root: &Value, json: &[u8]) -> Option<Vec<u8>> {
        let (key, own) = only_needed(root)?;
        let own = self.schema.whole(own);
        let inner = if schema::types(&own) == ["array"] { schema::item(&own, 0)? } else { &own };
        let (outside, inside) = (Level::of(self.schema, &[root]), Level::of(self.schema, &[inner]));
        let entries = raw::entries(json);
        if entries.is_empty()
            || !entries.iter().all(|own| inside.names_alike(&own.key) && !outside.names_alike(&own.key))
        {
            return None;
        }
        let before = self.repairs.len();
        self.note(key, Fault::Shallow);
        let repaired = self.value(root, &below(key, json), "").map(Cow::into_owned);
        if repaired.is_err() {
            self.repairs.truncate(before);
        }
        repaired.ok()
    }

    /// Repairs a value by all that its schema says of it.
    fn value<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Repaired<'a> {
        if is_right(self.schema, at, json) {
            return Ok(json.into());
        }
        match self.spell(at, json, place) {
            Spelling::Right => self.shape(at, json, place),
            Spelling::Repaired(spelt) => self.shape(at, &spelt, place).map(owned),
            Spelling::Wrong(problems, meant) => Err(self.with_others(problems, at, &meant, place)),
        }
    }

    /// The problems of misspelt keys, and those that the object still has if it is read as it may be meant: who has
    /// to call once more should know all of them.
    fn with_others(
        &mut self,
        mut problems: Vec<Problem>,
        at: &Value,
        meant: &[u8],
        place: &str,
    ) -> Vec<Problem> {
        let before = self.repairs.len();
        let others = self.shape(at, meant, place).err().unwrap_or_default();
        self.repairs.truncate(before);
        if self.steps > 0 {
            let others = others.into_iter().filter(|problem| !explain::is_misfit(problem, meant, place));
            problems.extend(others);
        }
        problems
    }

    /// Spells the keys of an object as its schema has them, if some are spelt otherwise.
    fn spell(&mut self, at: &Value, json: &[u8], place: &str) -> Spelling {
        if Kind::of(json) != Kind::Object {
            return Spelling::Right;
        }
        let schema = self.schema;
        let level = Level::of(schema, &[at]);
        let (mut entries, mut problems) = (raw::entries(json), Vec::new());
        let unnamed_keys: Vec<_> = {
            let keys = Keys::of(&entries);
            entries.iter().map(|entry| level.unnamed_key(&entry.key, &keys)).collect()
        };
        let before = self.repairs.len();
        let mut present: HashSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
        let mut unnamed_keys = unnamed_keys.into_iter();
        entries.retain_mut(|entry| {
            let near = match unnamed_keys.next() {
                Some(UnnamedKey::Is(meant)) if self.repairing => {
                    self.note(&join(place, meant), Fault::KeySpelling);
                    entry.quoted = raw::quote(meant).into();
                    return true;
                }
                Some(UnnamedKey::Is(meant)) => vec![meant],
                Some(UnnamedKey::MayBe(near)) => near,
                Some(UnnamedKey::Unknown) | None => return true,
            };
            problems.push(explain::unknown(schema, &level, &entry.key, &near, place));
            let meant = near.into_iter().find(|near| present.insert((*near).to_owned()));
            entry.quoted = raw::quote(meant.unwrap_or_default()).into();
            meant.is_some()
        });
        if !problems.is_empty() {
            return Spelling::Wrong(problems, raw::object(&entries));
        }
        if self.repairs.len() > before { Spelling::Repaired(raw::object(&entries)) } else { Spelling::Right }
    }

    /// Repairs a value to one of the shapes that its schema allows.
    fn shape<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Repaired<'a> {
        if is_right(self.schema, at, json) {
            return Ok(json.into());
        }
        if !self.step(json) || self.depth == DEPTH {
            return Err(self.problem(at, place, "cannot be understood"));
        }
        self.depth += 1;
        let shaped = self.shaped(&self.schema.whole(at), json, place);
        self.depth -= 1;
        shaped
    }

    /// Whether there are steps left to examine a value once more.
    fn step(&mut self, json: &[u8]) -> bool {
        self.steps = self.steps.saturating_sub(1 + json.len() / READ);
        self.steps > 0
    }

    fn shaped<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Repaired<'a> {
        let schema = self.schema;
        if let Some(condition) = at.get("if") {
            let plain = self.shape(&schema.consequence(at, None), json, place)?.into_owned();
            let following = schema.consequence(at, Some(fits(schema, condition, &plain)));
            return self.shape(&following, &plain, place).map(owned);
        }
        if let Some(branches) = schema::branches(at) {
            return self.best(at, json, place, branches.len(), |repairer, number| {
                let branch = schema.alternative(at, &branches[number]);
                repairer.shape(&branch, json, place).map(Cow::into_owned)
            });
        }
        if let Some(choices) = schema::choices(at) {
            if !schema.step(CHOICE * choices.len()) {
                return Err(self.problem(at, place, "cannot be understood"));
            }
            return match scalar::choose(&choices, json).filter(|_| self.repairing) {
                Some((chosen, fault)) => {
                    self.note(place, fault);
                    Ok(chosen.into())
                }
                None => self.single(at, json, place),
            };
        }
        let types = schema::types(at);
        match types.as_slice() {
            [] => Err(self.mismatch(at, json, place)),
            [only] => self.typed(at, only, json, place),
            several => self.best(at, json, place, several.len(), |repairer, number| {
                repairer.typed(at, several[number], json, place).map(Cow::into_owned)
            }),
        }
    }

    /// Tries every way and takes the one with the fewest repairs. If two are equally good but differ, it
    /// takes neither.
    fn best<'a>(
        &mut self,
        at: &Value,
        json: &'a [u8],
        place: &str,
        ways: usize,
        mut way: impl FnMut(&mut Self, usize) -> Result<Vec<u8>, Vec<Problem>>,
    ) -> Repaired<'a> {
        let before = self.repairs.len();
        let mut found: Vec<(Vec<Repair>, Vec<u8>)> = Vec::new();
        let mut missed: Vec<Vec<Problem>> = Vec::new();
        for number in 0..ways {
            // Each way may copy the value.
            if !self.step(json) {
                return Err(self.problem(at, place, "cannot be understood"));
            }
            let outcome = way(self, number);
            let repairs = self.repairs.split_off(before);
            match outcome {
                Ok(repaired) => found.push((repairs, repaired)),
                // A way that failed deep inside came furthest, and its problems tell the most.
                Err(problems) if problems.iter().any(|problem| problem.is_within(place)) => {
                    missed.push(problems);
                }
                Err(_) => {}
            }
        }
        found.sort_by_key(|(repairs, _)| repairs.len());
        if at.get("oneOf").is_some() && found.iter().filter(|(repairs, _)| repairs.is_empty()).count() > 1 {
            let fit = if place.is_empty() { "fit" } else { "fits" };
            return Err(self.problem(
                at,
                place,
                &format!("{fit} several alternatives, of which one must be chosen"),
            ));
        }
        let clear = match found.as_slice() {
            [] => false,
            [(first, repaired), rest @ ..] => {
                rest.iter().all(|(repairs, other)| repairs.len() > first.len() || other == repaired)
            }
        };
        match found.into_iter().next() {
            Some((repairs, repaired)) if clear => {
                self.repairs.extend(repairs);
                self.accept(at, repaired, json, place)
            }
            Some(_) => Err(self.problem(at, place, "can be understood in several ways")),
            None => Err(self.closest(at, json, place, missed)),
        }
    }

    /// The problems of those failed ways that came furthest.
    fn closest(&self, at: &Value, json: &[u8], place: &str, mut missed: Vec<Vec<Problem>>) -> Vec<Problem> {
        let fewest = missed.iter().map(Vec::len).min().unwrap_or_default();
        missed.retain(|problems| problems.len() == fewest);
        missed.dedup();
        missed.truncate(TOLD);
        if missed.len() < 2 {
            return missed.pop().unwrap_or_else(|| self.mismatch(at, json, place));
        }
        let way = |problems: &Vec<Problem>| {
            let told = problems.iter().take(TOLD).map(|problem| problem.message.as_str());
            told.collect::<Vec<_>>().join(" and ")
        };
        let told = missed.iter().map(way).collect::<Vec<_>>().join(", or ");
        vec![Problem::of(self.schema, at, place, told)]
    }

    /// Checks a repaired value again: keywords beside those that were followed apply too.
    fn accept<'a>(&mut self, at: &Value, repaired: Vec<u8>, json: &'a [u8], place: &str) -> Repaired<'a> {
        if fits(self.schema, at, &repaired) {
            Ok(repaired.into())
        } else {
            Err(self.mismatch(at, json, place))
        }
    }

    fn typed<'a>(&mut self, at: &Value, wanted: &str, json: &'a [u8], place: &str) -> Repaired<'a> {
        match (wanted, Kind::of(json)) {
            ("object", Kind::Object) => return self.object(at, json, place),
            ("array", Kind::Array) => return self.array(at, json, place),
            _ if !self.repairing => return Err(self.mismatch(at, json, place)),
            ("object" | "array", Kind::String) => {
                let text = raw::text(json).unwrap_or_default();
                let kind = if wanted == "object" { Kind::Object } else { Kind::Array };
                if let Some((inner, fault)) =
                    literal::inside(&text).filter(|(inner, _)| Kind::of(inner) == kind)
                {
                    self.note(place, fault);
                    return self.value(at, &inner, place).map(owned);
                }
            }
            _ => {}
        }
        if wanted == "array" {
            return self.wrap(at, json, place);
        }
        if let Some((converted, fault)) = scalar::convert(wanted, json)
            && fits(self.schema, at, &converted)
        {
            self.note(place, fault);
            return Ok(converted.into());
        }
        self.single(at, json, place)
    }

    /// Repairs a list of one where a single value belongs.
    fn single<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Repaired<'a> {
        if self.repairing
            && Kind::of(json) == Kind::Array
            && let [only] = raw::list(json).as_slice()
            && Kind::of(only) != Kind::Array
        {
            let before = self.repairs.len();
            self.note(place, Fault::ListForSingle);
            match self.value(at, only, place) {
                Ok(repaired) => return Ok(owned(repaired)),
                Err(_) => self.repairs.truncate(before),
            }
        }
        Err(self.mismatch(at, json, place))
    }

    /// Repairs a single value where a list belongs. A text with commas may be one value or several, and one
    /// that begins like a list or an object is no text.
    fn wrap<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Repaired<'a> {
        let several = raw::text(json).is_some_and(|text| text.contains([',', ';', '\n']));
        if Kind::of(json) == Kind::Null || several {
            return Err(self.mismatch(at, json, place));
        }
        let item = schema::item(at, 0).unwrap_or(&Value::Bool(true));
        let before = self.repairs.len();
        self.note(place, Fault::SingleForList);
        let inner = self.value(item, json, place);
        let is_plain = |value: &[u8]| raw::text(value).is_none_or(|text| !literal::begins(&text, |_| false));
        match inner.map(|inner| (is_plain(&inner), raw::array([&*inner]))) {
            Ok((true, list)) if fits(self.schema, at, &list) => Ok(list.into()),
            _ => {
                self.repairs.truncate(before);
                Err(self.mismatch(at, json, place))
            }
        }
    }

    fn array<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Repaired<'a> {
        let mut problems = Vec::new();
        let mut items = Vec::new();
        for (number, item) in raw::list(json).into_iter().enumerate() {
            let own = schema::item(at, number).unwrap_or(&Value::Bool(true));
            match self.value(own, item, &format!("{place}[{number}]")) {
                Ok(repaired) => items.push(repaired),
                Err(more) => problems.extend(more),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.accept(at, raw::array(items.iter().map(|item| &**item)), json, place)
    }

    fn object<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Repaired<'a> {
        let mut problems = Vec::new();
        let mut entries = raw::entries(json);
        if self.repairing {
            self.drop_nulls(at, &mut entries, place);
        }
        let mut level = None;
        for entry in &mut entries {
            let inside = join(place, &entry.key);
            match schema::property(at, &entry.key).or_else(|| at.get("additionalProperties")) {
                Some(Value::Bool(false)) => {
                    let level = level.get_or_insert_with(|| Level::of(self.schema, &[at]));
                    problems.push(explain::unknown(self.schema, level, &entry.key, &[], place));
                }
                Some(own) => match self.value(own, &entry.value, &inside).map(Cow::into_owned) {
                    Ok(repaired) if *repaired == *entry.value => {}
                    Ok(repaired) => entry.value = repaired.into(),
                    Err(more) => problems.extend(more),
                },
                None => {}
            }
        }
        problems.extend(explain::missing(self.schema, at, &entries, place));
        if !problems.is_empty() {
            return Err(problems);
        }
        self.accept(at, raw::object(&entries), json, place)
    }

    fn drop_nulls(&mut self, at: &Value, entries: &mut Vec<Entry<'_>>, place: &str) {
        let schema = self.schema;
        let required: HashSet<&str> = schema::required(at).collect();
        let needless = |entry: &Entry<'_>| {
            let own = schema::property(at, &entry.key).or_else(|| at.get("additionalProperties"));
            Kind::of(&entry.value) == Kind::Null
                && !required.contains(entry.key.as_str())
                && own.is_some_and(|own| !fits(schema, own, &entry.value))
        };
        for entry in entries.extract_if(.., |entry| needless(entry)) {
            self.note(&join(place, &entry.key), Fault::NullForAbsent);
        }
    }

    fn mismatch(&self, at: &Value, json: &[u8], place: &str) -> Vec<Problem> {
        vec![explain::mismatch(self.schema, at, json, place)]
    }

    fn problem(&self, at: &Value, place: &str, what: &str) -> Vec<Problem> {
        vec![explain::whole(self.schema, at, place, what)]
    }

    fn note(&mut self, place: &str, fault: Fault) {
        self.repairs.push(Repair { place: place.to_owned(), fault });
    }
}

fn owned(json: Cow<'_, [u8]>) -> Cow<'static, [u8]> {
    Cow::Owned(json.into_owned())
}
