//! Rule: dependencies between crates go in one direction, according to `cargo tree`.

use std::process::Command;

use super::Tree;

/// Crates, and the dependencies that each must not have.
const FORBIDDEN: [(&str, &[&str]); 8] = [
    // Everything that does input, output or waiting.
    ("plugbay-core", &["tokio", "mio", "rustix", "libc", "socket2", "hyper", "reqwest", "tracing"]),
    ("plugbay-upstream", &["plugbay-downstream", "plugbay-model", "plugbay-auth", "clap"]),
    ("plugbay-downstream", &["plugbay-upstream", "plugbay-model", "plugbay-auth", "reqwest", "clap"]),
    ("plugbay-model", &["plugbay-upstream", "plugbay-downstream", "plugbay-auth", "clap"]),
    (
        "plugbay-telemetry",
        &["plugbay-upstream", "plugbay-downstream", "plugbay-model", "plugbay-auth", "clap"],
    ),
    ("plugbay-files", &["plugbay-core", "tokio", "tracing", "clap"]),
    // A filter that broke out of jaq might use them.
    ("plugbay-sandbox", &["plugbay-core", "plugbay-files", "reqwest", "hyper", "tracing", "clap"]),
    ("plugbay-auth", &["plugbay-upstream", "plugbay-downstream", "plugbay-model", "clap"]),
];

pub(super) fn check(_: &Tree) -> Vec<String> {
    FORBIDDEN.iter().flat_map(|(krate, banned)| problems(krate, banned)).collect()
}

fn problems(krate: &str, banned: &[&str]) -> Vec<String> {
    let tree = Command::new("cargo")
        .args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--package", krate])
        .output();
    let Ok(tree) = tree else { return vec!["cargo tree does not run".to_owned()] };
    let tree = String::from_utf8_lossy(&tree.stdout);
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    if names.is_empty() {
        return vec![format!("cargo tree knows no {krate}")];
    }
    let found = banned.iter().filter(|banned| names.contains(banned));
    found
        .map(|banned| {
            format!(
                "{krate} must not depend on {banned}; `cargo tree -p {krate} -i {banned}` shows how it does"
            )
        })
        .collect()
}
