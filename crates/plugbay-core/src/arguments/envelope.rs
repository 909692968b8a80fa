//! A call within the arguments of another tool: the inner tool's name, and its arguments.

mod own;
mod strays;

use std::{borrow::Cow, collections::HashSet, sync::Arc, time::Duration};

use self::own::{Own, filter_in, seconds};
use super::{
    CompiledSchema, Fault, MOST_VALUES, Mode, Problem, Refusal, Repair, check,
    example::example,
    explain::no_parameters,
    raw::{self, Entry, Kind},
    scalar,
    schema::Schema,
    shape::{WRAPPERS, shown},
    spelling::Level,
};
use crate::{
    name::folded,
    size_limit,
    text::{self, listed, quoted, word},
    wire::{Member, Members, string_value},
};

/// How a call is put into the arguments of another tool.
#[derive(Debug, Clone, Copy)]
pub struct Envelope {
    /// The keys for the tool's name: the right one first, then those that models use.
    names: &'static [&'static str],
    /// The key for its arguments, if it is not `arguments`.
    arguments: &'static str,
    /// Further parameters of the calling tool: they are never taken for the inner tool's.
    own: &'static [&'static str],
    /// Further parameters that mean nothing for a call: they are the inner tool's, unless its arguments stand
    /// where they belong.
    aside: &'static [&'static str],
    /// The key for a server, if tools of several can be called.
    server: Option<&'static str>,
    /// The tool that tells names of tools.
    source: &'static str,
}

/// A call with more members or values than this is not examined closely.
const MOST_MEMBERS: usize = 1_000;
/// The parameter for how long a call may take, of every calling tool.
const TIMEOUT: &str = "timeout";
/// The parameter for the part of the result that is wanted, of every calling tool.
const FILTER: &str = "jq";
/// Keys under which models put remarks about a call beside it.
const REMARKS: [&str; 14] = [
    "reason",
    "reasoning",
    "rationale",
    "description",
    "explanation",
    "justification",
    "purpose",
    "intent",
    "thought",
    "thoughts",
    "thinking",
    "comment",
    "note",
    "type",
];

impl Envelope {
    /// `execute_tool`.
    pub const EXECUTE: Self = Self {
        names: &["name", "tool", "tool_name"],
        arguments: "arguments",
        own: &[TIMEOUT],
        aside: &[],
        server: Some("server"),
        source: "search_tools",
    };
    /// A server as one tool.
    pub const SUITE: Self = Self {
        names: &["subtool", "tool", "name", "tool_name"],
        arguments: "args",
        own: &["action", TIMEOUT],
        aside: &["detail", "query", "names"],
        server: None,
        source: "introspect",
    };
}

/// A tool that a name leads to.
#[derive(Debug, Clone)]
pub struct ResolvedTool<T> {
    /// The name by which hosts call it, however it was written.
    pub name: String,
    /// Whether it was written exactly so.
    pub exact: bool,
    /// `None` if its server has never listed it.
    pub schema: Option<Arc<CompiledSchema>>,
    /// The caller's entry for it.
    pub tool: T,
}

impl<T> ResolvedTool<T> {
    /// The same tool with another entry.
    pub fn map<U>(self, entry: impl FnOnce(T) -> U) -> ResolvedTool<U> {
        ResolvedTool { name: self.name, exact: self.exact, schema: self.schema, tool: entry(self.tool) }
    }
}

/// A call within the arguments of another tool.
#[derive(Debug, Clone)]
pub struct Call<'a, T> {
    pub tool: ResolvedTool<T>,
    /// A slice of the outer arguments, unless they were repaired.
    pub arguments: Cow<'a, [u8]>,
    pub timeout: Option<Duration>,
    /// A jq filter for the result.
    pub filter: Option<String>,
    pub repairs: Vec<Repair>,
}

