//! The checks that are separate commands, run as anybody would run them: see `tests-e2e/`.

use std::{
    io::{self, Write},
    process::Command,
};

use plugbay_testkit::gateway_path;

use crate::installed::{INSTALL_NOTHING, Installed, NOT_INSTALLED, installed, scripts, skipped};

/// Runs a script of `tests-e2e/` with this gateway, and prints its table directly, past the test harness.
pub(crate) fn check_script(name: &str, args: &[&str]) {
    let Some(Installed { folder }) = installed() else { return };
    let mut command = Command::new("sh");
    let (variable, value) = INSTALL_NOTHING;
    command.arg(scripts().join(name)).args(args).env("PLUGBAY_E2E_DIR", folder).env(variable, value);
    command.env("PLUGBAY_BIN", gateway_path(env!("CARGO_BIN_EXE_plugbay")));
    let output = command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let (table, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(NOT_INSTALLED) {
        let _ = writeln!(io::stderr(), "\n{table}");
        return skipped(&format!("{name}: {}{}", table.trim(), said.trim()));
    }
    // The output of a long run may be cut before the failures that it repeats at its end.
    let reason = if output.status.success() { "" } else { &said };
    let _ = writeln!(io::stderr(), "\n{table}{reason}");
    assert!(output.status.success(), "{name}: {}", output.status);
}
