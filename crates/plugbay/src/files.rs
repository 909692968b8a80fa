//! Files of the user and of hosts; [`own`] has those of plugbay's own.

use std::{
    fmt, fs, io,
    path::{Component, Path, PathBuf},
};

pub use plugbay_files::{create_folder, destination, folder_of, is_abandoned, own, replace, sweep};

/// More than any of these files has.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The bytes of a file that a host or a repository has written, behind its symbolic links.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    plugbay_files::read(path, LARGEST)
}

/// The bytes of a file of plugbay's own.
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    own::read(path, LARGEST)
}

/// Moves a file of plugbay's own that cannot be parsed aside, for whoever wants to know why: it is never overwritten. `what`
/// it is stands in the log.
pub fn move_aside(path: &Path, what: &str, why: &dyn fmt::Display) {
    let aside = path.with_extension("json.corrupt");
    let outcome = fs::rename(path, &aside);
    tracing::warn!(path = %path.display(), aside = %aside.display(), ?outcome, "moved a damaged file with {what} aside: {why}");
}

/// Like [`read`], for a file of text.
pub fn read_text(path: &Path) -> io::Result<String> {
    plugbay_files::read_text(path, LARGEST)
}

/// The file itself, behind every symbolic link on the way to it. It need not exist, nor the folders above it.
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
