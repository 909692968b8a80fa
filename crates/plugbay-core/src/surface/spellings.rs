//! Finds tools by names that are spelt differently, without reading all names each time.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::found::Found;
use crate::name;

/// The places of tools by hashes of their folded names, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spellings {
    exposed: Vec<(u64, u32)>,
    own: Vec<(u64, u32)>,
}

impl Spellings {
    pub(super) fn of(tools: &[Found]) -> Self {
        let hashes = |name: fn(&Found) -> &str| {
            let mut hashes: Vec<(u64, u32)> =
                (0..).zip(tools).map(|(place, found)| (hash(name(found)), place)).collect();
            hashes.sort_unstable();
            hashes
        };
        Self { exposed: hashes(exposed), own: hashes(own) }
    }

    /// The tools that have this folded name: as hosts see it, and at their servers. `tools` are those that were given.
    pub(super) fn named<'t>(&self, folded: &str, tools: &'t [Found]) -> [Vec<&'t Found>; 2] {
        let wanted = hash(folded);
        let of = |hashes: &[(u64, u32)], name: fn(&Found) -> &str| {
            let start = hashes.partition_point(|(hash, _)| *hash < wanted);
            let alike = hashes[start..].iter().take_while(|(hash, _)| *hash == wanted);
            let alike = alike.filter_map(|(_, place)| tools.get(*place as usize));
            alike.filter(|found| name::folded(name(found)) == folded).collect()
        };
        [of(&self.exposed, exposed), of(&self.own, own)]
    }
}

fn exposed(found: &Found) -> &str {
    &found.exposed
}

fn own(found: &Found) -> &str {
    &found.target.tool
}

/// Equal for names that are equal when folded.
fn hash(name: &str) -> u64 {
    let mut hasher = FxHasher::default();
    for c in name::folded_chars(name) {
        c.hash(&mut hasher);
    }
    hasher.finish()
}
