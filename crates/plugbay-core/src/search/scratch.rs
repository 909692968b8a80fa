//! Scores that are added up, for one part of a query after the other.

use super::Hit;

/// A place for scores, used again for each part of a query.
pub(super) struct Scratch {
    scores: Vec<f32>,
    /// The shares by which scores grow for names that are asked for.
    pub(super) covered: Vec<f32>,
    touched: Vec<u32>,
}

impl Scratch {
    pub(super) fn new(tools: usize) -> Self {
        Self {
            scores: vec![0.0; tools],
            covered: vec![0.0; tools],
            touched: Vec::with_capacity(tools.min(1024)),
        }
    }

    pub(super) fn add(&mut self, tool: u32, value: f32) {
        let score = &mut self.scores[tool as usize];
        if *score == 0.0 {
            self.touched.push(tool);
        }
        *score += value;
    }

    pub(super) fn has_scores(&self) -> bool {
        !self.touched.is_empty()
    }

    /// Takes the tools that have a score, and clears everything for the next part.
    pub(super) fn take(&mut self) -> Vec<Hit> {
        let (scores, covered) = (&mut self.scores, &mut self.covered);
        let hit = |tool: u32| {
            let at = tool as usize;
            let score = std::mem::take(&mut scores[at]) * (1.0 + std::mem::take(&mut covered[at]));
            Hit::new(tool, score)
        };
        self.touched.drain(..).map(hit).collect()
    }
}
