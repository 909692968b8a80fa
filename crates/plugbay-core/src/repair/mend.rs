//! The repairs: from the whole arguments down to single values.
//!
//! Every step asks first whether the value fits as it is; only what does not is looked at more closely.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    Fault, Mode, Problem, Repair,
    fits::fits,
    name::{folded, only_match},
    raw::{self, Entry, Kind},
    scalar,
    schema::{self, Schema},
};

/// Names that models put around arguments.
pub(super) const WRAPPERS: [&str; 8] =
    ["arguments", "args", "params", "parameters", "input", "tool_input", "toolInput", "kwargs"];
/// What may stand beside such a name, and says nothing.
const BESIDE: [&str; 6] = ["name", "tool", "tool_name", "toolName", "server", "type"];
/// Branches multiply; a schema that needs more steps than this is left as it is.
const STEPS: u32 = 4_000;

pub(super) type Mended<'a> = Result<Cow<'a, [u8]>, Vec<Problem>>;

pub(super) struct Mender<'s> {
    schema: &'s Schema,
    repairing: bool,
    pub(super) repairs: Vec<Repair>,
    steps: u32,
}

impl<'s> Mender<'s> {
    pub(super) fn new(schema: &'s Schema, mode: Mode) -> Self {
        Self { schema, repairing: mode == Mode::Repair, repairs: Vec::new(), steps: STEPS }
    }

