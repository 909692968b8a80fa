//! The entry of a full table that gives way to a new one: an old one of the owner that has the most.

use std::{collections::HashMap, hash::Hash};

/// An entry that may be removed.
#[derive(Debug)]
pub struct Removable<K, T> {
    pub key: K,
    /// When it was last used.
    pub used: T,
}

/// The entry that gives way to a new one of `newcomer`. `entries` are all entries by owner; `None` stands for
/// an entry that must stay. The owner with the most entries loses its least recently used one, so that no
/// owner pushes out the entries of others. If all of its entries must stay, the owner with the next most
/// loses one.
pub fn gives_way<O: Eq + Hash, K, T: Ord>(
    newcomer: O,
    entries: impl IntoIterator<Item = (O, Option<Removable<K, T>>)>,
) -> Option<K> {
    /// How many entries an owner has, whether it is the newcomer, and its oldest removable entry.
    type Owned<K, T> = ((usize, bool), Option<Removable<K, T>>);
    let mut owners: HashMap<O, Owned<K, T>> = HashMap::new();
    owners.insert(newcomer, ((1, true), None));
    for (owner, entry) in entries {
        let ((count, _), oldest) = owners.entry(owner).or_default();
        *count += 1;
        if let Some(entry) = entry
            && oldest.as_ref().is_none_or(|oldest| entry.used < oldest.used)
        {
            *oldest = Some(entry);
        }
    }
    let removable = owners.into_values().filter_map(|(rank, oldest)| Some((rank, oldest?)));
    let chosen = removable.max_by(|(one, of_one), (other, of_other)| {
        one.cmp(other).then_with(|| of_other.used.cmp(&of_one.used))
    });
    chosen.map(|(_, oldest)| oldest.key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(owners: &str, stays: &[usize]) -> Vec<(char, Option<Removable<usize, usize>>)> {
        let entry = |(at, owner)| (owner, (!stays.contains(&at)).then_some(Removable { key: at, used: at }));
        owners.chars().enumerate().map(entry).collect()
    }

    #[test]
    fn the_owner_of_most_entries_loses_its_oldest() {
        assert_eq!(gives_way('b', table("baaab", &[])), Some(0), "with the new one, b has as many as a");
        assert_eq!(gives_way('c', table("baaab", &[])), Some(1));
        assert_eq!(gives_way('a', table("baab", &[])), Some(1), "a caller that takes more loses its own");
        assert_eq!(gives_way('c', table("baaab", &[1])), Some(2), "what is in use stays");
        assert_eq!(gives_way('c', table("baaab", &[1, 2, 3])), Some(0));
        assert_eq!(gives_way('c', table("dba", &[0])), Some(1), "of equals the oldest");
        assert_eq!(gives_way('c', table("a", &[0])), None);
    }
}
