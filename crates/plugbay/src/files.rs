//! Files of the user and of hosts; [`own`] handles plugbay's own files.

use std::{
    fmt, fs, io,
    path::{Component, Path, PathBuf},
};

pub use plugbay_files::{create_folder, destination, folder_of, is_abandoned, own, replace, sweep};

/// Size limit: more than any of these files needs.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The content of a file of a host or a repository, following symbolic links.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    plugbay_files::read(path, LARGEST)
}

/// The content of one of plugbay's own files.
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    own::read(path, LARGEST)
}

/// Moves one of plugbay's own files aside if it cannot be parsed, so that it can be examined; it is never
/// overwritten. `what` describes the file in the log.
pub fn move_aside(path: &Path, what: &str, why: &dyn fmt::Display) {
    let aside = path.with_extension("json.corrupt");
    let outcome = fs::rename(path, &aside);
    tracing::warn!(path = %path.display(), aside = %aside.display(), ?outcome, "moved a damaged file with {what} aside: {why}");
}

/// Like [`read`], for a file of text.
pub fn read_text(path: &Path) -> io::Result<String> {
    plugbay_files::read_text(path, LARGEST)
}

/// The real path of a file, with every symbolic link resolved. Neither the file nor the folders above it need
/// exist.
pub fn resolve(path: &Path) -> io::Result<PathBuf> {
    let path = destination(path)?;
    let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, resolved)) = known else { return Ok(path) };
    let rest = path.strip_prefix(above).unwrap_or(&path);
    if rest.components().any(|part| part == Component::ParentDir) {
        return Err(io::Error::other("its symbolic link leads through a folder that does not exist"));
    }
    Ok(if rest.as_os_str().is_empty() { resolved } else { resolved.join(rest) })
}
