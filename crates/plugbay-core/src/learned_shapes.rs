//! The shapes of real results of tools without an output schema: keys and types, never a value.
//!
//! With them a model can write a jq filter before it has seen a result. Few results of each tool are read.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize};

use crate::{
    catalog::{Catalog, Offer, Tool},
    name::ServerName,
    shape::Shape,
};

/// How many results of a tool are read in one process.
const RESULTS: u8 = 8;
/// How many tools of a server are remembered.
pub const TOOLS: usize = 256;
/// The longest shape that is remembered, in bytes.
pub const LONGEST: usize = 8 << 10;
/// The largest result that is read, in bytes.
const LARGEST: usize = 8 << 20;
/// The tokens of a line that shows a shape.
const LINE: usize = 160;

/// The shapes of one server's tools, by their own names.
pub type Stored = BTreeMap<String, StoredShape>;

/// A shape as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredShape {
    /// Tells the tool from another one of the same name: see [`mark`].
    pub mark: u64,
    pub shape: Shape,
}

/// Reads what is kept of a server.
pub type Load = Box<dyn Fn(&ServerName) -> Stored + Send + Sync>;

/// The shapes of all servers. What is kept of a server is read when it is first needed.
pub struct LearnedShapes {
    // A std mutex: held for a look-up or a merge, and never while a file is read.
    servers: Mutex<BTreeMap<ServerName, Shapes>>,
    load: Load,
}

#[derive(Default)]
struct Shapes {
    is_loaded: bool,
    tools: BTreeMap<String, Learned>,
    /// Something has been learned that is not saved yet.
    is_changed: bool,
}

#[derive(Default)]
struct Learned {
    mark: u64,
    /// The shape, including keys that are not confirmed yet.
    shape: Shape,
    /// How many results were read in this process.
    results: u8,
}

impl Default for LearnedShapes {
    /// Shapes of which nothing is stored.
    fn default() -> Self {
        Self::new(Box::new(|_| Stored::new()))
    }
}

impl LearnedShapes {
    pub fn new(load: Load) -> Self {
        Self { servers: Mutex::default(), load }
    }

    /// Whether a result of this tool should be read; if so, it counts as read. This is on the path of calls.
    pub fn is_wanted(&self, server: &ServerName, tool: &str, length: usize) -> bool {
        if length > LARGEST {
            return false;
        }
        let mut servers = self.lock();
        match servers.get_mut(server) {
            Some(shapes) => shapes.is_wanted(tool),
            None => servers.entry(server.clone()).or_default().is_wanted(tool),
        }
    }

    /// Learns from the value of a result, as `jq` gets it. Takes long, so it must not run in the event loop.
    pub fn learn(&self, server: &ServerName, offer: &Offer, tool: &str, value: &[u8]) {
        let tool = offer.tool(tool).filter(|tool| tool.raw("outputSchema").is_none());
        let Some(tool) = tool else { return };
        let Some(shape) = Shape::of_fields(value) else { return };
        self.loaded(server, |shapes| shapes.learn(tool, mark(offer, tool), shape));
    }

    /// One line on the results of a tool: `result: {id: int, title}[]`. `None` if nothing of use is known.
    pub fn line(&self, server: &ServerName, catalog: &Catalog, tool: &str) -> Option<String> {
        let offer = &catalog.get(server)?.offer;
        let mark = mark(offer, offer.tool(tool)?);
        let known = |shapes: &mut Shapes| {
            let known = shapes.tools.get(tool).filter(|known| known.mark == mark);
            known.map(|known| known.shape.clone().confirmed())
        };
        let shape = self.loaded(server, known).filter(Shape::has_parts)?;
        Some(format!("result: {}", shape.line(LINE)))
    }

    /// Forgets a server: it is gone, or another program now.
    pub fn forget(&self, server: &ServerName) {
        self.lock().remove(server);
    }

    /// What is new since the last time, to be stored: confirmed keys only.
    pub fn take_changed(&self) -> Vec<(ServerName, Stored)> {
        let mut servers = self.lock();
        let changed = servers.iter_mut().filter(|(_, shapes)| shapes.is_changed);
        let stored = changed.map(|(server, shapes)| {
            shapes.is_changed = false;
            (server.clone(), shapes.stored())
        });
        stored.collect()
    }

