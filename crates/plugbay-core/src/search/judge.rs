//! How well hits fit: the first may be clearly right, none may fit well, or the query may be in vain.

use rustc_hash::FxHashSet;

use super::{
    Engine, Hit, Verdict,
    dictionary::TermId,
    query::{Asked, Query},
};

/// A hit is clearly right if the next one's score is less than the share `LEAD` of its own. It must also have
/// at least `ANSWERED` of the query's words and be `NEAR_ENOUGH` to it: among tools that are all wrong, one
/// may lead too.
const LEAD: f32 = 0.82;
pub(super) const ANSWERED: f32 = 0.5;
const NEAR_ENOUGH: f32 = 0.45;
/// A query finds nothing if no hit has at least this much of its words and its meaning together. With ten
/// times the tools it is `FLOOR_STEP` more, and with each word as much less. Fitted on one half of the query
/// sets (`docs/search.md`).
const FLOOR: f32 = 0.8;
const FLOOR_STEP: f32 = 0.15;
/// The additional weight of a word that a hit has in its name: one somewhere in a description may be chance.
const IN_NAME: f32 = 0.2;
/// The weight of a word of which a hit has only a reading.
const AS_READ: f32 = 0.85;
/// In a query of so few words, all of them must be in the name of a tool that is clearly right, or in that of
/// its server.
const NAMED_WORDS: usize = 2;
/// A catalog is about what so many tools have in their names, and at least one of so many.
const ABOUT: usize = 4;
const ABOUT_SHARE: usize = 100;
/// A larger share than this counts as all.
const WHOLE: f32 = 0.99;
/// Up to this much above the floor, the reply says that no hit fits well.
const DOUBT: f32 = 0.3;
/// The nearness in meaning that is assumed without a table.
const NEUTRAL: f32 = 0.3;
/// How many hits are checked for one that fits.
pub(super) const SHOWN: usize = 5;

impl Engine {
    /// Decides whether the first hit is clearly right, or none fits well. Returns whether the query is in
    /// vain: no tool does what it asks for.
    pub(super) fn judge(&self, query: &Query, hits: &mut [Hit]) -> bool {
        let Some(words) = query.word_count() else {
            self.find_clear(query, hits);
            return false;
        };
        let fits = hits.iter().take(SHOWN).map(|hit| self.fit(query, hit.tool));
        let above = fits.fold(0.0, f32::max) - self.floor(words);
        if above >= DOUBT && !query.reading.lacks_command {
            self.find_clear(query, hits);
            return false;
        }
        for hit in hits.iter_mut() {
            hit.verdict = Verdict::Poor;
        }
        let is_known = |hit: &Hit| self.is_named(query, hit.tool) || self.is_about(query, hit.tool);
        above < 0.0 && query.is_brief && !hits.iter().take(SHOWN).any(is_known)
    }

    /// Puts those of the first hits that were called after the words of the query before hits that fit badly: memory
    /// says that they fit, and nothing of the others.
    pub(super) fn vouch(&self, query: &Query, called: &FxHashSet<u32>, hits: &mut [Hit]) {
        let mut vouched = false;
        for hit in hits.iter_mut().take(SHOWN).filter(|hit| hit.is_poor() && called.contains(&hit.tool)) {
            (hit.verdict, vouched) = (Verdict::Likely, true);
        }
        if vouched {
            hits.sort_by_key(Hit::is_poor);
            self.find_clear(query, hits);
        }
    }

    /// Whether every word of the query stands in the name of a tool or of its server.
    pub(super) fn is_named(&self, query: &Query, tool: u32) -> bool {
        let server = self.index.server(tool);
        self.share(query, |term| self.index.has_in_name(tool, term) || server.contains(&term)) > WHOLE
    }

    /// Whether a tool's name has the last word of the query, which mostly says what it is about, and so have the
    /// names of many tools: these must be what the catalog is about.
    fn is_about(&self, query: &Query, tool: u32) -> bool {
        let Some(last) =
            query.reading.asked.last().filter(|_| query.reading.ends_known && query.reading.unknown == 0.0)
        else {
            return false;
        };
        let are_many = |term: TermId| {
            let names = self.index.postings(term).names(&(0..u32::MAX)).len();
            names >= ABOUT && names * ABOUT_SHARE >= self.index.len()
        };
        last.typed.iter().any(|term| self.index.has_in_name(tool, *term) && are_many(*term))
    }

