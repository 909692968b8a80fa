//! Remembered searches: the words of queries that were followed by a successful call, by tool.
//!
//! A remembered word is a weak field of its tool. Only calls of the user's own hosts write it, each for the tool that was called,
//! so no server can write that of another.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{
    typed::{self, Piece},
    words::{self, Origin, Words},
};
use crate::{catalog::Tool, name::ServerName, size_limit};

/// How many tools are remembered, and how many words of each: together a few kilobytes.
const TOOLS: usize = 128;
const WORDS: usize = 12;
/// How many words of one query are remembered, and the longest of them, in bytes.
const OF_QUERY: usize = 8;
const LONGEST_WORD: usize = 32;
/// After this many days a use counts half.
const HALF_LIFE: f32 = 30.0;
/// Words with less weight than `FORGOTTEN` are forgotten. Uses beyond a weight of `MOST` add nothing.
const FORGOTTEN: f32 = 0.1;
const MOST: f32 = 10.0;
/// The weight that words of a tool lose if it was shown before the one that was called.
const PASSED_OVER: f32 = 0.25;

/// The searches of a project that led to calls.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Remembered>", into = "Vec<Remembered>")]
pub struct SearchMemory {
    tools: Vec<Remembered>,
    /// For each word, the tools that have it, by their places.
    by_word: FxHashMap<String, Vec<usize>>,
}

/// The words of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Remembered {
    pub server: String,
    /// The server's own name for it.
    pub tool: String,
    /// The tool's [`definition_hash`], by which it is found again under another name.
    pub definition: u64,
    /// When it was last used, in days.
    pub day: u32,
    /// How often it was called after a query with the word: the weights as of `day`.
    pub words: BTreeMap<String, f32>,
}

/// A tool by its server and the server's own name for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPlace {
    pub server: ServerName,
    pub tool: String,
}

impl ToolPlace {
    pub fn is(&self, server: &ServerName, tool: &str) -> bool {
        self.server == *server && self.tool == tool
    }
}

/// A search that was followed by a successful call.
#[derive(Debug, Clone)]
pub struct Followed {
    pub words: Vec<String>,
    pub called: ToolPlace,
    /// The called tool's [`definition_hash`].
    pub definition: u64,
    /// The tools that were shown before it.
    pub passed_over: Vec<ToolPlace>,
    /// The weight of this use: one, or less for an earlier query.
    pub weight: f32,
}

/// The words of a query that are remembered: without endings, little words, numbers, and literals such as addresses.
pub fn remembered_words(query: &str) -> Vec<String> {
    let query = &query[..query.floor_char_boundary(size_limit::QUERY)];
    let stems = Words::default();
    let mut found: Vec<String> = Vec::new();
    let mut add = |word: &str, origin: Origin| {
        let is_word = origin == Origin::Written && word.len() <= LONGEST_WORD;
        if !is_word || found.len() == OF_QUERY || word.bytes().any(|byte| byte.is_ascii_digit()) {
            return;
        }
        if let Some(stem) = stems.term(word)
            && !found.iter().any(|known| *known == *stem)
        {
            found.push(stem.into_owned());
        }
    };
    typed::each(query, |piece| {
        if let Piece::Words(text) = piece {
            words::each(text, &mut add);
        }
    });
    found
}

