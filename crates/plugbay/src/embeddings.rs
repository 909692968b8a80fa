//! The embedding table, linked into the binary and read when something is searched for the first time.

use std::sync::{Arc, LazyLock};

use plugbay_core::search::EmbeddingTable;

static TABLE: LazyLock<Option<Arc<EmbeddingTable>>> = LazyLock::new(|| {
    let bytes = include_bytes!("../assets/tools-64d-int8.bin");
    EmbeddingTable::read(bytes).map(Arc::new)
});

/// Shared by all engines of the process.
pub fn table() -> Option<Arc<EmbeddingTable>> {
    TABLE.clone()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_can_be_read() {
        assert!(super::table().is_some());
    }
}