impl<T> Call<'_, T> {
    /// Checks the arguments against the tool's schema, and repairs them if the mode allows it.
    pub fn checked(mut self, mode: Mode) -> Result<Self, Refusal> {
        let unlisted = || Arc::new(CompiledSchema::new(b"{}"));
        let schema = self.tool.schema.clone().unwrap_or_else(unlisted);
        let (repaired, repairs) = match &self.arguments {
            Cow::Borrowed(arguments) => {
                let checked = check(&schema, arguments, mode)?;
                (Some(checked.arguments), checked.repairs)
            }
            Cow::Owned(arguments) => {
                let checked = check(&schema, arguments, mode)?;
                let is_same = checked.repairs.is_empty();
                ((!is_same).then(|| Cow::Owned(checked.arguments.into_owned())), checked.repairs)
            }
        };
        self.arguments = repaired.unwrap_or(self.arguments);
        self.repairs.extend(repairs);
        Ok(self)
    }
}

/// Why outer arguments contain no call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCall {
    /// There is no tool of this name.
    Unknown(String),
    Refused(Refusal),
}

/// Finds the tool of a name; of a server, if that was given separately.
pub type ResolveTool<'f, T> = &'f dyn Fn(&str, Option<&str>) -> Option<ResolvedTool<T>>;

/// Finds the tool that is to be called, and its arguments.
pub fn unwrap_call<'a, T>(
    outer: &'a [u8],
    envelope: Envelope,
    mode: Mode,
    resolve: ResolveTool<'_, T>,
) -> Result<Call<'a, T>, NoCall> {
    if let Some(call) = plain_call(outer, envelope, resolve) {
        return Ok(call);
    }
    let Envelope { names, arguments, .. } = envelope;
    if !raw::is_json(outer) || Kind::of(outer) != Kind::Object {
        return refuse(format!("expected an object with `{}` and `{arguments}`", names[0]));
    }
    let is_vast = raw::has_more_values(outer, MOST_VALUES);
    let entries = if is_vast { Vec::new() } else { raw::entries(outer) };
    if is_vast || entries.len() > MOST_MEMBERS {
        return refuse(format!(
            "a call of more than {MOST_MEMBERS} members or {MOST_VALUES} values is only understood in its exact form: \
             `{}` of an existing tool, and `{arguments}`, an object",
            names[0]
        ));
    }
    if let Some(key) = raw::doubled(outer) {
        return refuse(format!("{} stands twice in one object", quoted(&key)));
    }
    let names = if mode == Mode::Repair { names } else { &names[..1] };
    let mut opened = Opened { envelope, names, mode, entries, repairs: Vec::new() };
    opened.open_whole_call();
    let tool = opened.tool(resolve)?;
    // A tool that was never listed may take anything.
    let schema = match &tool.schema {
        Some(schema) => Schema::new(Arc::clone(&schema.parsed)),
        None => Schema::read(br#"{"additionalProperties":true}"#),
    };
    let (arguments, Own { timeout, filter }) = opened.arguments(&Inner::new(&tool.name, &schema))?;
    Ok(Call { tool, arguments, timeout, filter, repairs: opened.repairs })
}

