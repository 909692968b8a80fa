//! Finds the plugbay binary, or builds it if none is given.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{Outcome, output};

const WITHOUT: &str = "name a binary with --gateway PATH, or measure without it: --only direct,pump";

pub(crate) fn find(given: Option<&Path>) -> Outcome<PathBuf> {
    match given {
        Some(path) => path
            .canonicalize()
            .map_err(|error| format!("no gateway at {}: {error}; {WITHOUT}", path.display()).into()),
        None => build(),
    }
}

fn build() -> Outcome<PathBuf> {
    output::progress("building plugbay (release)");
    // `cargo run` sets the variable to the cargo that runs us.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "-p", "plugbay", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not start: {error}; {WITHOUT}"))?;
    if !built.status.success() {
        return Err(format!("plugbay does not build; {WITHOUT}").into());
    }
    executable(&String::from_utf8_lossy(&built.stdout))
        .ok_or_else(|| format!("cargo built no plugbay binary; {WITHOUT}").into())
}

/// The path of the binary, which cargo itself reports, whatever target folder is configured.
fn executable(messages: &str) -> Option<PathBuf> {
    messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
        (message["target"]["name"] == "plugbay").then(|| message["executable"].as_str().map(PathBuf::from))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_read_from_cargos_messages() {
        let messages = r#"
{"reason":"compiler-artifact","target":{"name":"bytes"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"plugbay"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"plugbay"},"executable":"/t/release/plugbay"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/t/release/plugbay")));
        assert_eq!(executable("{}"), None);
    }
}
