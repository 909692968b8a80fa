//! The framing that a start uses if the configuration leaves it open.
//!
//! Nearly all servers read lines. Some answer a `Content-Length` header with an error, so plugbay tries that framing
//! only with a reason, and never twice in a row without an answer.

use crate::wire::Framing;

/// How many silent starts by lines are needed before the other framing is tried,
const SILENCES: u32 = 2;
/// and how many if the server has used the other framing before.
const SILENCES_AFTER_USE: u32 = 1;

/// How a failed start ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// The server ran without doing anything for its whole time, and sent no message.
    Silent,
    /// The server sent a message before it failed.
    Spoke,
    /// It exited, or the machine was too busy to tell.
    Unclear,
}

/// What the starts of one server have shown about its framing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FramingTrial {
    /// Silent starts by lines since the other framing was last tried.
    silences: u32,
    has_used_headers: bool,
}

impl FramingTrial {
    /// `known`: the framing of the last opening.
    pub fn new(known: Framing) -> Self {
        Self { silences: 0, has_used_headers: known == Framing::ContentLength }
    }

    /// Whether `Content-Length` is a guess: this server has never been opened with it.
    pub fn is_guess(&self, framing: Framing) -> bool {
        framing == Framing::ContentLength && !self.has_used_headers
    }

    /// The server was opened with this framing.
    pub fn opened(&mut self, framing: Framing) {
        *self = Self::new(framing);
    }

    /// The framing for the start after one that failed with `used`.
    pub fn failed(&mut self, used: Framing, end: AttemptEnd) -> Framing {
        match (used, end) {
            (Framing::ContentLength, _) | (Framing::Newline, AttemptEnd::Spoke) => self.silences = 0,
            (Framing::Newline, AttemptEnd::Silent) => self.silences += 1,
            (Framing::Newline, AttemptEnd::Unclear) => {}
        }
        let needed = if self.has_used_headers { SILENCES_AFTER_USE } else { SILENCES };
        if self.silences >= needed { Framing::ContentLength } else { Framing::Newline }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_length_framing_needs_a_reason_and_never_sticks() {
        use AttemptEnd::{Silent, Spoke, Unclear};
        use Framing::{ContentLength as C, Newline as N};
        // The framing of the last opening, how each start fails, and the framing of the start after it.
        let table = [
            (N, vec![Silent, Silent, Silent, Silent, Silent, Silent], vec![N, C, N, N, C, N]),
            (N, vec![Unclear, Unclear, Unclear, Silent, Unclear, Silent], vec![N, N, N, N, N, C]),
            (N, vec![Silent, Spoke, Silent, Spoke, Silent, Silent], vec![N, N, N, N, N, C]),
            (N, vec![Silent, Silent, Spoke, Silent], vec![N, C, N, N]),
            (N, vec![Silent, Silent, Unclear, Silent, Silent], vec![N, C, N, N, C]),
            (C, vec![Unclear, Silent, Silent, Silent], vec![N, C, N, C]),
            (C, vec![Silent, Unclear, Spoke, Silent], vec![N, N, N, C]),
        ];
        for (known, ends, expected) in table {
            let mut trial = FramingTrial::new(known);
            let mut used = known;
            let next = |end: &AttemptEnd| {
                used = trial.failed(used, *end);
                used
            };
            assert_eq!(ends.iter().map(next).collect::<Vec<_>>(), expected, "{known:?} {ends:?}");
        }
    }

    #[test]
    fn an_opening_decides_about_framing_anew() {
        let mut trial = FramingTrial::new(Framing::ContentLength);
        assert!(!trial.is_guess(Framing::ContentLength));
        trial.opened(Framing::Newline);
        assert!(trial.is_guess(Framing::ContentLength) && !trial.is_guess(Framing::Newline));
        assert_eq!(trial.failed(Framing::Newline, AttemptEnd::Silent), Framing::Newline, "one is not enough");
    }
}
