//! The calls to measure.

use crate::payload::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Medium,
    Large,
}

impl Size {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Small => 1_000,
            Self::Medium => 100_000,
            Self::Large => 5_000_000,
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Small => "1 KB",
            Self::Medium => "100 KB",
            Self::Large => "5 MB",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) size: Size,
    pub(crate) in_flight: usize,
    /// Number of calls per round.
    pub(crate) calls: usize,
}

impl Case {
    pub(crate) fn label(&self) -> String {
        format!("{} {} ×{}", self.size.label(), self.kind.label(), self.in_flight)
    }
}

/// All cases. A round of each takes some tens of milliseconds: long enough to measure, and short enough that
/// the machine's load is the same for all routes in it.
pub(crate) fn all() -> Vec<Case> {
    // 32 answers of 5 MB in flight would measure the memory of the machine.
    let shapes = [
        (Size::Small, 1, 600),
        (Size::Small, 32, 3200),
        (Size::Medium, 1, 200),
        (Size::Medium, 32, 480),
        (Size::Large, 1, 8),
        (Size::Large, 4, 12),
    ];
    let of = |kind| move |(size, in_flight, calls)| Case { kind, size, in_flight, calls };
    Kind::ALL.into_iter().flat_map(|kind| shapes.into_iter().map(of(kind))).collect()
}
