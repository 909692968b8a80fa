//! Entry points of the fuzz targets.

/// Reads a cache file and renders it again; `None` if it holds no lists.
pub fn rewrite_cache(text: &[u8]) -> Option<Vec<u8>> {
    crate::cache::rewritten(text)
}

/// A text with its variables expanded; `None` if one cannot be.
pub fn expand(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    crate::config::expanded(text, env)
}
