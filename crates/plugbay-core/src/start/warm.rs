//! Decides which servers start with the gateway, and which wait for their first use.

use std::time::Duration;

/// A list that was confirmed within this time is fresh.
pub const FRESH_FOR: Duration = Duration::from_secs(24 * 3600);

/// When a server starts without being used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Warm {
    /// It starts with the gateway.
    Always,
    /// It starts with the gateway, unless its list is remembered and fresh.
    #[default]
    Fresh,
    /// It starts only if it has never listed.
    Never,
}

/// What an earlier run has left of a server's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remembered {
    /// It has never listed: it is new, or it has failed whenever it was started.
    Nothing,
    /// Its list, which the server confirmed so long ago.
    List { age: Duration },
}

impl Warm {
    /// Whether the server starts now, although nobody uses it. `promised`: hosts count on a warm server.
    pub fn starts(self, remembered: Remembered, promised: bool) -> bool {
        match (self, remembered) {
            (_, Remembered::Nothing) | (Self::Always, _) => true,
            (Self::Fresh | Self::Never, _) if promised => true,
            (Self::Fresh, Remembered::List { age }) => age >= FRESH_FOR,
            (Self::Never, Remembered::List { .. }) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_a_fresh_list_waits_for_its_first_use() {
        let fresh = Remembered::List { age: FRESH_FOR / 2 };
        let stale = Remembered::List { age: FRESH_FOR };
        let table = [
            (Warm::Always, [true, true, true], [true, true, true]),
            (Warm::Fresh, [true, true, false], [true, true, true]),
            (Warm::Never, [true, false, false], [true, true, true]),
        ];
        for (warm, expected, promised) in table {
            let remembered = [Remembered::Nothing, stale, fresh];
            assert_eq!(remembered.map(|list| warm.starts(list, false)), expected, "{warm:?}");
            assert_eq!(remembered.map(|list| warm.starts(list, true)), promised, "{warm:?}, promised");
        }
    }
}
