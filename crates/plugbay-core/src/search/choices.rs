//! Five hits should be five choices: a hit that is nearly the same as a better one goes after the others.

use super::{Engine, Hit, judge::SHOWN};

/// A hit of the same server and name as a better one goes last, if it scores at least this share of it.
const TWIN: f32 = 0.8;
/// How many shown hits may be copies of one tool on several servers: a user with two accounts has two.
const COPIES: usize = 2;
/// How many shown hits may be of one server, while another's score at least the share `NEARLY` of theirs.
const OF_ONE_SERVER: usize = 3;
const NEARLY: f32 = 0.75;

impl Engine {
    /// Moves hits that are nearly the same as a better one after the others.
    pub(super) fn one_of_each_first(&self, hits: &mut Vec<Hit>) {
        let mut seen: Vec<Hit> = Vec::with_capacity(hits.len());
        let mut twins: Vec<u32> = Vec::with_capacity(hits.len());
        let mut again = Vec::new();
        for hit in hits.drain(..) {
            let twin = self.index.twin(hit.tool);
            let is_same = |(other, score): (&u32, f32)| *other == twin && hit.score >= score * TWIN;
            if twins.iter().zip(seen.iter().map(|other| other.score)).any(is_same)
                || seen.len() < SHOWN && self.has_enough_copies(&hit, &seen)
            {
                again.push(hit);
            } else {
                seen.push(hit);
                twins.push(twin);
            }
        }
        hits.extend(seen);
        hits.extend(again);
        self.others_among_the_first(hits);
    }

    /// Whether enough copies of a tool already stand before it.
    fn has_enough_copies(&self, hit: &Hit, before: &[Hit]) -> bool {
        before.iter().filter(|other| self.index.are_copies(hit.tool, other.tool)).count() >= COPIES
    }

    /// If one server has all of the first hits, those of others that score nearly as well come last there.
    fn others_among_the_first(&self, hits: &mut [Hit]) {
        let Some((first, behind)) = hits.split_at_mut_checked(SHOWN) else { return };
        let server = self.index.server(first[0].tool);
        let mut last = SHOWN;
        let is_other = |hit: &Hit| self.index.server(hit.tool) != server;
        while last > OF_ONE_SERVER && !first[..last].iter().any(is_other) {
            let enough = first[last - 1].score * NEARLY;
            let Some(other) = behind.iter().position(|hit| is_other(hit) && hit.score >= enough) else {
                return;
            };
            std::mem::swap(&mut first[last - 1], &mut behind[other]);
            last -= 1;
        }
    }
}
