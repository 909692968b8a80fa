//! The embedding table, linked into the binary and read at the first search.

use std::sync::{Arc, LazyLock};

use plugbay_core::search::EmbeddingTable;

static TABLE: LazyLock<Option<Arc<EmbeddingTable>>> = LazyLock::new(|| {
    let bytes = include_bytes!("../assets/tools-64d-int8.bin");
    EmbeddingTable::read(bytes).map(Arc::new)
});

/// The table, shared by all engines of the process.
pub fn table() -> Option<Arc<EmbeddingTable>> {
    TABLE.clone()
}

#[cfg(test)]
mod tests {
    use plugbay_core::search::INDEX_VERSION;
    use sha2::{Digest, Sha256};

    #[test]
    fn the_table_can_be_read() {
        assert!(super::table().is_some());
    }

    /// Search indexes in the cache contain embeddings from this table.
    #[test]
    fn another_table_needs_another_version_of_stored_indexes() {
        let digest = format!("{:x}", Sha256::digest(include_bytes!("../assets/tools-64d-int8.bin")));
        assert_eq!((INDEX_VERSION, &digest[..16]), (1, "187f4eeef361d4d4"));
    }
}
