//! A query: its terms and its embedding, whole and sentence by sentence.

use super::{
    dictionary::TermId,
    embeddings::{Embedding, Embeddings},
    everyday::{self, Stemmed},
    explain::Relation,
    index::Index,
    spelling::Doubt,
    synonyms::Synonyms,
    typed::{self, Literal, Piece},
    words::{self, Correction, Origin, WordList},
};
use crate::size_limit;

/// A long request is also read sentence by sentence, because it may ask for several things.
const SENTENCES: usize = 8;
/// A query of at most so many words is brief.
const BRIEF: usize = 8;
/// More different terms than this are not looked up.
const TERMS: usize = 128;
/// So many words that no tool has are compared with those that tools have.
const COMPARED: usize = 8;
/// So many words of a query that nobody knows are looked up to be corrected.
const CORRECTED: usize = 8;
/// Of a term that stands in many tools, so many are asked whether it is a compound there.
const COMPOUNDS: usize = 16;

/// What the reading of a word counts, beside one that tools have and one that none has. Of n readings, each counts this by √n.
const BESIDE_KNOWN: f32 = 0.6;
const BESIDE_UNKNOWN: f32 = 1.0;
/// What each reading of a command or phrase counts in a query of more words than [`FEW`].
const AMONG_OTHERS: f32 = 0.7;
const FEW: usize = 3;
/// What a word counts that is a synonym of one that no tool has.
const SYNONYM_OF_UNKNOWN: f32 = 0.8;
/// What words in a URL count: they may name a server.
const HINT: f32 = 0.3;

/// A query as the index understands it.
pub(super) struct Query {
    pub(super) whole: Part,
    /// The sentences with at least two terms, if there are several.
    pub(super) sentences: Vec<Part>,
    /// Its words, as far as tools have them.
    pub(super) asked: Vec<Asked>,
    /// How many of its words no tool has.
    pub(super) unknown: f32,
    /// It begins with a command that no tool can do, though some do what is like it.
    pub(super) lacks_command: bool,
    /// It is in a script whose words are told apart: how many it has says something.
    has_words: bool,
    /// It has few words, little ones counted too.
    pub(super) is_brief: bool,
}

/// A word of a query. Any of its terms answers it.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    /// What was typed, as far as tools have it.
    pub(super) typed: Vec<TermId>,
    /// What it was read as beside or instead of that.
    pub(super) read: Vec<TermId>,
}

impl Asked {
    /// It is only what something was read as: a command, a phrase, or a word that no tool has.
    pub(super) fn is_guess(&self) -> bool {
        self.typed.is_empty()
    }
}

/// A query, or one of its sentences.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) terms: Vec<WeightedTerm>,
    pub(super) embedding: Option<Embedding>,
}

/// A term of a query, and how it came into it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WeightedTerm {
    pub(super) id: TermId,
    pub(super) weight: f32,
    pub(super) relation: Relation,
}

impl WeightedTerm {
    /// It is a word of the query, or what one was read as; not only near one.
    pub(super) fn is_said(&self) -> bool {
        matches!(self.relation, Relation::Said | Relation::Read)
    }

    fn outweighs(&self, other: &Self) -> bool {
        self.is_said() && (!other.is_said() || self.weight > other.weight)
    }
}

impl Query {
    pub(super) fn read(
        query: &str,
        index: &Index,
        synonyms: &Synonyms,
        embeddings: Option<&Embeddings>,
    ) -> Self {
        let query = &query[..query.floor_char_boundary(size_limit::QUERY)];
        let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|');
        let has_more_than =
            |count: usize| query.split(is_between).filter(|word| !word.is_empty()).nth(count).is_some();
        let (is_brief, has_few) = (!has_more_than(BRIEF), !has_more_than(FEW));
        let mut reader = Reader { is_brief, has_few, ..Reader::new(index, synonyms, embeddings) };
        let mut whole = Part::default();
        let mut sentences = Vec::new();
        let mut sum = reader.nothing();
        for (number, text) in self::sentences(query).filter(|text| !text.is_empty()).enumerate() {
            reader.sentence(text, number == 0);
            let mut part = std::mem::take(&mut reader.part);
            whole.merge(&part);
            for (sum, value) in sum.iter_mut().zip(&reader.sum) {
                *sum += value;
            }
            part.embedding = Embedding::of(&reader.sum);
            if part.terms.iter().filter(|term| term.is_said()).count() > 1 && sentences.len() < SENTENCES {
                sentences.push(part);
            }
        }
        whole.embedding = Embedding::of(&sum);
        if sentences.len() < 2 {
            sentences.clear();
        }
        let Reader { asked, unknown, lacks_command, .. } = reader;
        Self { whole, sentences, asked, unknown, lacks_command, has_words: query.is_ascii(), is_brief }
    }

