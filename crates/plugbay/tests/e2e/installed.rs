//! The pinned programs that `tests-e2e/setup.sh` has installed. Tests install nothing.

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// `off` skips these tests; with `required` a missing program makes them fail.
const E2E: &str = "PLUGBAY_E2E";

/// The variable that makes `setup.sh`, and the scripts that call it, check without installing.
pub(crate) const INSTALL_NOTHING: (&str, &str) = ("PLUGBAY_E2E_INSTALL", "never");

/// The exit code of `setup.sh` if something is not installed.
pub(crate) const NOT_INSTALLED: i32 = 3;

/// The oldest version of node on which the inspector runs.
const NEWER_NODE: (u32, u32) = (22, 19);

/// The folder of `setup.sh`, if it has everything that most tests need.
#[derive(Debug)]
pub(crate) struct Installed {
    pub(crate) folder: PathBuf,
}

/// Checks once per process. `None`: the test is skipped, and stderr says why.
pub(crate) fn installed() -> Option<&'static Installed> {
    static INSTALLED: OnceLock<Result<Installed, String>> = OnceLock::new();
    match INSTALLED.get_or_init(find) {
        Ok(installed) => Some(installed),
        Err(reason) => {
            skipped(reason);
            None
        }
    }
}

/// Reports a skipped test directly on stderr, because the test harness would hide it. Fails the test if it is
/// required.
pub(crate) fn skipped(reason: &str) {
    assert!(!is("required"), "skipped, but {E2E} is \"required\": {reason}");
    let _ = writeln!(io::stderr(), "skipped: {reason}");
}

/// The folder with the scripts and pinned versions.
pub(crate) fn scripts() -> PathBuf {
    repository().join("tests-e2e")
}

impl Installed {
    /// The absolute path of an installed file.
    pub(crate) fn path(&self, inside: &str) -> String {
        self.folder.join(inside).to_string_lossy().into_owned()
    }

    /// A node that is new enough for the inspector: the one from `setup.sh`, or the system's.
    pub(crate) fn newer_node(&self) -> Option<String> {
        let newer = self.path("node/node_modules/.bin/node");
        if Path::new(&newer).exists() {
            return Some(newer);
        }
        let output = Command::new("node").arg("--version").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().trim_start_matches('v').to_owned();
        let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
        ((parts.next()?, parts.next()?) >= NEWER_NODE).then(|| "node".to_owned())
    }
}

fn find() -> Result<Installed, String> {
    if is("off") {
        return Err(format!("{E2E} is off"));
    }
    let folder =
        env::var_os("PLUGBAY_E2E_DIR").map_or_else(|| repository().join("target/e2e"), PathBuf::from);
    let (name, value) = INSTALL_NOTHING;
    let mut check = Command::new("sh");
    check.arg(scripts().join("setup.sh")).args(["packages", "py1", "py2"]);
    let output = check.env("PLUGBAY_E2E_DIR", &folder).env(name, value).output();
    let output = output.map_err(|error| format!("no shell to look for real servers with: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(NOT_INSTALLED) {
        return Err(said.trim().to_owned());
    }
    assert!(output.status.success(), "setup.sh failed ({}): {said}", output.status);
    Ok(Installed { folder: folder.canonicalize().expect("the folder of setup.sh") })
}

fn is(value: &str) -> bool {
    env::var(E2E).is_ok_and(|set| set == value)
}

fn repository() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("crates/plugbay is two below the top").to_owned()
}
