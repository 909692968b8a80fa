//! The file of this program at the start of the process: an update may replace it while the process runs.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::UNIX_EPOCH,
};

/// A link to the file that this process runs, even if its name is gone.
const RUNNING: &str = "/proc/self/exe";

static NOTED: OnceLock<Option<Noted>> = OnceLock::new();

struct Noted {
    path: PathBuf,
    /// In nanoseconds since 1970.
    modified: u64,
}

/// Notes the file. Called once, when the process starts.
pub fn note_program() {
    noted();
}

/// The path to start this program again: a newer one, if an update has replaced the file.
pub fn program() -> io::Result<PathBuf> {
    match noted() {
        Some(noted) if noted.path.is_file() => Ok(noted.path.clone()),
        _ if Path::new(RUNNING).exists() => Ok(RUNNING.into()),
        _ => env::current_exe(),
    }
}

/// When this program was built, in nanoseconds since 1970. Tests set it to simulate another build.
pub fn built() -> u64 {
    let set = env::var("PLUGBAY_BUILT").ok().and_then(|text| text.parse().ok());
    set.or_else(|| noted().map(|noted| noted.modified)).unwrap_or_default()
}

fn noted() -> Option<&'static Noted> {
    let note = || {
        let path = env::current_exe().ok()?;
        let file = fs::metadata(&path).or_else(|_| fs::metadata(RUNNING)).ok()?;
        let since = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(Noted { path, modified: u64::try_from(since.as_nanos()).ok()? })
    };
    NOTED.get_or_init(note).as_ref()
}