    /// How many words it has, little ones not counted; `None` in a script whose words are not told apart.
    pub(super) fn word_count(&self) -> Option<f32> {
        #[expect(clippy::cast_precision_loss, reason = "a small number of words")]
        self.has_words.then_some(self.asked.len() as f32 + self.unknown)
    }
}

/// The sentences of a query, without the marks at their ends.
fn sentences(query: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(query);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.char_indices().find(|(at, c)| typed::ends_sentence(*c, &text[at + c.len_utf8()..]));
        let (sentence, behind) = match end {
            Some((at, mark)) => (&text[..at], Some(&text[at + mark.len_utf8()..])),
            None => (text, None),
        };
        rest = behind;
        Some(sentence)
    })
}

impl Part {
    /// Each term once; one that is said counts as said.
    fn add(&mut self, new: WeightedTerm) {
        match self.terms.iter().position(|term| term.id == new.id) {
            Some(at) if new.outweighs(&self.terms[at]) => self.terms[at] = new,
            None if self.terms.len() < TERMS => self.terms.push(new),
            _ => {}
        }
    }

    fn merge(&mut self, other: &Self) {
        for term in &other.terms {
            self.add(*term);
        }
    }
}

/// A word that no tool has.
struct Uncertain {
    text: String,
    doubt: Doubt,
}

/// Reads a query sentence by sentence.
struct Reader<'a> {
    index: &'a Index,
    synonyms: &'a Synonyms,
    embeddings: Option<&'a Embeddings>,
    /// The sentence that is being read.
    part: Part,
    sum: Vec<f32>,
    asked: Vec<Asked>,
    unknown: f32,
    lacks_command: bool,
    /// Words that no tool has, with their neighbours.
    compared: Vec<(String, Vec<(TermId, f32)>)>,
    /// Words of the sentence that no tool has and that may be mistyped.
    uncertain: Vec<Uncertain>,
    /// What words of the query were meant to be.
    corrections: Vec<Correction>,
    /// How many were looked up for that.
    looked_up: usize,
    /// Words in the midst of the sentence that begin with a capital letter.
    names: Vec<String>,
    /// Everyday words, phrases and compounds are read in a brief query only: in whole sentences most of them are chance.
    is_brief: bool,
    /// It has so few words that a command or phrase is most of it.
    has_few: bool,
}

impl<'a> Reader<'a> {
    fn new(index: &'a Index, synonyms: &'a Synonyms, embeddings: Option<&'a Embeddings>) -> Self {
        let (part, sum) = (Part::default(), Vec::new());
        let (asked, compared) = (Vec::new(), Vec::new());
        Self {
            index,
            synonyms,
            embeddings,
            part,
            sum,
            asked,
            unknown: 0.0,
            lacks_command: false,
            compared,
            uncertain: Vec::new(),
            corrections: Vec::new(),
            looked_up: 0,
            names: Vec::new(),
            is_brief: true,
            has_few: true,
        }
    }

    fn nothing(&self) -> Vec<f32> {
        self.embeddings.map(Embeddings::nothing).unwrap_or_default()
    }

    /// Reads a sentence. If words of it were mistyped, it is read again with what they were meant to be.
    fn sentence(&mut self, text: &str, is_first: bool) {
        self.names = names(text);
        let (asked, unknown) = (self.asked.len(), self.unknown);
        self.pieces(text, is_first);
        if self.correct() {
            self.asked.truncate(asked);
            self.unknown = unknown;
            self.part = Part::default();
            self.pieces(text, is_first);
        }
        for word in std::mem::take(&mut self.uncertain) {
            self.akin(&word.text, Origin::Written);
        }
    }

    fn pieces(&mut self, text: &str, mut is_first: bool) {
        self.sum = self.nothing();
        self.uncertain.clear();
        typed::each(text, |piece| {
            match piece {
                Piece::Words(text) => self.words(&WordList::of(text).corrected(&self.corrections), is_first),
                Piece::Literal(literal) => self.literal(literal),
            }
            is_first = false;
        });
    }

    /// Finds out which of the uncertain words were probably mistyped: first those that are words of no language, which then
    /// speak for the others. Returns whether there are any.
    fn correct(&mut self) -> bool {
        let before = self.corrections.len();
        let mut said: Vec<TermId> =
            self.part.terms.iter().filter(|term| term.is_said()).map(|term| term.id).collect();
        for doubt in [Doubt::Likely, Doubt::Unlikely] {
            for word in self.uncertain.iter().filter(|word| word.doubt == doubt) {
                if self.looked_up == CORRECTED {
                    break;
                }
                self.looked_up += 1;
                let everyday = || everyday::meant(&word.text).filter(|_| doubt == Doubt::Likely);
                let meant = self.index.meant(&word.text, doubt, &said);
                if let Some(meant) = meant.or_else(|| Some(vec![everyday()?.to_owned()])) {
                    said.extend(meant.iter().filter_map(|word| self.index.term(word)));
                    self.corrections.push(Correction { typed: word.text.clone(), meant });
                }
            }
        }
        self.corrections.len() > before
    }

