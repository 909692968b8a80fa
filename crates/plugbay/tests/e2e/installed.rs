//! Where the pinned programs are, installed on first use.

use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// What `setup.sh` says when node or python is missing.
const PROGRAM_MISSING: i32 = 3;

/// The oldest node that the inspector runs on.
const NEWER_NODE: (u32, u32) = (22, 19);

/// What `setup.sh` has installed.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) folder: PathBuf,
}

/// Installs once per process and, behind a lock, once per machine. `None` says why on stderr.
pub(crate) fn installed() -> Option<&'static Installed> {
    static INSTALLED: OnceLock<Result<Installed, String>> = OnceLock::new();
    match INSTALLED.get_or_init(install) {
        Ok(installed) => Some(installed),
        Err(reason) => {
            skipped(reason);
            None
        }
    }
}

/// Says so past the test harness, which would hide it.
pub(crate) fn skipped(reason: &str) {
    let _ = writeln!(io::stderr(), "skipped: {reason}");
}

/// The scripts and pins beside the crates.
pub(crate) fn scripts() -> PathBuf {
    repository().join("tests-e2e")
}

impl Installed {
    /// An absolute path to something installed.
    pub(crate) fn path(&self, inside: &str) -> String {
        self.folder.join(inside).to_string_lossy().into_owned()
    }

    /// A node that is new enough for the inspector: ours, or the one that `setup.sh` brought.
    pub(crate) fn newer_node(&self) -> Option<String> {
        let packages = fs::read_dir(self.folder.join("node_modules")).ok()?.flatten();
        let brought = packages
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("node-"))
            .map(|entry| entry.path().join("bin/node"))
            .find(|node| node.exists());
        if let Some(node) = brought {
            return Some(node.to_string_lossy().into_owned());
        }
        let output = Command::new("node").arg("--version").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().trim_start_matches('v').to_owned();
        let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
        ((parts.next()?, parts.next()?) >= NEWER_NODE).then(|| "node".to_owned())
    }
}

fn install() -> Result<Installed, String> {
    if env::var("PLUGBAY_E2E").is_ok_and(|value| value == "off") {
        return Err("PLUGBAY_E2E is off".into());
    }
    let folder =
        env::var_os("PLUGBAY_E2E_DIR").map_or_else(|| repository().join("target/e2e"), PathBuf::from);
    fs::create_dir_all(&folder).expect("the folder for real servers");
    let folder = folder.canonicalize().expect("the folder for real servers");
    let lock = File::create(folder.join("lock")).expect("the lock on real servers");
    lock.lock().expect("the lock on real servers");
    let output = Command::new("sh").arg(scripts().join("setup.sh")).arg(&folder).output();
    let output = output.map_err(|error| format!("no shell to install real servers with: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(PROGRAM_MISSING) {
        return Err(said.trim().to_owned());
    }
    assert!(output.status.success(), "setup.sh failed ({}): {said}", output.status);
    Ok(Installed { folder })
}

fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("crates/plugbay is two below the top").to_owned()
}
