//! Whether a model can distinguish the lines of a reply by more than their names.

use std::collections::HashSet;
use std::hash::Hash;

use plugbay_core::search::Hit;
use plugbay_core::signature::Signature;

use super::data::Catalog;

/// Whether two of the tools have the same purpose in their own words.
pub(super) fn say_the_same(catalog: &Catalog, hits: &[Hit]) -> bool {
    let purpose = |hit: &Hit| Signature::of("", &catalog.tools[hit.tool as usize].1).purpose;
    has_two(hits.iter().map(purpose).filter(|purpose| !purpose.is_empty()))
}

/// Whether two lines of a reply end with the same purpose.
pub(super) fn are_told_the_same(reply: &str) -> bool {
    has_two(reply.lines().filter_map(|line| line.split_once(") - ")).map(|(_, purpose)| purpose))
}

/// Whether three of the tools have the same name, description and schema.
pub(super) fn are_copies(catalog: &Catalog, hits: &[Hit]) -> bool {
    let definition = |hit: &Hit| {
        let tool = &catalog.tools[hit.tool as usize].1;
        (tool.name.to_lowercase(), tool.raw("description"), tool.raw("inputSchema"))
    };
    let all: Vec<_> = hits.iter().map(definition).collect();
    all.iter().any(|one| all.iter().filter(|other| *other == one).count() > 2)
}

fn has_two<T: Hash + Eq>(mut all: impl Iterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    !all.all(|one| seen.insert(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_the_same_purpose_are_told_the_same() {
        assert!(are_told_the_same("a(x: string) - Does it.\nb() - Does it."));
        assert!(
            !are_told_the_same("a() - Does it.\nb()\nc()"),
            "a line without a purpose is told by its name"
        );
    }
}