    fn words(&mut self, words: &WordList, is_first: bool) {
        let typed: Vec<Stemmed<'_>> =
            if self.is_brief { words.written().map(Stemmed::new).collect() } else { Vec::new() };
        let command =
            everyday::command(&typed).filter(|(_, count)| is_first && !self.is_tool(&typed[..*count]));
        let of_command = match command {
            Some((readings, count)) if self.instead(readings) => {
                self.lacks_command |= self.is_missing(&typed[..count], readings);
                count
            }
            _ => 0,
        };
        let mut before: Option<TermId> = None;
        let mut number = 0;
        for (at, (word, origin)) in words.iter().enumerate() {
            if origin != Origin::Written {
                self.word(word, origin, [None, None]);
                continue;
            }
            let behind = typed.get(number..).unwrap_or_default();
            number += 1;
            if number <= of_command {
                continue;
            }
            if let Some(readings) = everyday::phrase(behind) {
                self.instead(readings);
            }
            let next =
                words.get(at + 1).filter(|(_, origin)| *origin == Origin::Written).map(|(next, _)| next);
            let joined = next.filter(|_| self.is_brief).and_then(|next| self.joined(word, next));
            let compounds = [before.take(), joined];
            before = joined;
            match behind.first().and_then(|typed| everyday::reading(*typed)) {
                Some(readings) => self.beside(word, readings, compounds),
                None => self.word(word, origin, compounds),
            }
        }
    }

    /// Reads the words that a command or a phrase stands for. Returns whether tools have any of them.
    fn instead(&mut self, readings: &str) -> bool {
        let weight = if self.has_few { 1.0 } else { AMONG_OTHERS };
        let known: Vec<(&str, TermId)> =
            readings.split(' ').filter_map(|word| Some((word, self.index.term(word)?))).collect();
        for (word, id) in &known {
            self.say(*id, weight, Relation::Read);
            self.asked(Asked { typed: Vec::new(), read: vec![*id] });
            self.embed(word);
        }
        !known.is_empty()
    }