    fn loaded<T>(&self, server: &ServerName, work: impl FnOnce(&mut Shapes) -> T) -> T {
        let is_loaded = self.lock().get(server).is_some_and(|shapes| shapes.is_loaded);
        let kept = if is_loaded { Stored::new() } else { (self.load)(server) };
        let mut servers = self.lock();
        let shapes = servers.entry(server.clone()).or_default();
        if !std::mem::replace(&mut shapes.is_loaded, true) {
            shapes.add(kept);
        }
        work(shapes)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServerName, Shapes>> {
        // Nothing can panic half-way through a change, so poisoned shapes are still whole.
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shapes {
    fn is_wanted(&mut self, tool: &str) -> bool {
        if let Some(learned) = self.tools.get_mut(tool) {
            let is_wanted = learned.results < RESULTS;
            learned.results += u8::from(is_wanted);
            return is_wanted;
        }
        let has_room = self.tools.len() < TOOLS;
        if has_room {
            self.tools.insert(tool.to_owned(), Learned { results: 1, ..Learned::default() });
        }
        has_room
    }

    /// Adds what is kept to what was learned meanwhile.
    fn add(&mut self, kept: Stored) {
        for (tool, kept) in within_limits(kept) {
            let learned = self.tools.entry(tool).or_default();
            if learned.shape == Shape::default() {
                (learned.mark, learned.shape) = (kept.mark, kept.shape);
            }
        }
    }

    fn learn(&mut self, tool: &Tool, mark: u64, shape: Shape) {
        let learned = self.tools.entry(tool.name.clone()).or_default();
        let before = if learned.mark == mark { std::mem::take(&mut learned.shape) } else { Shape::default() };
        let known = before.clone().confirmed();
        let merged = before.merge(shape);
        (learned.mark, learned.shape) = (mark, merged);
        self.is_changed |= learned.shape.clone().confirmed() != known;
    }

    fn stored(&self) -> Stored {
        let confirmed = self.tools.iter().map(|(tool, learned)| {
            let shape = learned.shape.clone().confirmed();
            (tool.clone(), StoredShape { mark: learned.mark, shape })
        });
        within_limits(confirmed.filter(|(_, stored)| stored.shape.has_parts()).collect())
    }
}

/// Merges what two processes have stored. If they know a tool under different marks, `new` counts.
pub fn merged(old: Stored, new: Stored) -> Stored {
    let mut all = old;
    for (tool, stored) in new {
        let shape = match all.remove(&tool) {
            Some(old) if old.mark == stored.mark => old.shape.merge(stored.shape),
            _ => stored.shape,
        };
        all.insert(tool, StoredShape { mark: stored.mark, shape });
    }
    within_limits(all)
}

/// The same without surplus and too large shapes: a file may contain anything.
fn within_limits(stored: Stored) -> Stored {
    let bounded = stored
        .into_iter()
        .map(|(tool, StoredShape { mark, shape })| (tool, StoredShape { mark, shape: shape.bounded() }));
    let is_short = |stored: &StoredShape| serde_json::to_vec(stored).is_ok_and(|json| json.len() <= LONGEST);
    bounded.filter(|(_, stored)| is_short(stored)).take(TOOLS).collect()
}

/// A number that changes with the server's version and the tool's arguments: then its results may change too.
fn mark(offer: &Offer, tool: &Tool) -> u64 {
    let info = offer.info.as_deref().unwrap_or_default();
    let parts = info.iter().chain(b"\0").chain(tool.raw("inputSchema").unwrap_or_default());
    // FNV-1a: the same in every version and on every machine.
    parts.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl fmt::Debug for LearnedShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LearnedShapes({} servers)", self.lock().len())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use bytes::Bytes;

    use super::*;
    use crate::{catalog::Change, era::Era};

    const NAME: &str = "list";

    fn server() -> ServerName {
        ServerName::parse("s").unwrap()
    }

    fn offer(definition: &str) -> Offer {
        let tool = Tool::parse(Bytes::from(definition.to_owned())).unwrap();
        Offer::new(Era::Legacy, None, None, vec![tool])
    }

    fn plain() -> Offer {
        offer(r#"{"name":"list","inputSchema":{"type":"object"}}"#)
    }

    fn line(shapes: &LearnedShapes, offer: &Offer) -> Option<String> {
        let catalog = Catalog::default().apply(Change::Listed(server(), Arc::new(offer.clone())));
        shapes.line(&server(), &catalog, NAME)
    }

    #[test]
    fn a_shape_is_shown_when_two_results_agree_and_never_has_a_value() {
        let shapes = LearnedShapes::default();
        let offer = plain();
        shapes.learn(&server(), &offer, NAME, br#"[{"id": 1, "owner": {"alice@example.org": "secret"}}]"#);
        assert_eq!((line(&shapes, &offer), shapes.take_changed().len()), (None, 1));
        shapes.learn(&server(), &offer, NAME, br#"[{"id": 2, "owner": {"bob": "secret"}}]"#);
        let shown = line(&shapes, &offer).unwrap();
        assert_eq!(shown, "result: {id: int, owner: {[key]: string}}[]");
        let kept = serde_json::to_string(&shapes.take_changed()[0].1).unwrap();
        for value in ["alice", "bob", "secret", "example"] {
            assert!(!kept.contains(value), "{kept}");
        }
        assert!(shapes.take_changed().is_empty(), "nothing is new");
    }

    #[test]
    fn text_and_tools_with_an_output_schema_have_no_shape() {
        let shapes = LearnedShapes::default();
        let schema = offer(r#"{"name":"list","inputSchema":{},"outputSchema":{"type":"object"}}"#);
        for (offer, value) in [(schema, &b"[{\"id\": 1}]"[..]), (plain(), b"\"a text\"")] {
            shapes.learn(&server(), &offer, NAME, value);
            shapes.learn(&server(), &offer, NAME, value);
            assert_eq!(line(&shapes, &offer), None);
        }
    }

    #[test]
    fn what_is_kept_is_read_once_and_bounded() {
        let first = LearnedShapes::default();
        for id in ["1", "2.5"] {
            first.learn(&server(), &plain(), NAME, format!(r#"[{{"id": {id}}}]"#).as_bytes());
        }
        let kept = first.take_changed().remove(0).1;
        let reads = Arc::new(AtomicUsize::new(0));
        let (counted, wide) = (Arc::clone(&reads), kept[NAME].clone());
        let load = move |_: &ServerName| {
            counted.fetch_add(1, Ordering::Relaxed);
            (0..2 * TOOLS).map(|n| (format!("z{n}"), wide.clone())).chain(kept.clone()).collect()
        };
        let second = LearnedShapes::new(Box::new(load));
        assert_eq!(line(&second, &plain()).as_deref(), Some("result: {id: number}[]"));
        assert!(second.lock()[&server()].tools.len() <= TOOLS);
        second.learn(&server(), &plain(), NAME, br#"[{"id": 1, "new": 1}]"#);
        second.learn(&server(), &plain(), NAME, br#"[{"id": 1, "new": 1}]"#);
        assert_eq!(line(&second, &plain()).as_deref(), Some("result: {id: number, new?: int}[]"));
        assert_eq!(reads.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn another_version_of_a_server_is_learned_anew() {
        let shapes = LearnedShapes::default();
        let other = offer(r#"{"name":"list","inputSchema":{"type":"object","properties":{"q":{}}}}"#);
        for _ in 0..2 {
            shapes.learn(&server(), &plain(), NAME, br#"{"old": 1}"#);
        }
        assert!(line(&shapes, &plain()).is_some() && line(&shapes, &other).is_none());
        for _ in 0..2 {
            shapes.learn(&server(), &other, NAME, br#"{"new": 1}"#);
        }
        assert_eq!(line(&shapes, &other).as_deref(), Some("result: {new: int}"));
    }

    #[test]
    fn few_results_of_a_tool_and_few_tools_of_a_server_are_looked_at() {
        let shapes = LearnedShapes::default();
        let wanted = (0..100).filter(|_| shapes.is_wanted(&server(), NAME, 10)).count();
        assert_eq!(wanted, usize::from(RESULTS));
        let tools = (0..2 * TOOLS).filter(|n| shapes.is_wanted(&server(), &n.to_string(), 10)).count();
        assert_eq!(tools, TOOLS - 1);
        assert!(!shapes.is_wanted(&ServerName::parse("other").unwrap(), NAME, LARGEST + 1));
    }

    #[test]
    fn a_hostile_server_cannot_grow_what_is_kept() {
        let shapes = LearnedShapes::default();
        for n in 0..50 {
            let keys: Vec<String> = (0..500)
                .map(|key| {
                    format!(r#""f{}_{}": {{"a": [{{"deep": {n}}}], "b": "{key}"}}"#, n % 2, letters(key))
                })
                .collect();
            shapes.learn(
                &server(),
                &plain(),
                NAME,
                format!("{{\"x\": {{{}}}, \"y\": {n}}}", keys.join(",")).as_bytes(),
            );
        }
        let kept: usize =
            shapes.take_changed().iter().map(|(_, kept)| serde_json::to_vec(kept).unwrap().len()).sum();
        assert!(kept <= LONGEST + 64, "{kept}");
    }

    fn letters(number: usize) -> String {
        format!("{number}").bytes().map(|digit| char::from(digit - b'0' + b'g')).collect()
    }
}