    /// The arguments as a whole, which models wrap, quote and leave out in more ways than a value.
    pub(super) fn arguments<'a>(&mut self, json: &'a [u8]) -> Mended<'a> {
        let root = self.schema.resolve(self.schema.root());
        if !self.repairing {
            return self.value(root, json, "");
        }
        if let Some(text) = raw::text(json)
            && let Some(inner) = raw::inside(&text).filter(|inner| Kind::of(inner) != Kind::String)
        {
            self.note("", Fault::JsonInString);
            return self.arguments(inner).map(owned);
        }
        if is_nothing(json) && fits(self.schema, root, b"{}") {
            self.note("", Fault::Missing);
            return Ok(b"{}".as_slice().into());
        }
        match Kind::of(json) {
            Kind::Object => {
                if let Some(inner) = wrapped(root, json) {
                    self.note("", Fault::Nested);
                    return self.fitting_arguments(&inner).map(owned);
                }
            }
            Kind::Array if raw::list(json).len() == 1 && Kind::of(raw::list(json)[0]) == Kind::Object => {
                self.note("", Fault::ListForSingle);
                return self.fitting_arguments(raw::list(json)[0]);
            }
            _ => {
                if let Some(whole) = self.bare_parameter(root, json) {
                    return Ok(whole.into());
                }
            }
        }
        self.value(root, json, "")
    }

    fn fitting_arguments<'a>(&mut self, json: &'a [u8]) -> Mended<'a> {
        if fits(self.schema, self.schema.root(), json) { Ok(json.into()) } else { self.arguments(json) }
    }

    /// The value of the only parameter that a tool needs.
    fn bare_parameter(&mut self, root: &Value, json: &[u8]) -> Option<Vec<u8>> {
        let mut needed = schema::required(root);
        let key = needed.next().filter(|_| needed.next().is_none())?;
        let own = schema::property(root, key)?;
        fits(self.schema, own, json).then(|| {
            self.note("", Fault::BareParameter);
            let entry = Entry { key: key.to_owned(), quoted: raw::quote(key).into(), value: json.into() };
            raw::object([&entry])
        })
    }

    fn value<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Mended<'a> {
        if fits(self.schema, at, json) {
            return Ok(json.into());
        }
        let schema = self.schema;
        let at = schema.resolve(at);
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            return Err(self.problem(at, place, "cannot be understood"));
        }
        if let Some(branches) = schema::branches(at) {
            let open: Vec<&Value> = branches.iter().collect();
            return self.best(at, json, place, open.len(), |mender, number| {
                mender.value(open[number], json, place).map(Cow::into_owned)
            });
        }
        if let [first, rest @ ..] = schema::parts(at) {
            let mut mended = self.value(first, json, place)?.into_owned();
            for part in rest {
                mended = self.value(part, &mended, place)?.into_owned();
            }
            return self.accept(at, mended, json, place);
        }
        if let Some(choices) = schema::choices(at) {
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
            several => self.best(at, json, place, several.len(), |mender, number| {
                mender.typed(at, several[number], json, place).map(Cow::into_owned)
            }),
        }
    }

    /// Tries every way and takes the one with the fewest repairs. Two that are equally good and differ
    /// are one too many.
    fn best<'a>(
        &mut self,
        at: &Value,
        json: &'a [u8],
        place: &str,
        ways: usize,
        mut way: impl FnMut(&mut Self, usize) -> Result<Vec<u8>, Vec<Problem>>,
    ) -> Mended<'a> {
        let before = self.repairs.len();
        let mut found: Vec<(Vec<Repair>, Vec<u8>)> = Vec::new();
        let mut telling: Option<Vec<Problem>> = None;
        for number in 0..ways {
            let outcome = way(self, number);
            let repairs = self.repairs.split_off(before);
            match outcome {
                Ok(mended) => found.push((repairs, mended)),
                // What went wrong deep inside came furthest, and tells the most.
                Err(problems) if problems.iter().any(|problem| problem.place.len() > place.len()) => {
                    telling.get_or_insert(problems);
                }
                Err(_) => {}
            }
        }
        found.sort_by_key(|(repairs, _)| repairs.len());
        let clear = match found.as_slice() {
            [] => false,
            [(first, mended), rest @ ..] => {
                rest.iter().all(|(repairs, other)| repairs.len() > first.len() || other == mended)
            }
        };
        match found.into_iter().next() {
            Some((repairs, mended)) if clear => {
                self.repairs.extend(repairs);
                self.accept(at, mended, json, place)
            }
            Some(_) => Err(self.problem(at, place, "can be understood in several ways")),
            None => Err(telling.unwrap_or_else(|| self.mismatch(at, json, place))),
        }
    }

    /// Keywords that stand beside those that were followed have their say too.
    fn accept<'a>(&mut self, at: &Value, mended: Vec<u8>, json: &'a [u8], place: &str) -> Mended<'a> {
        if fits(self.schema, at, &mended) { Ok(mended.into()) } else { Err(self.mismatch(at, json, place)) }
    }

    fn typed<'a>(&mut self, at: &Value, wanted: &str, json: &'a [u8], place: &str) -> Mended<'a> {
        match (wanted, Kind::of(json)) {
            ("object", Kind::Object) => return self.object(at, json, place),
            ("array", Kind::Array) => return self.array(at, json, place),
            _ if !self.repairing => return Err(self.mismatch(at, json, place)),
            ("object" | "array", Kind::String) => {
                let text = raw::text(json).unwrap_or_default();
                let kind = if wanted == "object" { Kind::Object } else { Kind::Array };
                if let Some(inner) = raw::inside(&text).filter(|inner| Kind::of(inner) == kind) {
                    self.note(place, Fault::JsonInString);
                    return self.value(at, inner, place).map(owned);
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

    /// A list of one, where a single value belongs.
    fn single<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Mended<'a> {
        if self.repairing
            && Kind::of(json) == Kind::Array
            && let [only] = raw::list(json).as_slice()
            && Kind::of(only) != Kind::Array
        {
            let before = self.repairs.len();
            self.note(place, Fault::ListForSingle);
            match self.value(at, only, place) {
                Ok(mended) => return Ok(owned(mended)),
                Err(_) => self.repairs.truncate(before),
            }
        }
        Err(self.mismatch(at, json, place))
    }

    /// A single value, where a list belongs. A text with commas may be one value or several.
    fn wrap<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Mended<'a> {
        let several = raw::text(json).is_some_and(|text| text.contains([',', ';', '\n']));
        if Kind::of(json) == Kind::Null || several {
            return Err(self.mismatch(at, json, place));
        }
        let item = schema::item(at, 0).unwrap_or(&Value::Bool(true));
        let before = self.repairs.len();
        self.note(place, Fault::SingleForList);
        let inner = self.value(item, json, place);
        match inner.map(|inner| raw::array([&*inner])) {
            Ok(list) if fits(self.schema, at, &list) => Ok(list.into()),
            _ => {
                self.repairs.truncate(before);
                Err(self.mismatch(at, json, place))
            }
        }
    }

    fn array<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Mended<'a> {
        let mut problems = Vec::new();
        let mut items = Vec::new();
        for (number, item) in raw::list(json).into_iter().enumerate() {
            let own = schema::item(at, number).unwrap_or(&Value::Bool(true));
            match self.value(own, item, &format!("{place}[{number}]")) {
                Ok(mended) => items.push(mended),
                Err(more) => problems.extend(more),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.accept(at, raw::array(items.iter().map(|item| &**item)), json, place)
    }

    fn object<'a>(&mut self, at: &Value, json: &'a [u8], place: &str) -> Mended<'a> {
        let mut problems = Vec::new();
        let mut entries = raw::entries(json);
        if self.repairing {
            self.respell_keys(at, &mut entries, place);
            self.drop_nulls(at, &mut entries, place);
        }
        for entry in &mut entries {
            let inside = join(place, &entry.key);
            match schema::property(at, &entry.key).or_else(|| at.get("additionalProperties")) {
                Some(Value::Bool(false)) => problems.push(self.unknown(at, &entry.key, &inside)),
                Some(own) => match self.value(own, &entry.value, &inside).map(Cow::into_owned) {
                    Ok(mended) if *mended == *entry.value => {}
                    Ok(mended) => entry.value = mended.into(),
                    Err(more) => problems.extend(more),
                },
                None => {}
            }
        }
        for key in schema::required(at) {
            if !entries.iter().any(|entry| entry.key == key) {
                let place = join(place, key);
                let own = schema::property(at, key).unwrap_or(&Value::Bool(true));
                problems.push(Problem::of(self.schema, own, &place, format!("`{place}` is missing")));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        self.accept(at, raw::object(&entries), json, place)
    }

    fn respell_keys(&mut self, at: &Value, entries: &mut [Entry<'_>], place: &str) {
        for number in 0..entries.len() {
            let key = &entries[number].key;
            if schema::property(at, key).is_some() {
                continue;
            }
            let Some(meant) = only_match(key, schema::properties(at).map(|(key, _)| key.as_str())) else {
                continue;
            };
            // Two keys that mean the same would be one too many.
            let rivals = entries.iter().filter(|entry| folded(&entry.key) == folded(meant)).count();
            if rivals == 1 {
                self.note(&join(place, meant), Fault::KeySpelling);
                entries[number].quoted = raw::quote(meant).into();
                meant.clone_into(&mut entries[number].key);
            }
        }
    }

    fn drop_nulls(&mut self, at: &Value, entries: &mut Vec<Entry<'_>>, place: &str) {
        let schema = self.schema;
        let needless = |entry: &Entry<'_>| {
            let own = schema::property(at, &entry.key).or_else(|| at.get("additionalProperties"));
            Kind::of(&entry.value) == Kind::Null
                && !schema::required(at).any(|key| key == entry.key)
                && own.is_some_and(|own| !fits(schema, own, &entry.value))
        };
        for entry in entries.extract_if(.., |entry| needless(entry)) {
            self.note(&join(place, &entry.key), Fault::NullForAbsent);
        }
    }

    fn unknown(&self, at: &Value, key: &str, place: &str) -> Problem {
        let known: Vec<&str> = schema::properties(at).map(|(key, _)| key.as_str()).collect();
        let near = crate::name::nearest(key, known.iter().copied());
        let hint = match (near.first(), known.as_slice()) {
            (Some(near), _) => format!("; did you mean `{near}`?"),
            (None, []) => "; it takes none".to_owned(),
            (None, _) => format!("; there are {}", known.join(", ")),
        };
        let message = format!("`{place}` is not a parameter{hint}");
        match near.first().and_then(|near| schema::property(at, near)) {
            Some(own) => Problem::of(self.schema, own, place, message),
            None => Problem { place: place.to_owned(), message, fragment: None, example: None },
        }
    }

    fn mismatch(&self, at: &Value, json: &[u8], place: &str) -> Vec<Problem> {
        let why = if place.is_empty() { "do not fit: they are" } else { "does not fit: it is" };
        self.problem(at, place, &format!("{why} {}", shown(json)))
    }

    fn problem(&self, at: &Value, place: &str, what: &str) -> Vec<Problem> {
        let who = if place.is_empty() { "the arguments".to_owned() } else { format!("`{place}`") };
        vec![Problem::of(self.schema, at, place, format!("{who} {what}"))]
    }

    fn note(&mut self, place: &str, fault: Fault) {
        self.repairs.push(Repair { place: place.to_owned(), fault });
    }
}

/// The arguments below one of the names that models put around them.
fn wrapped(root: &Value, json: &[u8]) -> Option<Vec<u8>> {
    let entries = raw::entries(json);
    let is_own = |entry: &Entry<'_>| schema::property(root, &entry.key).is_some();
    let mut around = entries.iter().filter(|entry| WRAPPERS.contains(&entry.key.as_str()) && !is_own(entry));
    let wrapper = around.next().filter(|_| around.next().is_none())?;
    let alone = entries
        .iter()
        .all(|entry| entry.key == wrapper.key || BESIDE.contains(&entry.key.as_str()) && !is_own(entry));
    let holds_object = match Kind::of(&wrapper.value) {
        Kind::Object => true,
        Kind::String => raw::text(&wrapper.value).is_some_and(|text| raw::inside(&text).is_some()),
        _ => false,
    };
    (alone && holds_object).then(|| wrapper.value.to_vec())
}

/// `null`, `""`, `[]`.
fn is_nothing(json: &[u8]) -> bool {
    match Kind::of(json) {
        Kind::Null => true,
        Kind::String => raw::text(json).is_some_and(|text| text.trim().is_empty()),
        Kind::Array => raw::list(json).is_empty(),
        _ => false,
    }
}

fn owned(json: Cow<'_, [u8]>) -> Cow<'static, [u8]> {
    Cow::Owned(json.into_owned())
}

fn join(place: &str, key: &str) -> String {
    if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") }
}

/// A value in a message: what it is, and itself if it is short.
fn shown(json: &[u8]) -> String {
    const SHORT: usize = 40;
    let kind = Kind::of(json);
    match std::str::from_utf8(json) {
        Ok("null") => "null".to_owned(),
        Ok(text) if text.len() <= SHORT => format!("{} {text}", kind.name()),
        _ => kind.name().to_owned(),
    }
}