/// A hash of a tool without its name: FNV-1a of its description and its input schema.
pub fn definition_hash(tool: &Tool) -> u64 {
    let parts = ["description", "inputSchema"].map(|key| tool.raw(key).unwrap_or_default());
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl SearchMemory {
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub fn tools(&self) -> &[Remembered] {
        &self.tools
    }

    /// Remembers a search and its call.
    pub fn learn(&mut self, followed: &Followed, day: u32) {
        let Followed { words, called, definition, passed_over, weight } = followed;
        for other in passed_over.iter().filter(|other| *other != called) {
            if let Some(tool) = self.tools.iter_mut().find(|tool| tool.is(other)) {
                tool.age(day);
                tool.lose(words);
            }
        }
        if !words.is_empty() {
            let at = self.tools.iter().position(|tool| tool.is(called));
            let at = at.unwrap_or_else(|| self.add(called, *definition, day));
            let tool = &mut self.tools[at];
            tool.age(day);
            tool.definition = *definition;
            tool.gain(words, *weight);
        }
        self.tools.retain(|tool| !tool.words.is_empty());
        self.index();
    }

    /// Forgets the tools for which `is_unwanted` says so. Returns how many there were.
    pub fn forget(&mut self, is_unwanted: impl Fn(&Remembered) -> bool) -> usize {
        let before = self.tools.len();
        self.tools.retain(|tool| !is_unwanted(tool));
        self.index();
        before - self.tools.len()
    }

    /// The tools that have one of these words, with the weight of each word on a day.
    pub fn recall<'a>(
        &'a self,
        words: &'a [String],
        day: u32,
    ) -> impl Iterator<Item = (&'a str, &'a Remembered, f32)> {
        words.iter().flat_map(move |word| {
            let places = self.by_word.get(word).into_iter().flatten();
            places.filter_map(move |at| {
                let tool = &self.tools[*at];
                let weight = tool.words.get(word)? * tool.decay(day);
                (weight >= FORGOTTEN).then_some((word.as_str(), tool, weight))
            })
        })
    }

    /// A place for another tool: that of the least used, if there are too many.
    fn add(&mut self, place: &ToolPlace, definition: u64, day: u32) -> usize {
        let ToolPlace { server, tool } = place.clone();
        let new = Remembered { server: server.to_string(), tool, definition, day, words: BTreeMap::new() };
        if self.tools.len() < TOOLS {
            self.tools.push(new);
            return self.tools.len() - 1;
        }
        let uses = |tool: &Remembered| tool.words.values().copied().fold(0.0, f32::max) * tool.decay(day);
        let least =
            (0..self.tools.len()).min_by(|a, b| uses(&self.tools[*a]).total_cmp(&uses(&self.tools[*b])));
        let at = least.unwrap_or_default();
        self.tools[at] = new;
        at
    }

    fn index(&mut self) {
        self.by_word.clear();
        for (at, tool) in self.tools.iter().enumerate() {
            for word in tool.words.keys() {
                self.by_word.entry(word.clone()).or_default().push(at);
            }
        }
    }
}

impl Remembered {
    fn is(&self, place: &ToolPlace) -> bool {
        self.server == place.server.as_str() && self.tool == place.tool
    }

    fn decay(&self, day: u32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a number of days")]
        let days = day.abs_diff(self.day) as f32; // a day in the future is one of a wrong clock
        0.5f32.powf(days / HALF_LIFE)
    }

    fn age(&mut self, day: u32) {
        let decay = self.decay(day);
        self.words.values_mut().for_each(|weight| *weight *= decay);
        self.words.retain(|_, weight| *weight >= FORGOTTEN);
        self.day = day;
    }

    fn gain(&mut self, words: &[String], weight: f32) {
        for word in words {
            let known = self.words.entry(word.clone()).or_default();
            *known = (*known + weight).min(MOST);
        }
        while self.words.len() > WORDS {
            let least = self.words.iter().min_by(|a, b| a.1.total_cmp(b.1)).map(|(word, _)| word.clone());
            least.map(|word| self.words.remove(&word));
        }
    }

    fn lose(&mut self, words: &[String]) {
        for word in words {
            if let Some(weight) = self.words.get_mut(word) {
                *weight -= PASSED_OVER;
            }
        }
        self.words.retain(|_, weight| *weight >= FORGOTTEN);
    }
}

