//! How much work the signatures of one reply may take: a server decides how long its schemas are and how many
//! parts they have, and all callers wait for a reply.

use std::cell::Cell;

/// The steps that each signature may take.
const EACH: usize = 1536;
/// The steps that all signatures of a reply may take beyond that, and the part of those left that one may take.
const TOGETHER: usize = 48 << 10;
const PART: usize = 4;
/// A step passes this many bytes, or reads `TEXT` bytes in which there may be escapes.
const BYTES: usize = 64;
const TEXT: usize = 4;
/// The steps of a member or an element, however short it is.
const ITEM: usize = 4;

/// The steps that are left for the signatures of one reply, beyond those that each may take.
#[derive(Debug)]
pub struct Steps(usize);

impl Default for Steps {
    fn default() -> Self {
        Self(TOGETHER)
    }
}

impl Steps {
    /// Runs `read` with the steps of the next signature.
    pub(super) fn share<T>(&mut self, read: impl FnOnce(&StepsLeft) -> T) -> T {
        let share = EACH + self.0 / PART;
        let steps = StepsLeft::new(share);
        let read = read(&steps);
        self.0 -= (share - steps.left.get()).saturating_sub(EACH);
        read
    }
}

/// The steps that are left for one signature.
#[derive(Debug)]
pub(super) struct StepsLeft {
    left: Cell<usize>,
    are_over: Cell<bool>,
}

impl Default for StepsLeft {
    /// Those of a signature that stands alone.
    fn default() -> Self {
        Self::new(EACH + TOGETHER)
    }
}

impl StepsLeft {
    fn new(steps: usize) -> Self {
        Self { left: Cell::new(steps), are_over: Cell::new(false) }
    }

    /// Takes the steps of a member or an element. `None`: there are not as many.
    pub(super) fn item(&self) -> Option<()> {
        self.take(ITEM)
    }

    /// Takes the steps of passing this many bytes.
    pub(super) fn bytes(&self, bytes: usize) -> Option<()> {
        self.take(bytes / BYTES)
    }

    /// Takes the steps of reading a text of this many bytes, some of which may be escapes.
    pub(super) fn text(&self, bytes: usize) -> Option<()> {
        self.take(bytes / TEXT)
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.left.get()
    }

    /// Whether something was left out.
    pub(super) fn are_over(&self) -> bool {
        self.are_over.get()
    }

    fn take(&self, steps: usize) -> Option<()> {
        let left = self.left.get().checked_sub(steps);
        match left {
            Some(left) => self.left.set(left),
            None => self.are_over.set(true),
        }
        left.map(drop)
    }
}
