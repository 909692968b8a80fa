//! How well hits fit: the first may be clearly right, none may fit well, or the query may be in vain.

use super::{
    Engine, Hit, Verdict,
    dictionary::TermId,
    query::{Asked, Query},
};

/// A hit is clearly right if the next one's score is less than this share of its own, and it has at least
/// so much of the query's words and is so near it: among tools that are all wrong, one may lead too.
const LEAD: f32 = 0.78;
pub(super) const ANSWERED: f32 = 0.5;
const NEAR_ENOUGH: f32 = 0.45;
/// A query finds nothing if no hit has at least so much of its words and its meaning together: this, and so much more for
/// ten times the tools. Fitted on one half of the query sets (`docs/search.md`).
const FLOOR: f32 = 0.22;
const FLOOR_RISE: f32 = 0.15;
/// So much of a hit's share in the query's words is that of its name: a word somewhere in a description may be chance.
const IN_NAME: f32 = 0.2;
/// It may be so much less where an everyday word was read as what a hit does: that may well be meant.
const READ: f32 = 0.15;
/// So much above that, the reply says that no hit fits well; and where the query has a word that nobody knows.
const DOUBT: f32 = 0.15;
const UNKNOWN_DOUBT: f32 = 0.3;
/// Queries of so many words are judged so: for finding nothing, and for fitting badly.
const VERY_FEW_WORDS: usize = 5;
const FEW_WORDS: usize = 6;
/// What counts as nearness in meaning where there is no table.
const NEUTRAL: f32 = 0.3;
/// So many hits are looked at to see whether any fits.
pub(super) const SHOWN: usize = 5;

impl Engine {
    /// Decides whether the first hit is clearly right, or none fits well.
    pub(super) fn judge(&self, query: &Query, hits: &mut [Hit]) {
        if query.is_short(FEW_WORDS) {
            let doubt = if query.unknown > 0.0 { UNKNOWN_DOUBT } else { DOUBT };
            if self.best_fit(query, hits) < self.floor() + doubt {
                for hit in hits {
                    hit.verdict = Verdict::Poor;
                }
                return;
            }
        }
        self.find_clear(query, hits);
    }

    /// No tool is what the query wants. A longer query has more words that say nothing, so it is never in vain.
    pub(super) fn is_in_vain(&self, query: &Query, hits: &[Hit]) -> bool {
        if !query.is_brief || !query.is_short(VERY_FEW_WORDS) {
            return false;
        }
        let has_any = |asked: &Asked, tool| asked.any.iter().any(|term| self.index.has(tool, *term));
        let is_read =
            |hit: &Hit| query.asked.iter().any(|asked| asked.is_everyday() && has_any(asked, hit.tool));
        let less = if hits.iter().take(SHOWN).any(is_read) { READ } else { 0.0 };
        self.best_fit(query, hits) < self.floor() - less
    }

    /// The best fit among the hits that are shown.
    fn best_fit(&self, query: &Query, hits: &[Hit]) -> f32 {
        hits.iter().take(SHOWN).map(|hit| self.fit(query, hit.tool)).fold(0.0, f32::max)
    }

    /// The sum of a tool's share in the query's words and its nearness in meaning.
    fn fit(&self, query: &Query, tool: u32) -> f32 {
        let named = self.share(query, |term| self.index.has_in_name(tool, term));
        let words = (1.0 - IN_NAME) * self.answered(query, tool) + IN_NAME * named;
        words + self.nearness(query, tool).unwrap_or(NEUTRAL)
    }

    /// The least fit that is not chance: the more tools there are, the better one fits by chance.
    fn floor(&self) -> f32 {
        #[expect(clippy::cast_precision_loss, reason = "a number of tools")]
        let tools = self.index.len().max(1) as f32;
        FLOOR + FLOOR_RISE * tools.log10()
    }

    /// The first hit is clearly right if no other has as many of the query's words. What an everyday word was read as is a
    /// guess, and nothing is clear then.
    pub(super) fn find_clear(&self, query: &Query, hits: &mut [Hit]) {
        if query.asked.iter().any(Asked::is_everyday) {
            return;
        }
        let Some((first, others)) = hits.split_first_mut() else { return };
        let answered = self.answered(query, first.tool);
        let rivals = others.first().is_some_and(|next| {
            next.score >= first.score * LEAD || self.answered(query, next.tool) >= answered
        });
        if !rivals && answered >= ANSWERED && self.is_near(query, first.tool) {
            first.verdict = Verdict::Clear;
        }
    }

    /// The share of the query's words that a tool has, weighted by their rarity.
    pub(super) fn answered(&self, query: &Query, tool: u32) -> f32 {
        self.share(query, |term| self.index.has(tool, term))
    }

    fn share(&self, query: &Query, is_there: impl Fn(TermId) -> bool) -> f32 {
        let (mut asked, mut has) = (self.index.rarest() * query.unknown, 0.0);
        for Asked { any, emphasis } in &query.asked {
            let rarity = any.iter().map(|term| self.index.rarity(*term)).fold(f32::MAX, f32::min) * emphasis;
            asked += rarity;
            has += if any.iter().any(|term| is_there(*term)) { rarity } else { 0.0 };
        }
        has / asked.max(f32::MIN_POSITIVE)
    }

    pub(super) fn is_near(&self, query: &Query, tool: u32) -> bool {
        self.nearness(query, tool).is_none_or(|cosine| cosine >= NEAR_ENOUGH)
    }

    /// The cosine between a tool and the query; `None` without a table.
    fn nearness(&self, query: &Query, tool: u32) -> Option<f32> {
        query.whole.embedding.as_ref().and_then(|embedding| self.index.cosine(tool, embedding))
    }
}
