//! Entry points of the fuzz targets.

/// A cache file as it would be written after it has been read; `None` if it holds no lists.
pub fn rewrite_cache(text: &[u8]) -> Option<Vec<u8>> {
    crate::cache::rewritten(text)
}