/// A call that is written as it should be: the exact keys, each once, and an existing tool. Anything else
/// needs a closer look.
pub(super) fn plain_call<'a, T>(
    outer: &'a [u8],
    envelope: Envelope,
    resolve: ResolveTool<'_, T>,
) -> Option<Call<'a, T>> {
    let (mut name, mut arguments, mut timeout, mut filter, mut action) = (None, None, None, None, None);
    simdutf8::basic::from_utf8(outer).ok()?;
    let mut members = Members::of(outer, &(0..outer.len()));
    for member in &mut members {
        let Member { key, value, .. } = member.ok()?;
        let seen = match &*key {
            key if key == envelope.names[0] => &mut name,
            key if key == envelope.arguments => &mut arguments,
            TIMEOUT => &mut timeout,
            FILTER => &mut filter,
            key if envelope.own.contains(&key) => &mut action,
            _ => return None,
        };
        if seen.replace(&outer[value]).is_some() {
            return None;
        }
    }
    let arguments = arguments.filter(|json| Kind::of(json) == Kind::Object)?;
    let is_whole = outer.first() == Some(&b'{') && members.position() == outer.len();
    let is_empty = || raw::entries(arguments).is_empty();
    if !is_whole || (timeout.is_some() || filter.is_some()) && is_empty() {
        return None;
    }
    let timeout = timeout.map(|json| seconds(json).ok_or(())).transpose().ok()?;
    let filter = filter.map(|json| filter_in(json).ok_or(())).transpose().ok()?;
    let name = string_value(name.filter(|name| name.len() <= size_limit::NAME)?)?;
    let name = Some(name).filter(|name| name.trim().len() == name.len())?;
    let tool = resolve(&name, None).filter(|tool| tool.exact)?;
    Some(Call { tool, arguments: Cow::Borrowed(arguments), timeout, filter, repairs: Vec::new() })
}

/// What is known of the tool that is called.
struct Inner<'s> {
    name: &'s str,
    takes: Level<'s>,
    schema: &'s Schema,
}

impl<'s> Inner<'s> {
    fn new(name: &'s str, schema: &'s Schema) -> Self {
        Self { name, takes: Level::of(schema, &[schema.root()]), schema }
    }

    fn takes(&self, key: &str) -> bool {
        self.takes.names_alike(key)
    }
}

struct Opened<'a> {
    envelope: Envelope,
    names: &'static [&'static str],
    mode: Mode,
    /// The entries that have not been understood yet.
    entries: Vec<Entry<'a>>,
    repairs: Vec<Repair>,
}

impl<'a> Opened<'a> {
    /// Takes out a whole call that stands once more below `arguments`.
    fn open_whole_call(&mut self) {
        if let [only] = self.entries.as_slice()
            && WRAPPERS.contains(&only.key.as_str())
            && self.mode == Mode::Repair
            && let Cow::Borrowed(inner) = only.value
            && let inner = raw::entries(inner)
            && inner.iter().any(|entry| self.names.iter().any(|name| self.mode.is(&entry.key, name)))
        {
            self.note("", Fault::Nested);
            self.entries = inner;
        }
    }