    /// Whether a command is the name of a tool, which is meant then.
    fn is_tool(&self, command: &[Stemmed<'_>]) -> bool {
        matches!(command, [word] if !self.index.tools_named(&[], word.text()).is_empty())
    }

    /// Whether no tool has a word of a command that the command is read as, too: no tool can `git stash`.
    fn is_missing(&self, command: &[Stemmed<'_>], readings: &str) -> bool {
        let is_read = |word: &str| readings.split(' ').any(|reading| reading == word);
        command.iter().any(|word| is_read(word.text()) && self.index.term(word.text()).is_none())
    }

    /// Reads a word as it is, and as other words.
    fn beside(&mut self, word: &str, readings: &str, compounds: [Option<TermId>; 2]) {
        let read: Vec<TermId> = readings.split(' ').filter_map(|word| self.index.term(word)).collect();
        if read.is_empty() {
            return self.word(word, Origin::Written, compounds);
        }
        let known = self.index.term(word);
        let whole = if known.is_some() { BESIDE_KNOWN } else { BESIDE_UNKNOWN };
        #[expect(clippy::cast_precision_loss, reason = "a handful of words")]
        let weight = whole / (read.len() as f32).sqrt();
        let typed: Vec<TermId> = known.into_iter().chain(compounds.into_iter().flatten()).collect();
        for id in &typed {
            self.say(*id, 1.0, Relation::Said);
        }
        for id in &read {
            self.say(*id, weight, Relation::Read);
        }
        self.asked(Asked { typed, read });
        self.embed(word);
    }

    /// Reads a word; `compounds` are what it is together with its neighbours.
    fn word(&mut self, word: &str, origin: Origin, compounds: [Option<TermId>; 2]) {
        let mut any: Vec<TermId> = compounds.into_iter().flatten().collect();
        any.extend(self.index.term(word));
        for id in &any {
            self.say(*id, 1.0, Relation::Said);
        }
        if !any.is_empty() || self.index.is_little(word) {
            self.asked(Asked { typed: any, read: Vec::new() });
            if origin == Origin::Written {
                self.embed(word);
            }
        } else if !self.synonym(word) && (origin != Origin::Written || !self.mistyped(word)) {
            self.akin(word, origin);
        }
    }

    /// Reads a word that no tool has as those that tools use for the same thing.
    fn synonym(&mut self, word: &str) -> bool {
        let others = self.synonyms.of_unknown(self.index, word);
        for id in &others {
            self.say(*id, SYNONYM_OF_UNKNOWN, Relation::Read);
        }
        if others.is_empty() {
            return false;
        }
        self.asked(Asked { typed: others, read: Vec::new() });
        self.embed(word);
        true
    }

    /// Keeps a word that may be mistyped until the others are read. In whole sentences, a word of the language is none.
    fn mistyped(&mut self, word: &str) -> bool {
        let is_word = self.embeddings.is_some_and(|embeddings| embeddings.has(word));
        if is_word && !self.is_brief || self.uncertain.len() == CORRECTED {
            return false;
        }
        if !self.uncertain.iter().any(|known| known.text == word) {
            let is_unlikely = is_word || self.names.iter().any(|name| name == word);
            let doubt = if is_unlikely { Doubt::Unlikely } else { Doubt::Likely };
            self.uncertain.push(Uncertain { text: word.to_owned(), doubt });
        }
        true
    }

    /// A word that no tool contains may have a neighbour that some do: rain, weather.
    fn akin(&mut self, word: &str, origin: Origin) {
        if origin == Origin::Written {
            self.embed(word);
            // A part of a word, or several in one, are no words more. A number or a name is a value, of which no tool can know.
            let is_value =
                word.bytes().any(|byte| byte.is_ascii_digit()) || self.names.iter().any(|name| name == word);
            self.unknown += f32::from(u8::from(!is_value));
        }
        let Some(embeddings) = self.embeddings else { return };
        if !self.compared.iter().any(|(known, _)| known == word) {
            if self.compared.len() == COMPARED {
                return;
            }
            self.compared.push((word.to_owned(), embeddings.neighbours(word)));
        }
        let near = self.compared.iter().find(|(known, _)| known == word);
        for (id, cosine) in near.into_iter().flat_map(|(_, near)| near) {
            self.part.add(WeightedTerm { id: *id, weight: *cosine, relation: Relation::Akin });
        }
    }

    /// Reads a URL, an address or a file name as what it is.
    fn literal(&mut self, literal: Literal<'_>) {
        let Literal { kind, extension, hints } = literal;
        self.word(kind, Origin::Written, [None, None]);
        if let Some(extension) = extension {
            self.words(&WordList::of(extension), false);
        }
        words::each(hints, |word, _| {
            if let Some(id) = self.index.term(word) {
                self.part.add(WeightedTerm { id, weight: HINT, relation: Relation::Akin });
            }
        });
    }

    /// The term of two words that some tool writes as one.
    fn joined(&self, one: &str, other: &str) -> Option<TermId> {
        let index = self.index;
        if index.is_little(one) && index.is_little(other) {
            return None; // `do I` is no DOI
        }
        let joined = index.exact(&format!("{one}{other}"))?;
        let (Some(one), Some(other)) = (index.term(one), index.term(other)) else { return Some(joined) };
        let tools = index.postings(joined).scores(&(0..u32::MAX)).iter().take(COMPOUNDS);
        // Every identifier is also in the index as one word: what has its parts as well is no compound.
        let is_compound = |tool: u32| {
            if index.has_in_name(tool, joined) {
                !index.has_in_name(tool, one) || !index.has_in_name(tool, other)
            } else {
                !index.has(tool, one) || !index.has(tool, other)
            }
        };
        tools.into_iter().any(|posting| is_compound(posting.tool)).then_some(joined)
    }

    fn say(&mut self, id: TermId, weight: f32, relation: Relation) {
        self.part.add(WeightedTerm { id, weight, relation });
    }

    fn asked(&mut self, asked: Asked) {
        let says_something = !asked.typed.is_empty() || !asked.read.is_empty();
        if says_something && self.asked.len() < TERMS && !self.asked.contains(&asked) {
            self.asked.push(asked);
        }
    }

    fn embed(&mut self, word: &str) {
        if let Some(embeddings) = self.embeddings {
            embeddings.add(word, &mut self.sum);
        }
    }
}

/// The words of a sentence that begin with a capital letter, the first one left out, in small letters.
fn names(sentence: &str) -> Vec<String> {
    let words = sentence.split_ascii_whitespace().skip(1);
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let names = words.filter(|word| word.starts_with(|c: char| c.is_ascii_uppercase()));
    names.take(TERMS).map(str::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_sentence_begins_with_a_capital_letter() {
        assert_eq!(names("Weather in (San Diego), and Oslo?"), ["san", "diego", "oslo"]);
        assert_eq!(names("Find a salon"), Vec::<String>::new(), "every sentence begins so");
    }

    #[test]
    fn a_dot_inside_a_word_ends_no_sentence() {
        let all = |text| sentences(text).collect::<Vec<_>>();
        assert_eq!(all("read a.txt. Then go?"), ["read a.txt", " Then go", ""]);
        assert_eq!(all("天气。明天"), ["天气", "明天"]);
    }
}
