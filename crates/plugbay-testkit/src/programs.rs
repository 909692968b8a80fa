//! Finds the programs under test.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// The gateway: `PLUGBAY_BIN`, or the binary that cargo built for the calling test
/// (`env!("CARGO_BIN_EXE_plugbay")`).
pub fn gateway_path(built: &str) -> PathBuf {
    env::var_os("PLUGBAY_BIN").map_or_else(|| built.into(), PathBuf::from)
}

/// The scripted server: `PLUGBAY_SCRIPTED_SERVER`, or built once per test process.
///
/// Cargo builds no binaries of other packages for a test. So this asks cargo to build it, into the target
/// folder and profile of the running test. If nothing has changed, that takes a moment.
pub fn scripted_server_path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| env::var_os("PLUGBAY_SCRIPTED_SERVER").map_or_else(build, PathBuf::from))
}

/// Writes an executable script, in another process. If this process wrote it, a test that starts a process at
/// the same moment would pass the open file to its child. Until that child has closed it, the script could
/// not be executed (`ETXTBSY`).
pub fn write_program(path: &Path, script: &str) {
    let write = Command::new("sh").args(["-c", r#"printf %s "$1" > "$0""#]).arg(path).arg(script).status();
    assert!(write.is_ok_and(|status| status.success()), "cannot write {}", path.display());
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a program's mode");
}

fn build() -> PathBuf {
    // …/TARGET/PROFILE/deps/test-hash, or …/TARGET/PROFILE/program
    let own = env::current_exe().expect("own path");
    let folder = own.parent().expect("a folder");
    let folder = if folder.ends_with("deps") { folder.parent().expect("PROFILE") } else { folder };
    let target = folder.parent().expect("TARGET");
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--quiet", "--bin", "scripted-server", "--profile", profile, "--manifest-path"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .arg("--target-dir")
        .arg(target)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "scripted-server: {}", String::from_utf8_lossy(&output.stderr));
    let path = folder.join(format!("scripted-server{}", env::consts::EXE_SUFFIX));
    assert!(path.exists(), "cargo did not leave {}", path.display());
    path
}