    /// The tool that is meant: a value under one of the names that is a tool comes before one that is not.
    fn tool<T>(&mut self, resolve: ResolveTool<'_, T>) -> Result<ResolvedTool<T>, NoCall> {
        let right = self.names[0];
        let server =
            self.envelope.server.filter(|_| self.mode == Mode::Repair).and_then(|key| self.text(key));
        let mut written: Vec<(&'static str, String)> = Vec::new();
        written.extend(self.names.iter().filter_map(|key| Some((*key, self.text(key)?))));
        let lengths = written.iter().map(|(key, name)| size_limit::check_length(key, name, size_limit::NAME));
        let of_server = self.envelope.server.zip(server.as_deref());
        let of_server =
            of_server.map(|(key, server)| size_limit::check_length(key, server, size_limit::NAME));
        if let Some(Err(too_long)) = lengths.chain(of_server).find(Result::is_err) {
            return refuse(too_long.to_string());
        }
        let by_server = |name: &str| resolve(name, Some(server.as_deref()?));
        let known = |(key, name): &(&'static str, String)| {
            let of_server = by_server(name);
            let asked_for = of_server.is_some() || server.is_none();
            // A name that is only similar to one of another server's tools does not mean that tool.
            let any = || resolve(name, None).filter(|tool| tool.exact || asked_for);
            Some((*key, of_server.or_else(any)?, asked_for))
        };
        let mut found: Vec<(&str, ResolvedTool<T>, bool)> = written.iter().filter_map(known).collect();
        // If a tool is named exactly, a value that is only similar to a tool's name is an argument.
        if found.iter().any(|(_, tool, _)| tool.exact) {
            found.retain(|(_, tool, _)| tool.exact);
        }
        if let [(one, first, _), (other, second, _), ..] = found.as_slice()
            && first.name != second.name
        {
            return refuse(format!(
                "`{one}` and `{other}` name different tools: {} and {}",
                word(&first.name),
                word(&second.name)
            ));
        }
        if found.is_empty() {
            return match written.into_iter().next() {
                Some((_, name)) => Err(NoCall::Unknown(name)),
                None if self.find(self.names).is_some() => refuse(format!("`{right}` must be a string")),
                None => refuse(self.without_name()),
            };
        }
        let (key, tool, asked_for) = found.remove(0);
        for (again, ..) in found {
            self.take(again);
            self.note(again, Fault::Remark);
        }
        let apart = self.text(key).is_some_and(|name| name != tool.name);
        if self.take(key).is_some_and(|entry| entry.key != right) {
            self.note(right, Fault::KeySpelling);
        }
        if !tool.exact {
            if self.mode == Mode::CheckOnly {
                return refuse(format!("there is no such tool; the nearest is {}", quoted(&tool.name)));
            }
            self.note(right, Fault::ValueSpelling);
        }
        if let (Some(server), Some(word)) = (server, self.envelope.server) {
            let takes_it = || {
                let schema = tool.schema.as_ref().map(|schema| Schema::new(Arc::clone(&schema.parsed)));
                schema.is_some_and(|schema| Inner::new(&tool.name, &schema).takes(word))
            };
            match (asked_for, apart) {
                (true, true) => {
                    self.take(word);
                    self.note(right, Fault::ServerApart);
                }
                _ if takes_it() => {}
                (true, false) => {
                    self.take(word);
                    self.note(word, Fault::Remark);
                }
                (false, _) => {
                    let (name, server) = (text::word(&tool.name), quoted(&server));
                    return refuse(format!("{name} is no tool of the server {server}"));
                }
            }
        }
        Ok(tool)
    }

    /// The arguments to send, how long the call may take, and which part of the result is wanted.
    fn arguments(&mut self, tool: &Inner<'_>) -> Result<(Cow<'a, [u8]>, Own), NoCall> {
        let right = self.envelope.arguments;
        let below = self.wrapper(tool).map(|at| self.entries.remove(at));
        let filled = below.as_ref().filter(|entry| !is_empty(entry));
        // If the call and the tool have the same parameter, only its place tells whose it is.
        let unclear = if filled.is_some() { self.envelope.server } else { Some(TIMEOUT) };
        if let Some(word) = unclear.filter(|word| tool.takes(word) && self.find(&[word]).is_some()) {
            let name = text::word(tool.name);
            return refuse(format!(
                "`{word}` may be the call's or a parameter of {name}: put its parameters below `{right}`"
            ));
        }
        let timeout = self.timeout()?;
        // Among arguments that do not stand below a key, it is the tool's if the tool has such a parameter.
        let is_own = filled.is_some() || !tool.takes(FILTER);
        let filter = if is_own { self.filter()? } else { None };
        let (Envelope { own, aside, .. }, mode) = (self.envelope, self.mode);
        let among = |words: &[&str], key: &str| words.iter().any(|word| mode.is(key, word));
        self.entries.retain(|Entry { key, .. }| {
            !among(own, key) && (filled.is_none() || !among(aside, key) || tool.takes(key))
        });
        if mode == Mode::Repair && !tool.takes.open {
            let is_remark = |entry: &mut Entry<'_>| among(&REMARKS, &entry.key) && !tool.takes(&entry.key);
            for entry in self.entries.extract_if(.., is_remark).collect::<Vec<_>>() {
                self.note(&entry.key, Fault::Remark);
            }
        }
        let arguments = match below {
            None if self.entries.is_empty() => Cow::Borrowed(b"{}".as_slice()),
            Some(entry) if self.entries.is_empty() => {
                if entry.key != right {
                    self.note("", Fault::KeySpelling);
                }
                entry.value
            }
            _ if self.mode == Mode::CheckOnly => {
                let beside = listed(self.entries.iter().map(|entry| entry.key.as_str()));
                return refuse(format!("{beside}: the tool's parameters belong below `{right}`"));
            }
            Some(entry) if !is_empty(&entry) => self.completed(&entry, tool)?,
            _ => {
                self.note("", Fault::Flattened);
                raw::object(&self.entries).into()
            }
        };
        Ok((arguments, Own { timeout, filter }))
    }

    /// Joins arguments of which some stand where they belong, and others beside them.
    fn completed(&mut self, below: &Entry<'_>, tool: &Inner<'_>) -> Result<Cow<'a, [u8]>, NoCall> {
        let right = self.envelope.arguments;
        let is_object = Kind::of(&below.value) == Kind::Object;
        let mut all = if is_object { raw::entries(&below.value) } else { Vec::new() };
        let mut names: HashSet<String> = all.iter().map(|entry| folded(&entry.key)).collect();
        let entries = std::mem::take(&mut self.entries);
        let strays: Vec<&str> =
            entries.iter().map(|entry| entry.key.as_str()).filter(|key| !tool.takes(key)).collect();
        if is_object && !strays.is_empty() {
            return Err(self.stray(&strays, tool).into());
        }
        for entry in entries {
            let key = &entry.key;
            if !names.insert(folded(key)) || !is_object {
                let key = quoted(key);
                return refuse(format!("parameters stand both below `{right}` and beside it: {key}"));
            }
            self.note(key, Fault::Flattened);
            all.push(entry);
        }
        Ok(raw::object(&all).into())
    }

