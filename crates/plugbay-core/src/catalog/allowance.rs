//! The limits of one server's lists, so that no server can fill the memory of all.

use std::fmt;

use super::ItemKind;
use crate::size_limit;

/// The rest of the limits while a server's lists are read.
#[derive(Debug)]
pub struct Allowance {
    bytes: usize,
    items: usize,
    /// Nothing more is taken of the list that is being read.
    ended: bool,
    left_out: LeftOut,
}

/// The definitions that plugbay left out of a server's lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// Definitions that are too long.
    pub long: usize,
    /// Definitions whose names or URIs are too long.
    pub long_names: usize,
    /// There is more than is taken of one server.
    pub rest: bool,
}

impl Default for Allowance {
    fn default() -> Self {
        let (bytes, items) = (size_limit::DEFINITIONS, size_limit::ITEMS);
        Self { bytes, items, ended: false, left_out: LeftOut::default() }
    }
}

impl Allowance {
    /// Begins with the list of the next kind.
    pub fn next_item_kind(&mut self) {
        (self.items, self.ended) = (size_limit::ITEMS, false);
    }

    /// How many bytes of definitions were taken, of all kinds.
    pub fn taken(&self) -> usize {
        size_limit::DEFINITIONS - self.bytes
    }

    /// Whether another definition of this length is taken.
    pub fn takes(&mut self, length: usize) -> bool {
        if length > size_limit::DEFINITION {
            self.left_out.long += 1;
            return false;
        }
        let (items, bytes) = (self.items.checked_sub(1), self.bytes.checked_sub(length));
        let (Some(items), Some(bytes)) = (items, bytes) else {
            self.stop();
            return false;
        };
        (self.items, self.bytes) = (items, bytes);
        true
    }

    /// Whether an item with this name or URI is taken.
    pub fn takes_key(&mut self, key: &str, item_kind: ItemKind) -> bool {
        let limit = match item_kind {
            ItemKind::Tool | ItemKind::Prompt => size_limit::NAME,
            ItemKind::Resource | ItemKind::Template | ItemKind::Skill => size_limit::URI,
        };
        let takes = key.len() <= limit;
        self.left_out.long_names += usize::from(!takes);
        takes
    }

    /// Leaves out the rest of the list.
    pub fn stop(&mut self) {
        (self.ended, self.left_out.rest) = (true, true);
    }

    /// Whether nothing more is taken of this list.
    pub fn is_spent(&self) -> bool {
        self.ended
    }

    /// What was left out; `None` if all was taken.
    pub fn left_out(&self) -> Option<LeftOut> {
        Some(self.left_out).filter(|left_out| *left_out != LeftOut::default())
    }
}

impl fmt::Display for LeftOut {
    /// What completes "plugbay leaves out …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = |count: usize| format!("{count} definition{}", if count == 1 { "" } else { "s" });
        let parts = [
            (self.long > 0)
                .then(|| format!("{} of more than {} MiB", several(self.long), size_limit::DEFINITION >> 20)),
            (self.long_names > 0).then(|| {
                let (name, uri) = (size_limit::NAME, size_limit::URI);
                format!(
                    "{} with a name of more than {name} bytes, or a URI of more than {uri}",
                    several(self.long_names)
                )
            }),
            self.rest.then(|| {
                let (items, all) = (size_limit::ITEMS, size_limit::DEFINITIONS >> 20);
                format!("all that is behind the first {items} items of a kind, or {all} MiB of definitions")
            }),
        ];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_over_a_limit_are_left_out_and_told() {
        let mut allowance = Allowance::default();
        assert!(allowance.takes(size_limit::DEFINITION) && !allowance.takes(size_limit::DEFINITION + 1));
        assert!(!allowance.takes_key(&"x".repeat(size_limit::NAME + 1), ItemKind::Tool));
        let told = "1 definition of more than 1 MiB; 1 definition with a name of more than 1024 bytes, or a URI of \
            more than 8192";
        assert_eq!(allowance.left_out().unwrap().to_string(), told);
        for _ in 1..size_limit::DEFINITIONS / size_limit::DEFINITION {
            assert!(allowance.takes(size_limit::DEFINITION));
        }
        assert!(!allowance.takes(1) && allowance.left_out().unwrap().rest && allowance.is_spent());

        let mut allowance = Allowance::default();
        assert_eq!((0..20_000).filter(|_| allowance.takes(1)).count(), size_limit::ITEMS);
        assert!(allowance.is_spent() && allowance.left_out().unwrap().rest);
        allowance.next_item_kind();
        assert!(!allowance.is_spent() && allowance.takes(1), "another list");
    }
}
