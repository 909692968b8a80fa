//! The store of large results: one for all gateways of this process.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use plugbay_downstream::Results;

use super::filters;

/// The store. Results that do not fit into memory go to unnamed files in the cache folder of the first
/// gateway.
pub(super) fn store(cache_folder: Option<&PathBuf>, program: &Path) -> Arc<Results> {
    static STORE: OnceLock<Arc<Results>> = OnceLock::new();
    let folder = || cache_folder.cloned().unwrap_or_else(std::env::temp_dir);
    Arc::clone(STORE.get_or_init(|| Arc::new(Results::new(folder(), filters::sandboxed(program)))))
}