    /// How well a tool fits: the sum of its share of the query's words, more for those in its name, and its
    /// nearness in meaning.
    fn fit(&self, query: &Query, tool: u32) -> f32 {
        let named = self.share(query, |term| self.index.has_in_name(tool, term));
        self.answered(query, tool) + IN_NAME * named + self.nearness(query, tool).unwrap_or(NEUTRAL)
    }

    /// The least fit that is not chance. The more tools there are and the fewer words the query has, the
    /// better some tool fits by chance.
    fn floor(&self, words: f32) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a number of tools")]
        let tools = self.index.len().max(1) as f32;
        FLOOR + FLOOR_STEP * (tools.log10() - words)
    }

    /// Marks the first hit as clearly right if no other has as many of the query's words. No hit is clear if
    /// a part of the query is a guess, or if a word of a brief query stands in no tool, or not in this one.
    pub(super) fn find_clear(&self, query: &Query, hits: &mut [Hit]) {
        let is_known = query.reading.unknown == 0.0 || !query.is_brief;
        if !is_known
            || query.is_brief && query.reading.has_unknown_name
            || query.reading.asked.iter().any(Asked::is_guess)
        {
            return;
        }
        let Some((first, others)) = hits.split_first_mut() else { return };
        let answered = self.answered(query, first.tool);
        let rivals = others.first().is_some_and(|next| {
            next.score >= first.score * LEAD || self.answered(query, next.tool) >= answered
        });
        if !rivals
            && answered >= ANSWERED
            && self.is_near(query, first.tool)
            && !self.lacks_a_word(query, first.tool)
        {
            first.verdict = Verdict::Clear;
        }
    }

    /// Whether a brief query has a word that other tools have and this one does not: the tool that deletes files
    /// is not meant by `delete a branch`. In a whole sentence, most such words matter little.
    fn lacks_a_word(&self, query: &Query, tool: u32) -> bool {
        let in_name = query.reading.asked.len() <= NAMED_WORDS;
        let server = self.index.server(tool);
        let has_one = |term: TermId| {
            if in_name {
                self.index.has_in_name(tool, term) || server.contains(&term)
            } else {
                self.index.has(tool, term)
            }
        };
        let has = |terms: &[TermId]| terms.iter().any(|term| has_one(*term));
        let has_word =
            |Asked { typed, read }: &Asked| has(typed) || has(read) || has(&self.synonyms.of(typed));
        query.is_brief && !query.reading.asked.iter().all(has_word)
    }

    /// The share of the query's words that a tool has, weighted by their rarity.
    pub(super) fn answered(&self, query: &Query, tool: u32) -> f32 {
        self.share(query, |term| self.index.has(tool, term))
    }

    /// The share of the query's words that have a term for which `is_there` holds. A word is as rare as the
    /// commonest term that was typed for it, or else as the rarest that it was read as.
    fn share(&self, query: &Query, is_there: impl Fn(TermId) -> bool) -> f32 {
        let (mut asked, mut has) = (self.index.rarest() * query.reading.unknown, 0.0);
        for Asked { typed, read } in &query.reading.asked {
            let rarity = match typed.as_slice() {
                [] => self.rarest_of(read.iter()),
                typed => typed.iter().map(|term| self.index.rarity(*term)).fold(f32::MAX, f32::min),
            };
            asked += rarity;
            has += if typed.iter().any(|term| is_there(*term)) {
                rarity
            } else {
                AS_READ * rarity.min(self.rarest_of(read.iter().filter(|term| is_there(**term))))
            };
        }
        has / asked.max(f32::MIN_POSITIVE)
    }

    fn rarest_of<'a>(&self, terms: impl Iterator<Item = &'a TermId>) -> f32 {
        terms.map(|term| self.index.rarity(*term)).fold(0.0, f32::max)
    }

    pub(super) fn is_near(&self, query: &Query, tool: u32) -> bool {
        self.nearness(query, tool).is_none_or(|cosine| cosine >= NEAR_ENOUGH)
    }

    /// The cosine between a tool and the query; `None` without a table.
    fn nearness(&self, query: &Query, tool: u32) -> Option<f32> {
        query.whole.embedding.as_ref().and_then(|embedding| self.index.cosine(tool, embedding))
    }
}