    /// The key that the arguments stand below: the right one, or one that models use by mistake. A parameter
    /// of the tool with the same name does not count, if it can be told apart.
    fn wrapper(&self, tool: &Inner<'_>) -> Option<usize> {
        let right = self.envelope.arguments;
        let is_own = |at: &usize| tool.takes(right) && Kind::of(&self.entries[*at].value) == Kind::Array;
        let others = WRAPPERS.iter().filter(|name| self.mode == Mode::Repair && !tool.takes(name));
        let others: Vec<&str> = others.copied().collect();
        self.find(&[right]).or_else(|| self.find(&others)).filter(|at| !is_own(at))
    }

    fn text(&self, key: &str) -> Option<String> {
        let entry = &self.entries[self.find(&[key])?];
        Some(raw::text(&entry.value)?.trim().to_owned())
    }

    fn take(&mut self, key: &str) -> Option<Entry<'a>> {
        self.find(&[key]).map(|at| self.entries.remove(at))
    }

    /// Where the first of these names stands, in the order of the names; exact spellings come first.
    fn find(&self, names: &[&str]) -> Option<usize> {
        let exact = |name: &&str| self.entries.iter().position(|entry| entry.key == **name);
        let alike = |name: &&str| self.entries.iter().position(|entry| self.mode.is(&entry.key, name));
        names.iter().find_map(exact).or_else(|| names.iter().find_map(alike))
    }

    fn note(&mut self, place: &str, fault: Fault) {
        self.repairs.push(Repair { place: place.to_owned(), fault });
    }
}

impl Mode {
    /// Whether this key is that word.
    fn is(self, key: &str, word: &str) -> bool {
        key == word || self == Self::Repair && folded(key) == folded(word)
    }
}

impl From<Problem> for NoCall {
    fn from(problem: Problem) -> Self {
        Self::Refused(Refusal::new(vec![problem]))
    }
}

fn refuse<T>(message: impl AsRef<str>) -> Result<T, NoCall> {
    Err(Problem::root(message.as_ref()).into())
}

fn is_empty(entry: &Entry<'_>) -> bool {
    matches!(&*entry.value, b"null" | b"\"\"" | b"\"{}\"")
        || Kind::of(&entry.value) == Kind::Object && raw::entries(&entry.value).is_empty()
}
