//! Reads a query sentence by sentence: words, everyday words, commands, compounds, literals and mistyped words.

use super::{
    dictionary::TermId,
    embeddings::{Embedding, Embeddings},
    everyday::{self, Stemmed},
    explain::Relation,
    index::Index,
    query::{Asked, Part, Reading, TERMS, WeightedTerm},
    spelling::Doubt,
    synonyms::Synonyms,
    typed::{self, Literal, Piece},
    words::{self, Correction, Origin, WordList},
};

/// A query of at most so many words is brief.
const BRIEF: usize = 8;
/// How many words that no tool has are compared with those that tools have.
const COMPARED: usize = 8;
/// How many unknown words of a query are looked up to be corrected.
const CORRECTED: usize = 8;
/// How many of the tools with a term are checked for whether it is a compound there.
const COMPOUNDS: usize = 16;

/// The weight of a word's readings, if tools have the word itself, and if none has; each of n counts 1/√n of
/// it.
const BESIDE_KNOWN: f32 = 0.6;
const BESIDE_UNKNOWN: f32 = 1.0;
/// The weight of each reading of a command or phrase in a query of more words than [`FEW`].
const AMONG_OTHERS: f32 = 0.7;
const FEW: usize = 3;
/// The weight of a synonym of a word that no tool has.
const SYNONYM_OF_UNKNOWN: f32 = 0.8;
/// The weight of words in a URL: they may name a server.
const HINT: f32 = 0.3;

/// A word that no tool has.
struct Uncertain {
    text: String,
    doubt: Doubt,
}

/// Reads a query sentence by sentence.
pub(super) struct Reader<'a> {
    index: &'a Index,
    synonyms: &'a Synonyms,
    embeddings: Option<&'a Embeddings>,
    /// The sentence that is being read.
    part: Part,
    sum: Vec<f32>,
    pub(super) reading: Reading,
    /// Words that no tool has, with their neighbours.
    compared: Vec<(String, Vec<(TermId, f32)>)>,
    /// Words of the sentence that no tool has and that may be mistyped.
    uncertain: Vec<Uncertain>,
    /// The corrections of mistyped words of the query.
    corrections: Vec<Correction>,
    /// How many words were looked up to be corrected.
    looked_up: usize,
    /// Words of the sentence, except the first, that begin with a capital letter.
    names: Vec<String>,
    /// Everyday words, phrases and compounds are read in a brief query only: in whole sentences most of them
    /// are chance.
    pub(super) is_brief: bool,
    /// The query has so few words that a command or phrase is most of it.
    has_few: bool,
}

impl<'a> Reader<'a> {
    /// A reader of the sentences of one query.
    pub(super) fn new(
        query: &str,
        index: &'a Index,
        synonyms: &'a Synonyms,
        embeddings: Option<&'a Embeddings>,
    ) -> Self {
        let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|');
        let has_more_than =
            |count: usize| query.split(is_between).filter(|word| !word.is_empty()).nth(count).is_some();
        Self {
            index,
            synonyms,
            embeddings,
            part: Part::default(),
            sum: Vec::new(),
            reading: Reading::default(),
            compared: Vec::new(),
            uncertain: Vec::new(),
            corrections: Vec::new(),
            looked_up: 0,
            names: Vec::new(),
            is_brief: !has_more_than(BRIEF),
            has_few: !has_more_than(FEW),
        }
    }

    /// The sum of the embeddings of no words.
    pub(super) fn nothing(&self) -> Vec<f32> {
        self.embeddings.map(Embeddings::nothing).unwrap_or_default()
    }

    /// Reads a sentence. If words of it were mistyped, it is read again with the words that were meant. Also
    /// returns the sum of the embeddings of its words.
    pub(super) fn sentence(&mut self, text: &str, is_first: bool) -> (Part, Vec<f32>) {
        self.names = names(text);
        let before = self.reading.clone();
        self.pieces(text, is_first);
        if self.correct() {
            self.reading = before;
            self.part = Part::default();
            self.pieces(text, is_first);
        }
        for word in std::mem::take(&mut self.uncertain) {
            self.akin(&word.text, Origin::Written);
        }
        let part = Part { embedding: Embedding::of(&self.sum), ..std::mem::take(&mut self.part) };
        (part, std::mem::take(&mut self.sum))
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

    /// Corrects the uncertain words that were probably mistyped. Words of no language come first: once
    /// corrected, they speak for the others. Returns whether there are any.
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
                self.reading.lacks_command |= self.is_missing(&typed[..count], readings);
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

    /// Whether a command is the name of a tool: then the tool is meant.
    fn is_tool(&self, command: &[Stemmed<'_>]) -> bool {
        matches!(command, [word] if !self.index.tools_named(&[], word.text()).is_empty())
    }

    /// Whether a command's own word is also among its readings, but no tool has it: none can `git stash`.
    fn is_missing(&self, command: &[Stemmed<'_>], readings: &str) -> bool {
        let is_read = |word: &str| readings.split(' ').any(|reading| reading == word);
        command.iter().any(|word| is_read(word.text()) && self.index.term(word.text()).is_none())
    }

    /// Reads a word as itself and as other words.
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

    /// Reads a word; `compounds` are the terms that it forms with its neighbours.
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
        } else if !self.synonym(word) {
            if origin == Origin::Written {
                self.reading.ends_known &= self.is_value(word);
            }
            if origin != Origin::Written || !self.mistyped(word) {
                self.akin(word, origin);
            }
        }
    }

    /// Reads a word that no tool has as the words that tools use for the same thing.
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

    /// Keeps a word that may be mistyped until the others are read. In whole sentences, words of the language
    /// do not count as mistyped.
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

    /// Whether a word is a number or a name: a value that no tool can know.
    fn is_value(&self, word: &str) -> bool {
        word.bytes().any(|byte| byte.is_ascii_digit()) || self.names.iter().any(|name| name == word)
    }

    /// Reads a word that no tool contains by its neighbours that some contain: rain, weather.
    fn akin(&mut self, word: &str, origin: Origin) {
        if origin == Origin::Written {
            self.embed(word);
            // Parts of a word, and words joined to one, are not counted again.
            let is_value = self.is_value(word);
            self.reading.unknown += f32::from(u8::from(!is_value));
            self.reading.has_unknown_name |= is_value && word.starts_with(|c: char| c.is_ascii_alphabetic());
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
        // Every identifier is also in the index as one word: a tool that has its parts as well has no
        // compound.
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
        self.reading.ends_known |= says_something;
        if says_something && self.reading.asked.len() < TERMS && !self.reading.asked.contains(&asked) {
            self.reading.asked.push(asked);
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
}