impl From<Vec<Remembered>> for SearchMemory {
    /// Leaves out everything over a limit, because a file may hold anything.
    fn from(mut tools: Vec<Remembered>) -> Self {
        tools.truncate(TOOLS);
        for tool in &mut tools {
            tool.words
                .retain(|word, weight| word.len() <= LONGEST_WORD && weight.is_finite() && *weight > 0.0);
            tool.words.values_mut().for_each(|weight| *weight = weight.min(MOST));
            tool.gain(&[], 0.0);
        }
        tools.retain(|tool| !tool.words.is_empty() && tool.tool.len() <= size_limit::NAME);
        let mut memory = Self { tools, by_word: FxHashMap::default() };
        memory.index();
        memory
    }
}

impl From<SearchMemory> for Vec<Remembered> {
    fn from(memory: SearchMemory) -> Self {
        memory.tools
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(server: &str, tool: &str) -> ToolPlace {
        ToolPlace { server: ServerName::parse(server).unwrap(), tool: tool.to_owned() }
    }

    fn followed(query: &str, called: ToolPlace, passed_over: Vec<ToolPlace>) -> Followed {
        Followed { words: remembered_words(query), called, definition: 7, passed_over, weight: 1.0 }
    }

    fn recalled(memory: &SearchMemory, query: &str, day: u32) -> Vec<(String, f32)> {
        let words = remembered_words(query);
        memory.recall(&words, day).map(|(_, tool, weight)| (tool.tool.clone(), weight)).collect()
    }

    #[test]
    fn only_words_are_remembered_of_a_search() {
        let words =
            remembered_words("please mail ada@example.com the invoices of 2026 from ~/secret/plan.txt");
        assert_eq!(words, ["mail", "invoic"]);
        assert_eq!(remembered_words(&"word1 ".repeat(1000)), Vec::<String>::new());
    }

    #[test]
    fn remembered_words_decay_and_are_lost_where_a_tool_is_passed_over() {
        let mut memory = SearchMemory::default();
        memory.learn(&followed("homestays", place("a", "x"), vec![]), 100);
        assert_eq!(recalled(&memory, "homestay", 100), [("x".to_owned(), 1.0)]);
        assert_eq!(recalled(&memory, "homestay", 130), [("x".to_owned(), 0.5)]);
        assert_eq!(recalled(&memory, "homestay", 300), []);
        for _ in 0..3 {
            memory.learn(&followed("homestays", place("a", "y"), vec![place("a", "x")]), 100);
        }
        assert_eq!(recalled(&memory, "homestay", 100), [("x".to_owned(), 0.25), ("y".to_owned(), 3.0)]);
        memory.learn(&followed("homestays", place("a", "y"), vec![place("a", "x")]), 100);
        assert_eq!(memory.tools().len(), 1);
        assert_eq!(memory.forget(|tool| tool.server == "b") + memory.forget(|tool| tool.server == "a"), 1);
        assert!(memory.is_empty() && recalled(&memory, "homestay", 100).is_empty());
    }

    #[test]
    fn remembered_searches_are_bounded_whatever_is_learned_or_read() {
        let mut memory = SearchMemory::default();
        for n in 0..400u32 {
            let word = |w: u32| "abcdefghij".repeat((n + w) as usize % 9);
            let query = (0..30).map(word).collect::<Vec<_>>().join(" ");
            memory.learn(&followed(&query, place("s", &format!("t{n}")), vec![]), n);
        }
        assert!(memory.tools().len() <= TOOLS && memory.tools().iter().all(|tool| tool.words.len() <= WORDS));
        let text = serde_json::to_string(&memory).unwrap();
        assert!(text.len() < 64 << 10, "{}", text.len());
        let hostile = format!(
            r#"[{{"server":"s","tool":"t","definition":1,"day":0,"words":{{"ok":1e30,"{}":1,"bad":-1}}}}]"#,
            "x".repeat(99)
        );
        let memory: SearchMemory = serde_json::from_str(&hostile).unwrap();
        assert_eq!(memory.tools()[0].words, [("ok".to_owned(), MOST)].into());
    }
}
